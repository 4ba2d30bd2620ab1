"""Templates: projects whose milestones and tasks new projects begin with."""

from datetime import date, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Select, Table, bindparam, insert, select

from retainer.schema.identity import users
from retainer.schema.work import milestones, projects, tasks, tasks_tags
from retainer.store import constraints
from retainer.store.engines import INTEGER
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx

DATES = ("start_date", "due_date")
FRESH = {
    milestones: {"status": "open", "completed_at": None},
    tasks: {"status": "todo", "started_at": None, "completed_at": None, "external_id": None},
}
"""What a copy does not take over."""


COPY_TAGS = insert(tasks_tags).from_select(
    ["account_id", "record_id", "tag_id"],
    select(ACCOUNT, bindparam("copied", type_=INTEGER), tasks_tags.c.tag_id).where(
        tasks_tags.c.record_id == bindparam("former")
    ),
)
ACTIVE = select(users.c.id).where(users.c.is_active)


def check(tx: Tx, template: int | None) -> None:
    """Note a fault of `template_id` when it is no template."""
    if template is not None:
        found = _rows(tx, projects, "id", template)
        if not found:
            tx.error("template_id", constraints.MISSING.format("project"))
        elif not found[0]["is_template"]:
            tx.error("template_id", f"Project {template} is no template: is_template is false.")


def copy_work(tx: Tx, template: int, project: int) -> None:
    """Copy the milestones and tasks of a template into a new project, as if none was begun.

    Their dates are moved as far as the project's start lies from the template's, or from the earliest date in it when
    it has no start; without a start of the project they have none. Amounts of milestones are copied as far as the
    project has a fixed fee of the same currency that holds them all; deactivated users are assigned nothing.
    """
    new, old = (_rows(tx, projects, "id", record_id)[0] for record_id in (project, template))
    slices, work = (_rows(tx, table, "project_id", template) for table in (milestones, tasks))
    dates = [row[name] for row in (*slices, *work) for name in DATES if row[name]]
    shift = _days_between(old["start_date"] or min(dates, default=None), new["start_date"])
    amounts = sum(row["amount"] or 0 for row in slices)
    fits = new["currency"] == old["currency"] and amounts <= (new["fixed_fee"] or 0)
    active = {row[0] for row in tx.all(ACTIVE)}
    common = {"project_id": project}
    made: dict[tuple[str, int | None], int | None] = {}
    for row in slices:
        own = {"currency": new["currency"], "amount": row["amount"] if fits else None}
        made["milestone", row["id"]] = _copy(tx, milestones, row, shift, common | own)
    for row in sorted(work, key=lambda row: row["parent_id"] is not None):
        own = {"client_id": new["client_id"], "created_by_id": tx.actor.user_id}
        own |= {"billable": bool(row["billable"]) and (new["billing_type"] != "non_billable" or new["is_template"])}
        own |= {"assignee_id": row["assignee_id"] if row["assignee_id"] in active else None}
        own |= {f"{kind}_id": made.get((kind, row[f"{kind}_id"])) for kind in ("milestone", "parent")}
        made["parent", row["id"]] = copied = _copy(tx, tasks, row, shift, common | own)
        tx.run(COPY_TAGS, former=row["id"], copied=copied)


@cache
def _by(table: Table, name: str) -> Select[Any]:
    return select(table).where(table.c[name] == bindparam("value")).order_by(table.c.id)


def _rows(tx: Tx, table: Table, name: str, value: int) -> list[dict[str, Any]]:
    return [dict(zip(table.c.keys(), row, strict=True)) for row in tx.all(_by(table, name), value=value)]


def _days_between(start: str | None, moved: str | None) -> timedelta | None:
    return date.fromisoformat(moved) - date.fromisoformat(start) if start and moved else None


def _copy(tx: Tx, table: Table, row: dict[str, Any], shift: timedelta | None, own: dict[str, Any]) -> int:
    values = {
        name: value for name, value in row.items() if name not in {"id", "account_id", "created_at", "updated_at"}
    }
    for name in DATES:
        values[name] = None
        if shift is not None and row[name]:
            try:
                values[name] = (date.fromisoformat(row[name]) + shift).isoformat()
            except OverflowError:
                tx.error("start_date", f"Moves a date of the template, {row[name]}, out of the calendar.")
    return tx.put(table, values | FRESH[table] | own)
