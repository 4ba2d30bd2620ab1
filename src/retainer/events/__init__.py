"""Events: what has happened to records, which other systems follow."""
