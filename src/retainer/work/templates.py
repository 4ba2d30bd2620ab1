"""Templates: projects whose milestones and tasks new projects begin with."""

from datetime import date, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Select, Table, bindparam, insert, select

from retainer.rollups.changes import added
from retainer.rollups.sources import TAG_USES, TASKS
from retainer.schema.identity import users
from retainer.schema.work import milestones, projects, tasks, tasks_tags
from retainer.store import constraints
from retainer.store.engines.sql import INTEGER
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx

DATES = ("start_date", "due_date")
RESET = {
    milestones: {"status": "open", "completed_at": None},
    tasks: {"status": "todo", "started_at": None, "completed_at": None, "external_id": None},
}
"""What a copy does not take over."""


COPY_TAGS = insert(tasks_tags).from_select(
    ["account_id", "record_id", "tag_id"],
    select(ACCOUNT, bindparam("copy", type_=INTEGER), tasks_tags.c.tag_id).where(
        tasks_tags.c.record_id == bindparam("original")
    ),
)
ACTIVE = select(users.c.id).where(users.c.is_active)


def check_template(tx: Tx, template_id: int | None) -> None:
    """Note an error of `template_id` when it names no template."""
    if template_id is not None:
        rows = _load_rows(tx, projects, "id", template_id)
        if not rows:
            tx.error("template_id", constraints.MISSING.format("project"))
        elif not rows[0]["is_template"]:
            tx.error("template_id", f"Project {template_id} is no template: is_template is false.")


def copy_work(tx: Tx, template_id: int, project_id: int) -> None:
    """Copy the milestones and tasks of a template into a new project, as if none was begun.

    Their dates are moved as far as the project's start lies from the template's, or from the earliest date in it when
    it has no start; without a start of the project they have none. Amounts of milestones are copied as far as the
    project has a fixed fee of the same currency that holds them all; deactivated users are assigned nothing.
    """
    project, template = (_load_rows(tx, projects, "id", record_id)[0] for record_id in (project_id, template_id))
    stages, work = (_load_rows(tx, table, "project_id", template_id) for table in (milestones, tasks))
    dates = [row[name] for row in (*stages, *work) for name in DATES if row[name]]
    shift = _days_between(template["start_date"] or min(dates, default=None), project["start_date"])
    amounts = sum(row["amount"] or 0 for row in stages)
    fits = project["currency"] == template["currency"] and amounts <= (project["fixed_fee"] or 0)
    can_be_billed = project["billing_type"] != "non_billable" or project["is_template"]
    active = {row[0] for row in tx.all(ACTIVE)}
    copies: dict[tuple[str, int | None], int | None] = {}
    for row in stages:
        values = {"currency": project["currency"], "amount": row["amount"] if fits else None}
        copies["milestone", row["id"]] = _copy(tx, milestones, row, shift, {"project_id": project_id} | values)
    for row in sorted(work, key=lambda row: row["parent_id"] is not None):
        values = {"client_id": project["client_id"], "created_by_id": tx.actor.user_id}
        values |= {"billable": bool(row["billable"]) and can_be_billed}
        values |= {"assignee_id": row["assignee_id"] if row["assignee_id"] in active else None}
        values |= {f"{noun}_id": copies.get((noun, row[f"{noun}_id"])) for noun in ("milestone", "parent")}
        copies["parent", row["id"]] = copy_id = _copy(tx, tasks, row, shift, {"project_id": project_id} | values)
        tx.run(COPY_TAGS, original=row["id"], copy=copy_id)
        added(tx, TAG_USES[tasks], copy_id)


@cache
def _select_by(table: Table, name: str) -> Select[Any]:
    return select(table).where(table.c[name] == bindparam("value")).order_by(table.c.id)


def _load_rows(tx: Tx, table: Table, name: str, value: int) -> list[dict[str, Any]]:
    return [dict(zip(table.c.keys(), row, strict=True)) for row in tx.all(_select_by(table, name), value=value)]


def _days_between(start: str | None, moved: str | None) -> timedelta | None:
    return date.fromisoformat(moved) - date.fromisoformat(start) if start and moved else None


def _copy(tx: Tx, table: Table, row: dict[str, Any], shift: timedelta | None, changes: dict[str, Any]) -> int:
    values = {
        name: value
        for name, value in row.items()
        if name not in {"id", "account_id", "created_at", "updated_at"} and "kept" not in table.c[name].info
    }
    for name in DATES:
        values[name] = None
        if shift is not None and row[name]:
            try:
                values[name] = (date.fromisoformat(row[name]) + shift).isoformat()
            except OverflowError:
                tx.error("start_date", f"Moves a date of the template, {row[name]}, out of the calendar.")
    copy_id = tx.put(table, values | RESET[table] | changes)
    if table is tasks:
        added(tx, TASKS, copy_id)
    return copy_id
