"""Processes: the main process, its workers, and the HTTP server that each of them runs."""
