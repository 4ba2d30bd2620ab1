"""API keys: creation, authentication, listing and changes."""
