"""The fields of an account: what admins set, and what only operators set."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from retainer.values.common import Bic, Color, DiscountPercent, Iban
from retainer.values.kinds import (
    Code50,
    Country,
    Currency,
    Email,
    Instant,
    Money,
    NumberPattern,
    Percent,
    Text50,
    Text191,
    Text255,
    Text1000,
    Text5000,
    Timezone,
    Url,
)

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Weekdays = Annotated[list[Weekday], Meta(max_length=7)]
PaymentTerms = Annotated[int, Meta(ge=0, le=365)]
Language = Literal["en", "de"]
"""The languages of documents."""
TaxOutsideEu = Literal["not_subject", "exempt", "export"]
"""What services to clients outside the EU are, if they have no tax, in documents of an agency in the EU."""
DEFAULT_COLOR = "#4b53d6"


class AccountSettings(msgspec.Struct, kw_only=True):
    """The fields of an account that its admins set. Documents print most of them."""

    name: Text191
    currency: Currency = "EUR"
    timezone: Timezone = "UTC"
    tax_rate: Percent | None = None
    """Percent on new lines, unless the client has another; null until somebody has decided, which counts as 0."""
    hourly_rate: Money | None = None
    payment_terms_days: PaymentTerms = 30
    early_payment_discount_percent: DiscountPercent | None = None
    """What clients can deduct from the total of an invoice if they pay early, unless the client has another."""
    early_payment_discount_days: PaymentTerms | None = None
    working_weekdays: Weekdays = msgspec.field(default_factory=lambda: ["mon", "tue", "wed", "thu", "fri"])
    client_number_pattern: NumberPattern = "C-{0000}"
    quote_number_pattern: NumberPattern = "Q-{YYYY}-{0000}"
    invoice_number_pattern: NumberPattern = "INV-{YYYY}-{0000}"
    credit_note_number_pattern: NumberPattern = "CN-{YYYY}-{0000}"
    legal_name: Text191 | None = None
    """The name on documents, if it differs from `name`."""
    address_line1: Text191 | None = None
    address_line2: Text191 | None = None
    postal_code: Text191 | None = None
    city: Text191 | None = None
    region: Text191 | None = None
    country: Country | None = None
    vat_number: Code50 | None = None
    registration_number: Code50 | None = None
    email: Email | None = None
    phone: Text50 | None = None
    website: Url | None = None
    iban: Iban | None = None
    bic: Bic | None = None
    bank_name: Text191 | None = None
    document_language: Language = "en"
    document_color: Color = DEFAULT_COLOR
    is_small_business: bool = False
    """Whether the agency is exempt as a small business: documents print the sentence that its country prescribes."""
    tax_outside_eu: TaxOutsideEu = "not_subject"
    tax_exemption_reason_en: Text255 | None = None
    tax_exemption_reason_de: Text255 | None = None
    quote_introduction_en: Text5000 | None = None
    quote_introduction_de: Text5000 | None = None
    """The `notes` of new quotes, printed above the lines. Those of invoices likewise."""
    quote_terms_en: Text5000 | None = None
    quote_terms_de: Text5000 | None = None
    """The `terms` of new quotes, printed below the lines. Those of invoices likewise."""
    invoice_introduction_en: Text5000 | None = None
    invoice_introduction_de: Text5000 | None = None
    invoice_terms_en: Text5000 | None = None
    invoice_terms_de: Text5000 | None = None
    document_footer_en: Text1000 | None = None
    document_footer_de: Text1000 | None = None
    require_second_factor: bool = False


class AccountDetails(AccountSettings, kw_only=True):
    """All fields of an account that operators set; by default the trial ends 90 days after its creation."""

    plan: Literal["solo", "studio", "agency", "scale", "enterprise"]
    trial_ends_at: Instant | None = None
