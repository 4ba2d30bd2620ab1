"""Processes: the main process, its workers, and their HTTP server."""
