"""Batches: several requests in one."""
