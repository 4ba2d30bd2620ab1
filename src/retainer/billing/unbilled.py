"""Unbilled work: everything of a client that is billable and not yet billed, as lines of an invoice."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Select, Table, bindparam, literal, or_, select

from retainer.billing import documents
from retainer.billing.invoice_types import MAX_ITEMS, Invoice, InvoiceLine, UnbilledExpenses, UnbilledTime, UnbilledWork
from retainer.billing.lines import MAX_DESCRIPTION, new_line
from retainer.schema import expressions
from retainer.schema.billing import expenses
from retainer.schema.crm import clients
from retainer.schema.identity import users
from retainer.schema.work import projects, tasks, time_entries
from retainer.store import constraints
from retainer.store.tx import Tx

WorkName = Literal["time", "expenses"]
Selection = UnbilledTime | UnbilledExpenses

FIRST, LAST = "0001-01-01", "9999-12-31"
DESCRIPTIONS_WITHOUT = {
    ("time", "task"): "Other work",
    ("time", "project"): "Work without a project",
    ("expenses", "project"): "Expenses without a project",
}
"""What a line says of work that is not of any task or project."""
GROUP_TABLES = {"task": (tasks, "task_id", "title"), "user": (users, "user_id", "name")}
PROJECT_CLIENT = select(projects.c.client_id).where(projects.c.id == bindparam("id"))


class UnbilledItem(NamedTuple):
    """A time entry or expense that can be billed: what it is grouped by, and the text for that."""

    id: int
    project_id: int | None
    project_name: str | None
    is_covered: int
    """Whether a fee covers it."""
    key: int | str | None
    label: str | None


def _select_unbilled(table: Table, group_by: str) -> Select[Any]:
    source: FromClause = table.outerjoin(projects, projects.c.id == table.c.project_id)
    covered: ColumnElement[Any] = expressions.is_covered(projects) if table is time_entries else literal(0)
    key: ColumnElement[Any]
    label: ColumnElement[Any]
    if group_by == "project":
        key, label = table.c.project_id, projects.c.name
    elif group_by in GROUP_TABLES:
        other, column, name = GROUP_TABLES[group_by]
        source = source.outerjoin(other, other.c.id == table.c[column])
        key, label = table.c[column], other.c[name]
    elif group_by == "category":
        key = label = table.c.category
    else:
        key, label = table.c.id, table.c.description
    limits = (
        table.c.client_id == bindparam("client"),
        table.c.currency == bindparam("currency"),
        table.c.billable.is_(True),
        or_(table.c.invoice_line_id.is_(None), table.c.invoice_id == bindparam("invoice")),
        table.c.date.between(bindparam("first"), bindparam("last")),
    )
    wanted = (table.c.id, table.c.project_id, projects.c.name, covered, key, label)
    return select(*wanted).select_from(source).where(*limits).order_by(table.c.date, table.c.id)


UNBILLED: dict[tuple[WorkName, str], Select[Any]] = {
    **{
        ("time", group_by): _select_unbilled(time_entries, group_by)
        for group_by in ("entry", "task", "user", "project")
    },
    **{("expenses", group_by): _select_unbilled(expenses, group_by) for group_by in ("entry", "category", "project")},
}
"""For each `group_by`; in the order of UnbilledItem's fields."""


def unbilled_lines(tx: Tx, request: UnbilledWork, invoice: Invoice) -> list[InvoiceLine]:
    """Return lines for all work that was requested; note `nothing_to_bill` when there is none."""
    if request.time is None and request.expenses is None:
        tx.error("unbilled_work", 'Say what to bill: {"time": {}}, {"expenses": {}}, or both.')
        return []
    new_lines: list[InvoiceLine] = []
    selections: list[tuple[WorkName, str, Selection | None]] = [
        ("time", "time_entry_ids", request.time),
        ("expenses", "expense_ids", request.expenses),
    ]
    for name, field, selection in selections:
        if selection is not None:
            check_selection(tx, f"unbilled_work.{name}", selection, invoice.client_id)
            named = {item_id for line in documents.identified_lines(invoice.lines) for item_id in getattr(line, field)}
            for description, ids in group_items(tx, name, selection, invoice, named):
                new_lines.append(new_line(description=description, **{field: ids}))
    if not new_lines and not tx.errors and tx.one(constraints.exists(clients), id=invoice.client_id):
        message = f"Client {invoice.client_id} has nothing in {invoice.currency} that is billable and not yet billed"
        tx.error("unbilled_work", f"{message}, among what was asked for.", "nothing_to_bill")
    return new_lines


def check_selection(tx: Tx, path: str, selection: Selection, client_id: int | None) -> None:
    """Note an error for each project that is not the client's, and for days in the wrong order."""
    for place, project_id in enumerate(selection.project_ids or ()):
        row = tx.one(PROJECT_CLIENT, id=project_id)
        if row is None:
            tx.error(f"{path}.project_ids.{place}", constraints.MISSING.format("project"))
        elif client_id is not None and row[0] != client_id:
            tx.error(f"{path}.project_ids.{place}", f"Is not a project of client {client_id}.")
    if selection.from_ and selection.to and selection.to < selection.from_:
        tx.error(f"{path}.to", f"Must not be before from, which is {selection.from_}.")


def group_items(
    tx: Tx, name: WorkName, selection: Selection, invoice: Invoice, named: set[int]
) -> Iterator[tuple[str | None, list[int]]]:
    """Yield what each line says and the ids that it bills, in the order of days; no more than one request can name.

    What lines of the invoice name is left out; what stood on it and is named no more can be billed anew. So are hours
    that a fee covers, unless their project is named. A line never mixes projects (contract 3.8).
    """
    days = {"first": selection.from_ or FIRST, "last": selection.to or LAST}
    limits = {"client": invoice.client_id, "currency": invoice.currency, "invoice": invoice.id or 0}
    groups: dict[tuple[int | str | None, int | None], tuple[str | None, str | None, list[int]]] = {}
    projects_of_key: dict[int | str | None, set[int | None]] = {}
    wanted = selection.project_ids
    for item in (UnbilledItem(*row) for row in tx.all(UNBILLED[name, selection.group_by], **days, **limits)):
        if item.id in named or (item.is_covered if wanted is None else item.project_id not in wanted):
            continue
        text = item.label or DESCRIPTIONS_WITHOUT.get((name, selection.group_by))
        projects_of_key.setdefault(item.key, set()).add(item.project_id)
        groups.setdefault((item.key, item.project_id), (text, item.project_name, []))[-1].append(item.id)
    for (key, _), (text, project_name, ids) in groups.items():
        parts = [text, project_name] if len(projects_of_key[key]) > 1 else [text]
        description = ", ".join(filter(None, parts))[:MAX_DESCRIPTION].rstrip()
        for start in range(0, len(ids), MAX_ITEMS):
            yield description or None, ids[start : start + MAX_ITEMS]
