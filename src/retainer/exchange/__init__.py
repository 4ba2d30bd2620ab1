"""Exchange: everything of an account as files that other programs read."""
