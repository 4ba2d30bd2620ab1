"""Backups: create and restore files with one consistent state of the embedded database."""

from collections.abc import Callable

CHUNK = 1 << 20
"""Bytes that are compressed or unpacked at a time."""
Progress = Callable[[str, int, int], None]
"""Called with a step, how much of it is done, and its total, which is 0 if unknown."""


class BackupError(Exception):
    """A backup or restore that failed and changed nothing; the message says why and what to do."""
