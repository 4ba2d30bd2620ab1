"""Backups: create and restore files with one consistent state of the embedded database."""

CHUNK = 1 << 20
"""Bytes that are compressed or unpacked at a time."""


class BackupError(Exception):
    """A backup or restore that failed and changed nothing; the message says why and what to do."""
