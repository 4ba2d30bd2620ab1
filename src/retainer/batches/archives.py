"""Archives: the PDFs of many documents in one ZIP, which a job makes; it issues the drafts first if it is asked to.

The PDFs are drawn by a renderer, one after another, and stored in the transaction that says so. An account keeps the
file of its newest archive, for a week.
"""

import zipfile
from collections.abc import Iterator
from functools import partial
from time import monotonic
from typing import IO

import msgspec

from retainer.batches import bulk
from retainer.batches.bulk import MAILED, ChosenRecord
from retainer.billing.files import PRINTED_AS, PaperFile
from retainer.errors import Refusal
from retainer.jobs import jobs
from retainer.jobs.jobs import ARCHIVE
from retainer.jobs.kinds import Job, JobKind, JobRow, options_of
from retainer.kernel.representations import RenderedFile, RunApart
from retainer.mail.send import LOADERS
from retainer.store.engines.base import Unavailable
from retainer.store.tx import Tx

PREPARED = 5
"""Documents of a step, which takes about as long to draw as others to write."""
SECONDS = 0.5
ISSUE = "status=sent"
UNDERWAY = "Another job is making PDFs. Wait until it has ended, or stop it."
REPLACED = "The file of this job was replaced by a newer one, so it can't continue. Make it again."
BUSY = "The server is too busy to draw a document."


class ArchiveOptions(msgspec.Struct):
    """The documents of an archive, with what people call them, and whether they are issued first."""

    kind: str
    records: list[tuple[int, str]]
    issues: bool


def start(tx: Tx, kind: str, records: dict[int, str], *, issues: bool = False) -> int:
    """Start the job that makes an archive, which replaces the one before; return its id. Raises `locked`."""
    if jobs.has_open(tx, ARCHIVE):
        raise Refusal("locked", UNDERWAY)
    jobs.delete_files(tx, ARCHIVE)
    noun = bulk.noun_of(kind, len(records))
    title = f"Issue {len(records)} {noun} and make their PDFs" if issues else f"PDFs of {len(records)} {noun}"
    options = ArchiveOptions(kind, [*records.items()], issues)
    return jobs.start(tx, ARCHIVE, title, options, total=(1 + issues) * len(records))


def next_rows(tx: Tx, job: Job, limit: int) -> list[JobRow]:
    """Return the next drafts to issue, and after them the next documents to draw."""
    options: ArchiveOptions = options_of(job, ArchiveOptions)
    records, first = options.records, job.position
    if options.issues and first < len(records):
        return [
            JobRow(position, name, ChosenRecord(options.kind, ISSUE, record_id))
            for position, (record_id, name) in enumerate(records[first : first + limit], first + 1)
        ]
    place = first - len(records) * options.issues
    return [
        JobRow(position, name, _prepare(tx, options, record_id))
        for position, (record_id, name) in enumerate(records[place : place + PREPARED], first + 1)
    ]


def _prepare(tx: Tx, options: ArchiveOptions, record_id: int) -> PaperFile | Refusal | None:
    """Return a document to draw; None for a draft that was to be issued and was refused."""
    try:
        record = LOADERS[MAILED[options.kind]](tx, record_id)
        is_left_out = options.issues and getattr(record, "status", "") == "draft"
        return None if is_left_out else PRINTED_AS[0].prepare(tx, record)  # type: ignore[return-value]
    except Refusal as refusal:
        return refusal


def draw(run_apart: RunApart, account_id: int, rows: list[JobRow]) -> list[JobRow]:
    """Draw the documents of the first rows. Raises Unavailable for an accident, after which the step is tried again."""
    made: list[JobRow] = []
    until = monotonic() + SECONDS
    for row in rows:
        made.append(row._replace(value=_drawn(run_apart, account_id, row.value)))
        if monotonic() > until:
            break
    return made


def _drawn(run_apart: RunApart, account_id: int, value: object) -> object:
    if not isinstance(value, PaperFile):
        return value
    try:
        return value.finish(account_id, run_apart)
    except TimeoutError:
        raise Unavailable(BUSY) from None
    except Refusal as refusal:
        if refusal.code == "unavailable":
            raise Unavailable(refusal.message) from None
        return refusal


def write(tx: Tx, job: Job, row: JobRow) -> None:
    """Issue a draft, or store a PDF. Raises what refuses it."""
    if isinstance(row.value, ChosenRecord):
        bulk.write(tx, job, row)
    elif isinstance(row.value, Refusal):
        raise row.value
    elif isinstance(row.value, RenderedFile):
        jobs.add_piece(tx, job.id, row.position, row.value.name.encode() + b"\n" + row.value.content)
        job.count("files")


def finish(_: Tx, job: Job) -> str:
    return "The file is kept for 7 days, or until another one is made." if job.counts else "There is no PDF."


def has_file(tx: Tx, job: Job) -> bool:
    """Return whether what a job has made so far is still there."""
    return jobs.count_pieces(tx, job.id) == job.counts.get("files", 0)


def resume(tx: Tx, job: Job) -> None:
    """Let a stopped or failed archive continue. Raises `locked` if its file was replaced, or while another is made."""
    if not has_file(tx, job):
        raise Refusal("locked", REPLACED)
    if jobs.has_open(tx, ARCHIVE):
        raise Refusal("locked", UNDERWAY)
    jobs.resume(tx, job)


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


def zipped(tx: Tx, job_id: int) -> Iterator[bytes]:
    """Yield the ZIP of an archive, a document at a time, in a snapshot."""
    found = (piece.split(b"\n", 1) for piece in jobs.read_pieces(tx, job_id))
    return zip_of((name.decode(), content) for name, content in found)


def zip_of(files: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yield the ZIP of files, without compression, because PDFs are compressed; no two have the same name in it."""
    sink, names = ZipSink(), set[str]()
    target: IO[bytes] = sink  # type: ignore[assignment]
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files:
            archive.writestr(unique_name(name, names), content)
            yield sink.take()
    yield sink.take()


def unique_name(name: str, names: set[str]) -> str:
    """Return a name that is not among those given, to which it is added: `INV-1.pdf`, `INV-1-2.pdf`."""
    stem, _, suffix = name.rpartition(".")
    number, found = 1, name
    while found.casefold() in names:
        number += 1
        found = f"{stem}-{number}.{suffix}"
    names.add(found.casefold())
    return found


def kind_of(run_apart: RunApart) -> JobKind:
    """Return the kind of archives, whose documents this function draws."""
    return JobKind(ARCHIVE, next_rows, write, make=partial(draw, run_apart), finish=finish, area="records")
