"""Jobs: work that outlives the request that caused it, and work that the clock starts, done in small steps."""
