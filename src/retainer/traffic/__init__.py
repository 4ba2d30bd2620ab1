"""Traffic: the requests that an account's keys have made, and their sums."""
