"""Files that jobs make, in pieces: an account keeps the newest of each kind for a week, as a ZIP."""

import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, NamedTuple

import msgspec

from retainer.errors import Refusal
from retainer.jobs import jobs
from retainer.jobs.kinds import Job, JobRow
from retainer.kernel.roles import Area
from retainer.store.engines.base import Unavailable
from retainer.store.tx import Tx

SECONDS = 0.5
REPLACED = "The file of this job was replaced by a newer one, so it can't continue. Make it again."
KEPT = "The file is kept for 7 days, or until another one is made."
BUSY = "The server is too busy to draw a document."


class MadeFile(NamedTuple):
    """A kind of jobs that make a file."""

    kind: str
    area: Area
    """What the role of a user must include to start it, and to take its file."""
    underway: str
    """What people read who start another one meanwhile."""
    button: str
    name: str
    """The beginning of the file's name; the day follows."""
    count_pieces: Callable[[Job], int]
    """Return how many pieces a job has stored."""
    zipped: Callable[[Tx, Job], Iterator[bytes]]
    """Yield the ZIP of a job, a piece at a time, in a snapshot."""
    counted: str | None = None
    """The count that people read as what is done, if the rows of a job mean nothing to them."""


def start(
    tx: Tx, made: MadeFile, title: str, options: Mapping[str, object] | msgspec.Struct, total: int | None = None
) -> int:
    """Start a job that makes a file, which replaces the one before; return its id. Raises `locked`.

    Nobody has the former file from now on; `loop.refresh` deletes it.
    """
    if jobs.has_open(tx, made.kind):
        raise Refusal("locked", made.underway)
    return jobs.start(tx, made.kind, title, options, total=total)


def resume(made: MadeFile, tx: Tx, job: Job) -> None:
    """Let a stopped or failed job continue. Raises `locked` if its file was replaced, or while another is made."""
    if not has_file(tx, made, job):
        raise Refusal("locked", REPLACED)
    if jobs.has_open(tx, made.kind):
        raise Refusal("locked", made.underway)
    jobs.resume(tx, job)


def has_file(tx: Tx, made: MadeFile, job: Job) -> bool:
    """Return whether what a job has made so far is still there, and no newer job replaces it."""
    return not jobs.has_newer(tx, job) and jobs.count_pieces(tx, job.id) == made.count_pieces(job)


def make_some(rows: list[JobRow], make: Callable[[Any], object]) -> list[JobRow]:
    """Return the first rows with what `make` makes of their values, as many as half a second allows.

    Raises Unavailable for an accident, after which the step is tried again.
    """
    found: list[JobRow] = []
    until = time.monotonic() + SECONDS
    for row in rows:
        try:
            found.append(row._replace(value=make(row.value)))
        except TimeoutError:
            raise Unavailable(BUSY) from None
        except Refusal as refusal:
            if refusal.code == "unavailable":
                raise Unavailable(refusal.message) from None
            raise
        if time.monotonic() > until:
            break
    return found


class ZipSink:
    """A file that is written once, from its beginning to its end, and read meanwhile."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, content: bytes) -> int:
        self._written.append(bytes(content))
        return len(content)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        found, self._written = b"".join(self._written), []
        return found


def open_zip() -> tuple[ZipSink, zipfile.ZipFile]:
    """Return a new ZIP, and what it writes."""
    sink = ZipSink()
    target: IO[bytes] = sink  # type: ignore[assignment]
    return sink, zipfile.ZipFile(target, "w")
