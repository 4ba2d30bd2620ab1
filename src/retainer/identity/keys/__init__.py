"""API keys: what they are, how callers are identified by them, and how admins list and change them."""
