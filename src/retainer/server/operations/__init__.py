"""What operators rely on: the log, health, metrics, outages, and housekeeping beside requests."""
