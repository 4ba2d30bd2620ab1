"""Shares: how much of a credit note is taken back from each project; with the last credit all that is left."""

from typing import Any

from sqlalchemy import bindparam, func, select

from retainer.billing import lines
from retainer.billing.crediting import CreditNote
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


def save(tx: Tx, note: int, credit_note: CreditNote, invoice: Any) -> None:
    """Write what a credit note takes back from each project, and take it from what was invoiced there."""
    for project, units in shares(tx, credit_note, invoice).items():
        share = {"credit_note_id": note, "project_id": project, "currency": credit_note.currency, "amount": units}
        tx.put(credit_note_shares, share)


def shares(tx: Tx, note: CreditNote, invoice: Any) -> dict[int | None, int]:
    """How much of a credit note's subtotal is taken back from each project, in minor units.

    Parts of lines are those lines' projects; the rest is spread over what is left of all. With the last credit all
    that is left goes.
    """
    rest = lines.by_project(invoice)
    for project, credited in tx.all(CREDITED, invoice=invoice.id):
        rest[project] = rest.get(project, 0) - credited
    net = minor_units(note.subtotal, note.currency)
    if net == sum(rest.values()):
        return rest
    of_line = {line.id: line.project_id or invoice.project_id for line in invoice.lines}
    taken: dict[int | None, int] = {}
    for line in note.lines:
        if line.invoice_line_id is not None:
            project = of_line[line.invoice_line_id]
            taken[project] = taken.get(project, 0) + minor_units(line.amount, note.currency)
    weights = {project: units - taken.get(project, 0) for project, units in rest.items()}
    others = net - sum(taken.values())
    if sum(weights.values()):
        spread = money.allocate(others, list(weights.values()))
    else:
        spread = [others, *[0] * (len(weights) - 1)]
    for project, units in zip(weights, spread, strict=True):
        taken[project] = taken.get(project, 0) + units
    return taken
