"""Actions on records: each shows its consequences, then calls the function of the API that does the same."""
