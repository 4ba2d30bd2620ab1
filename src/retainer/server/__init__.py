"""A serving process: the HTTP server, the log, and the chores beside requests."""
