"""Operations: the log, health, metrics, outages, and housekeeping."""
