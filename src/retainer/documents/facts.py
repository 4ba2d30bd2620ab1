"""Facts: all that a document prints, and nothing else; the same facts always render to the same bytes."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple

import msgspec

from retainer.values import money
from retainer.values.exact import amount_of, day_after
from retainer.values.kinds import Percent, SignedMoney

Kind = Literal["invoice", "quote", "credit_note"]
Language = Literal["en", "de"]
TaxOutsideEu = Literal["not_subject", "exempt", "export"]
DEFAULT_COLOR = "#1f3a5f"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """A postal address; `country` is an ISO 3166-1 code."""

    address_line1: str | None = None
    address_line2: str | None = None
    city: str | None = None
    region: str | None = None
    postal_code: str | None = None
    country: str | None = None


class Issuer(Address, frozen=True, kw_only=True):
    """The agency that issues a document: `issuer_snapshot` of an issued one, else the account's settings."""

    name: str
    vat_number: str | None = None
    registration_number: str | None = None
    email: str | None = None
    phone: str | None = None
    website: str | None = None
    iban: str | None = None
    bic: str | None = None
    bank_name: str | None = None
    sort_code: str | None = None
    account_number: str | None = None
    color: str = DEFAULT_COLOR
    footer: str | None = None
    logo_id: int | None = None
    is_small_business: bool = False
    tax_outside_eu: TaxOutsideEu = "not_subject"
    tax_exemption_reason: str | None = None
    """The account's reason for a zero rate in the language of the document, which new documents get."""
    early_payment_discount_percent: Decimal | None = None
    early_payment_discount_days: int | None = None
    """The days from the issue of an invoice in which the client can deduct the percentage from its total."""
    language: Language | None = None
    """The language of the document when it was issued."""

    @property
    def is_payable(self) -> bool:
        """Whether a document says where to pay."""
        return bool(self.iban or self.account_number)


class Customer(Address, frozen=True, kw_only=True):
    name: str
    vat_number: str | None = None
    contact_name: str | None = None
    email: str | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a document. `amount` is what the API returns: before tax, after discount."""

    description: str
    quantity: Decimal
    unit_price: Decimal
    tax_rate: Decimal
    amount: Decimal
    unit: str | None = None
    discount_percent: Decimal = Decimal(0)
    is_time: bool = False
    is_optional: bool = False
    """Offered by a quote, but not part of its total."""


class TaxShare(msgspec.Struct, frozen=True):
    """The amounts at one tax rate."""

    tax_rate: Annotated[Percent, "Tax rate in percent; each rate is listed once."]
    taxable_amount: Annotated[SignedMoney, "Sum of the lines at this rate, before tax."]
    tax_amount: Annotated[SignedMoney, "The tax on `taxable_amount`, rounded half up."]


class CreditedDocument(msgspec.Struct, frozen=True):
    number: str
    issue_date: str


StandingKind = Literal["open", "paid", "credited", "written_off", "void", "declined", "expired", "cancelled"]


class Standing(msgspec.Struct, frozen=True):
    """What has become of an issued document since; it is printed, and no part of what was issued."""

    kind: StandingKind
    balance_due: Decimal = Decimal(0)


ENDED = ("void", "declined", "expired", "cancelled")
"""What no longer counts: a word across the page says so."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """An invoice, quote or credit note. Dates are `YYYY-MM-DD`; a draft invoice has no number."""

    kind: Kind
    language: Language
    issuer: Issuer
    customer: Customer
    issue_date: str
    currency: str
    lines: tuple[Line, ...]
    tax_breakdown: Sequence[TaxShare]
    subtotal: Decimal
    tax_total: Decimal
    total: Decimal
    number: str | None = None
    is_draft: bool = False
    due_date: str | None = None
    valid_until: str | None = None
    service_from: str | None = None
    service_to: str | None = None
    purchase_order: str | None = None
    subject: str | None = None
    notes: str | None = None
    terms: str | None = None
    tax_exemption_reason: str | None = None
    exemption_reasons: dict[str, str] | None = None
    """Why no tax is charged, by category; None in facts of before, for which the rules of today say it."""
    credited: CreditedDocument | None = None
    version: int = 1
    version_date: str | None = None
    """The day of a later version, which replaces the earlier ones."""
    standing: Standing | None = None
    """None for drafts, and for a document as it was issued."""
    logo: bytes | None = None
    """A PNG."""


def gross_amount(line: Line, currency: str) -> Decimal:
    """Return quantity x unit price of a line before its discount, rounded half up to the digits of its currency."""
    return amount_of(money.line_amount(line.quantity, line.unit_price, Decimal(0), currency), currency)


class EarlyPayment(NamedTuple):
    """The discount of an invoice: its percentage, its days, the last of them, and the total less the discount."""

    percent: Decimal
    days: int
    last_day: str
    total: Decimal


def early_payment(document: Document) -> EarlyPayment | None:
    """Return the discount of an invoice; None for other documents, without a discount, and once something was paid."""
    percent, days = document.issuer.early_payment_discount_percent, document.issuer.early_payment_discount_days
    if document.kind != "invoice" or document.total <= 0 or not percent or days is None:
        return None
    if document.standing and document.standing.balance_due != document.total:
        return None
    units = money.line_amount(Decimal(1), document.total, percent, document.currency)
    return EarlyPayment(percent, days, day_after(document.issue_date, days), amount_of(units, document.currency))
