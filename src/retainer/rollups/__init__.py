"""Rollups: stored sums that writes keep up to date, so that reports and records do not add up every row."""
