"""Identity: accounts and their plans, users, keys, and who may call."""
