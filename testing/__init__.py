"""What tests and benchmarks share: agencies, servers as processes, and writers that note what was acknowledged."""
