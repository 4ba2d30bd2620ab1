"""Tools of tests and benchmarks: agencies, servers as processes, and writers that note acknowledged records."""
