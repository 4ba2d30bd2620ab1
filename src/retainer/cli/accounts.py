"""Commands on accounts, and on the API's switch."""

from typing import Annotated

import typer

from retainer.cli import account_options as options
from retainer.cli.common import (
    Account,
    Json,
    acting_for,
    any_given,
    changes,
    comma_list,
    defaults,
    opened,
    say,
    site,
    warn,
    whole_part,
)
from retainer.errors import FieldErrors, invalid
from retainer.identity import accounts, logos
from retainer.identity.account_types import AccountDetails
from retainer.identity.people import password_links, passwords, users
from retainer.identity.people.users import UserDetails
from retainer.values.reading import read_fields

account_cli = typer.Typer(help="Open, list, show and change accounts.", no_args_is_help=True)
api_cli = typer.Typer(help="Switch an account's API on or off.", no_args_is_help=True)

NEW = defaults(AccountDetails)

AdminName = Annotated[str, typer.Option(help="The first admin's name.")]
AdminEmail = Annotated[str, typer.Option(help="The email with which the first admin signs in.")]
Currency = Annotated[str, typer.Option(help="The account's currency, like EUR. Fixed once there is an amount.")]
Password = Annotated[
    str | None,
    typer.Option(
        help="The first admin's password, 12 to 1000 characters.", show_default="a random one, which is printed"
    ),
]


@account_cli.command("create")
def create_account(
    *,
    name: Annotated[str, options.NAME],
    plan: Annotated[str, options.PLAN],
    admin_name: AdminName,
    admin_email: AdminEmail,
    currency: Currency = NEW["currency"],
    timezone: Annotated[str, options.TIMEZONE] = NEW["timezone"],
    tax_rate: options.TaxRate = None,
    password: Password = None,
    json: Json = False,
) -> None:
    """Open an account with its first admin; print a password and a one-time link to set another."""
    errors: FieldErrors = {}
    details = whole_part(AccountDetails, locals(), errors)
    first = {"name": admin_name, "email": admin_email, "role": "admin"}
    admin = whole_part(UserDetails, first, errors, "admin_")
    secret = read_fields(UserDetails, {} if password is None else {"password": password}, errors)
    if errors:
        raise invalid(errors)
    chosen = secret.get("password")
    initial = chosen or passwords.generate()
    account_id, user_id = users.open_account(opened(), details, admin, passwords.hash_password(initial))
    link = None
    if chosen is None:
        with acting_for(account_id) as tx:
            link = password_links.create(tx, user_id).url(site())
    say({"account_id": account_id, "user_id": user_id, "password": initial, "link": link}, json=json)
    if details.tax_rate is None:
        warn(f"Documents carry no tax until you set a rate: retainer account set {account_id} --tax-rate PERCENT")


@account_cli.command("list")
def list_accounts(*, json: Json = False) -> None:
    """List all accounts."""
    rows = accounts.list_accounts(opened())
    names = ("id", "name", "plan", "trial_ends_at", "api_enabled", "currency", "timezone")
    say({"accounts": rows if json else [{name: row[name] for name in names} for row in rows]}, json=json)


@account_cli.command("show")
def show_account(account: Account, *, json: Json = False) -> None:
    """Show an account."""
    with acting_for(account) as tx:
        say(accounts.get_account(tx), json=json)


@account_cli.command("set")
def set_account(  # a field is an option
    account: Account,
    *,
    name: Annotated[str | None, options.NAME] = None,
    plan: Annotated[str | None, options.PLAN] = None,
    trial_ends_at: options.TrialEnd = None,
    currency: options.NewCurrency = None,
    timezone: Annotated[str | None, options.TIMEZONE] = None,
    hourly_rate: options.HourlyRate = None,
    tax_rate: options.TaxRate = None,
    payment_terms_days: options.PaymentTerms = None,
    working_weekdays: options.Weekdays = None,
    client_number_pattern: options.ClientPattern = None,
    quote_number_pattern: options.QuotePattern = None,
    invoice_number_pattern: options.InvoicePattern = None,
    credit_note_number_pattern: options.CreditNotePattern = None,
    legal_name: options.LegalName = None,
    address_line1: options.AddressLine = None,
    address_line2: options.AddressLine = None,
    postal_code: options.PostalCode = None,
    city: options.City = None,
    region: options.Region = None,
    country: options.Country = None,
    vat_number: options.VatNumber = None,
    registration_number: options.RegistrationNumber = None,
    email: options.Email = None,
    phone: options.Phone = None,
    website: options.Website = None,
    iban: options.Iban = None,
    bic: options.Bic = None,
    bank_name: options.BankName = None,
    document_language: options.DocumentLanguage = None,
    document_color: options.DocumentColor = None,
    document_footer: options.DocumentFooter = None,
    require_second_factor: options.SecondFactor = None,
    logo: options.Logo = None,
    remove_logo: options.RemoveLogo = False,
    json: Json = False,
) -> None:
    """Change an account, with effect from the next request. An empty text ("") clears a field."""
    given = locals() | {"working_weekdays": comma_list(working_weekdays)}
    has_logo = logo is not None or remove_logo
    values = {} if has_logo and not any_given(AccountDetails, given) else changes(AccountDetails, given)
    with acting_for(account) as tx:
        accounts.set_account(tx, values)
        if has_logo:
            logos.set_logo(tx, logo.read_bytes() if logo else None)
        changed = accounts.get_account(tx)
    say(changed, json=json)


@api_cli.command("on")
def switch_on(account: Account, *, json: Json = False) -> None:
    """Switch the API on; refused if neither the plan nor a trial includes it."""
    with acting_for(account) as tx:
        accounts.switch_api(tx, on=True)
    say({"account_id": account, "api_enabled": True}, json=json)


@api_cli.command("off")
def switch_off(account: Account, *, json: Json = False) -> None:
    """Switch the API off; all keys of the account stop working immediately."""
    with acting_for(account) as tx:
        accounts.switch_api(tx, on=False)
    say({"account_id": account, "api_enabled": False}, json=json)
