"""Upgrades of databases that former deliveries wrote."""
