"""Project templates: copying their milestones, tasks, budget and due date into new projects."""

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

Columns = dict[str, Any]
"""The values of a row by the names of its columns."""
DATES = ("start_date", "due_date")
RESET = {
    milestones: {"status": "open", "completed_at": None},
    tasks: {"status": "todo", "started_at": None, "completed_at": None, "external_id": None},
}
"""Columns that a copy does not take from its template."""

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

    project: Columns
    milestones: list[Columns]
    tasks: list[Columns]

    def shift(self, start: str | None) -> timedelta | None:
        """Return how far the dates move in a copy that starts on a day; None without a start."""
        dates = [row[name] for row in (self.project, *self.milestones, *self.tasks) for name in DATES if row[name]]
        return _days_between(self.project["start_date"] or min(dates, default=None), start)


class ProjectFromTemplate(Protocol):
    """A new project, as far as it follows from its template."""

    client_id: int | None
    start_date: str | None
    due_date: str | None
    budget_amount: Decimal | None
    budget_minutes: int | None


def load_template(tx: Tx, template_id: int | None) -> Template | None:
    """Return the template of a new project, if it names one; note an error if that is not a template."""
    if template_id is None:
        return None
    rows = _load_rows(tx, projects, "id", template_id)
    if not rows:
        tx.error("template_id", constraints.MISSING.format("project"))
    elif not rows[0]["is_template"]:
        tx.error("template_id", f"Project {template_id} is not a template: its is_template is false.")
    else:
        return Template(rows[0], *(_load_rows(tx, table, "project_id", template_id) for table in (milestones, tasks)))
    return None


def fill_project(tx: Tx, project: ProjectFromTemplate, template: Template | None) -> None:
    """Fill in the budget and the due date of a new project from its template, unless they were sent.

    The due date moves with the start. The amount is copied if the currency is the same.
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
    """Copy the milestones and tasks of a template into a new project, all of them open.

    Dates move by `Template.shift`. Amounts of milestones are copied if the project has a fixed fee of the same currency
    that is at least their sum. Tasks of deactivated users become unassigned.
    """
    original, stages, work = template
    project = _load_rows(tx, projects, "id", project_id)[0]
    shift = template.shift(project["start_date"])
    amounts = sum(row["amount"] or 0 for row in stages)
    fits = project["currency"] == original["currency"] and amounts <= (project["fixed_fee"] or 0)
    can_be_billed = project["billing_type"] != "non_billable" or project["is_template"]
    active = {user_id for (user_id,) in tx.all(ACTIVE)}
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


def _load_rows(tx: Tx, table: Table, name: str, value: int) -> list[Columns]:
    return [dict(zip(table.c.keys(), row, strict=True)) for row in tx.all(_select_by(table, name), value=value)]


def _days_between(start: str | None, moved: str | None) -> timedelta | None:
    return date.fromisoformat(moved) - date.fromisoformat(start) if start and moved else None


def _move(tx: Tx, day: str | None, shift: timedelta | None) -> str | None:
    """Return a day of the template as that of its copy; note an error if the year is implausible."""
    if shift is None or not day:
        return None
    moved, (first, last) = day_after(day, shift.days), likely_days()
    if not first <= moved <= last:
        message = (
            f"Moves a date of the template from {day} to {moved}. Dates are from {first} to {last}. Check the year."
        )
        tx.error("start_date", message)
    return moved


def _copy(tx: Tx, table: Table, row: Columns, shift: timedelta | None, changes: Columns) -> int:
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
