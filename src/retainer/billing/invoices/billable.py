"""Billable work: the time entries, expenses and milestones that lines name, read at once and judged one by one."""

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, literal, null, select

from retainer.billing.allocations import KINDS, item_ids
from retainer.billing.invoices.types import MAX_WORK, Invoice, InvoiceLine, LineKind
from retainer.schema.billing import allocations, expenses, invoice_lines
from retainer.schema.work import milestones, projects, time_entries
from retainer.store import constraints
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx


class BillableItem(NamedTuple):
    """A time entry, expense or milestone as it can be billed; amount and rate in minor units, minutes if it is time."""

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


def _select_time() -> Select[Any]:
    columns = time_entries.c
    work = columns["client_id", "project_id", "currency", "billable", "amount", "date", "description"]
    return select(columns.id, *work, *columns["invoice_id", "invoice_line_id", "duration_minutes", "hourly_rate"])


def _select_expenses() -> Select[Any]:
    columns = expenses.c
    work = columns["client_id", "project_id", "currency", "billable", "billable_amount", "date", "description"]
    return select(columns.id, *work, *columns["invoice_id", "invoice_line_id"], literal(0), null())


def _select_milestones() -> Select[Any]:
    columns, of_milestone = milestones.c, projects.c.id == milestones.c.project_id
    client = select(projects.c.client_id).where(of_milestone).scalar_subquery()
    billable = select(projects.c.is_template.is_(False)).where(of_milestone).scalar_subquery()
    live = (allocations.c.milestone_id == columns.id, allocations.c.is_live == 1)
    line = select(allocations.c.invoice_line_id).where(*live).scalar_subquery()
    on_line = invoice_lines.join(allocations, allocations.c.invoice_line_id == invoice_lines.c.id)
    invoice = select(invoice_lines.c.invoice_id).select_from(on_line).where(*live).scalar_subquery()
    work = [client, *columns["project_id", "currency"], billable, *columns["amount", "completed_at", "name"]]
    return select(columns.id, *work, invoice, line, literal(0), null())


def _named(items: Select[Any], kind: LineKind) -> Select[Any]:
    """Select the items with these ids."""
    table = KINDS[kind].table
    named = is_listed(table.c.id, listed("ids", INTEGER).scalar_subquery())
    return items.where(named)


SELECT_ITEMS: dict[LineKind, Select[Any]] = {
    "time": _named(_select_time(), "time"),
    "expense": _named(_select_expenses(), "expense"),
    "milestone": _named(_select_milestones(), "milestone"),
}
"""In the order of BillableItem's fields."""


class BillableWork:
    """The work that the lines of a request name, and which of it they have claimed so far."""

    def __init__(self, items: dict[tuple[LineKind, int], BillableItem]) -> None:
        self._items = items
        self._claimed: set[tuple[LineKind, int]] = set()

    def get(self, kind: LineKind, item_id: int) -> BillableItem | None:
        """Return an item, or None if the account has none with this id."""
        return self._items.get((kind, item_id))

    def claim(self, kind: LineKind, item_id: int) -> bool:
        """Note that a line bills an item; return whether no other line of the request does."""
        is_first = (kind, item_id) not in self._claimed
        self._claimed.add((kind, item_id))
        return is_first


def count_work(lines: Sequence[InvoiceLine]) -> int:
    """Return how many items lines name."""
    return sum(len(item_ids(line, kind)) for line in lines for kind in KINDS.values())


def load_work(tx: Tx, lines: Sequence[InvoiceLine], *, others: Sequence[InvoiceLine] = ()) -> BillableWork:
    """Return the work that lines name, by one statement for each kind.

    Notes an error, and reads nothing, when an invoice with these and other lines would bill more than MAX_WORK items.
    """
    count = count_work([*lines, *others])
    if count > MAX_WORK:
        tx.error("lines", f"Would bill {count} items; one invoice takes {MAX_WORK}. Bill the rest with another one.")
        return BillableWork({})
    items: dict[tuple[LineKind, int], BillableItem] = {}
    for name, kind in KINDS.items():
        ids = sorted({item_id for line in lines for item_id in item_ids(line, kind)})
        if ids:
            rows = tx.all(SELECT_ITEMS[name], ids=json.dumps(ids))
            items |= {(name, item.id): item for item in map(BillableItem._make, rows)}
    return BillableWork(items)


def validate_item(item: BillableItem | None, noun: str, invoice: Invoice, current: Collection[int]) -> tuple[str, str]:
    """Return why an invoice with these current lines cannot bill an item, and the code of that; empty when it can."""
    if item is None:
        return constraints.MISSING.format(noun), "validation_failed"
    name = f"{noun.capitalize()} {item.id}"
    if item.invoice_line_id is not None and item.invoice_line_id not in current:
        return f"{name} is already on invoice {item.invoice_id}. Leave it out.", "already_billed"
    message = ""
    if invoice.client_id is not None and item.client_id != invoice.client_id:
        message = f"{name} is not for client {invoice.client_id}. Bill it to its own client."
    elif not item.billable:
        message = f"{name} is not billable. Leave it out, or make it billable first."
    elif item.currency != invoice.currency:
        message = f"{name} is in {item.currency}, the invoice in {invoice.currency}. Bill it on one in {item.currency}."
    elif item.amount is None and noun == "time entry":
        message = f"{name} has no rate. Give it an hourly_rate first, or leave it out."
    elif item.amount is None:
        message = f"{name} has no amount. Give it one first."
    return message, "validation_failed"
