"""Monitoring: the log, health, metrics, outages, and housekeeping."""
