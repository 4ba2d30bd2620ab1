"""Shares: what is left of an invoice, at each tax rate and for each project, and how a part of it is spread."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal

from sqlalchemy import bindparam, select, union_all

from retainer.billing.credit_notes.types import CreditNote, CreditNoteLine
from retainer.billing.invoices.types import Invoice
from retainer.billing.payment_types import Payment, discounts_of
from retainer.schema.billing import credit_note_shares, credit_notes, discount_shares, payments
from retainer.store.engines.sql import INTEGER
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import minor_units
from retainer.values.money import Share

OF_INVOICE = bindparam("invoice", type_=INTEGER)
TAKEN = union_all(
    select(*credit_note_shares.c["project_id", "amount"])
    .select_from(credit_note_shares.join(credit_notes, credit_notes.c.id == credit_note_shares.c.credit_note_id))
    .where(credit_notes.c.invoice_id == OF_INVOICE),
    select(*discount_shares.c["project_id", "amount"])
    .select_from(discount_shares.join(payments, payments.c.id == discount_shares.c.payment_id))
    .where(payments.c.invoice_id == OF_INVOICE),
)
"""What credit notes and discounts took of the projects of an invoice."""


def remaining_shares(invoice: Invoice) -> dict[Decimal, Share]:
    """Return the share of each tax rate that is neither credited nor discounted, in minor units."""
    remaining: dict[Decimal, Share] = {}
    taken: list[CreditNote | Payment] = [*invoice.credit_notes, *discounts_of(invoice.payments)]
    signed: list[tuple[Invoice | CreditNote | Payment, int]] = [(invoice, 1), *((each, -1) for each in taken)]
    for document, sign in signed:
        for tax_share in document.tax_breakdown or ():
            rate = tax_share.tax_rate
            _, taxable, tax = remaining.get(rate, Share(rate, 0, 0))
            taxable += sign * minor_units(tax_share.taxable_amount, document.currency)
            tax += sign * minor_units(tax_share.tax_amount, document.currency)
            remaining[rate] = Share(rate, taxable, tax)
    return remaining


def spread(gross: int, remaining: Sequence[Share]) -> list[Share]:
    """Return the net and the tax of a gross amount at each rate, in proportion to what is left there."""
    parts = money.allocate(gross, [share.gross for share in remaining])
    nets = [money.net_of_part(part, share) for part, share in zip(parts, remaining, strict=True)]
    return [
        Share(share.tax_rate, net, part - net) for part, net, share in zip(parts, nets, remaining, strict=True) if part
    ]


def compute_shares(tx: Tx, invoice: Invoice, net: int, lines: Sequence[CreditNoteLine] = ()) -> dict[int | None, int]:
    """Return the share of each project in a net that is taken of an invoice, in minor units.

    Lines that credit a line of the invoice count for its project; the rest is spread over what is left of all projects.
    """
    project_of = {line.id: line.project_id or invoice.project_id for line in invoice.lines}
    rest, taken = Counter[int | None](), Counter[int | None]()
    for line in invoice.lines:
        rest[project_of[line.id]] += minor_units(line.amount, line.currency)
    for project_id, units in tx.all(TAKEN, invoice=invoice.id):
        rest[project_id] -= units
    if net == sum(rest.values()):
        return rest
    for part in lines:
        if part.invoice_line_id is not None:
            taken[project_of[part.invoice_line_id]] += minor_units(part.amount, invoice.currency)
    weights = [units - taken[project_id] for project_id, units in rest.items()]
    others = net - sum(taken.values())
    parts = money.allocate(others, weights) if sum(weights) else [others, *[0] * (len(weights) - 1)]
    for project_id, units in zip(rest, parts, strict=True):
        taken[project_id] += units
    return taken
