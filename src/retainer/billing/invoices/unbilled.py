"""Unbilled work: all billable work of a client that is not yet billed, as lines of an invoice.

Time that a fee covers is left out unless the request names its project; time without a rate is always left out. The
response counts what was left out. A completed milestone with an amount is a line of its own, and so is each month of a
retainer.
"""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Select, Table, bindparam, case, func, literal, or_, select

from retainer.billing import allocation_types, documents, fees
from retainer.billing.allocations import KINDS, WorkKind, item_ids, work_of
from retainer.billing.document_types import MAX_LINES
from retainer.billing.fees import Fee
from retainer.billing.invoices import billable
from retainer.billing.invoices.types import (
    MAX_DESCRIPTION,
    MAX_ITEMS,
    Invoice,
    InvoiceLine,
    LeftOut,
    UnbilledExpenses,
    UnbilledFees,
    UnbilledMilestones,
    UnbilledTime,
    UnbilledWork,
)
from retainer.schema import expressions
from retainer.schema.billing import expenses
from retainer.schema.identity import users
from retainer.schema.work import milestones, projects, tasks, time_entries
from retainer.store import constraints
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx
from retainer.values.exact import FIRST_DAY, LAST_DAY
from retainer.values.reading import with_defaults

Selection = UnbilledTime | UnbilledExpenses
DESCRIPTIONS_WITHOUT = {(time_entries, "task"): "Other work", (time_entries, "project"): "Work without a project"}
"""The descriptions of lines for work without a task or project."""
GROUPS: dict[str, tuple[str, Table | None, str]] = {
    "entry": ("id", None, "description"),
    "category": ("category", None, "category"),
    "project": ("project_id", projects, "name"),
    "task": ("task_id", tasks, "title"),
    "user": ("user_id", users, "name"),
}
"""The column that groups work, and the column of which table has the description of its line."""


class UnbilledItem(NamedTuple):
    """A time entry or expense that can be billed: the key that groups it, and the text of that key."""

    id: int
    project_id: int | None
    project_name: str | None
    key: int | str | None
    label: str | None


class Match(NamedTuple):
    """How much of the requested work can be billed, or is left out for a reason; the amount in minor units."""

    state: Literal["billable", "covered", "unpriced"]
    size: int
    minutes: int
    amount: int


class DueMilestone(NamedTuple):
    """A milestone that can be billed, and its amount in minor units."""

    id: int
    amount: int


def _state(table: Table, *, takes_covered: bool) -> ColumnElement[str]:
    """Return whether work can be billed, or why not."""
    if table is expenses:
        return case((expenses.c.billable, "billable"))  # always; but PostgreSQL groups by no constant
    covered = () if takes_covered else ((expressions.is_covered(projects), "covered"),)
    return case(*covered, (expressions.is_unpriced(time_entries), "unpriced"), else_="billable")


def _matching(table: Table, *, by_project: bool) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of requested work: on no other invoice, and not named by a line of the request."""
    columns = table.c
    wanted = (is_listed(columns.project_id, listed("wanted", INTEGER).scalar_subquery()),) if by_project else ()
    return (
        columns.client_id == bindparam("client"),
        columns.currency == bindparam("currency"),
        columns.billable.is_(True),
        or_(columns.invoice_line_id.is_(None), columns.invoice_id == bindparam("invoice")),
        columns.date.between(bindparam("first"), bindparam("last")),
        columns.id.not_in(listed("named", INTEGER)),
        *wanted,
    )


@cache
def _select_matches(table: Table, *, by_project: bool, takes_covered: bool) -> Select[Any]:
    """In the order of Match's fields."""
    minutes = func.sum(table.c.duration_minutes) if table is time_entries else literal(0)
    amount = func.coalesce(func.sum(table.c.amount if table is time_entries else table.c.billable_amount), 0)
    state = _state(table, takes_covered=takes_covered).label("state")
    source = table.outerjoin(projects, projects.c.id == table.c.project_id)
    matches = select(state, func.count(), minutes, amount).select_from(source)
    return matches.where(*_matching(table, by_project=by_project)).group_by(state)


@cache
def _select_items(table: Table, group_by: str, *, by_project: bool) -> Select[Any]:
    """In the order of UnbilledItem's fields."""
    source: FromClause = table.outerjoin(projects, projects.c.id == table.c.project_id)
    column, other, text = GROUPS[group_by]
    if other is not None and other is not projects:
        source = source.outerjoin(other, other.c.id == table.c[column])
    label = (table if other is None else other).c[text]
    items = select(*table.c["id", "project_id"], projects.c.name, table.c[column], label).select_from(source)
    is_billable = _state(table, takes_covered=by_project) == "billable"
    return items.where(*_matching(table, by_project=by_project), is_billable).order_by(table.c.date, table.c.id)


def _select_milestones(*, by_project: bool) -> Select[tuple[int, int]]:
    """Select the milestones that can be billed, in the order of their completion, with DueMilestone's fields."""
    columns, invoice_id = milestones.c, allocation_types.MILESTONE_INVOICE.expression(milestones)
    wanted = (is_listed(columns.project_id, listed("wanted", INTEGER).scalar_subquery()),) if by_project else ()
    found = select(*columns["id", "amount"]).select_from(milestones.join(projects, projects.c.id == columns.project_id))
    return found.where(
        projects.c.client_id == bindparam("client"),
        projects.c.is_template.is_(False),
        columns.currency == bindparam("currency"),
        columns.status == "completed",
        columns.amount > 0,
        or_(invoice_id.is_(None), invoice_id == bindparam("invoice")),
        columns.id.not_in(listed("named", INTEGER)),
        *wanted,
    ).order_by(columns.completed_at, columns.id)


MILESTONES = {by_project: _select_milestones(by_project=by_project) for by_project in (False, True)}


def build_unbilled_lines(tx: Tx, request: UnbilledWork, invoice: Invoice) -> tuple[list[InvoiceLine], list[LeftOut]]:
    """Return lines for all requested work, and what was left out.

    Notes `nothing_to_bill` if there is none, and an error if one invoice cannot take it all.
    """
    requested = ((KINDS["time"], "time", request.time), (KINDS["expense"], "expenses", request.expenses))
    selections = [(kind, name, selection) for kind, name, selection in requested if selection is not None]
    if not selections and request.milestones is None and request.fees is None:
        kinds = '{"time": {}, "expenses": {}, "milestones": {}, "fees": {}}'
        tx.error("unbilled_work", f"Say what to bill: {kinds}, or some of these.")
    matches: list[Match] = []
    for kind, name, selection in selections:
        validate_selection(tx, f"unbilled_work.{name}", selection, invoice.client_id)
        matches += load_matches(tx, kind, selection, invoice, takes_covered=selection.project_ids is not None)
    left_out = build_left_out(matches)
    completed, months = load_milestones(tx, request.milestones, invoice), load_fees(tx, request.fees, invoice)
    found = sum(match.size for match in matches if match.state == "billable") + len(completed) + len(months)
    named = sum(len(work_of(line)) for line in invoice.lines)
    if reason := billable.excess(tx, found + named):
        besides = f", besides {named} that lines name" if named else ""
        advice = "limit the days with from and to, or the projects with project_ids"
        tx.error("unbilled_work", f"Matches {found} pieces of work{besides}; {reason}. Bill them in parts: {advice}.")
        return [], left_out
    if not found and not tx.errors:
        tx.error("unbilled_work", _nothing(invoice, left_out), "nothing_to_bill")
    lines = []
    for kind, _, selection in selections if found else ():
        for description, ids in group_items(tx, kind, selection, invoice):
            lines.append(with_defaults(InvoiceLine, description=description, **{kind.field: ids}))
    lines += [with_defaults(InvoiceLine, milestone_id=milestone.id) for milestone in completed]
    lines += [with_defaults(InvoiceLine, project_id=fee.project_id, fee_month=fee.month) for fee in months]
    return lines, left_out


def load_matches(tx: Tx, kind: WorkKind, selection: Selection, invoice: Invoice, *, takes_covered: bool) -> list[Match]:
    """Return how much time or how many expenses a selection matches; covered time can be billed, or is left out."""
    by_project = selection.project_ids is not None
    statement = _select_matches(kind.table, by_project=by_project, takes_covered=takes_covered)
    return list(map(Match._make, tx.all(statement, **_of_days(kind, selection, invoice))))


def build_left_out(matches: Sequence[Match]) -> list[LeftOut]:
    """Return what is not billed, by reason."""
    return [LeftOut(match.state, match.size, match.minutes) for match in sorted(matches) if match.state != "billable"]


def load_milestones(tx: Tx, selection: UnbilledMilestones | None, invoice: Invoice) -> list[DueMilestone]:
    """Return the milestones to bill; note an error for each project that is not the client's."""
    if selection is None:
        return []
    validate_projects(tx, "unbilled_work.milestones", selection.project_ids, invoice.client_id)
    values = _parameters(KINDS["milestone"], selection.project_ids, invoice)
    rows = tx.all(MILESTONES[selection.project_ids is not None], **values)
    return list(map(DueMilestone._make, rows))


def load_fees(tx: Tx, selection: UnbilledFees | None, invoice: Invoice) -> list[Fee]:
    """Return the months of retainers to bill; note the errors of the selection, and one for too many months."""
    if selection is None:
        return []
    validate_selection(tx, "unbilled_work.fees", selection, invoice.client_id)
    named = {fees.fee_of(line) for line in invoice.lines}
    due = fees.load_due(tx, selection, invoice.client_id, invoice.currency, invoice.id)
    months = list(islice((found.fee for found in due if found.fee not in named), MAX_LINES + 1))
    if len(months) > MAX_LINES:
        advice = "Bill them with several: limit the months with from and to, or the projects with project_ids."
        tx.error(
            "unbilled_work.fees", f"Matches more than {MAX_LINES} months, the most that one invoice takes. {advice}"
        )
        return []
    return months


def _nothing(invoice: Invoice, left_out: list[LeftOut]) -> str:
    """Return the error for no work: why what matches is left out."""
    message = f"Client {invoice.client_id} has no unbilled work in {invoice.currency} that matches."
    reasons = {
        "covered": "that a fee covers (name its project in project_ids to bill it)",
        "unpriced": "without a rate (give each an hourly_rate)",
    }
    parts = []
    for part in left_out:
        noun, unit = "entry" if part.count == 1 else "entries", "minute" if part.minutes == 1 else "minutes"
        parts.append(f"{part.count} {noun} of {part.minutes} {unit} {reasons[part.reason]}")
    return f"{message} Left out: {', '.join(parts)}." if parts else message


def _of_days(kind: WorkKind, selection: Selection, invoice: Invoice) -> dict[str, object]:
    """Return the parameters of the statements for a selection of time or expenses."""
    days = {"first": selection.from_ or FIRST_DAY, "last": selection.to or LAST_DAY}
    return _parameters(kind, selection.project_ids, invoice) | days


def _parameters(kind: WorkKind, project_ids: list[int] | None, invoice: Invoice) -> dict[str, object]:
    """Return the parameters of the statements for work of some projects, or of all."""
    wanted = {} if project_ids is None else {"wanted": json.dumps(project_ids)}
    return wanted | {
        "client": invoice.client_id,
        "currency": invoice.currency,
        "invoice": invoice.id or 0,
        "named": json.dumps([item_id for line in invoice.lines for item_id in item_ids(line, kind)]),
    }


def validate_selection(tx: Tx, path: str, selection: Selection | UnbilledFees, client_id: int | None) -> None:
    """Note an error for each project that is not the client's, and for days in the wrong order."""
    validate_projects(tx, path, selection.project_ids, client_id)
    if selection.from_ and selection.to and selection.to < selection.from_:
        tx.error(f"{path}.to", f"Must not be before from, which is {selection.from_}.")


def validate_projects(tx: Tx, path: str, project_ids: list[int] | None, client_id: int | None) -> None:
    """Note an error for each project that is not the client's."""
    owners = documents.load_projects(tx, project_ids or ())
    for position, project_id in enumerate(project_ids or ()):
        owner = owners.get(project_id)
        if owner is None:
            tx.error(f"{path}.project_ids.{position}", constraints.MISSING.format("project"))
        elif client_id is not None and owner.client_id != client_id:
            tx.error(f"{path}.project_ids.{position}", f"Is not a project of client {client_id}.")


def group_items(
    tx: Tx, kind: WorkKind, selection: Selection, invoice: Invoice
) -> Iterator[tuple[str | None, list[int]]]:
    """Yield the description of each line and the ids that it bills, by day, at most MAX_ITEMS.

    A line never mixes projects. Pricing describes expenses of a project by their own descriptions.
    """
    groups: dict[tuple[int | str | None, int | None], tuple[str | None, str | None, list[int]]] = {}
    projects_of_key: dict[int | str | None, set[int | None]] = {}
    statement = _select_items(kind.table, selection.group_by, by_project=selection.project_ids is not None)
    for item in map(UnbilledItem._make, tx.all(statement, **_of_days(kind, selection, invoice))):
        text = item.label or DESCRIPTIONS_WITHOUT.get((kind.table, selection.group_by))
        text = None if (kind.table, selection.group_by) == (expenses, "project") else text
        projects_of_key.setdefault(item.key, set()).add(item.project_id)
        groups.setdefault((item.key, item.project_id), (text, item.project_name, []))[-1].append(item.id)
    for (key, _), (text, project_name, ids) in groups.items():
        parts = [text, project_name] if len(projects_of_key[key]) > 1 else [text]
        description = ", ".join(filter(None, parts))[:MAX_DESCRIPTION].rstrip()
        for start in range(0, len(ids), MAX_ITEMS):
            yield description or None, ids[start : start + MAX_ITEMS]
