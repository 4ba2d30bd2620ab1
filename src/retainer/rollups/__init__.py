"""Rollups: sums that writes keep, so that reports and projects need not add up every row."""
