"""Billing: quotes, invoices, payments, credit notes and expenses."""
