"""Work that time is tracked on: tasks, tickets, projects and clients, named by a field and an id: `task_id-5`."""

import json
from collections.abc import Collection, Iterator

from sqlalchemy import Table, select

from retainer.console.catalogue import Catalogue
from retainer.console.names import Link, is_open, load_choices, load_names, load_own, path_of
from retainer.schema.crm import clients
from retainer.schema.support import tickets
from retainer.schema.work import projects, tasks
from retainer.store.engines.sql import is_listed
from retainer.store.tx import Tx
from retainer.support.tickets import Ticket
from retainer.values.records import Record
from retainer.work.project_types import Project
from retainer.work.tasks import Task
from retainer.work.time_rules import TimeEntry

WORK: dict[str, Table] = {"task_id": tasks, "ticket_id": tickets, "project_id": projects, "client_id": clients}
"""The fields of time entries that name work, the narrowest first."""
PARENTS = {"task_id": "project_id", "ticket_id": "client_id", "project_id": "client_id"}
"""What distinguishes two pieces of work with the same name."""
PARENT_IDS = {
    field: select(WORK[field].c.id, WORK[field].c[parent]).where(is_listed(WORK[field].c.id, "ids"))
    for field, parent in PARENTS.items()
}
BEGUN = ((Task, "task_id"), (Ticket, "ticket_id"), (Project, "project_id"))
ENDED = {"done", "cancelled", "resolved", "closed", "completed", "archived"}
"""The statuses of work that is over."""
Options = list[tuple[str, list[tuple[str, str]]]]
"""Titles, each with the work below it and what that is called."""


def work_of(entry: TimeEntry) -> str:
    """Return the name of the work of an entry; empty if that was deleted."""
    return next((f"{field}-{value}" for field in WORK if (value := getattr(entry, field)) is not None), "")


def part_of(work: str) -> tuple[str, str] | None:
    """Return the field and the id in the name of work; None for other text."""
    field, _, record_id = work.partition("-")
    return (field, record_id) if field in WORK and record_id.isdecimal() and len(record_id) < 16 else None


def work_to_begin(record: Record) -> str:
    """Return the name of a record for which its page offers a timer; empty if it is closed or of another kind."""
    field = next((name for kind, name in BEGUN if isinstance(record, kind)), "")
    is_over = getattr(record, "status", "") in ENDED or getattr(record, "is_template", False)
    return f"{field}-{record.id}" if field and not is_over else ""


def load_works(tx: Tx, catalogue: Catalogue, names: Collection[str]) -> Iterator[tuple[str, Link, str]]:
    """Yield the names of work that exists, each with its title, its page, and what it belongs to."""
    for field, table in WORK.items():
        ids = {int(part[1]) for name in names if (part := part_of(name)) and part[0] == field}
        if not ids:
            continue
        details, own = load_details(tx, field, ids), load_own(tx, catalogue, table, ids)
        for record_id, text in load_names(tx, table, ids).items():
            work = Link(text, path_of(catalogue, table, record_id, is_own=record_id in own))
            yield f"{field}-{record_id}", work, details.get(record_id, "")


def load_details(tx: Tx, field: str, ids: Collection[int]) -> dict[int, str]:
    if field not in PARENTS:
        return {}
    rows = tx.all(PARENT_IDS[field], ids=json.dumps(sorted(ids)))
    parents: dict[int, int] = {record_id: parent or 0 for record_id, parent in rows}
    names = load_names(tx, WORK[PARENTS[field]], {*parents.values()})
    return {record_id: names.get(parent, "") for record_id, parent in parents.items()}


def load_offered(tx: Tx, catalogue: Catalogue) -> Options:
    """Return the work that a form offers: open projects, and the user's open tasks and tickets."""
    me = {"assignee_id": "me"}
    own = {
        "task_id": catalogue.find("tasks").first(tx, me | {"open": "true"}, size=100),
        "ticket_id": catalogue.find("tickets").first(tx, me | {"status": "unresolved"}, size=100),
    }
    open_projects = load_choices(tx, projects, only="open", is_cut=True) or []
    found = {"Projects": [(f"project_id-{choice.id}", choice.text) for choice in open_projects]}
    for field, records in own.items():
        works = load_works(tx, catalogue, {f"{field}-{record.id}" for record in records})
        named = [(name, f"{work.text} ({detail})" if detail else work.text) for name, work, detail in works]
        found[f"My {WORK[field].name}"] = sorted(named, key=lambda each: each[1].casefold())
    return [(title, options) for title, options in found.items() if options]


def may_track(tx: Tx, catalogue: Catalogue, work: str) -> bool:
    """Return whether the user can begin work: a task or ticket that the role sees, or an open project."""
    field, record_id = part_of(work) or ("", "0")
    if field not in WORK or WORK[field] is clients:
        return False
    table = WORK[field]
    return is_open(tx, table, int(record_id), catalogue.owner_of(table, is_named=True))
