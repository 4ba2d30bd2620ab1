"""Jobs of an account: start, list, stop and continue them. A job is written in the transaction of what causes it."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import BinaryIO, NamedTuple

import msgspec
from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from retainer.errors import Refusal, Sentence
from retainer.jobs.kinds import Job, JobRow, ListedJob
from retainer.schema.columns import in_literals
from retainer.schema.files import PIECE_BYTES
from retainer.schema.jobs import job_pieces, job_records, job_refusals, jobs
from retainer.store.engines.sql import INSTANT, INTEGER, LIMIT
from retainer.store.row_mapper import row_mapper
from retainer.store.tables import ACCOUNT, NOW
from retainer.store.tx import Tx
from retainer.values.decoding import json_text
from retainer.values.exact import instant_after

DAILY, UPLOAD = "daily", "upload"
"""The kinds of jobs that have no page: that of each morning, and a file that waits to be imported."""
ARCHIVE, EXPORT = "archive", "export"
"""The kinds of jobs that make a file, of which an account keeps one of each, for some days."""
NOT_STOPPED = "Only a job that was stopped or has failed can continue. Nothing was changed."
MAX_LISTED = 50
FAST = 1
"""Compression level of zlib: its fastest, since what a job reads is packed while its person waits."""
KEPT, UPLOADS_KEPT, FILES_KEPT = timedelta(days=90), timedelta(days=1), timedelta(days=7)
"""How long jobs that have ended are kept, files that wait, and files that jobs have made."""
THIS = jobs.c.id == bindparam("job")
IS_OPEN = jobs.c.next_step_at.is_not(None)
NEWEST = (
    row_mapper(jobs, ListedJob)
    .rows.where(~in_literals(jobs.c.kind, [DAILY, UPLOAD]))
    .order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
    .suffix_with(LIMIT)
)
TROUBLED = (
    row_mapper(jobs, ListedJob)
    .rows.where(
        or_(
            jobs.c.created_at >= bindparam("since", type_=INSTANT),
            and_(jobs.c.user_id.is_(None), jobs.c.created_at >= bindparam("by_clock_since", type_=INSTANT)),
        ),
        or_(jobs.c.refused > 0, jobs.c.status == "failed"),
        jobs.c.is_dry_run.is_(False),
    )
    .order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
    .suffix_with(LIMIT)
)
OF_USER = NEWEST.where(jobs.c.user_id == bindparam("user"))
OPEN_OF_KIND = select(func.count()).select_from(jobs).where(jobs.c.kind == bindparam("kind"), IS_OPEN)
STOP = update(jobs).where(THIS, IS_OPEN).values(status="stopped", next_step_at=None, ended_at=NOW, updated_at=NOW)
STOP_ALL = (
    update(jobs)
    .where(IS_OPEN, jobs.c.kind != DAILY)
    .values(status="stopped", next_step_at=None, ended_at=NOW, message=bindparam("reason"), updated_at=NOW)
)
CONTINUE = (
    update(jobs)
    .where(and_(THIS, in_literals(jobs.c.status, ["stopped", "failed"])))
    .values(status="waiting", next_step_at=NOW, attempts=0, ended_at=None, message=None, updated_at=NOW)
    .values(user_id=bindparam("user", type_=INTEGER))
)
REFUSALS = (
    select(*job_refusals.c["number", "position", "name", "message"])
    .where(job_refusals.c.job_id == bindparam("job"), job_refusals.c.number > bindparam("after", type_=INTEGER))
    .order_by(job_refusals.c.number)
    .suffix_with(LIMIT)
)
ADD_REFUSAL = insert(job_refusals).values(
    account_id=ACCOUNT,
    **{name: bindparam(name, type_=INTEGER) for name in ("job_id", "number", "position")},
    **{name: bindparam(name) for name in ("name", "message")},
)
ADD_PIECE = insert(job_pieces).values(
    account_id=ACCOUNT,
    job_id=bindparam("job", type_=INTEGER),
    number=bindparam("number", type_=INTEGER),
    content=bindparam("content", type_=job_pieces.c.content.type),
)
DELETE_PIECE = delete(job_pieces).where(
    job_pieces.c.job_id == bindparam("job", type_=INTEGER), job_pieces.c.number == bindparam("number", type_=INTEGER)
)
NEWER_OF_KIND = (
    select(func.count())
    .select_from(jobs)
    .where(jobs.c.kind == bindparam("kind"), jobs.c.id > bindparam("job", type_=INTEGER))
)
NOTE_RECORD = insert(job_records).values(
    account_id=ACCOUNT,
    job_id=bindparam("job", type_=INTEGER),
    record=bindparam("record"),
    record_id=bindparam("record_id", type_=INTEGER),
)
OF_JOB = job_records.c.job_id == bindparam("job", type_=INTEGER)
RECORDS = (
    select(job_records.c.record_id)
    .where(OF_JOB, job_records.c.record == bindparam("record"))
    .order_by(job_records.c.record_id)
)
PIECES = (
    select(job_pieces.c.content)
    .where(job_pieces.c.job_id == bindparam("job"), job_pieces.c.number >= bindparam("first", type_=INTEGER))
    .order_by(job_pieces.c.number)
    .suffix_with(LIMIT)
)

NEXT_PIECE = PIECES.with_only_columns(job_pieces.c.number, job_pieces.c.content)
COUNT_PIECES = select(func.count()).select_from(job_pieces).where(job_pieces.c.job_id == bindparam("job"))


class RefusedRow(NamedTuple):
    number: int
    position: int
    name: str
    message: str


def start(
    tx: Tx,
    kind: str,
    title: str,
    options: Mapping[str, object] | msgspec.Struct,
    *,
    total: int | None = None,
    is_dry_run: bool = False,
) -> int:
    """Start a job that acts as the user of the transaction; return its id. `total` is its number of rows, if known."""
    values = {
        "kind": kind,
        "title": title,
        "status": "waiting",
        "user_id": tx.actor.user_id or None,
        "options": json_text(options),
        "is_dry_run": is_dry_run,
        "total": total,
        "counts": "{}",
        "next_step_at": tx.now,
    }
    return tx.insert_counted(jobs, values)


def list_jobs(tx: Tx, user_id: int | None = None) -> list[ListedJob]:
    """Return the newest jobs, or those of a user; without the daily one."""
    values = {} if user_id is None else {"user": user_id}
    rows = tx.all(NEWEST if user_id is None else OF_USER, limit=MAX_LISTED, **values)
    found: list[ListedJob] = row_mapper(jobs, ListedJob).read_all(rows)
    return found


def list_troubled(tx: Tx, limit: int) -> list[ListedJob]:
    """Return the newest jobs of the last day that have failed or refused rows, the newest of each title.

    Of those that the clock has started, it returns the jobs of three days: nobody waited for them, perhaps on Sunday.
    """
    since, by_clock_since = (instant_after(tx.now, -timedelta(days=days)) for days in (1, 3))
    rows = tx.all(TROUBLED, since=since, by_clock_since=by_clock_since, limit=4 * limit)
    found: dict[str, ListedJob] = {}
    for job in row_mapper(jobs, ListedJob).read_all(rows):
        found.setdefault(job.title, job)
    return [*found.values()][:limit]


def has_open(tx: Tx, kind: str) -> bool:
    return bool(tx.value(OPEN_OF_KIND, kind=kind))


def leave_out(tx: Tx, job: Job, row: JobRow, sentence: str) -> None:
    """Note what a row leaves out, and why; the step that writes the row saves it with the progress."""
    job.refused += 1
    values = {"number": job.refused, "position": row.position, "name": row.name, "message": sentence}
    tx.run(ADD_REFUSAL, job_id=job.id, **values)


def stop(tx: Tx, job: Job) -> None:
    """Stop a job after the step that is being written. What it has done stays. Raises `locked` if it has ended."""
    if not tx.change(STOP, job=job.id):
        raise Refusal("locked", "This job has ended already. Nothing was changed.")


def resume(tx: Tx, job: Job) -> None:
    """Let a stopped or failed job continue after its last row, as the user of the transaction.

    Raises `locked` for a job that runs or has ended.
    """
    if not tx.change(CONTINUE, job=job.id, user=tx.actor.user_id or None):
        raise Refusal("locked", NOT_STOPPED)


def list_refusals(tx: Tx, job: Job, limit: int, after: int = 0) -> list[RefusedRow]:
    rows = map(RefusedRow._make, tx.all(REFUSALS, job=job.id, after=after, limit=limit))
    return [row._replace(message=Sentence(row.message)) for row in rows]


def note_record(tx: Tx, job: Job, record: str, record_id: int) -> int:
    """Note a record that a job has made, by the name of its table; return its id."""
    tx.run(NOTE_RECORD, job=job.id, record=record, record_id=record_id)
    return record_id


def list_records(tx: Tx, job: Job, record: str) -> list[int]:
    """Return the ids of the records that a job has made, by the name of their table."""
    return [record_id for (record_id,) in tx.all(RECORDS, job=job.id, record=record)]


def add_piece(tx: Tx, job_id: int, number: int, content: bytes) -> None:
    tx.change(ADD_PIECE, job=job_id, number=number, content=content)


def delete_piece(tx: Tx, job_id: int, number: int) -> None:
    tx.change(DELETE_PIECE, job=job_id, number=number)


def has_newer(tx: Tx, job: Job) -> bool:
    """Return whether a later job is of the same kind."""
    return bool(tx.value(NEWER_OF_KIND, kind=job.kind, job=job.id))


def count_pieces(tx: Tx, job_id: int) -> int:
    return int(tx.value(COUNT_PIECES, job=job_id))


def read_pieces(tx: Tx, job_id: int) -> Iterator[bytes]:
    """Yield the pieces of a file that a job has made, or of what it reads, as they are stored, in a snapshot."""
    first = 0
    while found := tx.all(NEXT_PIECE, job=job_id, first=first, limit=1):
        ((number, content),) = found
        yield bytes(content)
        first = number + 1


def pack(stream: BinaryIO) -> list[bytes]:
    """Return what a job is to read, in packed pieces: all writers may wait for the transaction that stores them."""
    stream.seek(0)
    return [zlib.compress(piece, FAST) for piece in iter(lambda: stream.read(PIECE_BYTES), b"")]


def store_input(tx: Tx, job_id: int, pieces: Iterable[bytes]) -> None:
    """Store what a job reads, in the transaction that starts it."""
    for number, piece in enumerate(pieces):
        add_piece(tx, job_id, number, piece)


def copy_input(tx: Tx, job: Job, job_id: int) -> None:
    """Give another job what a job reads."""
    store_input(tx, job_id, read_pieces(tx, job.id))


def read_input(tx: Tx, job: Job, offset: int, size: int) -> bytes:
    """Return bytes of what a job reads, from an offset; fewer at its end."""
    first, within = divmod(offset, PIECE_BYTES)
    pieces = tx.all(PIECES, job=job.id, first=first, limit=-(-(within + size) // PIECE_BYTES))
    return b"".join(_unpacked(content) for (content,) in pieces)[within : within + size]


def _unpacked(piece: bytes) -> bytes:
    try:
        return zlib.decompress(piece)
    except zlib.error:  # an earlier version has stored it as it is
        return bytes(piece)
