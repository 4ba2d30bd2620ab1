"""The console: pages on which admins manage the API of their account."""
