"""The console: the account's API settings as pages for its admins."""
