"""Unbilled work: all billable work of a client that is not yet billed, as lines of an invoice.

Time that a fee covers is left out unless the request names its project; time without a rate is always left out. The
response counts what was left out. A completed milestone with an amount is a line of its own, and so is each month of a
retainer.
"""

from collections.abc import Sequence

from retainer.billing import documents, line_work
from retainer.billing.invoices.types import DayRange, Invoice, InvoiceLine, LeftOut, Selection, UnbilledWork
from retainer.billing.line_work import KINDS
from retainer.store import constraints
from retainer.store.tx import Tx

REASONS = {
    "covered": "that a fee covers (name its project in project_ids to bill it)",
    "unpriced": "without a rate (give each an hourly_rate)",
}


def build_unbilled_lines(tx: Tx, request: UnbilledWork, invoice: Invoice) -> tuple[list[InvoiceLine], list[LeftOut]]:
    """Return lines for all requested work, and what was left out.

    Notes `nothing_to_bill` if there is none, and an error if one invoice cannot take it all.
    """
    matches = []
    for kind in KINDS:
        selection = getattr(request, kind.selection)
        if selection is not None:
            validate_selection(tx, f"unbilled_work.{kind.selection}", selection, invoice.client_id)
            matches.append(kind.find(tx, selection, invoice))
    if not matches:
        kinds = ", ".join(f'"{kind.selection}": {{}}' for kind in KINDS)
        tx.error("unbilled_work", f"Say what to bill: {{{kinds}}}, or some of these.")
    left_out = [part for found in matches for part in found.left_out]
    count = sum(found.size for found in matches)
    named = sum(len(line_work.work_of(line)) for line in invoice.lines)
    if reason := line_work.excess(tx, count + named):
        besides = f", besides {named} that lines name" if named else ""
        advice = "limit the days with from and to, or the projects with project_ids"
        tx.error("unbilled_work", f"Matches {count} pieces of work{besides}; {reason}. Bill them in parts: {advice}.")
        return [], left_out
    if not count and not tx.errors:
        tx.error("unbilled_work", explain_nothing(invoice, left_out), "nothing_to_bill")
    return [line for found in matches if found.size for line in found.build_lines()], left_out


def explain_nothing(invoice: Invoice, left_out: Sequence[LeftOut]) -> str:
    message = f"Client {invoice.client_id} has no unbilled work in {invoice.currency} that matches."
    parts = []
    for part in left_out:
        noun = "entry" if part.count == 1 else "entries"
        unit = "minute" if part.minutes == 1 else "minutes"
        parts.append(f"{part.count} {noun} of {part.minutes} {unit} {REASONS[part.reason]}")
    return f"{message} Left out: {', '.join(parts)}." if parts else message


def validate_selection(tx: Tx, path: str, selection: Selection, client_id: int | None) -> None:
    project_ids = selection.project_ids or ()
    projects = documents.load_projects(tx, project_ids)
    for position, project_id in enumerate(project_ids):
        project = projects.get(project_id)
        if project is None:
            tx.error(f"{path}.project_ids.{position}", constraints.MISSING.format("project"))
        elif client_id is not None and project.client_id != client_id:
            tx.error(f"{path}.project_ids.{position}", f"Is not a project of client {client_id}.")
    if isinstance(selection, DayRange) and selection.from_ and selection.to and selection.to < selection.from_:
        tx.error(f"{path}.to", f"Must not be before from, which is {selection.from_}.")
