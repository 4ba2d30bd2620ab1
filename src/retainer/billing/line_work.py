"""Line work: the work that lines of an invoice bill, of any kind: reading, pricing, attaching and releasing it."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from retainer.billing import documents
from retainer.billing.document_types import MAX_LINES
from retainer.billing.invoices.types import MAX_WORK, Invoice, InvoiceLine
from retainer.billing.kinds.base import AnyKind, LineContext, Rows, Work
from retainer.billing.kinds.expenses import EXPENSES
from retainer.billing.kinds.fees import FEES
from retainer.billing.kinds.milestones import MILESTONES
from retainer.billing.kinds.time import TIME
from retainer.schema.billing import invoice_lines
from retainer.store.tx import Tx

KINDS: tuple[AnyKind, ...] = (TIME, EXPENSES, MILESTONES, FEES)
NO_LINES: Mapping[int, InvoiceLine] = {}


def work_of(line: InvoiceLine) -> list[Work]:
    """Return the work that a line bills."""
    return [(kind.name, key) for kind in KINDS for key in kind.keys_of(line)]


def excess(tx: Tx, count: int) -> str:
    """Return why an invoice cannot bill so many pieces of work; empty if it can."""
    left = tx.billable_left
    if count > MAX_WORK:
        return f"one invoice takes {MAX_WORK}"
    return f"the batch may bill {left} more" if left is not None and count > left else ""


def load_context(
    tx: Tx,
    invoice: Invoice,
    lines: Sequence[InvoiceLine],
    tax_rate: Decimal,
    *,
    current: Sequence[InvoiceLine] = (),
    others: Sequence[InvoiceLine] = (),
) -> LineContext:
    """Read the work and the projects of lines; `current` are those that the invoice has, `others` those that stay.

    Raises `validation_failed` for more work than an invoice or the batch takes, before any of it is read.
    """
    keys = [(kind, [key for line in lines for key in kind.keys_of(line)]) for kind in KINDS]
    count = sum(len(of_kind) for _, of_kind in keys) + sum(len(work_of(line)) for line in others)
    if reason := excess(tx, count):
        tx.error("lines", f"Would bill {count} items; {reason}. Bill the rest with another one.")
        tx.raise_errors()
    if tx.billable_left is not None:
        tx.billable_left -= count
    rows: Rows = {}
    for kind, of_kind in keys:
        if of_kind:
            rows |= kind.load(tx, set(of_kind))
    project_ids = {line.project_id for line in lines} | {row.project_id for row in rows.values()}
    projects = documents.load_projects(tx, project_ids)
    return LineContext(invoice, tax_rate, {line.id: line for line in current}, projects, rows, set())


def build_lines(tx: Tx, invoice: Invoice, current: Sequence[InvoiceLine], tax_rate: Decimal) -> None:
    """Price the lines of a draft, and set its totals; `current` are the lines that it has now."""
    count = len(invoice.lines)
    if count > MAX_LINES:
        tx.error("lines", f"Would be {count}; at most {MAX_LINES} are possible. Bill less at once, or group more.")
    context = load_context(tx, invoice, invoice.lines, tax_rate, current=current)
    for line in documents.each_line(tx, invoice.lines):
        price_line(tx, line, context)
    documents.compute_totals(invoice)


def price_line(tx: Tx, line: InvoiceLine, context: LineContext) -> None:
    """Fill in what a line gets from its work and its invoice; note an error for each field that cannot be."""
    kinds = [kind for kind in KINDS if getattr(line, kind.field)]
    for other in kinds[1:]:
        tx.error(other.field, f"A line bills one kind of work; this one has {kinds[0].field}, too.")
    if kinds:
        line.kind = kinds[0].name
        amount = kinds[0].price(tx, line, context)
    else:
        line.kind, amount = "item", None
        validate_item(tx, line)
    line.description = line.description or ""
    line.unit_price = line.unit_price or Decimal(0)
    line.quantity = Decimal(1) if line.quantity is None else line.quantity
    documents.complete_line(tx, line, context.invoice, context.tax_rate, context.projects, amount=amount)


def validate_item(tx: Tx, line: InvoiceLine) -> None:
    if tx.readable(*(kind.field for kind in KINDS)):
        for field in ("description", "unit_price"):
            if getattr(line, field) is None:
                tx.error(field, "Is required, unless the line bills work.")


def save_invoice_lines(tx: Tx, invoice_id: int, before: Sequence[InvoiceLine], after: Sequence[InvoiceLine]) -> None:
    """Replace the lines of an invoice, and the work on them."""
    old = {line.id: line for line in before}
    new = {line.id: line for line in after}
    kept = {line.id for line in after if line.id in old and work_of(old[line.id]) == work_of(line)}
    detach(tx, [line for line in before if line.id not in kept], new)
    documents.save_lines(tx, invoice_lines, before, after, invoice_id=invoice_id)
    attach(tx, invoice_id, [line for line in after if line.id not in kept])


def attach(tx: Tx, invoice_id: int, lines: Sequence[InvoiceLine]) -> None:
    """Put the work that lines bill onto them. It was validated before.

    Raises `already_billed` if another transaction has billed some of it meanwhile.
    """
    for kind, of_kind in _by_kind(lines):
        kind.attach(tx, invoice_id, of_kind)


def detach(tx: Tx, lines: Sequence[InvoiceLine], after: Mapping[int, InvoiceLine] = NO_LINES) -> None:
    """Take the work off lines of a draft, and forget that it was there; see `WorkKind.detach`."""
    for kind, of_kind in _by_kind(lines):
        kind.detach(tx, of_kind, after, is_kept=False)


def release(tx: Tx, lines: Sequence[InvoiceLine]) -> None:
    """Let the work of issued lines be billed again; the lines still show what they billed."""
    for kind, of_kind in _by_kind(lines):
        kind.detach(tx, of_kind, NO_LINES, is_kept=True)


def _by_kind(lines: Sequence[InvoiceLine]) -> Iterator[tuple[AnyKind, list[InvoiceLine]]]:
    """Yield the kinds of work that lines bill, each with its lines."""
    for kind in KINDS:
        of_kind = [line for line in lines if line.kind == kind.name]
        if of_kind:
            yield kind, of_kind
