"""Backups: one consistent state of the embedded database in a file, and the way back."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is to do, which is 0 where unknown."""


class BackupError(Exception):
    """A backup or restore that was not done; the message says why and what to do, and that nothing has changed."""
