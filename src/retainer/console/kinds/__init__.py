"""The kinds of records: for each, what its list and its page show, in one declaration."""
