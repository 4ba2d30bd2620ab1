"""Credit note types: what a credit note and its lines hold."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from retainer.billing import document_types
from retainer.billing.document_types import MAX_LINES
from retainer.values.kinds import Currency, Day, Id, Money, Percent, Quantity, SignedMoney, Text50, Text2000, UnitPrice
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, Record


class CreditNoteLine(msgspec.Struct):
    """One thing that is credited: part of an invoice's line, or anything else that its tax rates have room for."""

    description: Annotated[
        Text2000, "That of the invoice's line when left out; required without `invoice_line_id`."
    ] = SERVER_DEFAULT
    unit_price: Annotated[UnitPrice, "That of the invoice's line; required without `invoice_line_id`."] = SERVER_DEFAULT
    invoice_line_id: Annotated[Id | None, "Line of the invoice that it credits; null for one of its own."] = None
    quantity: Annotated[Quantity, "How much of the line is credited; all that is left of it when left out."] = (
        SERVER_DEFAULT
    )
    discount_percent: Annotated[Percent, "That of the invoice's line; 0 for one of the note's own."] = READ_ONLY
    tax_rate: Annotated[Percent, "That of the invoice's line, else one of the invoice's; needed if several."] = (
        SERVER_DEFAULT
    )
    amount: Annotated[SignedMoney, "What the line takes back, before tax."] = READ_ONLY


Reason = Annotated[
    Literal["correction", "duplicate", "goodwill", "cancellation", "other"],
    Meta(title="CreditNoteReason"),
    "Why it was made; nothing else follows from it.",
]


class CreditNote(Record):
    """What an agency takes back of an invoice: it lowers what is due, and what was already paid can be refunded."""

    invoice_id: Annotated[Id, "The issued invoice of which it takes something back."] = READ_ONLY
    client_id: Annotated[Id, "That of the invoice."] = READ_ONLY
    number: Annotated[Text50, "The next of the account's gapless series, like CN-2026-0001."] = READ_ONLY
    currency: Annotated[Currency, "That of the invoice."] = READ_ONLY
    issue_date: Annotated[Day, "Day on which reports count it, not before the invoice's; today when left out."] = (
        SERVER_DEFAULT
    )
    reason: Reason = "correction"
    description: Annotated[Text2000 | None, "Why or for what, in your own words; `q` searches it."] = None
    lines: Annotated[
        list[CreditNoteLine],
        Meta(min_length=1, max_length=MAX_LINES),
        "What is credited; without lines and `amount` all that is left of the invoice.",
    ] = SERVER_DEFAULT
    subtotal: Annotated[SignedMoney, "What the lines take back, before tax."] = READ_ONLY
    tax_total: document_types.TaxTotal = READ_ONLY
    total: Annotated[Money, "What is taken back, with tax; all notes together never exceed the invoice."] = READ_ONLY
    tax_breakdown: document_types.TaxBreakdown = READ_ONLY
    applied_amount: Annotated[Money, "What of `total` was still to be paid, and is no more."] = READ_ONLY
    refundable_amount: Annotated[Money, "What of `total` was already paid, and can be refunded."] = READ_ONLY
    amount: Annotated[
        Money, "What to take back, with tax, spread over the invoice's tax rates; instead of `lines`."
    ] = WRITE_ONLY
