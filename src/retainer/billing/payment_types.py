"""Payment types: payments on invoices, refunds and discounts, and the payment that a request records."""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta
from sqlalchemy import ColumnElement, Table, case, literal_column

from retainer.documents.facts import TaxShare
from retainer.schema.billing import is_discount
from retainer.store.row_mapper import Derived
from retainer.values.kinds import Code191, Currency, Day, Id, SignedMoney, Text10000
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, Record

PaymentMethod = Annotated[
    Literal["bank_transfer", "card", "direct_debit", "cash", "cheque", "offset", "other"],
    Meta(title="PaymentMethod"),
    "How the money arrived or went back, for your information. `offset`: no money moved, see `offset_invoice_id`.",
]
PaymentKind = Annotated[
    Literal["payment", "refund", "discount"],
    Meta(title="PaymentKind"),
    "`payment` from the client; `refund` to the client, which has a negative amount; `discount` for early payment: no "
    "money moved, and revenue and tax are less by it.",
]


def kind_of(table: Table) -> ColumnElement[str]:
    return case((is_discount(table), "discount"), (table.c.amount < literal_column("0"), "refund"), else_="payment")


class Payment(Record):
    """A payment of a client on an invoice, a refund to the client, or a discount for early payment."""

    invoice_id: Annotated[Id, "The invoice that it belongs to."] = READ_ONLY
    client_id: Annotated[Id, "The client of the invoice."] = READ_ONLY
    kind: Annotated[PaymentKind, Derived(kind_of)] = READ_ONLY
    amount: Annotated[
        SignedMoney,
        "Sent: more than 0, at most the invoice's `balance_due`, or of a refund its `refund_due`; omitted: all of it. "
        "A payment with `allow_surplus` may be more. Returned: negative for a refund.",
    ] = SERVER_DEFAULT
    currency: Annotated[Currency, "The invoice's currency."] = READ_ONLY
    paid_date: Annotated[Day, "Day on which the money moved, not in the future; omitted: today."] = SERVER_DEFAULT
    method: PaymentMethod = "bank_transfer"
    reference: Annotated[Code191 | None, "Unique within the invoice; an equal retry records nothing new."] = None
    notes: Annotated[Text10000 | None, "For internal use."] = None
    offset_invoice_id: Annotated[
        Id | None, "Of an `offset`, the other invoice: it has the refund of a payment, or the payment of a refund."
    ] = READ_ONLY
    payment_id: Annotated[Id | None, "Of a `discount`, the payment that it was granted for; else null."] = READ_ONLY
    tax_breakdown: Annotated[
        list[TaxShare] | None, "Of a `discount`, what it takes off net and tax at each rate; else null."
    ] = READ_ONLY


class RecordPayment(Payment):
    """Money that has arrived for the invoice."""

    offset_invoice_id: Annotated[
        Id | None,
        "With `method: offset`: another invoice of the client whose `refund_due` pays this one. Its refund is recorded "
        "with the payment.",
    ] = None
    allow_surplus: Annotated[bool, "With true, what is above the `balance_due` becomes `refund_due`."] = WRITE_ONLY
    early_payment_discount: Annotated[
        bool,
        "With true, `amount` may be less than the `balance_due` by at most the early-payment discount of the invoice, "
        "up to its last day; omitted: by all of it. The rest becomes a `discount`.",
    ] = WRITE_ONLY
    force: Annotated[bool, "With true, the early-payment discount is granted after its last day, too."] = WRITE_ONLY


def moved(payments: Iterable[Payment]) -> Iterator[tuple[str, Decimal]]:
    """Yield the days and the amounts of payments and refunds; discounts move no money."""
    return ((each.paid_date, each.amount) for each in payments if each.tax_breakdown is None)


def discounts_of(payments: Iterable[Payment]) -> list[Payment]:
    return [each for each in payments if each.tax_breakdown is not None]
