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
    currency: Annotated[Currency, "Fixed once there is an amount."] = "EUR"
    timezone: Annotated[Timezone, "Decides when a day begins, in reports and due dates."] = "UTC"
    working_weekdays: Weekdays = msgspec.field(default_factory=lambda: ["mon", "tue", "wed", "thu", "fri"])
    tax_rate: Annotated[
        Percent | None, "For new lines, unless the client has another. Enter 0 if you bill without tax."
    ] = None
    """Null until somebody has decided, which counts as 0."""
    hourly_rate: Annotated[Money | None, "Used if the project, the client and the person have none."] = None
    payment_terms_days: Annotated[PaymentTerms, "Days from the date of an invoice until it is due."] = 30
    early_payment_discount_percent: Annotated[
        DiscountPercent | None, "What clients can deduct if they pay early (Skonto), unless the client has another."
    ] = None
    early_payment_discount_days: Annotated[
        PaymentTerms | None, "Days from the date of an invoice in which clients can deduct the discount."
    ] = None
    is_small_business: Annotated[
        bool, "Exempt from VAT: documents print the sentence that your country prescribes, like § 19 UStG in Germany."
    ] = False
    tax_outside_eu: Annotated[
        TaxOutsideEu, "What documents call services to clients outside the EU that have no tax. Ask your tax adviser."
    ] = "not_subject"
    tax_exemption_reason_en: Annotated[Text255 | None, "Printed on new documents, for lines without tax."] = None
    tax_exemption_reason_de: Annotated[Text255 | None, "Printed on new documents, for lines without tax."] = None
    client_number_pattern: NumberPattern = "C-{0000}"
    quote_number_pattern: NumberPattern = "Q-{YYYY}-{0000}"
    invoice_number_pattern: NumberPattern = "INV-{YYYY}-{0000}"
    credit_note_number_pattern: NumberPattern = "CN-{YYYY}-{0000}"
    legal_name: Annotated[Text191 | None, "If the name on documents differs, like one with GmbH or Ltd."] = None
    address_line1: Text191 | None = None
    address_line2: Text191 | None = None
    postal_code: Text191 | None = None
    city: Text191 | None = None
    region: Text191 | None = None
    country: Country | None = None
    vat_number: Annotated[Code50 | None, "A VAT ID (DE…) or your Steuernummer. No register is asked."] = None
    registration_number: Annotated[Code50 | None, "Like HRB 12345, Amtsgericht Köln."] = None
    email: Email | None = None
    phone: Text50 | None = None
    website: Url | None = None
    iban: Annotated[Iban | None, "The check digits are verified."] = None
    bic: Bic | None = None
    bank_name: Text191 | None = None
    document_language: Annotated[Language, "Used if the client has none."] = "en"
    document_color: Color = DEFAULT_COLOR
    document_footer_en: Annotated[Text1000 | None, "Printed on each page, like the managing directors."] = None
    document_footer_de: Annotated[Text1000 | None, "Printed on each page, like the managing directors."] = None
    quote_introduction_en: Annotated[Text5000 | None, "Printed above the lines."] = None
    quote_introduction_de: Annotated[Text5000 | None, "Printed above the lines."] = None
    quote_terms_en: Annotated[Text5000 | None, "Printed below the lines."] = None
    quote_terms_de: Annotated[Text5000 | None, "Printed below the lines."] = None
    invoice_introduction_en: Annotated[Text5000 | None, "Printed above the lines."] = None
    invoice_introduction_de: Annotated[Text5000 | None, "Printed above the lines."] = None
    invoice_terms_en: Annotated[Text5000 | None, "Printed below the lines."] = None
    invoice_terms_de: Annotated[Text5000 | None, "Printed below the lines."] = None
    require_second_factor: Annotated[bool, "People set it up the next time they open a page."] = False


class AccountDetails(AccountSettings, kw_only=True):
    """All fields of an account that operators set; by default the trial ends 90 days after its creation."""

    plan: Literal["solo", "studio", "agency", "scale", "enterprise"]
    trial_ends_at: Instant | None = None
