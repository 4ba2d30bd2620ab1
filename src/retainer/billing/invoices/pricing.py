"""Invoice lines: what an invoice bills, be it time, expenses, a milestone, or anything else."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from retainer.billing import documents
from retainer.billing.allocations import KINDS, attach, detach, item_ids, work_of
from retainer.billing.invoices.billable import BillableItem, BillableWork, validate_item
from retainer.billing.invoices.types import Invoice, InvoiceLine, LineKind
from retainer.schema.billing import invoice_lines
from retainer.store import constraints
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import amount_of, minor_units
from retainer.values.reading import complete

MAX_DESCRIPTION = 2000

LinesById = Mapping[int, InvoiceLine]
"""The lines of an invoice by their ids."""


def new_line(**fields: Any) -> InvoiceLine:
    """Return a line with these fields and the default others."""
    return complete(InvoiceLine, fields, fields, {})


def prepare_line(
    tx: Tx, line: InvoiceLine, invoice: Invoice, tax_rate: Decimal, current: LinesById, work: BillableWork
) -> None:
    """Fill in what a line has from its work and its invoice.

    Work on its `current` lines, those that the invoice has now, can move among them.
    """
    kinds: list[LineKind] = [name for name, kind in KINDS.items() if getattr(line, kind.field)]
    line.kind = kinds[0] if kinds else "item"
    amount = None
    if kinds:
        for name in kinds[1:]:
            tx.error(KINDS[name].field, f"A line bills one kind of work; this one has {KINDS[kinds[0]].field}, too.")
        items = check_items(tx, line, invoice, current, work)
        amount = price_items(tx, line, items, invoice.currency, current.get(line.id))
    else:
        for field in ("description", "unit_price") if tx.readable(*(kind.field for kind in KINDS.values())) else ():
            if getattr(line, field) is None:
                tx.error(field, "Is required, unless the line bills work.")
        line.description, line.unit_price = line.description or "", line.unit_price or Decimal(0)
        line.quantity = Decimal(1) if line.quantity is None else line.quantity
    documents.price_line(tx, invoice_lines, line, invoice, tax_rate, amount=amount)


def check_items(
    tx: Tx, line: InvoiceLine, invoice: Invoice, current: LinesById, work: BillableWork
) -> list[BillableItem]:
    """Return the work that a line names, sorted; note an error for each item that it cannot bill."""
    kind = KINDS[line.kind]
    is_list = isinstance(getattr(line, kind.field), list)
    ids = item_ids(line, kind)
    noun = constraints.singular(kind.table)
    items = []
    for place, item_id in sorted(enumerate(ids), key=lambda place_and_id: place_and_id[1]):
        item = work.get(line.kind, item_id)
        message, code = validate_item(item, noun, invoice, current)
        if not work.claim(line.kind, item_id):
            message, code = f"Stands twice in this request: {noun} {item_id}. Name it once.", "validation_failed"
        if message:
            tx.error(f"{kind.field}.{place}" if is_list else kind.field, message, code)
        elif item:
            items.append(item)
    if is_list:
        setattr(line, kind.field, sorted(ids))
    return items


def price_items(tx: Tx, line: InvoiceLine, items: list[BillableItem], currency: str, before: InvoiceLine | None) -> int:
    """Fill in quantity, price, project and description of a line from its work; return its amount in minor units.

    Notes an error for a quantity or price that says neither that of the work nor what the line had before.
    """
    if line.discount_percent:
        tx.error(
            "discount_percent", "Work has no discount: the amount is that of the work. Add a line with quantity -1."
        )
        line.discount_percent = Decimal(0)
    units = sum(item.amount or 0 for item in items)
    minutes = sum(item.minutes for item in items)
    quantity = money.hours(minutes) if minutes else Decimal(-1 if units < 0 else 1)
    rates = {item.rate for item in items}
    rate = rates.pop() if len(rates) == 1 else None
    unit_price = money.unit_price(units, quantity, currency) if rate is None else amount_of(rate, currency)
    is_known = bool(items) and tx.readable(KINDS[line.kind].field)
    for field, derived in (("quantity", quantity), ("unit_price", unit_price)):
        if is_known and getattr(line, field) not in {None, derived, getattr(before, field, None)}:
            tx.error(field, f"Is that of the work: {derived:f}. Leave it out.")
        setattr(line, field, derived)
    line.unit = line.unit or ("hours" if minutes else None)
    project_ids = {item.project_id for item in items}
    if line.kind == "milestone" and items and line.project_id not in {None, *project_ids}:
        tx.error("project_id", "Is not that of the milestone. Leave it out.")
    elif line.project_id is None and len(project_ids) == 1:
        (line.project_id,) = project_ids
    line.description = line.description or default_description(line.kind, items)
    return units


def default_description(kind: LineKind, items: list[BillableItem]) -> str:
    """Return what a line says when nobody said more: the description of its work, else when that was done."""
    descriptions = {item.description for item in items}
    if len(descriptions) == 1 and None not in descriptions:
        return str(descriptions.pop())[:MAX_DESCRIPTION].rstrip()
    days = sorted(item.day for item in items if item.day)
    noun = {"time": "Work", "expense": "Expenses", "milestone": "Milestone"}.get(kind, "Item")
    span = f"from {days[0]} to {days[-1]}" if days and days[0] != days[-1] else f"on {days[0]}" if days else ""
    return f"{noun} {span}".strip()


def save(tx: Tx, invoice_id: int, before: list[InvoiceLine], after: list[InvoiceLine]) -> None:
    """Write the lines of an invoice in place of those before, and attach their work to them."""
    old, new = ({line.id: line for line in lines} for lines in (before, after))
    kept = {line.id for line in after if line.id in old and work_of(old[line.id]) == work_of(line)}
    detach(tx, [line for line in before if line.id not in kept], new)
    documents.save_lines(tx, invoice_lines, before, after, invoice_id=invoice_id)
    attach(tx, invoice_id, [line for line in after if line.id not in kept])


def amounts_by_project(invoice: Invoice) -> dict[int | None, int]:
    """Return what an invoice bills of each project, in minor units; lines without one count for the invoice's."""
    amounts: dict[int | None, int] = {}
    for line in invoice.lines:
        project_id = line.project_id or invoice.project_id
        amounts[project_id] = amounts.get(project_id, 0) + minor_units(line.amount, line.currency)
    return amounts
