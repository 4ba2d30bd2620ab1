"""Quote types: quotes and their lines, with the status that depends on the day, and the records they became."""

from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import ColumnElement, Table, and_, case, or_, select

from retainer.billing import document_types
from retainer.billing.document_types import Lines
from retainer.schema.billing import holds_quote, invoices, quotes
from retainer.store.row_mapper import Derived, RefersTo
from retainer.store.tables import TODAY
from retainer.values.common import ExternalId
from retainer.values.kinds import Code50, Day, Id, Instant, Text191, Text255, Text1000, Text2000, UnitPrice
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, AllowedOn, DetailOnly, Record

Status = Annotated[
    Literal["draft", "sent", "accepted", "declined", "expired", "cancelled"],
    Meta(title="QuoteStatus"),
    "Lines change only in a `draft`. `sent` reads `expired` after `valid_until`. `accepted` can be billed.",
]


def effective_status(table: Table) -> ColumnElement[Any]:
    """Return the status of a quote: a sent one expires after its last valid day."""
    return case((and_(table.c.status == "sent", table.c.valid_until < TODAY), "expired"), else_=table.c.status)


def made_from(column: str) -> Derived:
    """Return the field for the record that a quote became, or the quote that a record was made from.

    The `column` of the other table refers to the record.
    """

    def expression(table: Table) -> ColumnElement[Any]:
        other = invoices if table.name == "quotes" else quotes
        counts = [holds_quote(invoices)] if other.name == "invoices" else []
        return select(other.c.id).where(other.c[column] == table.c.id, *counts).scalar_subquery()

    return Derived(expression)


def is_converted(table: Table) -> ColumnElement[bool]:
    """Whether a quote has become a project, or an invoice that is neither void nor credited in full."""
    return or_(table.c.converted_project_id.is_not(None), made_from("quote_id").expression(table).is_not(None))


class QuoteLine(Record):
    """Work or goods that a quote offers, with a price."""

    description: Annotated[Text2000, "What is offered."]
    unit_price: Annotated[UnitPrice, "Before discount and tax, in the currency of the quote."]
    quote_id: Annotated[Id, "The quote that has the line."] = READ_ONLY
    quantity: document_types.LineQuantity = Decimal(1)
    unit: document_types.LineUnit = None
    discount_percent: document_types.LineDiscount = Decimal(0)
    tax_rate: document_types.LineTaxRate = SERVER_DEFAULT
    project_id: document_types.LineProject = None
    is_optional: Annotated[
        bool, "True for what the client may add: printed below the total, which leaves it out. See `accepted_line_ids`."
    ] = False
    amount: document_types.LineAmount = READ_ONLY
    currency: document_types.LineCurrency = READ_ONLY
    position: document_types.LinePosition = SERVER_DEFAULT


class QuoteMeta(msgspec.Struct):
    """What is probably not meant."""

    warnings: document_types.Warnings


class Quote(Record):
    """An offer to a client."""

    client_id: Annotated[Id, "A prospect or an active client, not an archived one."]
    contact_id: document_types.IssuedTo = None
    project_id: Annotated[Id | None, "The client's project that it is about; see `converted_project_id`."] = None
    number: Annotated[Code50, document_types.NUMBERED, "Next of the account's series, like Q-2026-0001."] = READ_ONLY
    title: Annotated[Text255 | None, "Becomes the name of the project or the subject of the invoice."] = None
    status: Annotated[Status, Derived(effective_status)] = "draft"
    issue_date: Annotated[Day, "Omitted: today. Only a draft can change it."] = SERVER_DEFAULT
    valid_until: Annotated[Day, "Last day to accept it. Omitted: 30 days after `issue_date`."] = SERVER_DEFAULT
    currency: document_types.DocumentCurrency = SERVER_DEFAULT
    notes: document_types.Notes = None
    terms: document_types.Terms = None
    tax_exemption_reason: document_types.TaxExemptionReason = None
    decline_reason: Annotated[Text1000 | None, "Why the client declined."] = None
    accepted_by: Annotated[Text191 | None, "Name of the person who accepted it."] = None
    subtotal: document_types.Subtotal = READ_ONLY
    tax_total: document_types.TaxTotal = READ_ONLY
    total: document_types.Total = READ_ONLY
    tax_breakdown: document_types.TaxBreakdown = READ_ONLY
    sent_at: Annotated[Instant | None, "When it became `sent`; null again for a draft."] = READ_ONLY
    accepted_at: Annotated[Instant | None, "When it became `accepted`; null again for a draft."] = READ_ONLY
    declined_at: Annotated[Instant | None, "When it became `declined`; null again for a draft."] = READ_ONLY
    invoice_id: Annotated[
        Id | None,
        made_from("quote_id"),
        RefersTo("invoices"),
        "The invoice that it became; null if that is void or credited in full.",
    ] = READ_ONLY
    converted_project_id: Annotated[Id | None, "The project that it became; null until then."] = READ_ONLY
    document_version: Annotated[int | None, document_types.document_version("quote_id"), document_types.VERSION] = (
        READ_ONLY
    )
    external_id: ExternalId = None
    lines: Annotated[list[QuoteLine], Lines, DetailOnly("quote_lines"), document_types.SET_OF_LINES] = WRITE_ONLY
    accepted_line_ids: Annotated[
        list[Id],
        Lines,
        AllowedOn("Update"),
        "With `status: accepted`: the optional lines that the client accepts. They become ordinary lines of the total.",
    ] = WRITE_ONLY
