"""Undoing: the job that removes what an import has made, as far as nothing depends on it."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Select, Table, bindparam, case, delete, func, select

from retainer.billing.credit_notes import history as credit_note_history
from retainer.billing.invoices import history
from retainer.crm.clients import delete_client
from retainer.crm.contacts import delete_external_contact
from retainer.errors import Refusal
from retainer.identity.people.users import change_user, get_user
from retainer.jobs import jobs
from retainer.jobs.jobs import OF_JOB
from retainer.jobs.kinds import Job, JobKind, JobRow
from retainer.schema import jobs as schema
from retainer.schema import metadata
from retainer.schema.billing import credit_notes, invoices
from retainer.schema.jobs import job_records
from retainer.schema.work import time_entries
from retainer.store.constraints import reference_columns, singular
from retainer.store.engines.sql import INTEGER, LIMIT, is_listed
from retainer.store.tx import Tx
from retainer.values.decoding import json_text
from retainer.work.projects import delete_project
from retainer.work.tasks import delete_task
from retainer.work.time_entries import delete_time_entry

UNDO_IMPORT = "undo_import"
STEP = 1 << 40
"""Above all ids: the position of a record is its turn times this, and its id."""
DELETIONS: dict[str, Callable[[Tx, int], None]] = {
    "credit_notes": credit_note_history.remove,
    "invoices": history.remove,
    "time_entries": delete_time_entry,
    "tasks": delete_task,
    "projects": delete_project,
    "external_contacts": delete_external_contact,
    "clients": delete_client,
}
TURNS = (*DELETIONS, "users")
"""What is removed first; nothing of a later kind is needed by one before."""
OF_KIND = job_records.c.record == bindparam("record")
LEFT = select(func.count()).select_from(job_records).where(OF_JOB)
NEXT = (
    select(job_records.c.record_id)
    .where(OF_JOB, OF_KIND, job_records.c.record_id > bindparam("after", type_=INTEGER))
    .order_by(job_records.c.record_id)
    .suffix_with(LIMIT)
)
UNDOING = select(func.count()).where(
    schema.jobs.c.kind == UNDO_IMPORT, schema.jobs.c.options == bindparam("options", type_=schema.jobs.c.options.type)
)
FORGET = delete(job_records).where(OF_JOB, OF_KIND, job_records.c.record_id == bindparam("record_id", type_=INTEGER))


ELSEWHERE = "Delete or move what is there, and undo again; or archive it."
BILLED = "it is on an invoice. Take it off while that is a draft, else make the invoice void; then delete it."
CHANGED = "it was changed after the import. Delete it yourself if it should go."


class MadeRecord(NamedTuple):
    """A record that the import has made, and whether it was changed since."""

    record: str
    id: int
    is_changed: bool


def count_left(tx: Tx, job_id: int) -> int:
    """Return how many of the records that a job has made can be undone."""
    return int(tx.value(LEFT, job=job_id))


def next_rows(tx: Tx, job: Job, limit: int) -> list[JobRow]:
    turn, after = divmod(job.position, STEP)
    for number in range(turn, len(TURNS)):
        record = TURNS[number]
        found = [id_ for (id_,) in tx.all(NEXT, job=job.options["job_id"], record=record, after=after, limit=limit)]
        if found:
            read = tx.all(_records(metadata.tables[record]), ids=json.dumps(found))
            rows = {id_: (bool(is_changed), *names) for id_, is_changed, *names in read}
            return [_row(number * STEP, record, id_, *rows.get(id_, (False,))) for id_ in found]
        after = 0
    return []


@cache
def _records(table: Table) -> Select[Any]:
    is_changed = case((table.c.updated_at != table.c.created_at, 1), else_=0)
    return select(table.c.id, is_changed, *table.c[table.info["named_by"]]).where(is_listed(table.c.id, "ids"))


def _row(base: int, record: str, id_: int, is_changed: bool, *names: str | None) -> JobRow:  # noqa: FBT001
    noun, name = singular(metadata.tables[record]).capitalize(), next(filter(None, names), id_)
    return JobRow(base + id_, f"{noun} {name}"[:200], MadeRecord(record, id_, is_changed))


def write(tx: Tx, job: Job, row: JobRow) -> None:
    """Delete a record; deactivate a person. Raises `in_use` with what keeps it, and what a person can do about that."""
    made: MadeRecord = row.value
    if made.record == "users":
        if get_user(tx, made.id)["is_active"]:
            change_user(tx, made.id, {"is_active": False})
    else:
        _remove(tx, made)
    tx.run(FORGET, job=job.options["job_id"], record=made.record, record_id=made.id)
    job.count(f"{made.record}_{'deactivated' if made.record == 'users' else 'deleted'}")


def _remove(tx: Tx, made: MadeRecord) -> None:
    table = metadata.tables[made.record]
    if table not in {credit_notes, invoices, time_entries}:  # whose deletions say themselves what depends on them
        _require_unused(tx, table, made.id)
    try:
        DELETIONS[made.record](tx, made.id)  # first, because its refusal says more than the next one; either undoes it
        if made.is_changed and table not in {credit_notes, invoices}:  # which payments change, too
            raise _stays(CHANGED)
    except Refusal as refusal:
        if refusal.code == "locked":
            raise _stays(BILLED) from None
        if refusal.code != "not_found":  # else it was deleted already
            raise


def _stays(reason: str) -> Refusal:
    return Refusal("in_use", f"Stays: {reason}")


def _require_unused(tx: Tx, table: Table, record_id: int) -> None:
    """Raise `in_use` if a row refers to a record, even where the database would detach or delete it."""
    for child in metadata.sorted_tables:
        for name, to in reference_columns(child):
            if to is table and (number := tx.value(_refers(child, name), id=record_id)):
                noun = singular(child) if number == 1 else child.name.replace("_", " ")
                raise _stays(f"it has {number} {noun} from elsewhere. {ELSEWHERE}")


@cache
def _refers(child: Table, name: str) -> Select[int]:
    return select(func.count()).select_from(child).where(child.c[name] == bindparam("id", type_=INTEGER))


def is_undone(tx: Tx, job_id: int) -> bool:
    """Return whether a job is being undone."""
    return bool(tx.value(UNDOING, options=json_text(options_for(job_id))))


def options_for(job_id: int) -> dict[str, int]:
    return {"job_id": job_id}


def resume(tx: Tx, job: Job) -> None:
    """Let a stopped or failed import continue. Raises `locked` once it was undone: its first rows would be missing."""
    if is_undone(tx, job.id):
        raise Refusal("locked", "This import was undone, so it can't continue. Import the file again.")
    jobs.resume(tx, job)


def start(tx: Tx, job: Job) -> int:
    """Start the job that undoes an import; return its id. Raises `locked` while it runs, and if nothing is left."""
    if job.next_step_at is not None:
        raise Refusal("locked", f"Job {job.id} is still running. Stop it first.")
    left = count_left(tx, job.id)
    if not left:
        raise Refusal("locked", f"Job {job.id} has made nothing that could be undone.")
    return jobs.start(tx, UNDO_IMPORT, f"Undo: {job.title}"[:200], options_for(job.id), total=left)


UNDO = JobKind(UNDO_IMPORT, next_rows, write, area="settings")
