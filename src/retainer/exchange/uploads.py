"""Uploads: a file that waits in the console until its columns are confirmed, and what it would import.

It is a job that is never due, so that it is kept in pieces, deleted after a day, and not part of what people list. A
person has one at most.
"""

from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec
from sqlalchemy import bindparam, select

from retainer.errors import FieldErrors, Refusal, not_found
from retainer.exchange import tables
from retainer.exchange.columns import ColumnMapping, ImportSource, place_columns
from retainer.exchange.documents.archives import open_archive
from retainer.exchange.importers import IMPORTERS, Importer
from retainer.exchange.plans import PackedPlan
from retainer.jobs import jobs
from retainer.jobs.kinds import Job, options_of
from retainer.kernel.representations import JobFailed, RunApart
from retainer.schema import jobs as schema
from retainer.store.engines.sql import INTEGER
from retainer.store.tx import Tx
from retainer.values.decoding import json_text

SHOWN, REFUSED_SHOWN, MAX_TEXT = 8, 20, 200
"""Rows of a preview, those of them that are refused, and characters of a value."""
SECONDS = 15
"""Processor time in which a file must be read; 100,000 rows take a fifth of it."""
TOO_LARGE = "Takes too much time or memory to read. Divide it, and import the parts."
EARLIER = select(schema.jobs.c.id).where(
    schema.jobs.c.kind == jobs.UPLOAD, schema.jobs.c.user_id == bindparam("user", type_=INTEGER)
)


class Findings(msgspec.Struct):
    """What a file would import, judged without the database."""

    headings: list[str] = []
    places: dict[str, int] = {}
    """The columns of fields, by their numbers."""
    errors: dict[str, list[str]] = {}
    """What the file as a whole leaves open; then there are no rows."""
    rows: list[dict[str, str]] = []
    size: int = 0
    refusals: list[tuple[int, str]] = []
    refused: int = 0
    sums: list[dict[str, str | int]] = []
    notes: list[str] = []


class Upload(msgspec.Struct):
    """A file, what a person says about it, and what it would import."""

    importer: str
    source: str
    file: str
    timezone: str
    mapping: ColumnMapping
    findings: Findings = msgspec.field(default_factory=Findings)

    def kind(self) -> tuple[Importer, ImportSource]:
        importer = IMPORTERS[self.importer]
        return importer, importer.sources[self.source]


class Examination(NamedTuple):
    plan: PackedPlan | None
    findings: Findings


def examine(upload: Upload, content: bytes) -> Examination:
    """Return what a file would import, without the database."""
    importer, source = upload.kind()
    try:
        plan = importer.plan(content, source, upload.mapping, ZoneInfo(upload.timezone))
    except Refusal as refusal:
        headings = _guess_headings(content)
        places = place_columns(source, upload.mapping, headings)
        return Examination(None, Findings(headings, places, {**refusal.members.get("errors", FieldErrors())}))
    places = place_columns(source, upload.mapping, plan.headings)
    findings = Findings(plan.headings, places, sums=[dict(each) for each in plan.sums], notes=[*plan.notes])
    for line in plan.content.splitlines():
        if row := importer.describe(line):
            findings.size += 1
            findings.refused += bool(row.reasons)
            if row.reasons and len(findings.refusals) < REFUSED_SHOWN:
                findings.refusals.append((row.line, " ".join(row.reasons)[: MAX_TEXT * 2]))
            elif not row.reasons and len(findings.rows) < SHOWN:
                findings.rows.append({name: text[:MAX_TEXT] for name, text in row.values.items()})
    return Examination(plan.packed(), findings)


def examine_apart(account_id: int, run_apart: RunApart, upload: Upload, content: bytes) -> PackedPlan | None:
    """Find out in another process what a file would import, and note it; return its plan, if nothing is left open.

    Raises `validation_failed` for a file that takes too long.
    """
    try:
        examined: Examination = run_apart(account_id, SECONDS, examine, upload, content)
    except JobFailed:
        upload.findings = Findings(errors={"file": [TOO_LARGE]})
        return None
    upload.findings = examined.findings
    return examined.plan


def _guess_headings(content: bytes) -> list[str]:
    """Return the headings of a file, or of the first table in a ZIP; none if it has no table."""
    try:
        return next((tables.guess_headings(tables.decode(each)) for each in open_archive(content).tables.values()), [])
    except Refusal:
        return []


def store(tx: Tx, upload: Upload, pieces: list[bytes]) -> int:
    """Store a file, packed, in place of the earlier one of the person; return its id."""
    for (job_id,) in tx.all(EARLIER, user=tx.actor.user_id):
        tx.delete(schema.jobs, job_id)
    values = {
        "kind": jobs.UPLOAD,
        "title": upload.file,
        "status": "waiting",
        "user_id": tx.actor.user_id,
        "options": json_text(upload),
        "is_dry_run": False,
        "counts": "{}",
        "ended_at": tx.now,
    }
    job_id = tx.insert_counted(schema.jobs, values)
    jobs.store_input(tx, job_id, pieces)
    return job_id


def find(tx: Tx, job_id: int) -> tuple[Job, Upload]:
    """Return a file that the person has uploaded. Raises `not_found`."""
    job = tx.get(schema.jobs, job_id, Job)
    if job.kind != jobs.UPLOAD or job.user_id != tx.actor.user_id:
        raise not_found("job")
    upload: Upload = options_of(job, Upload)
    return job, upload


def note(tx: Tx, job_id: int, upload: Upload) -> None:
    """Keep what a person says about a file, and what it would import then."""
    tx.update_columns(schema.jobs, job_id, {"options": json_text(upload)})
