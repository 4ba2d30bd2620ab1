"""Document types: the fields that quotes and invoices, and their lines, have in common."""

from typing import Annotated

import msgspec
from msgspec import Meta

from retainer.values.kinds import Currency, Id, Percent, Position, Quantity, SignedMoney, Text20, Text10000
from retainer.values.records import Stated

MAX_LINES = 200
SET_OF_LINES = "In their order. Sent, they are all that stays: one with its `id` is kept, another is new."
Lines = Meta(max_length=MAX_LINES)


FOLLOWS_FROM_LINES = Stated("It follows from the lines. Change those, and leave this out.")
FOLLOWS_FROM_LINE = Stated("It follows from quantity, unit_price and discount_percent, or from the work. Leave it out.")
NUMBERED = Stated("Retainer numbers it. Leave it out; external_id takes a number of your own.")


class TaxShare(msgspec.Struct):
    """What is taxed at one rate."""

    tax_rate: Annotated[Percent, "Percent; each rate stands here once."]
    taxable_amount: Annotated[SignedMoney, "What the lines at this rate come to, before tax."]
    tax_amount: Annotated[SignedMoney, "The tax on `taxable_amount`, rounded half up."]


Subtotal = Annotated[SignedMoney, FOLLOWS_FROM_LINES, "What the lines come to, before tax."]
TaxTotal = Annotated[SignedMoney, FOLLOWS_FROM_LINES, "Sum of the `tax_amount` of each rate in `tax_breakdown`."]
Total = Annotated[SignedMoney, FOLLOWS_FROM_LINES, "`subtotal` and `tax_total` together."]
TaxBreakdown = Annotated[
    list[TaxShare], FOLLOWS_FROM_LINES, "One entry for each tax rate, since tax is rounded once for each."
]
DocumentCurrency = Annotated[Currency, "The client's when left out; fixed while a line in it stays."]
IssuedTo = Annotated[Id | None, "Contact of the client to whom it goes; null again when that is deleted."]
Notes = Annotated[Text10000 | None, "Remarks to the client; they can still change after it was sent."]
Terms = Annotated[
    Text10000 | None, "Terms of payment or delivery, in your own words; an invoice's are fixed once it is issued."
]

LineUnit = Annotated[Text20 | None, "What is counted, like hours or pieces."]
LineQuantity = Annotated[Quantity, "How many there are; less than 0 for a rebate."]
LineDiscount = Annotated[Percent, "Percent off `quantity` x `unit_price`; 0 on lines that bill work."]
LineTaxRate = Annotated[Percent, "Percent; the client's when left out, else the account's."]
LineProject = Annotated[Id | None, "A project of the client; null: that of the document, if it has one."]
LineAmount = Annotated[
    SignedMoney, FOLLOWS_FROM_LINE, "`quantity` x `unit_price` less discount, rounded half up; before tax."
]
LineCurrency = Annotated[Currency, "That of the document."]
LinePosition = Annotated[
    Position, "Order within the document, lowest first; in a set of lines, the place where it stands."
]


class DocumentTotals(msgspec.Struct):
    """What a document comes to now."""

    id: Annotated[int, "Of the document to which the line belongs."]
    currency: DocumentCurrency
    subtotal: Subtotal
    tax_total: TaxTotal
    total: Total
    tax_breakdown: TaxBreakdown
