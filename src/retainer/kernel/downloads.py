"""Downloads: stored files that are too large for memory, as copies on disk while clients take them.

The HTTP server opens a copy, and reads it only as fast as its client does. All clients of a file share one copy, so
that copies never take more room than the files of an account may.
"""

import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from retainer.errors import Refusal

MAX_IN_MEMORY = 256 * 1024
"""Bytes of a file that is sent from memory."""
KEPT_SECONDS = 30
"""How long a copy is kept at least: longer than the HTTP server takes to open it."""
OPEN_FILES = Path("/proc/self/fd")
"""Where Linux lets a process open again what it has open. Elsewhere, files are sent from memory."""


class NoRoom(Refusal):
    """A refusal of a file that this server cannot hold."""

    def __init__(self) -> None:
        what = "The server has no room for this file, and nothing was changed."
        super().__init__("unavailable", f"{what} Tell its operator, or try again later.", headers={"Retry-After": "60"})


@contextmanager
def needing_room() -> Iterator[None]:
    """Raise `unavailable` for a temporary file that has no folder, or that the disk has no room for."""
    try:
        yield
    except OSError as error:
        raise NoRoom from error


class Download:
    """A copy without a name, which is deleted when nothing has it open: a kill leaves nothing."""

    def __init__(self, pieces: Iterable[bytes], folder: Path | None) -> None:
        with needing_room():
            self._file = TemporaryFile(dir=folder)  # noqa: SIM115  # closed below
            weakref.finalize(self, self._file.close)
            self._file.writelines(pieces)
            self._file.flush()
        self.size = self._file.tell()
        self.inode = inode_of(self._file.fileno())

    def read(self, size: int) -> Iterator[bytes]:
        """Yield the bytes from the beginning, in pieces of this size; the last one may be shorter."""
        self._file.seek(0)
        while piece := self._file.read(size):
            yield piece

    @property
    def path(self) -> str:
        return str(OPEN_FILES.joinpath(str(self._file.fileno())))


class Downloads:
    """The copies of a process, by what they are copies of."""

    def __init__(self) -> None:
        self._copies: dict[tuple[int, str], tuple[Download, float]] = {}
        self._lock = threading.Lock()

    def get(self, account_id: int, sha256: str, copy: Callable[[], Download]) -> Download:
        """Return the copy of an account's file with this digest, which `copy` makes if there is none."""
        key = account_id, sha256
        made = None if key in self._copies else copy()
        with self._lock:
            found = self._copies[key][0] if key in self._copies else made or copy()
            self._copies[key] = found, time.monotonic() + KEPT_SECONDS
        return found

    def close_unused(self) -> None:
        """Close the copies that were kept long enough, and that the HTTP server does not read any more."""
        with self._lock:
            now = time.monotonic()
            kept = {key: copy for key, (copy, until) in self._copies.items() if until < now}
            opened = Counter(open_inodes()) if kept else Counter()
            for key, copy in kept.items():
                if opened[copy.inode] <= 1:
                    del self._copies[key]


def inode_of(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def open_inodes() -> Iterator[tuple[int, int]]:
    for descriptor in [int(entry.name) for entry in OPEN_FILES.iterdir()]:
        with suppress(OSError):  # it was closed
            yield inode_of(descriptor)


DOWNLOADS = Downloads()
