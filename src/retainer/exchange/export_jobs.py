"""The job that exports everything of an account from the console: in parts, which are a ZIP once somebody takes it.

Each part shows the moment at which it was read. Files of records are not stored twice: the ZIP takes those that are
there when it is taken.
"""

import hashlib
import zlib
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipInfo

from msgspec import msgpack

from retainer.errors import marked
from retainer.exchange.export import (
    FORMATS,
    MANIFEST,
    ExportSummary,
    Kinds,
    Made,
    PartMaker,
    describe,
    kinds_of,
    manifest_of,
    read_files,
    read_parts,
)
from retainer.identity import audit
from retainer.identity.accounts import get_account
from retainer.jobs import jobs, made_files
from retainer.jobs.jobs import EXPORT
from retainer.jobs.kinds import Job, JobKind, JobRow
from retainer.kernel.representations import RunApart
from retainer.kernel.routes import Routes
from retainer.store.tx import Tx

PARTS = 5
"""Parts of a step, which takes about as long to make as others to write."""
TEXTS = ("json", "jsonl", "csv", "xml")
"""The endings of files that compression makes much smaller; others are compressed already."""


def start(tx: Tx, made: made_files.MadeFile) -> int:
    """Start the job, which replaces the one before; return its id. Raises `locked` while another one runs."""
    job_id = made_files.start(tx, made, "Export of everything", {})
    account = get_account(tx)
    audit.note(tx, "account exported", audit.Target("account", account["id"], account["name"]))
    return job_id


def next_rows(kinds: Kinds, tx: Tx, job: Job, _: int) -> list[JobRow]:
    found = islice(read_parts(tx, kinds, [*FORMATS], job.position), PARTS)
    return [JobRow(part.position, part.name, part.make) for part in found]


def make(run_apart: RunApart, account_id: int, rows: list[JobRow]) -> list[JobRow]:
    """Make the files of the first rows, and compress them. Raises Unavailable for an accident."""

    def pack(make_part: PartMaker) -> tuple[Made, bytes]:
        made = make_part(account_id, run_apart)
        return made, zlib.compress(msgpack.encode(made.files))

    return made_files.make_some(rows, pack)


def write(tx: Tx, job: Job, row: JobRow) -> None:
    """Store the files of a part, and note those that it lacks."""
    made, packed = row.value
    for each in made.left_out:
        name = f"{row.name}, {each['form']}"
        jobs.leave_out(tx, job, row._replace(name=name), marked(each["reason"]))
    jobs.add_piece(tx, job.id, row.position, packed)
    for name, number in (("records", made.records if made.kind else 0), ("documents", made.documents)):
        if number:
            job.count(name, number)


def finish(*_: object) -> str:
    return made_files.KEPT


def read_contents(tx: Tx, job: Job) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each file, of which several in a row may be of one file."""
    for piece in jobs.read_pieces(tx, job.id):
        yield from map(tuple, msgpack.decode(zlib.decompress(piece)))
    for path, pieces in read_files(tx):
        yield from ((path, piece) for piece in pieces)


def zipped(routes: Routes, kinds: Kinds, tx: Tx, job: Job) -> Iterator[bytes]:
    """Yield the ZIP of an export, a piece at a time, in a snapshot."""
    exported, written = ExportSummary(documents=job.counts.get("documents", 0)), []
    exported.left_out = [
        dict(zip(("record", "form"), each.name.rsplit(", ", 1), strict=True)) | {"reason": str(each.message)}
        for each in jobs.list_refusals(tx, job, job.refused)
    ]
    sink, archive = made_files.open_zip()

    def add(path: str, contents: Iterator[bytes]) -> Iterator[bytes]:
        digest, size, lines = hashlib.sha256(), 0, 0
        with archive.open(entry_of(path, job), "w", force_zip64=True) as file:
            for content in contents:
                file.write(content)
                digest.update(content)
                size, lines = size + len(content), lines + content.count(b"\n")
                yield sink.take()
        written.append({"path": path, "size": size, "sha256": digest.hexdigest()})
        if path.endswith(".jsonl") and "/" not in path:  # or it is somebody's file
            exported.records[path.removesuffix(".jsonl")] = lines

    with archive:
        for path, found in groupby(read_contents(tx, job), itemgetter(0)):
            yield from add(path, (content for _, content in found))
        manifest = manifest_of(tx, describe(routes, kinds), exported, written, (job.created_at, job.ended_at))
        yield from add(MANIFEST, iter([manifest]))
    yield sink.take()


def entry_of(path: str, job: Job) -> ZipInfo:
    day = datetime.fromisoformat(job.created_at)
    entry = ZipInfo(path, (day.year, day.month, day.day, day.hour, day.minute, day.second))
    entry.compress_type = ZIP_DEFLATED if path.rpartition(".")[2] in TEXTS else ZIP_STORED
    return entry


def made_file(routes: Routes) -> made_files.MadeFile:
    return made_files.MadeFile(
        EXPORT,
        area="settings",
        underway="Another export is being made. Wait until it has ended, or stop it.",
        button="Download (ZIP)",
        name="export",
        count_pieces=lambda job: job.done,
        zipped=partial(zipped, routes, kinds_of(routes)),
        counted="records",
    )


def kind_of(routes: Routes, run_apart: RunApart) -> JobKind:
    """Return the kind of exports, whose documents this function draws."""
    rows = partial(next_rows, kinds_of(routes))
    return JobKind(EXPORT, rows, write, finish, make=partial(make, run_apart), area="settings")
