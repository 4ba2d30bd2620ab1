"""Accounts: their fields, settings, plan, and the API's switch."""

import json
from collections.abc import Iterator
from decimal import Decimal
from itertools import permutations
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from sqlalchemy import select

from retainer.errors import BodyErrors
from retainer.identity import audit
from retainer.identity.audit import Fields, Target
from retainer.identity.placeholders import about, settings_errors
from retainer.identity.plans import PLANS, WITH_API, require_api
from retainer.schema.columns import has_amount, own_amounts
from retainer.schema.identity import accounts
from retainer.store.engines.base import Row
from retainer.store.tables import ACCOUNT, metadata
from retainer.store.tx import Store, Tx
from retainer.values import kinds
from retainer.values.collation import printed_form
from retainer.values.common import (
    EARLY_PAYMENT,
    AccountNumber,
    Bic,
    Color,
    DiscountPercent,
    Iban,
    PaymentUrl,
    Phone,
    RoundingDirection,
    RoundingMinutes,
    RoundingUnit,
    SortCode,
    Unit,
    missing_terms,
)
from retainer.values.exact import amount_of, decimal_text, minor_units

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Weekdays = Annotated[list[Weekday], Meta(max_length=7)]
PaymentTerms = Annotated[int, Meta(ge=0, le=365), Unit("days")]
Language = Literal["en", "de"]
TaxOutsideEu = Literal["not_subject", "exempt", "export"]
"""What services to clients outside the EU are, if they have no tax, in documents of an agency in the EU."""
ExemptionReason = Annotated[
    kinds.Text255 | None,
    "Printed on new documents for lines without tax, in place of the general sentence or that of small businesses.",
]
Footer = Annotated[
    kinds.Text1000 | None,
    "Printed on each page, like the managing directors; if it is empty, the footer in the other language is.",
]
OURS = "If blank: ours."
InvoiceSubject = Annotated[kinds.Text255 | None, f"{OURS} {about('invoice', is_subject=True)}"]
InvoiceText = Annotated[kinds.Text5000 | None, f"{OURS} {about('invoice', is_subject=False)}"]
QuoteSubject = Annotated[kinds.Text255 | None, f"{OURS} {about('quote', is_subject=True)}"]
QuoteText = Annotated[kinds.Text5000 | None, f"{OURS} {about('quote', is_subject=False)}"]
CreditNoteSubject = Annotated[kinds.Text255 | None, f"{OURS} {about('credit_note', is_subject=True)}"]
CreditNoteText = Annotated[kinds.Text5000 | None, f"{OURS} {about('credit_note', is_subject=False)}"]
DEFAULT_COLOR = "#4b53d6"
ABOUT_PLANS = (
    f"What the account may use; for your own business, keep the default. {WITH_API} include the API; the others do so "
    "in the trial of 90 days. Requests that a key may send in a minute: "
    f"{', '.join(f'{plan.name} {plan.requests_per_minute}' for plan in PLANS.values())}."
)


class AccountSettings(msgspec.Struct, kw_only=True):
    """The fields of an account that its admins set. Documents print most of them."""

    name: kinds.Text191
    currency: Annotated[kinds.Currency, "Fixed once there is an amount."] = "EUR"
    timezone: Annotated[kinds.Timezone, "Decides when a day begins, in reports and due dates."] = "UTC"
    working_weekdays: Weekdays = msgspec.field(default_factory=lambda: ["mon", "tue", "wed", "thu", "fri"])
    tax_rate: Annotated[
        kinds.Percent | None, "For new lines, unless the client has another. Enter 0 if you bill without tax."
    ] = None
    """Null until an admin decides; it then counts as 0."""
    hourly_rate: Annotated[kinds.Money | None, "Used if the project, the client and the person have none."] = None
    payment_terms_days: Annotated[PaymentTerms, "Days from the date of an invoice until it is due."] = 30
    time_rounding_minutes: Annotated[
        RoundingMinutes | None, "Invoices round hours to multiples of this many minutes; the entries stay as they are."
    ] = None
    time_rounding_to: RoundingDirection = "up"
    time_rounding_each: RoundingUnit = "entry"
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
    tax_exemption_reason_en: ExemptionReason = None
    tax_exemption_reason_de: ExemptionReason = None
    client_number_pattern: kinds.NumberPattern = "C-{0000}"
    quote_number_pattern: kinds.NumberPattern = "Q-{YYYY}-{0000}"
    invoice_number_pattern: kinds.NumberPattern = "INV-{YYYY}-{0000}"
    credit_note_number_pattern: kinds.NumberPattern = "CN-{YYYY}-{0000}"
    legal_name: Annotated[kinds.Text191 | None, "If the name on documents differs, like one with GmbH or Ltd."] = None
    address_line1: kinds.Text191 | None = None
    address_line2: kinds.Text191 | None = None
    postal_code: kinds.Text191 | None = None
    city: kinds.Text191 | None = None
    region: kinds.Text191 | None = None
    country: kinds.Country | None = None
    vat_number: Annotated[kinds.Code50 | None, "A VAT ID (DE…) or your Steuernummer. No register is asked."] = None
    registration_number: Annotated[kinds.Code50 | None, "Like HRB 12345, Amtsgericht Köln."] = None
    email: kinds.Email | None = None
    phone: Phone | None = None
    website: kinds.Url | None = None
    iban: Annotated[Iban | None, "The check digits are verified."] = None
    bic: Bic | None = None
    bank_name: kinds.Text191 | None = None
    sort_code: Annotated[SortCode | None, "Of a British account."] = None
    account_number: Annotated[AccountNumber | None, "If clients pay by it, as in Britain."] = None
    payment_url: Annotated[
        PaymentUrl | None, "Where clients pay by card; the page of a client link leads there from an invoice."
    ] = None
    document_language: Annotated[Language, "Used if the client has none."] = "en"
    document_color: Color = DEFAULT_COLOR
    document_footer_en: Footer = None
    document_footer_de: Footer = None
    quote_introduction_en: Annotated[kinds.Text5000 | None, "Printed above the lines."] = None
    quote_introduction_de: Annotated[kinds.Text5000 | None, "Printed above the lines."] = None
    quote_terms_en: Annotated[kinds.Text5000 | None, "Printed below the lines."] = None
    quote_terms_de: Annotated[kinds.Text5000 | None, "Printed below the lines."] = None
    invoice_introduction_en: Annotated[kinds.Text5000 | None, "Printed above the lines."] = None
    invoice_introduction_de: Annotated[kinds.Text5000 | None, "Printed above the lines."] = None
    invoice_terms_en: Annotated[kinds.Text5000 | None, "Printed below the lines."] = None
    invoice_terms_de: Annotated[kinds.Text5000 | None, "Printed below the lines."] = None
    mail_invoice_subject_en: InvoiceSubject = None
    mail_invoice_subject_de: InvoiceSubject = None
    mail_invoice_text_en: InvoiceText = None
    mail_invoice_text_de: InvoiceText = None
    mail_quote_subject_en: QuoteSubject = None
    mail_quote_subject_de: QuoteSubject = None
    mail_quote_text_en: QuoteText = None
    mail_quote_text_de: QuoteText = None
    mail_credit_note_subject_en: CreditNoteSubject = None
    mail_credit_note_subject_de: CreditNoteSubject = None
    mail_credit_note_text_en: CreditNoteText = None
    mail_credit_note_text_de: CreditNoteText = None
    require_second_factor: Annotated[bool, "People set it up the next time they open a page."] = False


class AccountDetails(AccountSettings, kw_only=True):
    """All fields of an account that operators set; by default the trial ends 90 days after its creation."""

    plan: Annotated[Literal["solo", "studio", "agency", "scale", "enterprise"], ABOUT_PLANS] = "agency"
    trial_ends_at: Annotated[kinds.Instant | None, "Until then, every plan includes the API."] = None


ALL = select(accounts).order_by(accounts.c.id)
PATTERN_NAME = "_number_pattern"
MINE = select(accounts).where(accounts.c.id == ACCOUNT)
AMOUNTS = [
    select(table.c.account_id).where(has_amount(table)).limit(1)
    for table in metadata.sorted_tables
    if table.info.get("of_account") and own_amounts(table)
]
"""For each table with amounts of its own, the statement that finds one other than 0.

Tables that may have many rows without an amount have an index of the others (`index_amounts`); in the rest, the first
row has one.
"""


def list_accounts(store: Store) -> list[Fields]:
    with store.unscoped() as tx:
        return [_fields_of(row) for row in tx.all(ALL)]


def has_accounts(store: Store) -> bool:
    return store.unscoped_one(select(accounts.c.id)) is not None


def get_account(tx: Tx) -> Fields:
    return _fields_of(tx.one(MINE) or ())


def has_amounts(tx: Tx) -> bool:
    """Return whether the account has any amount besides its own rate, which fixes its currency."""
    return any(tx.one(statement) is not None for statement in AMOUNTS)


def set_account(tx: Tx, changes: Fields) -> Fields:
    """Change the account with effect from the next request; return it. Raises `validation_failed`.

    A new currency keeps the number of the hourly rate, and is refused once there are other amounts.
    """
    before = get_account(tx)
    currency: str = changes.get("currency") or before["currency"]
    if currency != before["currency"]:
        if has_amounts(tx):
            tx.error("currency", f"Stays {before['currency']}, because this account already has amounts in it.")
        if before["hourly_rate"] is not None:
            changes = {"hourly_rate": Decimal(before["hourly_rate"]), **changes}
    if changes.get("working_weekdays") == []:
        tx.error("working_weekdays", "Choose at least one day.")
    percent, days = (changes.get(name, before[name]) for name in EARLY_PAYMENT)
    missing = missing_terms(percent and Decimal(percent), days)
    for name, message in (*clashing_patterns(before, before | changes), *missing, *settings_errors(changes, before)):
        tx.error(name, message)
    values = account_values(tx, changes, currency)
    tx.raise_errors()
    tx.update_columns(accounts, before["id"], values)
    after = get_account(tx)
    audit.note_changes(tx, "account changed", Target("account", after["id"], after["name"]), before, after)
    return after


def clashing_patterns(before: Fields, after: Fields) -> Iterator[tuple[str, str]]:
    """Yield the changed number patterns that give the numbers of another series, each with its error."""
    numbers = {name: kinds.ZEROS.sub("{0}", printed_form(after[name])) for name in after if name.endswith(PATTERN_NAME)}
    for name, other in permutations(numbers, 2):
        if after[name] != before[name] and numbers[name] == numbers[other]:
            series = other.removesuffix(PATTERN_NAME).replace("_", " ")
            yield name, f"Gives the numbers of {series}s, whose pattern is {after[other]}. Choose another."


def switch_api(tx: Tx, *, on: bool) -> None:
    """Switch the API on or off; off stops every key immediately. On may raise `plan_required` or `trial_ended`."""
    account = get_account(tx)
    if on:
        require_api(account["plan"], account["trial_ends_at"])
    if account["api_enabled"] != on:
        tx.update_columns(accounts, account["id"], {"api_enabled": on})
        target = Target("account", account["id"], account["name"])
        audit.note(tx, "API switched on" if on else "API switched off", target)


def account_values(errors: BodyErrors, fields: Fields, currency: str) -> Fields:
    values = in_units(errors, fields, "hourly_rate", currency)
    for name in ("tax_rate", EARLY_PAYMENT[0]):
        if values.get(name) is not None:
            values[name] = decimal_text(values[name])
    if "working_weekdays" in values:
        values["working_weekdays"] = json.dumps(values["working_weekdays"])
    return values


def in_units(errors: BodyErrors, fields: Fields, name: str, currency: str) -> Fields:
    """Return fields with the named amount in minor units; note an error for too many digits."""
    values = dict(fields)
    if values.get(name) is not None:
        try:
            values[name] = minor_units(values[name], currency)
        except ValueError as error:
            errors.error(name, str(error))
    return values


def _fields_of(row: Row) -> Fields:
    fields = dict(zip(accounts.c.keys(), row, strict=True))
    for name in ("api_enabled", "require_second_factor", "is_small_business"):
        fields[name] = bool(fields[name])
    for name in ("working_weekdays", "bank_accounts", "reminder_stages"):
        fields[name] = json.loads(fields[name])
    if fields["hourly_rate"] is not None:
        fields["hourly_rate"] = str(amount_of(fields["hourly_rate"], fields["currency"]))
    is_suspended, is_closing = fields["suspended_at"] is not None, fields["deletes_at"] is not None
    return fields | {"status": "closing" if is_closing else "suspended" if is_suspended else "active"}
