"""Payment types: what a payment of a client on an invoice holds."""

from typing import Annotated, Literal

from msgspec import Meta

from retainer.values.kinds import Currency, Day, Id, Money, Text191, Text10000
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record

Method = Annotated[
    Literal["bank_transfer", "card", "direct_debit", "cash", "cheque", "other"],
    Meta(title="PaymentMethod"),
    "How the money came; nothing else follows from it.",
]


class Payment(Record):
    """What a client has paid on an invoice."""

    invoice_id: Annotated[Id, "The invoice that it pays."] = READ_ONLY
    amount: Annotated[Money, "More than 0 and at most the invoice's `balance_due`, which it is when left out."] = (
        SERVER_DEFAULT
    )
    currency: Annotated[Currency, "That of the invoice."] = READ_ONLY
    paid_date: Annotated[Day, "Day on which the money came, not in the future; today when left out."] = SERVER_DEFAULT
    method: Method = "bank_transfer"
    reference: Annotated[
        Text191 | None,
        "Unique within the invoice: the same with the same amount and day adds nothing, so a retry pays once.",
    ] = None
    notes: Annotated[Text10000 | None, "For the agency's own use."] = None
