"""Billable work: the time entries, expenses and milestones that lines bill, read before any line is priced."""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Table, and_, literal, null, select

from retainer.billing import documents, fees
from retainer.billing.allocations import KINDS, work_of
from retainer.billing.documents import Projects
from retainer.billing.fees import BilledFee, Fee, RetainerProject
from retainer.billing.invoices.types import MAX_WORK, InvoiceLine, LineKind
from retainer.schema.billing import allocations, expenses, invoice_lines
from retainer.schema.work import milestones, time_entries
from retainer.schema.work import projects as projects_table
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx


class BillableItem(NamedTuple):
    """A time entry, expense or milestone as it can be billed; amount and rate in minor units."""

    id: int
    client_id: int | None
    project_id: int | None
    currency: str
    billable: int
    amount: int | None
    day: str | None
    description: str | None
    invoice_id: int | None
    invoice_line_id: int | None
    minutes: int
    rate: int | None


class LineContext(NamedTuple):
    """What the lines of an invoice are priced from."""

    items: dict[tuple[LineKind, int], BillableItem]
    projects: Projects
    tax_rate: Decimal
    """The default of lines without a tax rate."""
    current: dict[int, InvoiceLine]
    """The lines that the invoice has now; their work can move among them."""
    retainers: dict[int, RetainerProject]
    billed: dict[Fee, BilledFee]
    """The months of these retainers that are on an invoice."""
    claimed: set[tuple[LineKind, int] | Fee]
    """The work and the months that the lines priced so far bill."""


def _select(table: Table, *columns: ColumnElement[Any]) -> Select[Any]:
    """Select listed items, in the order of the fields of BillableItem."""
    return select(table.c.id, *columns).where(is_listed(table.c.id, listed("ids", INTEGER).scalar_subquery()))


COMMON = ("client_id", "project_id", "currency", "billable")
TEXTS = ("date", "description", "invoice_id", "invoice_line_id")
ITEMS: dict[LineKind, Select[Any]] = {
    "time": _select(time_entries, *time_entries.c[*COMMON, "amount", *TEXTS, "duration_minutes", "hourly_rate"]),
    "expense": _select(expenses, *expenses.c[*COMMON, "billable_amount", *TEXTS], literal(0), null()),
    "milestone": _select(
        milestones,
        projects_table.c.client_id,
        *milestones.c["project_id", "currency"],
        projects_table.c.is_template.is_(False),
        *milestones.c["amount", "completed_at", "name"],
        *invoice_lines.c["invoice_id", "id"],
        literal(0),
        null(),
    ).select_from(
        milestones.join(projects_table, projects_table.c.id == milestones.c.project_id)
        .outerjoin(allocations, and_(allocations.c.milestone_id == milestones.c.id, allocations.c.is_live == 1))
        .outerjoin(invoice_lines, invoice_lines.c.id == allocations.c.invoice_line_id)
    ),
}


def excess(tx: Tx, count: int) -> str:
    """Return why an invoice cannot bill so many items; empty if it can."""
    left = tx.billable_left
    if count > MAX_WORK:
        return f"one invoice takes {MAX_WORK}"
    return f"the batch may bill {left} more" if left is not None and count > left else ""


def load_context(
    tx: Tx,
    lines: Sequence[InvoiceLine],
    tax_rate: Decimal,
    *,
    current: Sequence[InvoiceLine] = (),
    others: Sequence[InvoiceLine] = (),
) -> LineContext:
    """Read the work and the projects of lines; `others` are the lines that the invoice has besides.

    Raises `validation_failed` for more items than an invoice or the batch takes, before any of them is read.
    """
    work = [work_of(line) for line in lines]
    count = sum(map(len, work)) + sum(len(work_of(line)) for line in others)
    if reason := excess(tx, count):
        tx.error("lines", f"Would bill {count} items; {reason}. Bill the rest with another one.")
        tx.raise_errors()
    if tx.billable_left is not None:
        tx.billable_left -= count
    items: dict[tuple[LineKind, int], BillableItem] = {}
    for name in KINDS:
        ids = sorted({item_id for of_line in work for kind, item_id in of_line if kind == name})
        rows = tx.all(ITEMS[name], ids=json.dumps(ids)) if ids else []
        items |= {(name, item.id): item for item in map(BillableItem._make, rows)}
    project_ids = [line.project_id for line in lines] + [item.project_id for item in items.values()]
    projects, retainers = documents.load_projects(tx, project_ids), fees.load_projects(tx, lines)
    by_id, billed = {line.id: line for line in current}, fees.load_billed(tx, retainers)
    return LineContext(items, projects, tax_rate, by_id, retainers, billed, set())
