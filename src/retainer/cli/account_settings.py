"""The command that changes an account, and the options for its fields."""

from pathlib import Path
from typing import Annotated

import typer

from retainer.cli.common import Account, Json, acting_for, any_given, changes, comma_list, say
from retainer.documents.logo_files import read_logo
from retainer.identity import accounts, logos
from retainer.identity.account_types import AccountDetails
from retainer.identity.plans import PLANS, WITH_API
from retainer.kernel.representations import run_here
from retainer.shared import numbering
from retainer.shared.numbering import NextNumbers
from retainer.values.kinds import PATTERN

NAME = typer.Option(help="The agency's name.")
PLAN = typer.Option(help=f"One of: {', '.join(PLANS)}. Without a trial, these include the API: {WITH_API}.")
TIMEZONE = typer.Option(help="Time zone in which days begin and end, like Europe/Berlin.")

TrialEnd = Annotated[
    str | None,
    typer.Option(
        metavar="INSTANT", help="End of the trial, like 2027-01-01T00:00:00Z. Until then, every plan includes the API."
    ),
]
NewCurrency = Annotated[
    str | None, typer.Option(metavar="CODE", help="The account's currency, like EUR. Fixed once there is an amount.")
]
HourlyRate = Annotated[
    str | None, typer.Option(metavar="AMOUNT", help="Default price of an hour, in the account's currency, like 95.50.")
]
TaxRate = Annotated[
    str | None,
    typer.Option(metavar="PERCENT", help="Default tax rate of documents, like 19 or 7.5; 0 for documents without tax."),
]
PaymentTerms = Annotated[int | None, typer.Option(metavar="DAYS", help="Days until an invoice is due, from 0 to 365.")]
EarlyPaymentPercent = Annotated[
    str | None,
    typer.Option(metavar="PERCENT", help="What clients can deduct from an invoice if they pay early, like 2 or 2.5."),
]
EarlyPaymentDays = Annotated[
    int | None,
    typer.Option(metavar="DAYS", help="Days in which clients can deduct the early-payment discount, from 0 to 365."),
]
ClientPattern = Annotated[
    str | None, typer.Option(metavar="PATTERN", help=f"Pattern of client numbers, like C-{{0000}}: {PATTERN}.")
]
QuotePattern = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Pattern of quote numbers, like Q-{YYYY}-{0000}.")
]
InvoicePattern = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Pattern of invoice numbers, like INV-{YYYY}-{0000}.")
]
CreditNotePattern = Annotated[
    str | None, typer.Option(metavar="PATTERN", help="Pattern of credit note numbers, like CN-{YYYY}-{0000}.")
]
NextNumber = Annotated[
    int | None, typer.Option(metavar="NUMBER", help="Number with which the series goes on, like 124. It only goes up.")
]
Weekdays = Annotated[
    str | None, typer.Option(metavar="LIST", help="Working weekdays, separated by commas: mon,tue,wed,thu,fri.")
]
LegalName = Annotated[str | None, typer.Option(help="The name on documents, if it is not the agency's name.")]
AddressLine = Annotated[str | None, typer.Option(help="A line of the postal address on documents.")]
PostalCode = Annotated[str | None, typer.Option(help="Postal code of the address.")]
City = Annotated[str | None, typer.Option(help="Town of the address.")]
Region = Annotated[str | None, typer.Option(help="State, province or county of the address.")]
Country = Annotated[str | None, typer.Option(metavar="CODE", help="Country of the address, like DE.")]
VatNumber = Annotated[str | None, typer.Option(help="VAT number; no register is asked.")]
RegistrationNumber = Annotated[str | None, typer.Option(help="Number in the commercial register.")]
Email = Annotated[str | None, typer.Option(help="Email address on documents.")]
Phone = Annotated[str | None, typer.Option(help="Telephone number on documents.")]
Website = Annotated[str | None, typer.Option(metavar="URL", help="Website on documents, like https://agency.example.")]
Iban = Annotated[str | None, typer.Option(help="IBAN of the bank account to which clients pay. It is checked.")]
Bic = Annotated[str | None, typer.Option(help="BIC of the bank.")]
BankName = Annotated[str | None, typer.Option(help="Name of the bank.")]
SmallBusiness = Annotated[
    bool | None,
    typer.Option(
        "--small-business/--no-small-business",
        help="Whether the agency is exempt from tax as a small business. Documents then print the prescribed sentence.",
        show_default=False,
    ),
]
TaxOutsideEu = Annotated[
    str | None,
    typer.Option(
        metavar="KIND", help="What untaxed services to clients outside the EU are: not_subject, exempt or export."
    ),
]
TaxExemptionReason = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Why new documents in this language charge no tax, if they charge none."),
]
DocumentLanguage = Annotated[
    str | None, typer.Option(metavar="LANGUAGE", help="Language of documents, en or de, for clients without their own.")
]
DocumentColor = Annotated[str | None, typer.Option(metavar="COLOR", help="Colour of documents, like #4b53d6.")]
Introduction = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Text above the lines of new documents of this kind in this language."),
]
Terms = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Text below the lines of new documents of this kind in this language."),
]
DocumentFooter = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Text at the foot of each page of documents in this language.")
]
SecondFactor = Annotated[
    bool | None,
    typer.Option(
        "--require-second-factor/--allow-password-only",
        help="Whether all admins must sign in with a second factor.",
        show_default=False,
    ),
]
Logo = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", exists=True, dir_okay=False, help="Logo of documents: a PNG or SVG file of at most 200 KB."
    ),
]
RemoveLogo = Annotated[bool, typer.Option("--remove-logo", help="Remove the logo.")]


def set_account(  # a field is an option
    account: Account,
    *,
    name: Annotated[str | None, NAME] = None,
    plan: Annotated[str | None, PLAN] = None,
    trial_ends_at: TrialEnd = None,
    currency: NewCurrency = None,
    timezone: Annotated[str | None, TIMEZONE] = None,
    hourly_rate: HourlyRate = None,
    tax_rate: TaxRate = None,
    payment_terms_days: PaymentTerms = None,
    early_payment_discount_percent: EarlyPaymentPercent = None,
    early_payment_discount_days: EarlyPaymentDays = None,
    working_weekdays: Weekdays = None,
    client_number_pattern: ClientPattern = None,
    quote_number_pattern: QuotePattern = None,
    invoice_number_pattern: InvoicePattern = None,
    credit_note_number_pattern: CreditNotePattern = None,
    next_client_number: NextNumber = None,
    next_quote_number: NextNumber = None,
    next_invoice_number: NextNumber = None,
    next_credit_note_number: NextNumber = None,
    next_ticket_number: NextNumber = None,
    legal_name: LegalName = None,
    address_line1: AddressLine = None,
    address_line2: AddressLine = None,
    postal_code: PostalCode = None,
    city: City = None,
    region: Region = None,
    country: Country = None,
    vat_number: VatNumber = None,
    registration_number: RegistrationNumber = None,
    email: Email = None,
    phone: Phone = None,
    website: Website = None,
    iban: Iban = None,
    bic: Bic = None,
    bank_name: BankName = None,
    is_small_business: SmallBusiness = None,
    tax_outside_eu: TaxOutsideEu = None,
    tax_exemption_reason_en: TaxExemptionReason = None,
    tax_exemption_reason_de: TaxExemptionReason = None,
    document_language: DocumentLanguage = None,
    document_color: DocumentColor = None,
    quote_introduction_en: Introduction = None,
    quote_introduction_de: Introduction = None,
    quote_terms_en: Terms = None,
    quote_terms_de: Terms = None,
    invoice_introduction_en: Introduction = None,
    invoice_introduction_de: Introduction = None,
    invoice_terms_en: Terms = None,
    invoice_terms_de: Terms = None,
    document_footer_en: DocumentFooter = None,
    document_footer_de: DocumentFooter = None,
    require_second_factor: SecondFactor = None,
    logo: Logo = None,
    remove_logo: RemoveLogo = False,
    json: Json = False,
) -> None:
    """Change an account, with effect from the next request. An empty text ("") clears a field."""
    given = locals() | {"working_weekdays": comma_list(working_weekdays)}
    has_logo = logo is not None or remove_logo
    numbers = changes(NextNumbers, given) if any_given(NextNumbers, given) else {}
    is_other = (has_logo or bool(numbers)) and not any_given(AccountDetails, given)
    values = {} if is_other else changes(AccountDetails, given)
    image = read_logo(account, logo.read_bytes(), run_here) if logo else None
    with acting_for(account) as tx:
        accounts.set_account(tx, values)
        numbering.set_next_numbers(tx, numbers)
        if has_logo:
            logos.set_logo(tx, image)
        changed = accounts.get_account(tx) | (numbering.upcoming_numbers(tx) if numbers else {})
    say(changed, json=json)
