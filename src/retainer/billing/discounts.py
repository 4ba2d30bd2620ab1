"""Early-payment discounts: the rest of an invoice that is settled with a payment within the days of its discount.

A discount is a row of its own, on the day of its payment, and is removed with it. It is spread over the tax rates and
the projects like a credit note over what is left of the invoice.
"""

from decimal import Decimal

from retainer.billing import rules, shares
from retainer.billing.invoices.types import Invoice
from retainer.billing.payment_types import Payment, RecordPayment, discounts_of
from retainer.documents.facts import EarlyPayment, TaxShare
from retainer.errors import SEND, BodyErrors, part
from retainer.rollups import changes
from retainer.rollups.sources import DISCOUNT_SHARES
from retainer.schema.billing import discount_shares, payments
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import amount_of, minor_units

FIELD = "record_payment.early_payment_discount"


def allowed_by(terms: EarlyPayment, invoice: Invoice) -> Decimal:
    """Return how much an invoice can still be discounted: the percentage of what is not credited, less discounts."""
    granted = sum((each.amount for each in discounts_of(invoice.payments)), Decimal(0))
    whole = invoice.total - (invoice.amount_credited - granted)
    reduced = amount_of(money.line_amount(Decimal(1), whole, terms.percent, invoice.currency), invoice.currency)
    return min(max(whole - reduced - granted, Decimal(0)), invoice.balance_due)


def room_for(errors: BodyErrors, payment: RecordPayment, invoice: Invoice, terms: EarlyPayment | None) -> Decimal:
    """Return by how much a payment may be below the balance; 0 without a discount, or with its errors noted."""
    if not payment.early_payment_discount:
        return Decimal(0)
    if payment.offset_invoice_id is not None:
        errors.error(FIELD, "Is granted for money that arrives, not with an offset.")
    elif terms is None:
        advice = f"Credit it instead, with a credit note{rules.CREDIT_CALL}."
        errors.error(FIELD, f"This invoice has no early-payment discount. {advice}")
    elif payment.paid_date > terms.last_day and not payment.force:
        errors.error(FIELD, f"Its last day was {part(terms.last_day)}. {SEND} force: true to grant it all the same.")
    else:
        return allowed_by(terms, invoice)
    return Decimal(0)


def build_discount(payment: RecordPayment | None, invoice: Invoice) -> Payment | None:
    """Return what is discounted with a payment that was checked: all that it leaves of the balance."""
    if payment is None or not payment.early_payment_discount or payment.amount >= invoice.balance_due:
        return None
    currency, amount = invoice.currency, invoice.balance_due - payment.amount
    parts = shares.spread(minor_units(amount, currency), [*shares.remaining_shares(invoice).values()])
    fields = {name: getattr(payment, name) for name in Payment.__struct_fields__}
    breakdown = [TaxShare(rate, amount_of(net, currency), amount_of(tax, currency)) for rate, net, tax in parts]
    return Payment(**fields | {"amount": amount, "reference": None, "notes": None, "tax_breakdown": breakdown})


def save(tx: Tx, invoice: Invoice, discount: Payment, payment_id: int) -> None:
    """Write the discount of a payment, and the share of each project in it."""
    discount.payment_id = payment_id
    net = sum(minor_units(share.taxable_amount, invoice.currency) for share in discount.tax_breakdown or ())
    of_projects = shares.compute_shares(tx, invoice, net)
    discount_id = tx.insert(payments, discount, net_amount=net)
    for project_id, units in of_projects.items():
        share = {"payment_id": discount_id, "project_id": project_id, "currency": invoice.currency, "amount": units}
        tx.insert_counted(discount_shares, share)
    changes.added(tx, DISCOUNT_SHARES, [discount_id])
