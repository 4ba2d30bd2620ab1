"""Support: tickets and their replies."""
