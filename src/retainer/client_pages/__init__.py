"""Client pages: what clients see of a document with a link, without signing in."""
