"""Plans: what a file would import, as lines of JSON that a job reads in any number of steps.

A line is a record that rows need, or a row of the file, which is an array of its tag, its line, its cells and what
becomes of it.
"""

import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from retainer.errors import Refusal, invalid
from retainer.exchange.columns import ColumnMapping, ImportSource
from retainer.exchange.tables import MAX_ROWS
from retainer.jobs import jobs
from retainer.jobs.kinds import Job, options_of
from retainer.store.constraints import singular_noun
from retainer.store.tx import Tx
from retainer.values.decoding import decoder

PAGE = 1000
"""Refusals that are read at once."""
PIECE = 256 * 1024
"""Bytes of a plan that a step reads at once; more if its first line is longer."""
MAX_SUMS = 5000
"""Maximum number of sums of a file: its job stores all of them, and its page shows them."""
T = TypeVar("T")
Sum = Mapping[str, str | int]
"""A sum of a file before and after its import, with what it is the sum of; people read the names."""


class ImportPlan(NamedTuple):
    headings: list[str]
    content: bytes
    """The lines."""
    size: int
    """How many lines it has."""
    sums: list[Sum]
    notes: Sequence[str] = ()
    """What people should know about the file, apart from its rows."""

    def packed(self) -> "PackedPlan":
        return PackedPlan(self.headings, jobs.pack(io.BytesIO(self.content)), self.size, self.sums)


class PackedPlan(NamedTuple):
    """A plan as it is stored: its lines can be ten times as large as their file."""

    headings: list[str]
    pieces: list[bytes]
    size: int
    sums: list[Sum]


class DescribedRow(NamedTuple):
    """A row of a file as it would be imported: its values by what people call them, and what refuses it so far."""

    line: int
    values: dict[str, str]
    reasons: list[str]


class Planner(Protocol):
    """Returns what a file would import. Local times are in the zone.

    Raises `validation_failed` for what the file as a whole leaves open.
    """

    def __call__(
        self, content: bytes, source: ImportSource, mapping: ColumnMapping, zone: ZoneInfo, /
    ) -> ImportPlan: ...


class FileImport(msgspec.Struct):
    """What a job imports; its input is the plan."""

    source: str
    file: str
    headings: list[str]
    sums: list[dict[str, str | int]]


class PlanLine(NamedTuple):
    """A line of a plan, and the byte after it, which is the position of its row in the job."""

    position: int
    content: bytes


class RefusedFileRow(NamedTuple):
    """A row of the file that the job has not written."""

    line: int
    cells: list[str]
    reason: str


decode_row = decoder(list[Any])


def encode(items: Iterable[msgspec.Struct]) -> bytes:
    return b"".join(msgspec.json.encode(item) + b"\n" for item in items)


def require_few(sums: Collection[object]) -> None:
    """Raise `validation_failed` for a file with more sums than MAX_SUMS."""
    if len(sums) > MAX_SUMS:
        message = f"Has more than {MAX_SUMS:,} different people or clients and months. Divide it, and import the parts."
        raise invalid({"file": [message]})


def start(tx: Tx, kind: str, plan: PackedPlan, source: ImportSource, file: str, *, is_dry_run: bool) -> int:
    """Start the job of a kind that writes a plan; return its id."""
    options = FileImport(source.name, file, plan.headings, [dict(each) for each in plan.sums])
    title = f"Import {file} from {source.title}" if source.name != "csv" else f"Import {file}"
    job_id = jobs.start(tx, kind, title[:200], options, total=plan.size, is_dry_run=is_dry_run)
    jobs.store_input(tx, job_id, plan.pieces)
    return job_id


def counted(job: Job, noun: str) -> str:
    """Return how many of its records a job has made, as people say it; `noun` is in the plural."""
    count = job.counts.get(noun.replace(" ", "_"), 0)
    return f"{count} {singular_noun(noun) if count == 1 else noun}"


def options(job: Job) -> FileImport:
    found: FileImport = options_of(job, FileImport)
    return found


def start_again(tx: Tx, job: Job) -> int:
    """Start the job that does what a dry run has tried; return its id. Raises `locked` for another job."""
    if not job.is_dry_run or job.status != "done":
        raise Refusal("locked", "Only a dry run that has ended can be imported. Reload the page.")
    job_id = jobs.start(tx, job.kind, job.title, job.options, total=job.total)
    jobs.copy_input(tx, job, job_id)
    return job_id


def next_lines(tx: Tx, job: Job, limit: int) -> list[PlanLine]:
    """Return the next lines of the plan of a job."""
    lines: list[bytes] = []
    size = PIECE
    while not lines and len(piece := jobs.read_input(tx, job, job.position, size)):
        *lines, _ = piece.split(b"\n")
        size *= 2
    found, position = [], job.position
    for line in lines[:limit]:
        position += len(line) + 1
        found.append(PlanLine(position, line))
    return found


def refused_rows(tx: Tx, job: Job, limit: int = MAX_ROWS) -> Iterator[RefusedFileRow]:
    """Yield the rows of the file that the job has not written, about a number of them at most, in a snapshot.

    A row of another file of a ZIP has no cells, which would have other headings; its reason begins with its place.
    """
    reasons: dict[int, jobs.RefusedRow] = {}
    while (page := jobs.list_refusals(tx, job, PAGE, len(reasons))) and len(reasons) < limit:
        reasons |= {row.position: row for row in page}
    position, rest = 0, b""
    while piece := jobs.read_input(tx, job, position + len(rest), PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            position += len(line) + 1
            if position in reasons:
                _, number, cells, *_ = decode_row(line)
                refused = reasons.pop(position)
                reason = refused.message
                if isinstance(cells, str):
                    yield RefusedFileRow(number, [], f"{refused.name}: {reason}")
                elif isinstance(number, int):
                    yield RefusedFileRow(number, cells, reason)
                elif isinstance(number, list) and cells:  # several rows; else a record that rows need
                    for each, of_row in zip(number, cells, strict=True):
                        yield RefusedFileRow(each, of_row, reason)
        if not reasons:
            return
