"""Customers: clients, the people there, and tags."""
