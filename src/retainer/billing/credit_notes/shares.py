"""Shares: how much of a credit note is taken back from each project; with the last credit all that is left."""

from sqlalchemy import bindparam, func, select

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices import pricing
from retainer.billing.invoices.types import Invoice
from retainer.schema.billing import credit_note_shares, credit_notes
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import minor_units

CREDITED = (
    select(credit_note_shares.c.project_id, func.sum(credit_note_shares.c.amount))
    .select_from(credit_note_shares.join(credit_notes, credit_notes.c.id == credit_note_shares.c.credit_note_id))
    .where(credit_notes.c.invoice_id == bindparam("invoice"))
    .group_by(credit_note_shares.c.project_id)
)


def save(tx: Tx, note_id: int, note: CreditNote, invoice: Invoice) -> None:
    """Write what a credit note takes back from each project, and take it from what was invoiced there."""
    for project_id, units in compute_shares(tx, note, invoice).items():
        share = {"credit_note_id": note_id, "project_id": project_id, "currency": note.currency, "amount": units}
        tx.insert_counted(credit_note_shares, share)


def compute_shares(tx: Tx, note: CreditNote, invoice: Invoice) -> dict[int | None, int]:
    """Return how much of a credit note's subtotal is taken back from each project, in minor units.

    Parts of lines are those lines' projects; the rest is spread over what is left of all. With the last credit all
    that is left goes.
    """
    rest = pricing.amounts_by_project(invoice)
    for project_id, credited in tx.all(CREDITED, invoice=invoice.id):
        rest[project_id] = rest.get(project_id, 0) - credited
    net = minor_units(note.subtotal, note.currency)
    if net == sum(rest.values()):
        return rest
    project_of_line = {line.id: line.project_id or invoice.project_id for line in invoice.lines}
    taken: dict[int | None, int] = {}
    for line in note.lines:
        if line.invoice_line_id is not None:
            project_id = project_of_line[line.invoice_line_id]
            taken[project_id] = taken.get(project_id, 0) + minor_units(line.amount, note.currency)
    weights = {project_id: units - taken.get(project_id, 0) for project_id, units in rest.items()}
    others = net - sum(taken.values())
    if sum(weights.values()):
        parts = money.allocate(others, list(weights.values()))
    else:
        parts = [others, *[0] * (len(weights) - 1)]
    for project_id, units in zip(weights, parts, strict=True):
        taken[project_id] = taken.get(project_id, 0) + units
    return taken
