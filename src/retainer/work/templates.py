"""Project templates: copying their fields, milestones and tasks into new projects.

A copy gets what its body leaves out; a null in the body keeps a field empty. Nothing is dropped: what does not fit the
copy, such as an amount in another currency, is an error.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Select, Table, bindparam, insert, select

from retainer.errors import FALSE, NULL, SEND, part
from retainer.rollups.changes import added
from retainer.rollups.sources import TAG_USES, TASKS
from retainer.schema.columns import own_amounts
from retainer.schema.crm import clients
from retainer.schema.identity import users
from retainer.schema.work import milestones, projects, projects_tags, tasks, tasks_tags
from retainer.store import constraints
from retainer.store.engines.sql import INTEGER
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, day_after
from retainer.values.kinds import likely_days
from retainer.work.project_types import Project

Columns = dict[str, Any]
DATES = ("start_date", "due_date")
AMOUNTS = tuple(column.name for column in own_amounts(projects))
COPIED = ("description", *AMOUNTS, "budget_minutes", "manager_id", "tag_ids")
USUAL_BILLING = "time_and_materials"
"""The billing type that a copy gets by its client rather than by its template: without a client, it is not billed."""
RESET = {
    milestones: {"status": "open", "completed_at": None},
    tasks: {"status": "todo", "started_at": None, "completed_at": None, "external_id": None, "ticket_id": None},
}
"""Columns that a copy does not take from its template; a ticket may be another client's."""

COPY_TAGS = insert(tasks_tags).from_select(
    ["account_id", "record_id", "tag_id"],
    select(ACCOUNT, bindparam("copy", type_=INTEGER), tasks_tags.c.tag_id).where(
        tasks_tags.c.record_id == bindparam("original")
    ),
)
TAGS = select(projects_tags.c.tag_id).where(projects_tags.c.record_id == bindparam("id")).order_by("tag_id")
DEACTIVATED = select(users.c.id).where(users.c.is_active.is_(False))


class Template(NamedTuple):
    project: Columns
    milestones: list[Columns]
    tasks: list[Columns]

    def shift(self, start: str | None) -> timedelta | None:
        """Return how far the dates move in a copy that starts on a day; None without a start."""
        dates = [row[name] for row in (self.project, *self.milestones, *self.tasks) for name in DATES if row[name]]
        first = self.project["start_date"] or min(dates, default=None)
        return date.fromisoformat(start) - date.fromisoformat(first) if first and start else None


def load_template(tx: Tx, template_id: int | None) -> Template | None:
    """Return the template of a new project, if it names one; note an error if that is not a template."""
    if template_id is None:
        return None
    rows = _load_rows(tx, projects, "id", template_id)
    if not rows:
        tx.error("template_id", constraints.MISSING.format("project"))
    elif not rows[0]["is_template"]:
        tx.error(
            "template_id", f"{part(f'Project {template_id}')} is not a template: its {part('is_template')} is {FALSE}."
        )
    else:
        project = rows[0] | {"tag_ids": [tag_id for (tag_id,) in tx.all(TAGS, id=template_id)]}
        return Template(project, *(_load_rows(tx, table, "project_id", template_id) for table in (milestones, tasks)))
    return None


def fill_project(tx: Tx, project: Project, template: Template | None) -> None:
    """Fill in what the body leaves out from its template. Notes an error for everything that does not fit."""
    if template is None:
        return
    original = template.project
    currency = tx.field(clients.c.currency, project.client_id) or tx.actor.currency
    fields = COPIED
    if original["billing_type"] != USUAL_BILLING:
        copy_fields(tx, project, original, ("billing_type",), currency)
    if any(row["amount"] for row in template.milestones) and project.billing_type != "fixed_fee":
        tx.error("billing_type", f"Must be {part('fixed_fee')}, because milestones of the template have amounts.")
        fields = tuple(name for name in COPIED if name != "fixed_fee")
    copy_fields(tx, project, original, fields, currency)
    if tx.readable("billing_type"):
        validate_amounts(tx, project, template, currency)
    validate_assignees(tx, template)
    if original["due_date"] and "due_date" not in tx.sent and tx.readable("start_date"):
        project.due_date = _move(tx, original["due_date"], template.shift(project.start_date))


def copy_fields(tx: Tx, project: Project, original: Columns, names: Iterable[str], currency: str) -> None:
    """Copy fields that are still open from a template. Notes an error for an amount in another currency."""
    for name in names:
        is_chosen = name in tx.sent and name != "billing_type"  # a null there asks for the default
        if original[name] is None or is_chosen or getattr(project, name):
            continue
        value = original[name]
        if name in AMOUNTS:
            value = amount_of(value, original["currency"])
            if original["currency"] != currency:
                message = f"Is {part(value)} {original['currency']} in the template, and the project is in {currency}."
                tx.error(name, f"{message} {SEND} an amount in {currency}, or {NULL} for none.")
        setattr(project, name, value)


def validate_amounts(tx: Tx, project: Project, template: Template, currency: str) -> None:
    """Note an error for milestones of a template whose amounts do not fit the fixed fee of a new project."""
    own = template.project["currency"]
    whole = amount_of(sum(row["amount"] or 0 for row in template.milestones), own)
    if whole and own != currency:
        message = f"Its milestones have amounts in {own}, and the project is in {currency}."
        tx.error("template_id", f"{message} Choose a template in {currency}, or one whose milestones have no amounts.")
    elif whole > (project.fixed_fee or 0):
        tx.error("fixed_fee", f"Must be at least the sum of the template's milestones, {part(whole)} {own}.")


def validate_assignees(tx: Tx, template: Template) -> None:
    deactivated = {user_id for (user_id,) in tx.all(DEACTIVATED)}
    found = [row for row in template.tasks if row["assignee_id"] in deactivated]
    if found:
        first, *others = found
        more = f" (and {len(others)} more)" if others else ""
        message = f"Task {first['id']}{more} of the template is assigned to user {first['assignee_id']}, who is"
        tx.error("template_id", f"{message} deactivated. Assign the tasks of the template to active users first.")


def copy_work(tx: Tx, template: Template, project_id: int) -> None:
    """Copy milestones and tasks, all open; dates move by `shift`. Tasks are billable only if the project is."""
    project = _load_rows(tx, projects, "id", project_id)[0]
    shift = template.shift(project["start_date"])
    can_be_billed = project["billing_type"] != "non_billable" or project["is_template"]
    copies: dict[tuple[str, int | None], int | None] = {}
    for row in template.milestones:
        values = {"project_id": project_id, "currency": project["currency"]}
        copies["milestone", row["id"]] = _copy(tx, milestones, row, shift, values)
    for row in sorted(template.tasks, key=lambda row: row["parent_id"] is not None):
        values = {"client_id": project["client_id"], "created_by_id": tx.actor.user_id}
        values |= {"billable": bool(row["billable"]) and can_be_billed}
        values |= {f"{noun}_id": copies.get((noun, row[f"{noun}_id"])) for noun in ("milestone", "parent")}
        copies["parent", row["id"]] = copy_id = _copy(tx, tasks, row, shift, {"project_id": project_id} | values)
        tx.run(COPY_TAGS, original=row["id"], copy=copy_id)
        added(tx, TAG_USES[tasks], [copy_id])


@cache
def _select_by(table: Table, name: str) -> Select[Any]:
    return select(table).where(table.c[name] == bindparam("value")).order_by(table.c.id)


def _load_rows(tx: Tx, table: Table, name: str, value: int) -> list[Columns]:
    return [dict(zip(table.c.keys(), row, strict=True)) for row in tx.all(_select_by(table, name), value=value)]


def _move(tx: Tx, day: str | None, shift: timedelta | None) -> str | None:
    """Return a day of the template as that of its copy; note an error if the year is implausible."""
    if shift is None or not day:
        return None
    moved, (first, last) = day_after(day, shift.days), likely_days()
    if not first <= moved <= last:
        bounds = f"Dates are from {part(first)} to {part(last)}. Check the year."
        tx.error("start_date", f"Moves a date of the template from {part(day)} to {part(moved)}. {bounds}")
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
        added(tx, TASKS, [copy_id])
    return copy_id
