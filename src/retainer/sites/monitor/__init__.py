"""Uptime monitor: claim due sites, probe them, save the results."""
