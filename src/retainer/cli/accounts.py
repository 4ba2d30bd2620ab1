"""Commands of operators on accounts: opening and changing them, and the API's switch."""

from typing import Annotated, Any

import typer

from retainer.cli.common import (
    Account,
    Json,
    Option,
    Required,
    Whole,
    acting_for,
    changes,
    comma_list,
    opened,
    say,
    site,
    whole_part,
)
from retainer.errors import FieldErrors, invalid
from retainer.identity import accounts
from retainer.identity.accounts import AccountDetails
from retainer.identity.people import password_links, passwords, users
from retainer.identity.people.users import UserDetails
from retainer.values.reading import read_fields

account_cli = typer.Typer(help="Open, list, show and change accounts.", no_args_is_help=True)
api_cli = typer.Typer(help="Switch an account's API on or off.", no_args_is_help=True)

Days = Annotated[str | None, typer.Option(help="A comma list, like mon,tue,wed,thu,fri.")]


@account_cli.command("create")
def create_account(
    *,
    name: Required,
    plan: Required,
    admin_name: Required,
    admin_email: Required,
    currency: Option = None,
    timezone: Option = None,
    password: Option = None,
    json: Json = False,
) -> None:
    """Open an account with its first admin; print a password and a one-time link to set another."""
    errors: FieldErrors = {}
    options = {"name": name, "plan": plan, "currency": currency, "timezone": timezone}
    details = whole_part(AccountDetails, options, errors)
    first = {"name": admin_name, "email": admin_email, "role": "admin"}
    admin = whole_part(UserDetails, first, errors, "admin_")
    secret = read_fields(UserDetails, {} if password is None else {"password": password}, errors)
    if errors:
        raise invalid(errors)
    chosen = secret.get("password")
    password_in_force = chosen or passwords.generate()
    account_id, user_id = users.open_account(opened(), details, admin, passwords.hash_password(password_in_force))
    link = None
    if chosen is None:
        with acting_for(account_id) as tx:
            link = password_links.create(tx, user_id).url(site())
    say({"account_id": account_id, "user_id": user_id, "password": password_in_force, "link": link}, json=json)


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
    name: Option = None,
    plan: Option = None,
    trial_ends_at: Option = None,
    timezone: Option = None,
    hourly_rate: Option = None,
    tax_rate: Option = None,
    payment_terms_days: Whole = None,
    client_number_pattern: Option = None,
    quote_number_pattern: Option = None,
    invoice_number_pattern: Option = None,
    credit_note_number_pattern: Option = None,
    working_weekdays: Days = None,
    json: Json = False,
) -> None:
    """Change an account; the change applies from the next request."""
    options: dict[str, Any] = {
        "name": name,
        "plan": plan,
        "trial_ends_at": trial_ends_at,
        "timezone": timezone,
        "hourly_rate": hourly_rate,
        "tax_rate": tax_rate,
        "payment_terms_days": payment_terms_days,
        "client_number_pattern": client_number_pattern,
        "quote_number_pattern": quote_number_pattern,
        "invoice_number_pattern": invoice_number_pattern,
        "credit_note_number_pattern": credit_note_number_pattern,
        "working_weekdays": comma_list(working_weekdays),
    }
    values = changes(AccountDetails, options)
    with acting_for(account) as tx:
        changed = accounts.set_account(tx, values)
    say(changed, json=json)


@api_cli.command("on")
def switch_on(account: Account, *, json: Json = False) -> None:
    """Switch the API on; refused when neither the plan nor a running trial includes it."""
    with acting_for(account) as tx:
        accounts.switch_api(tx, on=True)
    say({"account_id": account, "api_enabled": True}, json=json)


@api_cli.command("off")
def switch_off(account: Account, *, json: Json = False) -> None:
    """Switch the API off; all keys of the account stop working immediately."""
    with acting_for(account) as tx:
        accounts.switch_api(tx, on=False)
    say({"account_id": account, "api_enabled": False}, json=json)
