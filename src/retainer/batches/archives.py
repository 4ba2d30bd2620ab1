"""Archives: the PDFs of many documents in one ZIP, which a job makes; it issues the drafts first if it is asked to.

The PDFs are drawn by a renderer, one after another, and stored in the transaction that says so. An account keeps the
file of its newest archive, for a week.
"""

from collections.abc import Iterator
from functools import partial

import msgspec

from retainer.batches import bulk
from retainer.batches.bulk import MAILED, ChosenRecord
from retainer.billing.files import PaperFile, prepare
from retainer.errors import Refusal
from retainer.jobs import jobs, made_files
from retainer.jobs.jobs import ARCHIVE
from retainer.jobs.kinds import Job, JobKind, JobRow, options_of
from retainer.kernel.representations import RenderedFile, RunApart
from retainer.mail.send import LOADERS
from retainer.store.tx import Tx

MAX_DOCUMENTS = 500
"""Documents of an archive: their file is drawn in minutes, and stored."""
PREPARED = 5
"""Documents of a step, which takes about as long to draw as others to write."""
ISSUE = "status=sent"


class ArchiveOptions(msgspec.Struct):
    """The documents of an archive, with what people call them, and whether they are issued first."""

    kind: str
    records: list[tuple[int, str]]
    issues: bool


def start(tx: Tx, kind: str, records: dict[int, str], *, issues: bool = False) -> int:
    """Start the job that makes an archive, which replaces the one before; return its id. Raises `locked`."""
    noun = bulk.noun_of(kind, len(records))
    title = f"Issue {len(records)} {noun} and make their PDFs" if issues else f"PDFs of {len(records)} {noun}"
    options = ArchiveOptions(kind, [*records.items()], issues)
    return made_files.start(tx, FILE, title, options, (1 + issues) * len(records))


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
        return None if is_left_out else prepare("pdf", tx, record)
    except Refusal as refusal:
        return refusal


def draw(run_apart: RunApart, account_id: int, rows: list[JobRow]) -> list[JobRow]:
    """Draw the documents of the first rows. Raises Unavailable for an accident, after which the step is tried again."""

    def draw_one(value: object) -> object:
        if not isinstance(value, PaperFile):
            return value
        try:
            return value.finish(account_id, run_apart)
        except Refusal as refusal:
            if refusal.code == "unavailable":
                raise
            return refusal

    return made_files.make_some(rows, draw_one)


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
    return made_files.KEPT if job.counts else "There is no PDF."


def zipped(tx: Tx, job: Job) -> Iterator[bytes]:
    """Yield the ZIP of an archive, a document at a time, in a snapshot."""
    found = (piece.split(b"\n", 1) for piece in jobs.read_pieces(tx, job.id))
    return zip_of((name.decode(), content) for name, content in found)


def zip_of(files: Iterator[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yield the ZIP of files, without compression, because PDFs are compressed; no two have the same name in it."""
    (sink, archive), names = made_files.open_zip(), set[str]()
    with archive:
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


FILE = made_files.MadeFile(
    ARCHIVE,
    area="records",
    underway="Another job is making PDFs. Wait until it has ended, or stop it.",
    button="Download PDFs (ZIP)",
    name="documents",
    count_pieces=lambda job: job.counts.get("files", 0),
    zipped=zipped,
)


def kind_of(run_apart: RunApart) -> JobKind:
    """Return the kind of archives, whose documents this function draws."""
    return JobKind(ARCHIVE, next_rows, write, make=partial(draw, run_apart), finish=finish, area=FILE.area)
