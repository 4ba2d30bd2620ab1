"""Templates: projects whose milestones and tasks new projects begin with."""

from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Select, Table, bindparam, insert, select

from retainer.rollups.changes import added
from retainer.rollups.sources import TAG_USES, TASKS
from retainer.schema.crm import clients
from retainer.schema.identity import users
from retainer.schema.work import milestones, projects, tasks, tasks_tags
from retainer.store import constraints
from retainer.store.engines.sql import INTEGER
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, day_after
from retainer.values.kinds import likely_days

Row = dict[str, Any]
"""The columns of a row by their names."""
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
CURRENCY = select(clients.c.currency).where(clients.c.id == bindparam("id"))
ACTIVE = select(users.c.id).where(users.c.is_active)


class Template(NamedTuple):
    """A template with its milestones and tasks, as rows."""

    project: Row
    milestones: list[Row]
    tasks: list[Row]

    def shift(self, start: str | None) -> timedelta | None:
        """Return how far dates move with a copy that begins on this day; None when it has no first day."""
        dates = [row[name] for row in (self.project, *self.milestones, *self.tasks) for name in DATES if row[name]]
        return _days_between(self.project["start_date"] or min(dates, default=None), start)


class Copy(Protocol):
    """A project that is made from a template, as far as it follows from that."""

    client_id: int | None
    start_date: str | None
    due_date: str | None
    budget_amount: Decimal | None
    budget_minutes: int | None


def load_template(tx: Tx, template_id: int | None) -> Template | None:
    """Return the template that a new project names, if it does; note an error of `template_id` when it is none."""
    if template_id is None:
        return None
    rows = _load_rows(tx, projects, "id", template_id)
    if not rows:
        tx.error("template_id", constraints.MISSING.format("project"))
    elif not rows[0]["is_template"]:
        tx.error("template_id", f"Project {template_id} is no template: is_template is false.")
    else:
        return Template(rows[0], *(_load_rows(tx, table, "project_id", template_id) for table in (milestones, tasks)))
    return None


def fill_project(tx: Tx, project: Copy, template: Template | None) -> None:
    """Fill in budget and due date of a new project from its template, as far as it does not say others.

    The due date moves with the start; the budget's amount is taken over in the same currency.
    """
    if template is None:
        return
    original = template.project
    if project.budget_minutes is None:
        project.budget_minutes = original["budget_minutes"]
    currency = tx.value(CURRENCY, id=project.client_id) or tx.actor.currency
    if project.budget_amount is None and original["budget_amount"] is not None and original["currency"] == currency:
        project.budget_amount = amount_of(original["budget_amount"], currency)
    if project.due_date is None and original["due_date"] and tx.readable("start_date", "due_date"):
        project.due_date = _move(tx, original["due_date"], template.shift(project.start_date))


def copy_work(tx: Tx, template: Template, project_id: int) -> None:
    """Copy the milestones and tasks of a template into a new project, as if none was begun.

    Their dates are moved as far as the project's start lies from the template's, or from the earliest date in it when
    it has no start; without a start of the project they have none. Amounts of milestones are copied as far as the
    project has a fixed fee of the same currency that holds them all; deactivated users are assigned nothing.
    """
    original, stages, work = template
    project = _load_rows(tx, projects, "id", project_id)[0]
    shift = template.shift(project["start_date"])
    amounts = sum(row["amount"] or 0 for row in stages)
    fits = project["currency"] == original["currency"] and amounts <= (project["fixed_fee"] or 0)
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


def _load_rows(tx: Tx, table: Table, name: str, value: int) -> list[Row]:
    return [dict(zip(table.c.keys(), row, strict=True)) for row in tx.all(_select_by(table, name), value=value)]


def _days_between(start: str | None, moved: str | None) -> timedelta | None:
    return date.fromisoformat(moved) - date.fromisoformat(start) if start and moved else None


def _move(tx: Tx, day: str | None, shift: timedelta | None) -> str | None:
    """Return a day of the template as that of its copy; note an error of `start_date` when it is no likely one."""
    if shift is None or not day:
        return None
    moved, (first, last) = day_after(day, shift.days), likely_days()
    if not first <= moved <= last:
        message = f"Moves a date of the template, {day}, to {moved}: days lie from {first} to {last}. Check the year."
        tx.error("start_date", message)
    return moved


def _copy(tx: Tx, table: Table, row: Row, shift: timedelta | None, changes: dict[str, Any]) -> int:
    values = {
        name: value
        for name, value in row.items()
        if name not in {"id", "account_id", "created_at", "updated_at"} and "maintained" not in table.c[name].info
    }
    values |= {name: _move(tx, row[name], shift) for name in DATES}
    copy_id = tx.insert_counted(table, values | RESET[table] | changes)
    if table is tasks:
        added(tx, TASKS, copy_id)
    return copy_id
