"""Files: bytes that belong to a record of an account, stored in the database."""
