"""The uptime monitor: claim what is due, probe it, record what was found."""
