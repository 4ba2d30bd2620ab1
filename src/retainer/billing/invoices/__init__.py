"""Invoices: their lines, the work that those bill, and the steps from draft to paid."""
