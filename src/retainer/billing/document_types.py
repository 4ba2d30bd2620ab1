"""Document types: the fields that quotes and invoices share, and those that their lines share."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from sqlalchemy import ColumnElement, Table, case, func, or_, select

from retainer.documents.facts import TaxShare
from retainer.documents.warnings import DocumentWarning
from retainer.errors import LEAVE_OUT, part
from retainer.schema.billing import document_versions
from retainer.schema.crm import clients
from retainer.schema.filters import FOUND, Where, searched
from retainer.store.row_mapper import Derived
from retainer.values.kinds import Currency, Id, Percent, Position, Quantity, SignedMoney, Text20, Text255, Text10000
from retainer.values.records import MustMatch

MAX_LINES = 200
SET_OF_LINES = (
    "Replaces all lines, in this order: a line with its `id` is kept, and so is an equal one without; others are new."
)
Lines = Meta(max_length=MAX_LINES)
FOLLOWS_FROM_LINES = MustMatch("It follows from the lines. Change those, and leave this out.")
FOLLOWS_FROM_LINE = MustMatch(
    f"It follows from quantity, {part('unit_price')} and {part('discount_percent')}, or from the work. {LEAVE_OUT}."
)
NUMBERED = MustMatch(f"Retainer numbers it. {LEAVE_OUT}; {part('external_id')} takes a number of your own.")
Subtotal = Annotated[SignedMoney, FOLLOWS_FROM_LINES, "Sum of the lines, before tax."]
TaxTotal = Annotated[SignedMoney, FOLLOWS_FROM_LINES, "Sum of the `tax_amount` of each rate in `tax_breakdown`."]
Total = Annotated[SignedMoney, FOLLOWS_FROM_LINES, "`subtotal` plus `tax_total`."]
TaxBreakdown = Annotated[list[TaxShare], FOLLOWS_FROM_LINES, "One entry for each rate, whose tax is rounded once."]
DocumentCurrency = Annotated[Currency, "Omitted: the client's. Fixed while the document keeps lines."]
IssuedTo = Annotated[Id | None, "The contact of the client who receives it; null when that contact is deleted."]
Notes = Annotated[
    Text10000 | None,
    "Remarks to the client, printed above the lines; they can change after it was sent. "
    "Omitted: the introduction in the settings, in the client's language.",
]
Terms = Annotated[
    Text10000 | None,
    "Terms of payment or delivery, printed below the lines; an invoice's are fixed once it is issued. "
    "Omitted: the terms in the settings, in the client's language.",
]
TaxExemptionReason = Annotated[
    Text255 | None,
    "Why lines with a rate of 0 have no tax; printed, and in the e-invoice (BT-120), in place of the general sentence. "
    "Only a draft can change it. Omitted: the reason in the settings, in the client's language.",
]
IsImported = Annotated[
    bool,
    Derived(lambda table: table.c.imported_from.is_not(None), bool),
    "True if another program has issued it: its PDF is the one that came with it, or a 406, and its XML a 406.",
]
Warnings = Annotated[list[DocumentWarning], "What the draft, or what this request issued, probably should not say."]

LineUnit = Annotated[Text20 | None, "Unit of the quantity, such as hours or pieces."]
LineQuantity = Annotated[Quantity, "The quantity; negative for a rebate."]
LineDiscount = Annotated[Percent, "Percent off `quantity` x `unit_price`; 0 on lines that bill work."]
LineTaxRate = Annotated[Percent, "Tax rate in percent. Omitted: the client's, else the account's."]
LineProject = Annotated[Id | None, "A project of the client; null: the document's project, if it has one."]
LineAmount = Annotated[SignedMoney, FOLLOWS_FROM_LINE, "`quantity` x `unit_price` less discount, half up; before tax."]
LineCurrency = Annotated[Currency, "The document's currency."]
LinePosition = Annotated[Position, "Order within the document, lowest first; in a set of lines, the index counts."]


def _mentions(table: Table, q: Any) -> ColumnElement[bool]:
    client_ids = select(clients.c.id).where(clients.c.name_sort.contains(q, escape="/"))
    return or_(table.c.search.contains(q, escape="/"), table.c.client_id.in_(client_ids))


VERSION = "Newest version of what its PDF says; null in a draft. Each later change of what is printed makes one."
SEARCH_WITH_CLIENT = Where(_mentions, searched, f"{FOUND}, or in the client's name.")
"""Documents whose text contains the words, or whose client's name does."""


def document_version(owner: str) -> Derived:
    """Return the field for the newest version of what an issued record prints; `owner` is its column there."""

    def expression(table: Table) -> ColumnElement[Any]:
        versions = document_versions.c
        newest = select(func.max(versions.version)).where(versions[owner] == table.c.id).scalar_subquery()
        return newest if table.name == "credit_notes" else case((table.c.status != "draft", func.coalesce(newest, 1)))

    return Derived(expression)


class DocumentTotals(msgspec.Struct):
    """The totals of a document after a change of its lines."""

    id: Annotated[int, "The document that has the line."]
    currency: DocumentCurrency
    subtotal: Subtotal
    tax_total: TaxTotal
    total: Total
    tax_breakdown: TaxBreakdown
