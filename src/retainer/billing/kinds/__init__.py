"""The kinds of work that a line of an invoice bills: each is one file, and no step asks which one it has."""
