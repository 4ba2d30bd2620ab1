"""Staging: a folder for unfinished files, on the disk of their final place; one process at a time may use it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from retainer.backup import BackupError
from retainer.store.engines.files import lock_file, sync

NAME = ".retainer-partial"


class BackupBusy(BackupError):
    """Another process makes or restores a backup in the same folder."""


@contextmanager
def staging_dir(folder: Path) -> Iterator[Path]:
    """Yield a new folder within another, and delete it when the block ends; leftovers of a killed process go first.

    Raises Busy, and BackupError when nothing can be written there.
    """
    staging, lock = folder / NAME, folder / f"{NAME}.lock"
    try:
        file = lock_file(lock)
    except OSError as error:
        raise BackupError(f"Nothing can be written to {folder}: {error.strerror}.") from None
    if file is None:
        advice = "Run the command again when it has ended."
        raise BackupBusy(f"Another backup is being made or restored in {folder}. {advice}")
    with file:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(mode=0o700)
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)
            lock.unlink(missing_ok=True)


def move(file: Path, to: Path) -> None:
    """Give a file its final name, in one step that outlasts a power failure."""
    file.replace(to)
    sync(to.parent)
