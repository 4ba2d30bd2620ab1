"""Commands on accounts, and on the API's switch."""

from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from retainer import settings
from retainer.cli import common as cli
from retainer.documents.logo_files import read_logo
from retainer.errors import FieldErrors, invalid
from retainer.identity import accounts, logos
from retainer.identity.accounts import AccountDetails
from retainer.identity.audit import Fields
from retainer.identity.people import passwords, users
from retainer.identity.people.users import UserDetails
from retainer.identity.plans import PLANS, QUOTAS, WITH_API, limits_of
from retainer.kernel.representations import run_here
from retainer.shared import numbering
from retainer.shared.numbering import NextNumbers
from retainer.traffic.usage import NOTHING, usage_by_account
from retainer.values.kinds import PATTERN
from retainer.values.reading import read_fields, read_part

account_cli = cli.group("account", "Open, list, show and change accounts.")
api_cli = cli.group("api", "Switch an account's API on or off.")

LIMITS = ", ".join(f"{plan.name} {plan.requests_per_minute}" for plan in PLANS.values())
PLAN = (
    f"What the account may use, one of: {', '.join(PLANS)}. {WITH_API} include the API; the others do so in a trial. "
    f"Requests a minute of each key: {LIMITS}."
)
NEXT = cli.number("Number with which the series goes on, like 124. It only goes up.", "NUMBER")
ADDRESS_LINE = cli.text("A line of the postal address on documents.")
INTRODUCTION = cli.text("Text above the lines of new documents of this kind in this language.", "TEXT")
TERMS = cli.text("Text below the lines of new documents of this kind in this language.", "TEXT")
FOOTER = cli.text("Text at the foot of each page of documents in this language.", "TEXT")
EXEMPTION = cli.text("Why new documents in this language charge no tax, if they charge none.", "TEXT")
OPTIONS = {
    "name": cli.text("The agency's name."),
    "plan": cli.text(PLAN),
    "trial_ends_at": cli.text(
        "End of the trial, like 2027-01-01T00:00:00Z. Until then, every plan includes the API.", "INSTANT"
    ),
    "currency": cli.text("The account's currency, like EUR. Fixed once there is an amount.", "CODE"),
    "timezone": cli.text("Time zone in which days begin and end, like Europe/Berlin."),
    "hourly_rate": cli.text("Default price of an hour, in the account's currency, like 95.50.", "AMOUNT"),
    "tax_rate": cli.text("Default tax rate of documents, like 19 or 7.5; 0 for documents without tax.", "PERCENT"),
    "payment_terms_days": cli.number("Days until an invoice is due, from 0 to 365.", "DAYS"),
    "early_payment_discount_percent": cli.text(
        "What clients can deduct from an invoice if they pay early, like 2 or 2.5.", "PERCENT"
    ),
    "early_payment_discount_days": cli.number(
        "Days in which clients can deduct the early-payment discount, from 0 to 365.", "DAYS"
    ),
    "working_weekdays": cli.text("Working weekdays, separated by commas: mon,tue,wed,thu,fri.", "LIST"),
    "client_number_pattern": cli.text(f"Pattern of client numbers, like C-{{0000}}: {PATTERN}.", "PATTERN"),
    "quote_number_pattern": cli.text("Pattern of quote numbers, like Q-{YYYY}-{0000}.", "PATTERN"),
    "invoice_number_pattern": cli.text("Pattern of invoice numbers, like INV-{YYYY}-{0000}.", "PATTERN"),
    "credit_note_number_pattern": cli.text("Pattern of credit note numbers, like CN-{YYYY}-{0000}.", "PATTERN"),
    **dict.fromkeys(NextNumbers.__struct_fields__, NEXT),
    "legal_name": cli.text("The name on documents, if it is not the agency's name."),
    "address_line1": ADDRESS_LINE,
    "address_line2": ADDRESS_LINE,
    "postal_code": cli.text("Postal code of the address."),
    "city": cli.text("Town of the address."),
    "region": cli.text("State, province or county of the address."),
    "country": cli.text("Country of the address, like DE.", "CODE"),
    "vat_number": cli.text("VAT number; no register is asked."),
    "registration_number": cli.text("Number in the commercial register."),
    "email": cli.text("Email address on documents."),
    "phone": cli.text("Telephone number on documents."),
    "website": cli.text("Website on documents, like https://agency.example.", "URL"),
    "iban": cli.text("IBAN of the bank account to which clients pay. It is checked."),
    "bic": cli.text("BIC of the bank."),
    "bank_name": cli.text("Name of the bank."),
    "is_small_business": cli.flag(
        "--small-business/--no-small-business",
        "Whether the agency is exempt from tax as a small business. Documents then print the prescribed sentence.",
    ),
    "tax_outside_eu": cli.text(
        "What untaxed services to clients outside the EU are: not_subject, exempt or export.", "KIND"
    ),
    "tax_exemption_reason_en": EXEMPTION,
    "tax_exemption_reason_de": EXEMPTION,
    "document_language": cli.text("Language of documents, en or de, for clients without their own.", "LANGUAGE"),
    "document_color": cli.text("Colour of documents, like #4b53d6.", "COLOR"),
    **{
        f"{document}_{part}_{language}": annotation
        for document in ("quote", "invoice")
        for part, annotation in (("introduction", INTRODUCTION), ("terms", TERMS))
        for language in ("en", "de")
    },
    "document_footer_en": FOOTER,
    "document_footer_de": FOOTER,
    "require_second_factor": cli.flag(
        "--require-second-factor/--allow-password-only", "Whether all admins must sign in with a second factor."
    ),
}
OPENING = (
    *cli.fields_of(AccountDetails, OPTIONS, "name", "plan", "currency", "timezone", "tax_rate"),
    cli.option("admin_name", cli.text("The first admin's name."), Parameter.empty),
    cli.option("admin_email", cli.text("The email with which the first admin signs in."), Parameter.empty),
    cli.option(
        "password",
        cli.text("The first admin's password, 12 to 1000 characters.", show_default="the admin chooses it by a link"),
    ),
    cli.option("base_url", cli.BASE_URL),
)
Logo = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", exists=True, dir_okay=False, help="Logo of documents: a PNG or SVG file of at most 200 KB."
    ),
]
RemoveLogo = Annotated[bool, typer.Option("--remove-logo", help="Remove the logo.")]
USAGE = (
    "Count rows, sites, webhooks, bytes of logos, requests, server errors and the last use of a key, with the "
    "limits of the plan; this takes a while."
)
COLUMNS = ("id", "name", "plan", "trial_ends_at", "api_enabled", "currency", "timezone")
OF_USAGE = ("id", "name", "plan", *NOTHING, *(quota.setting for quota in QUOTAS.values()))


@cli.command(account_cli, "create", OPENING)
def create_account(*, json: bool, **given: Any) -> dict[str, object]:
    """Open an account with its first admin; print the one-time link with which the admin chooses a password."""
    errors = FieldErrors()
    details = read_part(AccountDetails, cli.given_fields(AccountDetails, given), errors)
    first: dict[str, object] = {"name": given["admin_name"], "email": given["admin_email"], "role": "admin"}
    admin = read_part(UserDetails, first, errors, "admin_")
    secret = read_fields(UserDetails, {name: given[name] for name in ("password",) if given[name] is not None}, errors)
    if errors:
        raise invalid(errors)
    address, chosen = cli.public_address(given["base_url"], json=json), secret.get("password")
    password_hash = None if chosen is None else passwords.hash_password(chosen)
    account_id, user_id = users.open_account(cli.opened(), details, admin, password_hash)
    result: dict[str, object] = {"account_id": account_id, "user_id": user_id}
    if chosen is None:
        with cli.acting_for(account_id) as tx:
            link = users.create_link(tx, user_id)
        result |= {"link": link.url(address), "expires_at": link.expires_at}
    if details.tax_rate is None and not json:
        cli.warn(f"Documents carry no tax until you set a rate: retainer account set {account_id} --tax-rate PERCENT")
    return result


@cli.command(account_cli, "list")
def list_accounts(*, usage: Annotated[bool, typer.Option("--usage", help=USAGE)] = False) -> dict[str, object]:
    """List all accounts."""
    store = cli.opened()
    rows = accounts.list_accounts(store)
    if usage:
        figures, limits = usage_by_account(store), limits_of(settings.load())
        for row in rows:
            row.update(figures.get(row["id"], NOTHING))
            row.update({quota.setting: limits[name][row["plan"]] for name, quota in QUOTAS.items()})
    return {"accounts": cli.Listing(rows, OF_USAGE if usage else COLUMNS)}


@cli.command(account_cli, "show")
def show_account(account: cli.Account) -> Fields:
    """Show an account."""
    with cli.acting_for(account) as tx:
        return accounts.get_account(tx)


@cli.command(account_cli, "set", OPTIONS)
def set_account(
    account: cli.Account, *, logo: Logo = None, remove_logo: RemoveLogo = False, **given: Any
) -> dict[str, object]:
    """Change an account, with effect from the next request. An empty text ("") clears a field."""
    has_logo = logo is not None or remove_logo
    numbers = cli.changes(NextNumbers, given, may_be_none=True)
    chosen = given | {"working_weekdays": cli.comma_list(given["working_weekdays"])}
    values = cli.changes(AccountDetails, chosen, may_be_none=has_logo or bool(numbers))
    image = read_logo(account, logo.read_bytes(), run_here) if logo else None
    with cli.acting_for(account) as tx:
        accounts.set_account(tx, values)
        numbering.set_next_numbers(tx, numbers)
        if has_logo:
            logos.set_logo(tx, image)
        return accounts.get_account(tx) | (numbering.upcoming_numbers(tx) if numbers else {})


@cli.command(api_cli, "on")
def switch_on(account: cli.Account) -> dict[str, object]:
    """Switch the API on; refused if neither the plan nor a trial includes it."""
    return switch_api(account, on=True)


@cli.command(api_cli, "off")
def switch_off(account: cli.Account) -> dict[str, object]:
    """Switch the API off; all keys of the account stop working immediately."""
    return switch_api(account, on=False)


def switch_api(account: int, *, on: bool) -> dict[str, object]:
    with cli.acting_for(account) as tx:
        accounts.switch_api(tx, on=on)
    return {"account_id": account, "api_enabled": on}
