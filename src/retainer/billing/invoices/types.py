"""Invoice types: invoices, their lines, the client snapshot, and the request for unbilled work."""

from decimal import Decimal
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from retainer.billing import allocation_types, balance, document_types
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.document_types import Lines
from retainer.billing.invoices.unbilled import Ids, LeftOut, UnbilledWork
from retainer.billing.payment_types import Payment, RecordPayment
from retainer.errors import part
from retainer.store.row_mapper import Derived
from retainer.values.common import Days, ExternalId
from retainer.values.kinds import (
    Code50,
    Code100,
    Country,
    Currency,
    Day,
    Id,
    Instant,
    Money,
    Month,
    Quantity,
    SignedMoney,
    Text50,
    Text191,
    Text255,
    Text2000,
    UnitPrice,
)
from retainer.values.records import (
    READ_ONLY,
    SERVER_DEFAULT,
    WRITE_ONLY,
    AllowedOn,
    DetailOnly,
    MustMatch,
    NeededUnless,
    Record,
    RequiredUnless,
)

MAX_DESCRIPTION = 2000
MAX_WORK = 10_000
"""Maximum number of time entries, expenses and milestones on an invoice; each step processes all of them."""

CONTENTS = ("client_id", "quote_id", "currency", "lines", "unbilled_work")
"""The fields from which the lines of a draft follow, and with them its total."""
PAID = MustMatch(f"It follows from the payments. Record one with {part('record_payment')}, and leave this out.")
REFUNDED = MustMatch(
    f"It follows from payments and credits. Record a refund with {part('record_refund')}, and leave this out."
)
CREDITED = MustMatch(
    "It follows from the credit notes. POST one to /invoices/{invoice}/credit-notes, and leave this out."
)
Status = Annotated[
    Literal["draft", "sent", "partially_paid", "paid", "void", "written_off"],
    Meta(title="InvoiceStatus"),
    "`sent` issues a draft. Payments and credits lead to `partially_paid` and `paid`. A `void` invoice does not count. "
    "`written_off` stays until a payment, even if credit notes leave nothing due.",
]
LineKind = Annotated[
    Literal["item", "time", "expense", "milestone", "fee"],
    Meta(title="InvoiceLineKind"),
    "The kind of work that is billed, `fee` for a month of a retainer, or an `item` with its own price.",
]


OWN_PRICE = NeededUnless(("time_entry_ids", "expense_ids", "milestone_id", "fee_month"))


class InvoiceLine(Record):
    """A line of an invoice. If it bills work, quantity and price follow from the work."""

    EXAMPLE: ClassVar = {"description": "Concept", "quantity": "2", "unit_price": "500.00"}
    description: Annotated[Text2000, OWN_PRICE, "Required, unless the line bills work; omitted: the work's."] = (
        SERVER_DEFAULT
    )
    unit_price: Annotated[UnitPrice, OWN_PRICE, "Before discount and tax. Required, unless the line bills work."] = (
        SERVER_DEFAULT
    )
    invoice_id: Annotated[Id, "The invoice that has the line."] = READ_ONLY
    kind: LineKind = READ_ONLY
    quantity: document_types.LineQuantity = SERVER_DEFAULT
    unit: document_types.LineUnit = None
    discount_percent: document_types.LineDiscount = Decimal(0)
    tax_rate: document_types.LineTaxRate = SERVER_DEFAULT
    project_id: document_types.LineProject = None
    time_entry_ids: Annotated[
        Ids,
        allocation_types.TIME_ON_LINE,
        "Unbilled time entries of the client; they set quantity and price. With one rate, `quantity` can be changed.",
    ] = []
    expense_ids: Annotated[
        Ids, allocation_types.EXPENSES_ON_LINE, "Unbilled expenses of the client; they set the price."
    ] = []
    milestone_id: Annotated[
        Id | None, allocation_types.MILESTONE_ON_LINE, "Unbilled milestone of the client; it sets the price."
    ] = None
    fee_month: Annotated[
        Month | None, "Month of the retainer of `project_id` to bill, each once; by default at its `retainer_amount`."
    ] = None
    recorded_quantity: Annotated[
        Quantity | None, "The recorded hours of a line of time, whatever its `quantity` is; null for other lines."
    ] = READ_ONLY
    amount: Annotated[
        SignedMoney, document_types.FOLLOWS_FROM_LINE, "`quantity` x `unit_price` less discount, or that of the work."
    ] = READ_ONLY
    currency: document_types.LineCurrency = READ_ONLY
    position: document_types.LinePosition = SERVER_DEFAULT


class ClientSnapshot(msgspec.Struct):
    """The client as it was when the invoice was issued."""

    name: Annotated[Text191, "Name of the client."]
    address_line1: Annotated[Text191 | None, "First line of the postal address."]
    address_line2: Annotated[Text191 | None, "Second line of the postal address."]
    city: Annotated[Text191 | None, "City of the postal address."]
    region: Annotated[Text191 | None, "State, province or county of the postal address."]
    postal_code: Annotated[Text191 | None, "Postal code of the postal address."]
    country: Annotated[Country | None, "Country of the postal address."]
    vat_number: Annotated[Text50 | None, "VAT number of the client; null if it had none."]


class InvoiceMeta(msgspec.Struct):
    """What `unbilled_work` left out, and what is probably not meant."""

    left_out: Annotated[list[LeftOut], "One entry for each reason and currency; empty if nothing was left out."]
    warnings: document_types.Warnings


class Invoice(Record):
    """An invoice to a client."""

    client_id: Annotated[Id, RequiredUnless("quote_id"), "Required without `quote_id`; fixed once issued or with work."]
    project_id: Annotated[Id | None, "A project of the client, for lines without one; omitted: the quote's."] = None
    contact_id: document_types.IssuedTo = None
    quote_id: Annotated[
        Id | None,
        AllowedOn("Create"),
        "Accepted quote whose lines are copied. It becomes one invoice, and another if that is void or fully credited.",
    ] = None
    number: Annotated[
        Code50 | None, document_types.NUMBERED, "Next of the gapless series when issued, like INV-2026-0001; else null."
    ] = READ_ONLY
    status: Status = "draft"
    is_overdue: Annotated[bool, Derived(balance.overdue, bool), "True with a balance due after `due_date`."] = READ_ONLY
    days_overdue: Annotated[Days, balance.DAYS_OVERDUE, "Days since `due_date`; 0 when not overdue."] = READ_ONLY
    issue_date: Annotated[Day | None, "Fixed when the invoice is issued. Null: the day of issue."] = None
    due_date: Annotated[Day | None, "Omitted: `issue_date` plus the client's payment terms. It can change."] = None
    service_from: Annotated[
        Day | None, "First day of the service, printed. Omitted: when it is issued, that of the work on its lines."
    ] = None
    service_to: Annotated[Day | None, "Last day of the service, printed. Omitted: as for `service_from`."] = None
    purchase_order: Annotated[Code100 | None, "The client's order number; it can change after issuing."] = None
    subject: Annotated[Text255 | None, "Subject in one line; `q` searches it."] = None
    notes: document_types.Notes = None
    terms: document_types.Terms = None
    tax_exemption_reason: document_types.TaxExemptionReason = None
    reminders: Annotated[
        bool, "False: no reminders of this invoice are sent, whatever its client and the settings of the account say."
    ] = True
    currency: document_types.DocumentCurrency = SERVER_DEFAULT
    subtotal: document_types.Subtotal = READ_ONLY
    tax_total: document_types.TaxTotal = READ_ONLY
    total: document_types.Total = READ_ONLY
    tax_breakdown: document_types.TaxBreakdown = READ_ONLY
    amount_paid: Annotated[Money, PAID, "Sum of its payments, less refunds."] = READ_ONLY
    amount_credited: Annotated[
        Money, CREDITED, "Sum of the totals of its credit notes, and of its early-payment discounts."
    ] = READ_ONLY
    balance_due: Annotated[SignedMoney, PAID, "What is still to pay, even if written off; 0 if void."] = READ_ONLY
    refund_due: Annotated[
        Money,
        Derived(balance.refund_due, money=True),
        REFUNDED,
        "What was paid beyond the total, or paid and then credited, and not yet refunded.",
    ] = READ_ONLY
    client_snapshot: Annotated[ClientSnapshot | None, "The client when it was issued; null in a draft."] = READ_ONLY
    sent_at: Annotated[Instant | None, "When it was issued; null in a draft."] = READ_ONLY
    paid_at: Annotated[Instant | None, "When it became `paid`, else null."] = READ_ONLY
    voided_at: Annotated[Instant | None, "When it became `void`, else null."] = READ_ONLY
    written_off_at: Annotated[Instant | None, "When it became `written_off`; null again after a payment."] = READ_ONLY
    document_version: Annotated[int | None, document_types.document_version("invoice_id"), document_types.VERSION] = (
        READ_ONLY
    )
    external_id: ExternalId = None
    is_imported: document_types.IsImported = READ_ONLY
    lines: Annotated[list[InvoiceLine], Lines, DetailOnly("invoice_lines"), document_types.SET_OF_LINES] = WRITE_ONLY
    payments: Annotated[
        list[Payment],
        DetailOnly("payments", read_only=True),
        "Oldest first, with refunds and discounts; `record_payment` and `record_refund` add one.",
    ] = WRITE_ONLY
    credit_notes: Annotated[
        list[CreditNote], DetailOnly("credit_notes", read_only=True), "Oldest first, as in /credit-notes."
    ] = WRITE_ONLY
    unbilled_work: Annotated[
        UnbilledWork,
        f"Adds lines to a draft for all unbilled work that matches, up to {MAX_WORK} items on one invoice. "
        "`meta.left_out` counts what was left out.",
    ] = WRITE_ONLY
    record_payment: Annotated[RecordPayment | None, AllowedOn("Update"), "Records a payment, once it is issued."] = (
        WRITE_ONLY
    )
    record_refund: Annotated[Payment | None, AllowedOn("Update"), "Records a refund, up to `refund_due`."] = WRITE_ONLY


class InvoiceTotals(msgspec.Struct):
    """The sums of invoices in one currency, drafts and void ones included unless `status` says otherwise."""

    currency: Annotated[Currency, "Currency of the invoices."]
    subtotal: Annotated[SignedMoney, "Sum of the amounts before tax."]
    tax_total: Annotated[SignedMoney, "Sum of the taxes."]
    total: Annotated[SignedMoney, "Sum of the totals, tax included."]
    amount_paid: Annotated[Money, "Sum of the payments, less refunds."]
    amount_credited: Annotated[Money, "Sum of the totals of credit notes, and of early-payment discounts."]
    balance_due: Annotated[SignedMoney, "Sum of the amounts still to pay."]
