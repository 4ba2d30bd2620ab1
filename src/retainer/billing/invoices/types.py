"""Invoice types: what an invoice and its lines hold, to whom it was issued, and which unbilled work it asks for."""

from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from retainer.billing import allocation_types, balance, document_types
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.document_types import Lines
from retainer.store.row_mapper import Derived, split_ids
from retainer.values.common import ExternalId
from retainer.values.kinds import (
    Country,
    Currency,
    Day,
    Id,
    Instant,
    Money,
    SignedMoney,
    Text50,
    Text100,
    Text191,
    Text255,
    Text2000,
    Text10000,
    UnitPrice,
)
from retainer.values.records import (
    READ_ONLY,
    SERVER_DEFAULT,
    WRITE_ONLY,
    AllowedOn,
    DetailOnly,
    Record,
    RequiredUnless,
    Stated,
)

MAX_DESCRIPTION = 2000
MAX_ITEMS = 1000
"""How many time entries or expenses a line can bill."""
MAX_WORK = 10_000
"""How many of them, and milestones, an invoice can bill: every step of its life takes all of them at once."""

PAID = Stated("It follows from the payments. Record one with record_payment, and leave this out.")
CREDITED = Stated("It follows from the credit notes. POST one to /invoices/{invoice}/credit-notes, and leave this out.")
Status = Annotated[
    Literal["draft", "sent", "partially_paid", "paid", "void", "written_off"],
    Meta(title="InvoiceStatus"),
    "`sent` issues a draft; payments and credits lead to `partially_paid` and `paid`; `void` counts no more. "
    "`written_off` stays until a payment comes, even when credit notes leave nothing due: they correct the amount.",
]
LineKind = Annotated[
    Literal["item", "time", "expense", "milestone"],
    Meta(title="InvoiceLineKind"),
    "What is billed: work of one kind, or an `item` with its own price.",
]
Ids = Annotated[list[Id], Meta(max_length=MAX_ITEMS)]


class InvoiceLine(Record):
    """One thing that an invoice bills; one with work has its quantity and price from there."""

    description: Annotated[Text2000, "Required, unless work is billed: then the work's own words when left out."] = (
        SERVER_DEFAULT
    )
    unit_price: Annotated[
        UnitPrice, "For one, before discount and tax; required, unless work is billed: then it follows."
    ] = SERVER_DEFAULT
    invoice_id: Annotated[Id, "The invoice that it belongs to."] = READ_ONLY
    kind: LineKind = READ_ONLY
    quantity: document_types.LineQuantity = SERVER_DEFAULT
    unit: document_types.LineUnit = None
    discount_percent: document_types.LineDiscount = Decimal(0)
    tax_rate: document_types.LineTaxRate = SERVER_DEFAULT
    project_id: document_types.LineProject = None
    time_entry_ids: Annotated[
        Ids,
        allocation_types.billed_work("time_entry_id", split_ids),
        "Unbilled time of the client to bill; quantity and price follow from it.",
    ] = []
    expense_ids: Annotated[
        Ids,
        allocation_types.billed_work("expense_id", split_ids),
        "Unbilled expenses of the client to bill; the price follows from them.",
    ] = []
    milestone_id: Annotated[
        Id | None,
        allocation_types.billed_work("milestone_id", allocation_types.first_id),
        "Unbilled milestone of a project of the client to bill; the price follows from it.",
    ] = None
    amount: Annotated[
        SignedMoney,
        document_types.FOLLOWS_FROM_LINE,
        "`quantity` x `unit_price` less discount; of work, the sum of its amounts.",
    ] = READ_ONLY
    currency: document_types.LineCurrency = READ_ONLY
    position: document_types.LinePosition = SERVER_DEFAULT


class ClientSnapshot(msgspec.Struct):
    """Whom an invoice was issued to, as the client was then."""

    name: Annotated[Text191, "What the client was called then."]
    address_line1: Annotated[Text191 | None, "First line of the postal address then."]
    address_line2: Annotated[Text191 | None, "Second line of the postal address then."]
    city: Annotated[Text191 | None, "Town of the postal address then."]
    region: Annotated[Text191 | None, "State, province or county of the postal address then."]
    postal_code: Annotated[Text191 | None, "Part of the postal address then."]
    country: Annotated[Country | None, "Country of the postal address then."]
    vat_number: Annotated[Text50 | None, "The client's then; null: none was known."]


class UnbilledTime(msgspec.Struct):
    """Which time to bill, and how it is put together: one line for each entry, task, user or project."""

    project_ids: Annotated[
        Ids | None,
        "Only time on these projects; left out, all but that on fixed-fee and retainer projects, which the fee covers. "
        "Time without a rate is never billed.",
    ] = None
    from_: Annotated[Day | None, "First day of the time, included; null: no limit."] = msgspec.field(
        name="from", default=None
    )
    to: Annotated[Day | None, "Last day of the time, included; null: no limit."] = None
    group_by: Annotated[
        Literal["entry", "task", "user", "project"],
        Meta(title="UnbilledTimeGrouping"),
        "What there is one line for; no line mixes projects.",
    ] = "project"


class UnbilledExpenses(msgspec.Struct):
    """Which expenses to bill, and how they are put together: one line for each expense, category or project."""

    project_ids: Annotated[Ids | None, "Only expenses for these projects; null: all."] = None
    from_: Annotated[Day | None, "First day of the expenses, included; null: no limit."] = msgspec.field(
        name="from", default=None
    )
    to: Annotated[Day | None, "Last day of the expenses, included; null: no limit."] = None
    group_by: Annotated[
        Literal["entry", "category", "project"],
        Meta(title="UnbilledExpensesGrouping"),
        "What there is one line for; no line mixes projects.",
    ] = "project"


class UnbilledWork(msgspec.Struct):
    """Which work to bill: what is billable, not yet billed, of the invoice's client and in its currency."""

    time: Annotated[UnbilledTime | None, "Which time to bill, `{}` for all; null: none."] = None
    expenses: Annotated[UnbilledExpenses | None, "Which expenses to bill, `{}` for all; null: none."] = None


class LeftOut(msgspec.Struct):
    """Time that matches `unbilled_work`, and is not billed for a reason."""

    reason: Annotated[
        Literal["covered", "unpriced"],
        Meta(title="LeftOutReason"),
        "`covered`: a fixed fee or retainer pays for it, and its project was not named; `unpriced`: it has no rate.",
    ]
    count: Annotated[int, "How many time entries."]
    minutes: Annotated[int, "What they come to together."]


class InvoiceMeta(msgspec.Struct):
    """What became of the work that was asked for."""

    left_out: Annotated[list[LeftOut], "One entry for each reason; empty when `unbilled_work` left nothing out."]


PaymentMethod = Annotated[
    Literal["bank_transfer", "card", "direct_debit", "cash", "cheque", "other"],
    Meta(title="PaymentMethod"),
    "How the money arrived; for your information only.",
]


class Payment(Record):
    """A payment of a client on an invoice."""

    invoice_id: Annotated[Id, "The invoice that it pays."] = READ_ONLY
    amount: Annotated[Money, "More than 0, at most the invoice's `balance_due`; omitted: all of it."] = SERVER_DEFAULT
    currency: Annotated[Currency, "The invoice's currency."] = READ_ONLY
    paid_date: Annotated[Day, "Day on which the money arrived, not in the future; omitted: today."] = SERVER_DEFAULT
    method: PaymentMethod = "bank_transfer"
    reference: Annotated[
        Text191 | None, "Unique within the invoice. A retry with the same amount and day records nothing new."
    ] = None
    notes: Annotated[Text10000 | None, "For internal use."] = None


class Invoice(Record):
    """What a client owes."""

    client_id: Annotated[
        Id,
        RequiredUnless("quote_id"),
        "Required, unless `quote_id` gives it. Fixed once issued, and while work is attached.",
    ]
    project_id: Annotated[
        Id | None,
        "A project of the client; lines without one count for it. That which its quote became, when left out.",
    ] = None
    contact_id: document_types.IssuedTo = None
    quote_id: Annotated[
        Id | None, AllowedOn("Create"), "Accepted quote whose lines are copied, each once. Only on creation."
    ] = None
    number: Annotated[
        Text50 | None,
        document_types.NUMBERED,
        "Next of the gapless series when issued, like INV-2026-0001; null before.",
    ] = READ_ONLY
    status: Status = "draft"
    is_overdue: Annotated[
        bool, Derived(balance.overdue, bool), "True while something is due, and `due_date` has passed."
    ] = READ_ONLY
    days_overdue: Annotated[int, balance.DAYS_OVERDUE, "Days since `due_date`; 0 when not overdue."] = READ_ONLY
    issue_date: Annotated[Day | None, "Today when issued without one, and fixed from then on."] = None
    due_date: Annotated[Day | None, "`issue_date` plus the client's terms when issued without one; can move."] = None
    purchase_order: Annotated[Text100 | None, "The client's order number; can still change once issued."] = None
    subject: Annotated[Text255 | None, "What it is for, in one line; `q` searches it."] = None
    notes: document_types.Notes = None
    terms: document_types.Terms = None
    currency: document_types.DocumentCurrency = SERVER_DEFAULT
    subtotal: document_types.Subtotal = READ_ONLY
    tax_total: document_types.TaxTotal = READ_ONLY
    total: document_types.Total = READ_ONLY
    tax_breakdown: document_types.TaxBreakdown = READ_ONLY
    amount_paid: Annotated[Money, PAID, "Sum of its payments."] = READ_ONLY
    amount_credited: Annotated[Money, CREDITED, "Sum of the totals of its credit notes."] = READ_ONLY
    balance_due: Annotated[
        SignedMoney, PAID, "What is still to be paid; kept when written off, as far as it is not credited; 0 when void."
    ] = READ_ONLY
    refund_due: Annotated[
        Money, Derived(balance.refund_due, money=True), CREDITED, "What was paid and then credited: to be paid back."
    ] = READ_ONLY
    client_snapshot: Annotated[ClientSnapshot | None, "The client as it was when issued; null in a draft."] = READ_ONLY
    sent_at: Annotated[Instant | None, "When it was issued; null in a draft."] = READ_ONLY
    paid_at: Annotated[Instant | None, "When nothing was left to pay; null until then."] = READ_ONLY
    voided_at: Annotated[Instant | None, "When it became `void`, else null."] = READ_ONLY
    written_off_at: Annotated[Instant | None, "When it became `written_off`; null again when a payment comes."] = (
        READ_ONLY
    )
    external_id: ExternalId = None
    lines: Annotated[list[InvoiceLine], Lines, DetailOnly(), document_types.SET_OF_LINES] = WRITE_ONLY
    payments: Annotated[list[Payment], DetailOnly(read_only=True), "Oldest first; made with `record_payment`."] = (
        WRITE_ONLY
    )
    credit_notes: Annotated[list[CreditNote], DetailOnly(read_only=True), "Oldest first, as in /credit-notes."] = (
        WRITE_ONLY
    )
    unbilled_work: Annotated[
        UnbilledWork,
        f"Adds lines to a draft for all unbilled work that matches; an invoice takes at most {MAX_WORK} entries and "
        "expenses. `meta.left_out` says what was not billed, and why.",
    ] = WRITE_ONLY
    record_payment: Annotated[Payment | None, AllowedOn("Update"), "Records a payment on an issued invoice."] = (
        WRITE_ONLY
    )
