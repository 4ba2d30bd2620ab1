"""Rules that more than one slice needs, free of HTTP."""
