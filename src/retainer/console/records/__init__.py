"""Records in the console: what the page of a single record shows, by its kind."""
