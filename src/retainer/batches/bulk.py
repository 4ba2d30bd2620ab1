"""Bulk changes: one change of many records that a person selects in a list, as a job.

Each record is changed by the function of the API, as the person who asked. One that refuses the change is left out.
"""

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from sqlalchemy import Table, bindparam, select

from retainer.billing import expenses
from retainer.billing.invoices import invoices
from retainer.billing.quotes import quotes
from retainer.crm import clients, contacts
from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.audit import Target
from retainer.jobs import jobs
from retainer.jobs.kinds import Job, JobKind, JobRow, options_of
from retainer.kernel.body import Patch, RequestBody
from retainer.mail.messages import Mailed
from retainer.mail.send import NewMessage, send
from retainer.schema import TAG_LINKS
from retainer.schema.billing import credit_notes
from retainer.schema.crm import tags
from retainer.schema.identity import users
from retainer.sites import sites
from retainer.store.constraints import singular
from retainer.store.statements import Statement
from retainer.store.tx import Tx
from retainer.support import tickets
from retainer.values.collation import sort_key
from retainer.work import projects, tasks, time_entries

MAX_SELECTED = 100
"""Records of a job: those of a page, which a person has seen."""
MAX_OFFERED = 200
"""Tags and people that a list offers."""
DELETED = "It was deleted meanwhile."
SEND = "send"
CHANGED = (
    *(clients.api, projects.api, tasks.api, time_entries.api, expenses.api),
    *(contacts.api, quotes.api, invoices.api, tickets.api, sites.api),
)
OPERATIONS = {
    operation.resource.path.strip("/"): operation
    for api in CHANGED
    for operation in api.operations
    if operation.method == "PATCH" and len(operation.parameters) == 1 and operation.path.count("/") == 2
}
PEOPLE = select(users.c.id, users.c.name).where(users.c.is_active).limit(MAX_OFFERED)
TAGS = select(tags.c.id, tags.c.name).limit(MAX_OFFERED)
TAGS_OF = {
    table: select(links.c.tag_id).where(links.c.record_id == bindparam("record")) for table, links in TAG_LINKS.items()
}


class ListChange(NamedTuple):
    """A change that a list offers: how a form and a job say it, and what people read."""

    value: str
    label: str
    group: str = "Change"


class ChosenRecord(NamedTuple):
    """A record of a job, and its change."""

    kind: str
    change: str
    record_id: int


class BulkOptions(msgspec.Struct):
    """The records of a job, with what people call them, and the change."""

    kind: str
    change: str
    records: list[tuple[int, str]]


STATUSES = {
    "clients": ("active", "archived"),
    "external-contacts": ("active", "inactive"),
    "projects": ("active", "on_hold", "completed", "archived"),
    "tasks": ("todo", "in_progress", "in_review", "done", "cancelled"),
    "tickets": ("open", "pending", "on_hold", "resolved", "closed"),
}
BILLABLE = (ListChange("billable=yes", "Mark as billable"), ListChange("billable=no", "Mark as not billable"))
FIXED = {
    **{
        kind: tuple(ListChange(f"status={each}", f"Mark as {each.replace('_', ' ')}") for each in statuses)
        for kind, statuses in STATUSES.items()
    },
    "time-entries": BILLABLE,
    "expenses": BILLABLE,
    "quotes": (ListChange("status=sent", "Mark as sent"), ListChange("status=declined", "Mark as declined")),
    "invoices": (ListChange("status=sent", "Issue"),),
    "sites": (
        ListChange("monitoring_enabled=no", "Pause monitoring"),
        ListChange("monitoring_enabled=yes", "Resume monitoring"),
    ),
}
"""The changes of each kind of record that offers any, without those that name a person or a tag, or send mail."""
MAILED: dict[str, Mailed] = {"quotes": "quote", "invoices": "invoice", "credit-notes": "credit_note"}
PDFS, ALL_PDFS = "pdfs", "all_pdfs"
PRINTED = (ListChange(PDFS, "Of the selected", "PDFs (ZIP)"), ListChange(ALL_PDFS, "Of the whole list", "PDFs (ZIP)"))
"""What lists of documents offer besides changes: a job of `archives.py` makes the file."""
ASSIGNED = {"projects": "manager_id", "tasks": "assignee_id", "tickets": "assignee_id"}


def changes_of(tx: Tx, kind: str) -> list[ListChange]:
    """Return the changes that a list of a kind offers, and the files; none if it offers neither."""
    found = [*FIXED.get(kind, ())]
    if kind in MAILED and tx.store.mail_from:
        found.append(ListChange(SEND, "Send by mail; drafts are issued" if kind == "invoices" else "Send by mail"))
    found += PRINTED if kind in MAILED else ()
    if field := ASSIGNED.get(kind):
        group = "Assign" if field == "assignee_id" else "Assign a manager"
        found.append(ListChange(f"{field}=", "Assign to nobody", group))
        found += [ListChange(f"{field}={each}", f"Assign to {name}", group) for each, name in _named(tx, PEOPLE)]
    if found and table_of(kind) in TAG_LINKS:
        named = _named(tx, TAGS)
        found += [ListChange(f"add_tag={each}", f"Add {name}", "Add a tag") for each, name in named]
        found += [ListChange(f"remove_tag={each}", f"Remove {name}", "Remove a tag") for each, name in named]
    return found


def _named(tx: Tx, statement: Statement) -> list[tuple[int, str]]:
    return sorted(((row[0], row[1]) for row in tx.all(statement)), key=lambda row: sort_key(row[1]))


def start(tx: Tx, kind: str, change: ListChange, records: dict[int, str]) -> int:
    """Start a job that changes records, given with what people call them; return its id."""
    options = BulkOptions(kind, change.value, list(records.items()))
    title = f"{change.label}: {len(records)} {noun_of(kind, len(records))}"
    return jobs.start(tx, BULK.name, title, options, total=len(records))


def noun_of(kind: str, size: int) -> str:
    noun = singular(table_of(kind)) if size == 1 else table_of(kind).name.replace("_", " ")
    return noun.removeprefix("external ")


def table_of(kind: str) -> Table:
    table = credit_notes if kind == "credit-notes" else OPERATIONS[kind].resource.table
    if table is None:
        raise TypeError(f"{kind} have no table.")
    return table


def next_rows(_: Tx, job: Job, limit: int) -> list[JobRow]:
    options: BulkOptions = options_of(job, BulkOptions)
    selected = options.records[job.position : job.position + limit]
    return [
        JobRow(position, name, ChosenRecord(options.kind, options.change, record_id))
        for position, (record_id, name) in enumerate(selected, job.position + 1)
    ]


def write(tx: Tx, _job: Job, row: JobRow) -> None:
    selected: ChosenRecord = row.value
    table, record_id = table_of(selected.kind), selected.record_id
    if tx.field(table.c.id, record_id) is None:
        raise Refusal("not_found", DELETED)
    was_draft = selected.kind == "invoices" and tx.field(table.c.status, record_id) == "draft"
    if selected.change == SEND:
        send(tx, MAILED[selected.kind], record_id, NewMessage(), lambda _: None)
        after: dict[str, object] = {"status": "sent"} if "status" in table.c else {}
    else:
        operation = OPERATIONS[selected.kind]
        name, _, value = selected.change.partition("=")
        after = FIELDS[name](tx, table, record_id, value)
        operation.handler(tx, record_id, Patch(tx, RequestBody(after, operation.body, "Update")))
    tx.raise_errors()
    noun = singular(table).removeprefix("external ")  # which contacts are only to the API
    name = tx.field(table.c.number, record_id) if was_draft else row.name  # issuing is what gives it one
    target = Target(noun, record_id, name)
    audit.note(tx, "invoice issued" if was_draft else "record changed", target, after=after or None)


def _add_tag(tx: Tx, table: Table, record_id: int, value: str) -> dict[str, object]:
    return {"tag_ids": sorted({*_tags_of(tx, table, record_id), int(value)})}


def _remove_tag(tx: Tx, table: Table, record_id: int, value: str) -> dict[str, object]:
    return {"tag_ids": sorted({*_tags_of(tx, table, record_id)} - {int(value)})}


def _tags_of(tx: Tx, table: Table, record_id: int) -> list[int]:
    return [tag_id for (tag_id,) in tx.all(TAGS_OF[table], record=record_id)]


FIELDS: dict[str, Callable[[Tx, Table, int, str], dict[str, object]]] = {
    "status": lambda *found: {"status": found[-1]},
    "billable": lambda *found: {"billable": found[-1] == "yes"},
    "monitoring_enabled": lambda *found: {"monitoring_enabled": found[-1] == "yes"},
    "assignee_id": lambda *found: {"assignee_id": int(found[-1]) if found[-1] else None},
    "manager_id": lambda *found: {"manager_id": int(found[-1]) if found[-1] else None},
    "add_tag": _add_tag,
    "remove_tag": _remove_tag,
}
"""The fields of the body that each change sends."""
BULK = JobKind("bulk", next_rows, write, area="records")
