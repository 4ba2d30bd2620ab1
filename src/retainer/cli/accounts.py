"""Commands on accounts, and on the API's switch."""

from typing import Annotated

import typer

from retainer.cli.common import Account, Json, acting_for, changes, comma_list, defaults, opened, say, site, whole_part
from retainer.errors import FieldErrors, invalid
from retainer.identity import accounts
from retainer.identity.accounts import AccountDetails
from retainer.identity.people import password_links, passwords, users
from retainer.identity.people.users import UserDetails
from retainer.identity.plans import PLANS, WITH_API
from retainer.values.kinds import PATTERN
from retainer.values.reading import read_fields

account_cli = typer.Typer(help="Open, list, show and change accounts.", no_args_is_help=True)
api_cli = typer.Typer(help="Switch an account's API on or off.", no_args_is_help=True)

NAME = typer.Option(help="The agency's name.")
PLAN = typer.Option(help=f"One of: {', '.join(PLANS)}. Without a trial, these include the API: {WITH_API}.")
TIMEZONE = typer.Option(help="Time zone in which days begin and end, like Europe/Berlin.")
NEW = defaults(AccountDetails)

AdminName = Annotated[str, typer.Option(help="The first admin's name.")]
AdminEmail = Annotated[str, typer.Option(help="The email with which the first admin signs in.")]
Currency = Annotated[str, typer.Option(help="The account's currency, like EUR. It can't be changed later.")]
Password = Annotated[
    str | None,
    typer.Option(
        help="The first admin's password, 12 to 1000 characters.", show_default="a random one, which is printed"
    ),
]
TrialEnd = Annotated[
    str | None,
    typer.Option(
        metavar="INSTANT", help="End of the trial, like 2027-01-01T00:00:00Z. Until then, every plan includes the API."
    ),
]
HourlyRate = Annotated[
    str | None, typer.Option(metavar="AMOUNT", help="Default price of an hour, in the account's currency, like 95.50.")
]
TaxRate = Annotated[str | None, typer.Option(metavar="PERCENT", help="Default tax rate of documents, like 19 or 7.5.")]
PaymentTerms = Annotated[int | None, typer.Option(metavar="DAYS", help="Days until an invoice is due, from 0 to 365.")]
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
Weekdays = Annotated[
    str | None, typer.Option(metavar="LIST", help="Working weekdays, separated by commas: mon,tue,wed,thu,fri.")
]


@account_cli.command("create")
def create_account(
    *,
    name: Annotated[str, NAME],
    plan: Annotated[str, PLAN],
    admin_name: AdminName,
    admin_email: AdminEmail,
    currency: Currency = NEW["currency"],
    timezone: Annotated[str, TIMEZONE] = NEW["timezone"],
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
def set_account(
    account: Account,
    *,
    name: Annotated[str | None, NAME] = None,
    plan: Annotated[str | None, PLAN] = None,
    trial_ends_at: TrialEnd = None,
    timezone: Annotated[str | None, TIMEZONE] = None,
    hourly_rate: HourlyRate = None,
    tax_rate: TaxRate = None,
    payment_terms_days: PaymentTerms = None,
    client_number_pattern: ClientPattern = None,
    quote_number_pattern: QuotePattern = None,
    invoice_number_pattern: InvoicePattern = None,
    credit_note_number_pattern: CreditNotePattern = None,
    working_weekdays: Weekdays = None,
    json: Json = False,
) -> None:
    """Change an account; the change applies from the next request."""
    values = changes(AccountDetails, locals() | {"working_weekdays": comma_list(working_weekdays)})
    with acting_for(account) as tx:
        changed = accounts.set_account(tx, values)
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
