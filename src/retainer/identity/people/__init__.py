"""The people of an account: users, passwords, and the sessions and links by which admins have access."""
