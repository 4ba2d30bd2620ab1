"""The command that changes an account, and the options for its fields."""

from pathlib import Path
from typing import Annotated, Any

import typer

from retainer.cli.common import Account, Json, acting_for, any_given, changes, comma_list, say
from retainer.cli.options import flag, number, text, with_options
from retainer.documents.logo_files import read_logo
from retainer.identity import accounts, logos
from retainer.identity.account_types import AccountDetails
from retainer.identity.plans import PLANS, WITH_API
from retainer.kernel.representations import run_here
from retainer.shared import numbering
from retainer.shared.numbering import NextNumbers
from retainer.values.kinds import PATTERN

NAME = "The agency's name."
LIMITS = ", ".join(f"{plan.name} {plan.requests_per_minute}" for plan in PLANS.values())
PLAN = (
    f"What the account may use, one of: {', '.join(PLANS)}. {WITH_API} include the API; the others do so in a trial. "
    f"Requests a minute of each key: {LIMITS}."
)
TIMEZONE = "Time zone in which days begin and end, like Europe/Berlin."
TAX_RATE = "Default tax rate of documents, like 19 or 7.5; 0 for documents without tax."
NEXT = number("Number with which the series goes on, like 124. It only goes up.", "NUMBER")
ADDRESS_LINE = text("A line of the postal address on documents.")
INTRODUCTION = text("Text above the lines of new documents of this kind in this language.", "TEXT")
TERMS = text("Text below the lines of new documents of this kind in this language.", "TEXT")
FOOTER = text("Text at the foot of each page of documents in this language.", "TEXT")
EXEMPTION = text("Why new documents in this language charge no tax, if they charge none.", "TEXT")
OPTIONS = {
    "name": text(NAME),
    "plan": text(PLAN),
    "trial_ends_at": text(
        "End of the trial, like 2027-01-01T00:00:00Z. Until then, every plan includes the API.", "INSTANT"
    ),
    "currency": text("The account's currency, like EUR. Fixed once there is an amount.", "CODE"),
    "timezone": text(TIMEZONE),
    "hourly_rate": text("Default price of an hour, in the account's currency, like 95.50.", "AMOUNT"),
    "tax_rate": text(TAX_RATE, "PERCENT"),
    "payment_terms_days": number("Days until an invoice is due, from 0 to 365.", "DAYS"),
    "early_payment_discount_percent": text(
        "What clients can deduct from an invoice if they pay early, like 2 or 2.5.", "PERCENT"
    ),
    "early_payment_discount_days": number(
        "Days in which clients can deduct the early-payment discount, from 0 to 365.", "DAYS"
    ),
    "working_weekdays": text("Working weekdays, separated by commas: mon,tue,wed,thu,fri.", "LIST"),
    "client_number_pattern": text(f"Pattern of client numbers, like C-{{0000}}: {PATTERN}.", "PATTERN"),
    "quote_number_pattern": text("Pattern of quote numbers, like Q-{YYYY}-{0000}.", "PATTERN"),
    "invoice_number_pattern": text("Pattern of invoice numbers, like INV-{YYYY}-{0000}.", "PATTERN"),
    "credit_note_number_pattern": text("Pattern of credit note numbers, like CN-{YYYY}-{0000}.", "PATTERN"),
    **dict.fromkeys(NextNumbers.__struct_fields__, NEXT),
    "legal_name": text("The name on documents, if it is not the agency's name."),
    "address_line1": ADDRESS_LINE,
    "address_line2": ADDRESS_LINE,
    "postal_code": text("Postal code of the address."),
    "city": text("Town of the address."),
    "region": text("State, province or county of the address."),
    "country": text("Country of the address, like DE.", "CODE"),
    "vat_number": text("VAT number; no register is asked."),
    "registration_number": text("Number in the commercial register."),
    "email": text("Email address on documents."),
    "phone": text("Telephone number on documents."),
    "website": text("Website on documents, like https://agency.example.", "URL"),
    "iban": text("IBAN of the bank account to which clients pay. It is checked."),
    "bic": text("BIC of the bank."),
    "bank_name": text("Name of the bank."),
    "is_small_business": flag(
        "--small-business/--no-small-business",
        "Whether the agency is exempt from tax as a small business. Documents then print the prescribed sentence.",
    ),
    "tax_outside_eu": text(
        "What untaxed services to clients outside the EU are: not_subject, exempt or export.", "KIND"
    ),
    "tax_exemption_reason_en": EXEMPTION,
    "tax_exemption_reason_de": EXEMPTION,
    "document_language": text("Language of documents, en or de, for clients without their own.", "LANGUAGE"),
    "document_color": text("Colour of documents, like #4b53d6.", "COLOR"),
    "quote_introduction_en": INTRODUCTION,
    "quote_introduction_de": INTRODUCTION,
    "quote_terms_en": TERMS,
    "quote_terms_de": TERMS,
    "invoice_introduction_en": INTRODUCTION,
    "invoice_introduction_de": INTRODUCTION,
    "invoice_terms_en": TERMS,
    "invoice_terms_de": TERMS,
    "document_footer_en": FOOTER,
    "document_footer_de": FOOTER,
    "require_second_factor": flag(
        "--require-second-factor/--allow-password-only", "Whether all admins must sign in with a second factor."
    ),
}
LOGO = typer.Option(
    metavar="FILE", exists=True, dir_okay=False, help="Logo of documents: a PNG or SVG file of at most 200 KB."
)


@with_options(OPTIONS)
def set_account(
    account: Account,
    *,
    logo: Annotated[Path | None, LOGO] = None,
    remove_logo: Annotated[bool, typer.Option("--remove-logo", help="Remove the logo.")] = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Change an account, with effect from the next request. An empty text ("") clears a field."""
    sent: dict[str, object] = {**given, "working_weekdays": comma_list(given["working_weekdays"])}
    has_logo = logo is not None or remove_logo
    numbers = changes(NextNumbers, sent) if any_given(NextNumbers, sent) else {}
    is_other = (has_logo or bool(numbers)) and not any_given(AccountDetails, sent)
    values = {} if is_other else changes(AccountDetails, sent)
    image = read_logo(account, logo.read_bytes(), run_here) if logo else None
    with acting_for(account) as tx:
        accounts.set_account(tx, values)
        numbering.set_next_numbers(tx, numbers)
        if has_logo:
            logos.set_logo(tx, image)
        changed = accounts.get_account(tx) | (numbering.upcoming_numbers(tx) if numbers else {})
    say(changed, json=json)
