"""The workplace: a folder for files that are not yet whole, beside where they will be; one process at a time has it."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from retainer.backup import BackupError
from retainer.store.engines.files import private

NAME = ".retainer-partial"


class Busy(BackupError):
    """Another process makes or restores a backup in the same folder."""


@contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """Lend a new folder within another, which goes with the block; so does what a killed process has left there.

    Raises Busy, and BackupError when nothing can be written there.
    """
    place, lock = folder / NAME, folder / f"{NAME}.lock"
    try:
        file = open(lock, "w", opener=private)  # noqa: SIM115  # closed below
    except OSError as error:
        raise BackupError(f"Nothing can be written to {folder}: {error.strerror}.") from None
    with file:
        _lock(file.fileno(), folder)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)
            lock.unlink(missing_ok=True)


def move(file: Path, to: Path) -> None:
    """Give a file its final name, in one step that outlasts a power failure."""
    file.replace(to)
    sync(to.parent)


def sync(path: Path) -> None:
    """Let a file, or the names in a folder, reach the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_gone = os.fstat(descriptor).st_nlink == 0  # its holder has ended between the two calls
    except BlockingIOError:
        is_gone = True
    if is_gone:
        raise Busy(f"Another backup is being made or restored in {folder}. Run the command again when it has ended.")
