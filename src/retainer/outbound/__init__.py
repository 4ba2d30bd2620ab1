"""Outbound: requests to addresses that tenants have entered, and the background loops that send them."""
