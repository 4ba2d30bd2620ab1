"""Line work: the work that lines of an invoice bill, of any kind: finding, pricing, attaching and releasing it.

`unbilled_work` bills all billable work of a client that is not yet billed. Time that a fee covers is left out unless
the request names its project; time without a rate is always left out. The response counts what was left out.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from retainer.billing import documents
from retainer.billing.document_types import MAX_LINES
from retainer.billing.invoices.types import MAX_WORK, DayRange, Invoice, InvoiceLine, LeftOut, UnbilledWork
from retainer.billing.kinds.base import Key, LineContext, Rows, Work, WorkKind
from retainer.billing.kinds.dated import EXPENSES, TIME
from retainer.billing.kinds.fees import FEES
from retainer.billing.kinds.milestones import MILESTONES
from retainer.schema.billing import invoice_lines
from retainer.store import constraints
from retainer.store.tx import Tx

KINDS: tuple[WorkKind, ...] = (TIME, EXPENSES, MILESTONES, FEES)
Lines = Sequence[InvoiceLine]
NO_LINES: Mapping[int, InvoiceLine] = {}
REASONS = {
    "covered": "that a fee covers (name its project in project_ids to bill it)",
    "unpriced": "without a rate (give each an hourly_rate)",
}


def work_of(line: InvoiceLine) -> list[Work]:
    return [(kind.name, key) for kind in kinds_of(line) for key in kind.keys_of(line)]


def kinds_of(line: InvoiceLine) -> list[WorkKind]:
    """Return the kinds of work that a line names: one, or it is refused."""
    return [kind for kind in KINDS if getattr(line, kind.field)]


def excess(tx: Tx, count: int) -> str:
    """Return why an invoice cannot bill so many pieces of work; empty if it can."""
    left = tx.billable_left
    if count > MAX_WORK:
        return f"one invoice takes {MAX_WORK}"
    return f"the batch may bill {left} more" if left is not None and count > left else ""


def build_unbilled_lines(tx: Tx, request: UnbilledWork, invoice: Invoice) -> tuple[list[InvoiceLine], list[LeftOut]]:
    """Return lines for all requested work, and what was left out.

    Notes `nothing_to_bill` if there is none, and an error if one invoice cannot take it all.
    """
    matches = []
    for kind in KINDS:
        selection = getattr(request, kind.selection)
        if selection is not None:
            if selection.project_ids:
                validate_projects(tx, f"unbilled_work.{kind.selection}", selection.project_ids, invoice.client_id)
            if isinstance(selection, DayRange) and selection.from_ and selection.to and selection.to < selection.from_:
                message = f"Must not be before from, which is {selection.from_}."
                tx.error(f"unbilled_work.{kind.selection}.to", message)
            matches.append(kind.find(tx, selection, invoice))
    if not matches:
        kinds = ", ".join(f'"{kind.selection}": {{}}' for kind in KINDS)
        tx.error("unbilled_work", f"Say what to bill: {{{kinds}}}, or some of these.")
    left_out = [part for found in matches for part in found.left_out]
    count = sum(found.size for found in matches)
    named = sum(len(work_of(line)) for line in invoice.lines)
    if reason := excess(tx, count + named):
        besides = f", besides {named} that lines name" if named else ""
        advice = "limit the days with from and to, or the projects with project_ids"
        tx.error("unbilled_work", f"Matches {count} pieces of work{besides}; {reason}. Bill them in parts: {advice}.")
        return [], left_out
    if not count and not tx.errors:
        message = f"Client {invoice.client_id} has no unbilled work in {invoice.currency} that matches."
        parts = ", ".join(f"{part.minutes} min {REASONS[part.reason]}" for part in left_out)
        tx.error("unbilled_work", f"{message} Left out: {parts}." if parts else message, "nothing_to_bill")
    return [line for found in matches if found.size for line in found.lines], left_out


def validate_projects(tx: Tx, path: str, project_ids: Sequence[int], client_id: int | None) -> None:
    projects = documents.load_projects(tx, project_ids)
    for position, project_id in enumerate(project_ids):
        project = projects.get(project_id)
        if project is None:
            tx.error(f"{path}.project_ids.{position}", constraints.MISSING.format("project"))
        elif client_id is not None and project.client_id != client_id:
            tx.error(f"{path}.project_ids.{position}", f"Is not a project of client {client_id}.")


def load_context(
    tx: Tx, invoice: Invoice, lines: Lines, tax_rate: Decimal, *, current: Lines = (), others: Lines = ()
) -> LineContext:
    """Read the work and the projects of lines; `current` are those that the invoice has, `others` those that stay.

    Raises `validation_failed` for more work than an invoice or the batch takes, before any of it is read.
    """
    keys: dict[WorkKind, list[Key]] = {}
    for line in lines:
        for kind in kinds_of(line):
            keys.setdefault(kind, []).extend(kind.keys_of(line))
    count = sum(map(len, keys.values())) + sum(len(work_of(line)) for line in others)
    if reason := excess(tx, count):
        tx.error("lines", f"Would bill {count} items; {reason}. Bill the rest with another one.")
        tx.raise_errors()
    if tx.billable_left is not None:
        tx.billable_left -= count
    rows: Rows = {}
    for kind, of_kind in keys.items():
        rows |= kind.load(tx, set(of_kind))
    project_ids = {line.project_id for line in lines} | {row.project_id for row in rows.values()}
    projects = documents.load_projects(tx, project_ids)
    return LineContext(invoice, tax_rate, {line.id: line for line in current}, projects, rows, set())


def build_lines(tx: Tx, invoice: Invoice, current: Lines, tax_rate: Decimal) -> None:
    """Price the lines of a draft, and set its totals; `current` are the lines that it has now.

    Raises `validation_failed` for too many lines.
    """
    count = len(invoice.lines)
    if count > MAX_LINES:
        advice = "Bill less at once, by days or projects, or group more"
        tx.error("lines", f"Would be {count}; at most {MAX_LINES} are possible. {advice}.")
        tx.raise_errors()
    context = load_context(tx, invoice, invoice.lines, tax_rate, current=current)
    for line in documents.each_line(tx, invoice.lines):
        price_line(tx, line, context)
    documents.keep_equal_lines(invoice.lines, current)
    documents.compute_totals(invoice)


def price_line(tx: Tx, line: InvoiceLine, context: LineContext) -> None:
    """Fill in what a line gets from its work and its invoice; note an error for each field that cannot be."""
    kinds = kinds_of(line)
    for other in kinds[1:]:
        tx.error(other.field, f"A line bills one kind of work; this one has {kinds[0].field}, too.")
    if kinds:
        line.kind = kinds[0].name
        amount = kinds[0].price(tx, line, context)
    else:
        line.kind, amount = "item", None
        if tx.readable(*(kind.field for kind in KINDS)):
            for field in ("description", "unit_price"):
                if getattr(line, field) is None:
                    tx.error(field, "Is required, unless the line bills work.")
    line.description = line.description or ""
    line.unit_price = line.unit_price or Decimal(0)
    line.quantity = Decimal(1) if line.quantity is None else line.quantity
    documents.complete_line(tx, line, context.invoice, context.tax_rate, context.projects, amount=amount)


def save_invoice_lines(tx: Tx, invoice_id: int, before: Lines | None, after: Lines) -> None:
    """Replace the lines of an invoice, which is new if it has none `before`, and the work on them."""
    old = {line.id: line for line in before or ()}
    new = {line.id: line for line in after}
    kept = {line.id for line in after if line.id in old and work_of(old[line.id]) == work_of(line)}
    detach(tx, [line for line in old.values() if line.id not in kept], new)
    documents.save_lines(tx, invoice_lines, before, after, invoice_id=invoice_id)
    attach(tx, invoice_id, [line for line in after if line.id not in kept])


def attach(tx: Tx, invoice_id: int, lines: Lines) -> None:
    """Put the work that lines bill onto them. It was validated before.

    Raises `already_billed` if another transaction has billed some of it meanwhile.
    """
    for kind in KINDS:
        if of_kind := [line for line in lines if line.kind == kind.name]:
            kind.attach(tx, invoice_id, of_kind)


def detach(tx: Tx, lines: Lines, after: Mapping[int, InvoiceLine] = NO_LINES, *, is_kept: bool = False) -> None:
    """Let the work of lines be billed again; if `is_kept`, they still show what they billed; see `WorkKind.detach`."""
    for kind in KINDS:
        if of_kind := [line for line in lines if line.kind == kind.name]:
            kind.detach(tx, of_kind, after, is_kept=is_kept)
