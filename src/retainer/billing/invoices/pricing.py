"""Pricing: how the lines of an invoice get quantity, price, project and description from the work that they bill."""

from collections.abc import Sequence
from decimal import Decimal

from retainer.billing import documents
from retainer.billing.allocations import KINDS
from retainer.billing.document_types import MAX_LINES
from retainer.billing.fees import Fee, billed_message, fee_of, start_of
from retainer.billing.invoices.billable import BillableItem, LineContext, load_context
from retainer.billing.invoices.types import MAX_DESCRIPTION, Invoice, InvoiceLine
from retainer.documents.wording import fee_text
from retainer.store import constraints
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import amount_of

NOUNS = {"time": "Work", "expense": "Expenses", "milestone": "Milestone"}


def build_lines(tx: Tx, invoice: Invoice, current: Sequence[InvoiceLine], tax_rate: Decimal) -> None:
    """Price the lines of a draft, and set its totals; `current` are the lines that it has now."""
    count = len(invoice.lines)
    if count > MAX_LINES:
        tx.error("lines", f"Would be {count}; at most {MAX_LINES} are possible. Bill less at once, or group more.")
    context = load_context(tx, invoice.lines, tax_rate, current=current)
    for line in documents.each_line(tx, invoice.lines):
        price_line(tx, line, invoice, context)
    documents.compute_totals(invoice)


def price_line(tx: Tx, line: InvoiceLine, invoice: Invoice, context: LineContext) -> None:
    """Fill in what a line gets from its work and its invoice; note an error for each field that cannot be."""
    kinds = [name for name, kind in KINDS.items() if getattr(line, kind.field)]
    line.kind, amount = kinds[0] if kinds else "item", None
    for name in kinds[1:]:
        tx.error(KINDS[name].field, f"A line bills one kind of work; this one has {KINDS[line.kind].field}, too.")
    if kinds:
        items = validate_items(tx, line, invoice, context)
        amount = price_items(tx, line, items, invoice.currency, context.current.get(line.id))
        if line.fee_month:
            tx.error("fee_month", f"A line bills one kind of work; this one has {KINDS[line.kind].field}, too.")
    else:
        if line.fee_month:
            price_fee(tx, line, invoice, context)
        elif tx.readable("fee_month", *(kind.field for kind in KINDS.values())):
            for field in ("description", "unit_price"):
                if getattr(line, field) is None:
                    tx.error(field, "Is required, unless the line bills work.")
        line.description, line.unit_price = line.description or "", line.unit_price or Decimal(0)
        line.quantity = Decimal(1) if line.quantity is None else line.quantity
    documents.price_line(tx, line, invoice, context.tax_rate, context.projects, amount=amount)


def price_fee(tx: Tx, line: InvoiceLine, invoice: Invoice, context: LineContext) -> None:
    """Fill in price, unit and description of a line that bills a month; note an error if it cannot be billed."""
    line.kind, fee = "fee", fee_of(line)
    project = context.retainers.get(line.project_id or 0)
    if fee is None:
        tx.error("project_id", "Is required with fee_month: whose retainer is billed?")
    else:
        validate_fee(tx, fee, line, invoice, context)
        context.claimed.add(fee)
    if line.quantity is not None and line.quantity <= 0:
        tx.error("quantity", "Must be more than 0 for a month of a retainer. Credit it with a credit note.")
    if project and line.unit_price is None:
        line.unit_price = amount_of(project.retainer_amount or 0, project.currency)
    line.unit = line.unit or "months"
    if not line.description and line.fee_month:
        text = fee_text(line.fee_month, project.language if project else "en")
        is_ambiguous = any(other is not line and other.fee_month == line.fee_month for other in invoice.lines)
        line.description = f"{text}, {project.name}" if project and is_ambiguous else text


def validate_fee(tx: Tx, fee: Fee, line: InvoiceLine, invoice: Invoice, context: LineContext) -> None:
    """Note an error for a month that is billed already, that its project does not have, or that has no price."""
    project, owner = context.retainers.get(fee.project_id), context.projects.get(fee.project_id)
    before, billed = context.current.get(line.id), context.billed.get(fee)
    if fee in context.claimed:
        name = f"{fee.month} of project {fee.project_id}"
        tx.error("fee_month", f"Is listed twice in this request: {name}. List it once.")
    elif billed and billed.line_id not in context.current:
        tx.error("fee_month", billed_message(billed), "already_billed")
    if project is None or owner is None or not tx.readable("fee_month"):
        return
    is_new = before is None or fee_of(before) != fee
    if project.billing_type != "retainer" and is_new:
        tx.error("fee_month", f"Project {project.id} has no monthly fee: its billing_type is {project.billing_type}.")
    elif fee.month < (start := start_of(tx, project))[:7] and is_new:
        advice = "Choose a later month, or change the start_date of the project first."
        tx.error("fee_month", f"Project {project.id} begins on {start}. {advice}")
    elif line.unit_price is None and project.retainer_amount is None:
        tx.error("unit_price", f"Is required, since project {project.id} has no retainer_amount.")
    elif line.unit_price is None and project.currency != invoice.currency and owner.client_id == invoice.client_id:
        tx.error("unit_price", f"Is required: the fee is in {project.currency}, the invoice in {invoice.currency}.")


def validate_items(tx: Tx, line: InvoiceLine, invoice: Invoice, context: LineContext) -> list[BillableItem]:
    """Return the work that a line can bill, sorted; note an error for each item that it cannot bill."""
    kind = KINDS[line.kind]
    named = getattr(line, kind.field)
    is_list = isinstance(named, list)
    ids = named if is_list else [named]
    items = []
    for position, item_id in sorted(enumerate(ids), key=lambda place: place[1]):
        item, code = context.items.get((line.kind, item_id)), "validation_failed"
        if (line.kind, item_id) in context.claimed:
            message = f"Is listed twice in this request: {kind.noun} {item_id}. List it once."
        elif item is None:
            message = constraints.MISSING.format(kind.noun)
        elif item.invoice_line_id is not None and item.invoice_line_id not in context.current:
            message = f"{kind.noun.capitalize()} {item.id} is already on invoice {item.invoice_id}. Leave it out."
            code = "already_billed"
        else:
            message = explain_refusal(item, kind.noun, invoice)
        context.claimed.add((line.kind, item_id))
        if message:
            tx.error(f"{kind.field}.{position}" if is_list else kind.field, message, code)
        elif item:
            items.append(item)
    if is_list:
        setattr(line, kind.field, sorted(ids))
    return items


def explain_refusal(item: BillableItem, noun: str, invoice: Invoice) -> str:
    """Return why an invoice cannot bill an item; empty if it can."""
    name = f"{noun.capitalize()} {item.id}"
    if invoice.client_id is not None and item.client_id != invoice.client_id:
        return f"{name} is not for client {invoice.client_id}. Bill it to its own client."
    if not item.billable:
        return f"{name} is not billable. Leave it out, or make it billable first."
    if item.currency != invoice.currency:
        return f"{name} is in {item.currency}, the invoice in {invoice.currency}. Bill it on one in {item.currency}."
    if item.amount is not None:
        return ""
    if noun == "time entry":
        return f"{name} has no rate. Give it an hourly_rate first, or leave it out."
    return f"{name} has no amount. Give it one first."


def price_items(tx: Tx, line: InvoiceLine, items: list[BillableItem], currency: str, before: InvoiceLine | None) -> int:
    """Fill in quantity, price, project and description of a line from its work; return its amount in minor units.

    Notes an error for a quantity or price that is neither that of the work nor what the line had before.
    """
    if line.discount_percent:
        tx.error("discount_percent", "Work has no discount: its amount is fixed. Add a line with quantity -1 instead.")
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
    line.description = line.description or default_description(line, items)
    return units


def default_description(line: InvoiceLine, items: list[BillableItem]) -> str:
    """Return the description of a line's work, if all of it has the same; otherwise, the days of the work.

    Expenses with several descriptions have them all, by day, if these fit.
    """
    named = dict.fromkeys(item.description for item in sorted(items, key=lambda item: (item.day or "", item.id)))
    text = ", ".join(description for description in named if description)
    is_one = len(named) == 1 or (line.kind == "expense" and len(text) <= MAX_DESCRIPTION)
    if is_one and None not in named:
        return text[:MAX_DESCRIPTION].rstrip()
    days = sorted(item.day for item in items if item.day)
    span = f" from {days[0]} to {days[-1]}" if days and days[0] != days[-1] else f" on {days[0]}" if days else ""
    return f"{NOUNS[line.kind]}{span}"
