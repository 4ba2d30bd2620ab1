"""Work: what lines of an invoice bill, of any kind: reading it within its bounds, attaching it, and letting it go."""

from collections.abc import Mapping, Sequence

from sqlalchemy import update

from retainer.billing.document_types import MAX_LINES
from retainer.billing.invoices.types import MAX_WORK, Invoice, InvoiceLine
from retainer.billing.invoices.unbilled import Selection, UnbilledWork
from retainer.billing.kinds.base import (
    NO_TERMS,
    Key,
    LineContext,
    LineTerms,
    Rows,
    SelectableWork,
    UnbilledMatch,
    Work,
    WorkKind,
    ids_of,
    on_lines,
)
from retainer.billing.kinds.dated import EXPENSES, TIME
from retainer.billing.kinds.fees import FEES
from retainer.billing.kinds.fixed_fees import FIXED_FEES
from retainer.billing.kinds.milestones import MILESTONES
from retainer.billing.reading import Parties, load_projects
from retainer.errors import part
from retainer.rollups import changes
from retainer.rollups.sources import FEE_LINES
from retainer.schema.billing import invoice_lines
from retainer.store.tx import Tx

KINDS: tuple[WorkKind, ...] = (TIME, EXPENSES, MILESTONES, FEES)
SELECTABLE: tuple[SelectableWork, ...] = (*KINDS, FIXED_FEES)
Lines = Sequence[InvoiceLine]
Matches = Sequence[tuple[SelectableWork, Selection, UnbilledMatch]]
NO_LINES: Mapping[int, InvoiceLine] = {}
FREE = update(invoice_lines).where(on_lines(invoice_lines.c.id)).values(is_freed=True)


def kinds_of(line: InvoiceLine) -> list[WorkKind]:
    """Return the kinds of work that a line names: one, or it is refused."""
    return [kind for kind in KINDS if getattr(line, kind.field)]


def work_of(line: InvoiceLine) -> list[Work]:
    return [(kind.name, key) for kind in kinds_of(line) for key in kind.keys_of(line)]


def count_work(lines: Lines) -> int:
    return sum(len(kind.keys_of(line)) for line in lines for kind in kinds_of(line))


def excess(tx: Tx, count: int) -> str:
    """Return why an invoice cannot bill this number of items; empty if it can."""
    left = tx.billable_left
    if count > MAX_WORK:
        return f"one invoice takes {MAX_WORK}"
    return f"the batch may bill {left} more" if left is not None and count > left else ""


def find_work(tx: Tx, request: UnbilledWork, invoice: Invoice, terms: LineTerms) -> tuple[Matches, list[InvoiceLine]]:
    """Return the work that a request for unbilled work matches, and lines for all of it.

    Notes an error, without reading the work, if one invoice cannot take it all.
    """
    wanted = [(kind, getattr(request, kind.selection)) for kind in SELECTABLE]
    matches = [
        (kind, selection, kind.find(tx, selection, invoice, terms))
        for kind, selection in wanted
        if selection is not None
    ]
    count, named = sum(found.size for _, _, found in matches), count_work(invoice.lines)
    if reason := excess(tx, count + named):
        besides = f", besides {named} that lines name" if named else ""
        advice = f"limit the days with from and to, or the projects with {part('project_ids')}"
        tx.error("unbilled_work", f"Matches {count} pieces of work{besides}; {reason}. Bill them in parts: {advice}.")
        return matches, []
    return matches, [line for _, _, found in matches if found.size for line in found.lines]


def read_work(
    tx: Tx, invoice: Invoice, parties: Parties | None, current: Lines = (), matches: Matches = (), *, added: Lines = ()
) -> LineContext:
    """Read the work of an invoice's lines, or of those `added`: a statement for each kind, and one for projects.

    `current` are the lines that the invoice has now; the selections of `matches` name further projects. Raises
    `validation_failed` for more lines or work than an invoice or the batch takes, before any of it is read.
    """
    lines = added or invoice.lines
    if len(lines) > MAX_LINES:
        advice = "Bill less at once, by days or projects, or group more"
        tx.error("lines", f"Would be {len(lines)}; at most {MAX_LINES} are possible. {advice}.")
        tx.raise_errors()
    keys: dict[WorkKind, list[Key]] = {}
    for line in lines:
        for kind in kinds_of(line):
            keys.setdefault(kind, []).extend(kind.keys_of(line))
    count = sum(map(len, keys.values())) + (count_work(invoice.lines) if added else 0)
    if reason := excess(tx, count):
        tx.error("lines", f"Would bill {count} items; {reason}. Bill the rest with another one.")
        tx.raise_errors()
    if tx.billable_left is not None:
        tx.billable_left -= count
    rows: Rows = {}
    for kind, of_kind in keys.items():
        rows |= kind.load(tx, set(of_kind))
    project_ids = {invoice.project_id, *(line.project_id for line in lines), *(row.project_id for row in rows.values())}
    project_ids.update(project_id for _, selection, _ in matches for project_id in selection.project_ids or ())
    now = {line.id: line for line in current}
    projects = load_projects(tx, project_ids)
    return LineContext(invoice, terms_of(parties), now, projects, rows, set(), tx.actor.timezone)


def terms_of(parties: Parties | None) -> LineTerms:
    return LineTerms(parties.client.tax_rate, parties.language, parties.rounding) if parties else NO_TERMS


def attach(tx: Tx, invoice_id: int, lines: Lines) -> None:
    """Put the work that lines bill onto them. It was validated before.

    Raises `already_billed` if another transaction has billed some of it meanwhile.
    """
    for kind in KINDS:
        if of_kind := [line for line in lines if line.kind == kind.name]:
            kind.attach(tx, invoice_id, of_kind)


def free(tx: Tx, invoice_id: int, lines: Lines) -> None:
    """Let all that issued lines bill be billed again, as their invoice is void or they are credited."""
    if not lines:
        return
    with changes.changing(tx, FEE_LINES, invoice_id):
        tx.run(FREE, lines=ids_of(lines))
    detach(tx, lines, is_kept=True)


def detach(tx: Tx, lines: Lines, after: Mapping[int, InvoiceLine] = NO_LINES, *, is_kept: bool = False) -> None:
    """Let the work of lines be billed again; if `is_kept`, they still show what they billed; see `WorkKind.detach`."""
    for kind in KINDS:
        if of_kind := [line for line in lines if line.kind == kind.name]:
            kind.detach(tx, of_kind, after, is_kept=is_kept)
