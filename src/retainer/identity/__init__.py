"""Identity: accounts, plans, users, keys, sign-ins, and the audit log."""
