"""Credit note types: credit notes and their lines."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from retainer.billing import document_types
from retainer.billing.document_types import MAX_LINES
from retainer.values.kinds import Code50, Currency, Day, Id, Money, Percent, Quantity, SignedMoney, Text2000, UnitPrice
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, NeededUnless, Record

FREE = NeededUnless(("invoice_line_id",))


class CreditNoteLine(msgspec.Struct):
    """A line of a credit note: it credits part of an invoice's line, or anything else at one of its tax rates."""

    description: Annotated[Text2000, FREE, "Omitted: that of the line; required without `invoice_line_id`."] = (
        SERVER_DEFAULT
    )
    unit_price: Annotated[UnitPrice, FREE, "That of the invoice's line; required without `invoice_line_id`."] = (
        SERVER_DEFAULT
    )
    invoice_line_id: Annotated[Id | None, "The line of the invoice that it credits."] = None
    quantity: Annotated[Quantity, "The credited quantity. Omitted: all that is left of the line."] = SERVER_DEFAULT
    discount_percent: Annotated[Percent, "That of the invoice's line; 0 without one."] = READ_ONLY
    tax_rate: Annotated[Percent, "That of the line; without one, required if the invoice has several."] = SERVER_DEFAULT
    amount: Annotated[SignedMoney, "The credited amount, before tax."] = READ_ONLY


Reason = Annotated[
    Literal["correction", "duplicate", "goodwill", "cancellation", "other"],
    Meta(title="CreditNoteReason"),
    "For your information only.",
]


class CreditNote(Record):
    """A credit on an issued invoice: it lowers what is due; what was already paid can be refunded."""

    invoice_id: Annotated[Id, "The credited invoice."] = READ_ONLY
    client_id: Annotated[Id, "The invoice's client."] = READ_ONLY
    number: Annotated[Code50, "Next of the account's gapless series, like CN-2026-0001."] = READ_ONLY
    currency: Annotated[Currency, "The invoice's currency."] = READ_ONLY
    issue_date: Annotated[Day, "Day for reports, not before the invoice's; omitted: today."] = SERVER_DEFAULT
    reason: Reason = "correction"
    description: Annotated[Text2000 | None, "Explanation, printed above the lines; `q` searches it."] = None
    lines: Annotated[
        list[CreditNoteLine],
        Meta(min_length=1, max_length=MAX_LINES),
        "What to credit; without lines and `amount`, all that is left of the invoice.",
    ] = SERVER_DEFAULT
    subtotal: Annotated[SignedMoney, "Sum of the lines, before tax."] = READ_ONLY
    tax_total: document_types.TaxTotal = READ_ONLY
    total: Annotated[Money, "The credited amount, with tax; all notes together never exceed the invoice."] = READ_ONLY
    tax_breakdown: document_types.TaxBreakdown = READ_ONLY
    applied_amount: Annotated[Money, "The part of `total` that reduced the balance, or was refunded."] = READ_ONLY
    refundable_amount: Annotated[Money, "The part of `total` that was paid, and is still to be refunded."] = READ_ONLY
    is_imported: document_types.IsImported = READ_ONLY
    amount: Annotated[Money, "What to credit, with tax, spread over the tax rates; instead of `lines`."] = WRITE_ONLY
