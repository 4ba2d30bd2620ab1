"""The users of an account: passwords, sessions and password links."""
