"""Commands of admins: accounts, the API's switch, users and keys."""

from typing import Annotated, Any

import typer

from retainer.cli.common import Json, changes, opened, say, whole, whole_part
from retainer.errors import FieldErrors, invalid
from retainer.identity import accounts, keys, users
from retainer.identity.accounts import AccountDetails
from retainer.identity.keys import SCOPES, KeyDetails
from retainer.identity.users import UserDetails
from retainer.values.kinds import LARGEST_INTEGER
from retainer.values.reading import read_fields
from retainer.work import cost_rates

account_cli = typer.Typer(help="Open, list, show and change accounts.", no_args_is_help=True)
api_cli = typer.Typer(help="Switch an account's API on or off.", no_args_is_help=True)
user_cli = typer.Typer(help="Create, list, change, deactivate and activate users.", no_args_is_help=True)
key_cli = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)

Account = Annotated[int, typer.Argument(metavar="ACCOUNT", min=1, max=LARGEST_INTEGER, help="The account's id.")]
User = Annotated[int, typer.Argument(metavar="USER", min=1, max=LARGEST_INTEGER, help="The user's id.")]
Key = Annotated[int, typer.Argument(metavar="KEY", min=1, max=LARGEST_INTEGER, help="The key's id.")]
Option = Annotated[str | None, typer.Option()]
Whole = Annotated[int | None, typer.Option()]
Required = Annotated[str, typer.Option()]
Days = Annotated[str | None, typer.Option(help="A comma list, like mon,tue,wed,thu,fri.")]
Scopes = Annotated[str, typer.Option(help="A comma list, like clients:read,time:write, or all.")]


def comma_list(text: str | None) -> list[str] | None:
    """Return the parts of a comma list, or None without one."""
    return None if text is None else [part.strip() for part in text.split(",")]


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
    """Open an account with its first admin."""
    errors: FieldErrors = {}
    options = {"name": name, "plan": plan, "currency": currency, "timezone": timezone}
    details = whole_part(AccountDetails, options, errors)
    first = {"name": admin_name, "email": admin_email, "role": "admin"}
    admin = whole_part(UserDetails, first, errors, "admin_")
    secret = read_fields(UserDetails, {} if password is None else {"password": password}, errors)
    if errors:
        raise invalid(errors)
    admin.password = secret.get("password")
    account_id, user_id, new_password = users.open_account(opened(), details, admin)
    say({"account_id": account_id, "user_id": user_id, "password": new_password}, json=json)


@account_cli.command("list")
def list_accounts(*, json: Json = False) -> None:
    """List all accounts."""
    rows = accounts.list_accounts(opened())
    names = ("id", "name", "plan", "trial_ends_at", "api_enabled", "currency", "timezone")
    say({"accounts": rows if json else [{name: row[name] for name in names} for row in rows]}, json=json)


@account_cli.command("show")
def show_account(account: Account, *, json: Json = False) -> None:
    """Show an account."""
    say(accounts.get_account(opened(), account), json=json)


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
    """Change an account; it counts from the next request on."""
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
    say(accounts.set_account(opened(), account, changes(AccountDetails, options)), json=json)


@api_cli.command("on")
def switch_on(account: Account, *, json: Json = False) -> None:
    """Switch the API on; refused when neither the plan nor a running trial includes it."""
    accounts.switch_api(opened(), account, on=True)
    say({"account_id": account, "api_enabled": True}, json=json)


@api_cli.command("off")
def switch_off(account: Account, *, json: Json = False) -> None:
    """Switch the API off; every key of the account stops at once."""
    accounts.switch_api(opened(), account, on=False)
    say({"account_id": account, "api_enabled": False}, json=json)


@user_cli.command("create")
def create_user(
    account: Account,
    *,
    name: Required,
    email: Required,
    role: Option = None,
    weekly_capacity_minutes: Whole = None,
    target_percent: Option = None,
    hourly_rate: Option = None,
    cost_rate: Option = None,
    password: Option = None,
    json: Json = False,
) -> None:
    """Add a user to an account."""
    options = {
        "name": name,
        "email": email,
        "role": role,
        "weekly_capacity_minutes": weekly_capacity_minutes,
        "target_percent": target_percent,
        "hourly_rate": hourly_rate,
        "cost_rate": cost_rate,
        "password": password,
    }
    user_id, new_password = users.create_user(opened(), account, whole(UserDetails, options))
    say({"user_id": user_id, "password": new_password}, json=json)


@user_cli.command("list")
def list_users(account: Account, *, json: Json = False) -> None:
    """List the users of an account."""
    rows = users.list_users(opened(), account)
    names = ("id", "name", "email", "role", "is_active", "weekly_capacity_minutes", "hourly_rate")
    say({"users": rows if json else [{name: row[name] for name in names} for row in rows]}, json=json)


@user_cli.command("set")
def set_user(
    user: User,
    *,
    name: Option = None,
    email: Option = None,
    role: Option = None,
    weekly_capacity_minutes: Whole = None,
    target_percent: Option = None,
    hourly_rate: Option = None,
    cost_rate: Option = None,
    cost_rate_from: Option = None,
    password: Option = None,
    json: Json = False,
) -> None:
    """Change a user; a cost rate counts from --cost-rate-from on."""
    options = {
        "name": name,
        "email": email,
        "role": role,
        "weekly_capacity_minutes": weekly_capacity_minutes,
        "target_percent": target_percent,
        "hourly_rate": hourly_rate,
        "cost_rate": cost_rate,
        "cost_rate_from": cost_rate_from,
        "password": password,
    }
    if cost_rate_from is not None and cost_rate is None:
        raise invalid({"cost_rate_from": ["Say which rate counts from then on: --cost-rate."]})
    say(cost_rates.set_user(opened(), user, changes(UserDetails, options)), json=json)


@user_cli.command("deactivate")
def deactivate_user(user: User, *, json: Json = False) -> None:
    """Deactivate a user; the user's keys stop at once."""
    say(cost_rates.set_user(opened(), user, {"is_active": False}), json=json)


@user_cli.command("activate")
def activate_user(user: User, *, json: Json = False) -> None:
    """Activate a user again; the user's keys work again."""
    say(cost_rates.set_user(opened(), user, {"is_active": True}), json=json)


@key_cli.command("create")
def create_key(
    account: Account,
    *,
    user: Annotated[int, typer.Option(min=1, max=LARGEST_INTEGER, help="The user that the key acts as.")],
    name: Required,
    scopes: Scopes,
    expires_at: Option = None,
    json: Json = False,
) -> None:
    """Create a key; its value is shown this once."""
    scope_list = list(SCOPES) if scopes == "all" else comma_list(scopes)
    options = {"name": name, "user_id": user, "scopes": scope_list, "expires_at": expires_at}
    key_id, value = keys.create_key(opened(), account, whole(KeyDetails, options))
    say({"key_id": key_id, "key": value}, json=json)


@key_cli.command("list")
def list_keys(account: Account, *, json: Json = False) -> None:
    """List the keys of an account, without their values."""
    rows = keys.list_keys(opened(), account)
    names = ("id", "name", "user_id", "prefix", "last_four", "expires_at", "revoked_at", "last_used_at", "scopes")
    say({"keys": rows if json else [{name: row[name] for name in names} for row in rows]}, json=json)


@key_cli.command("revoke")
def revoke_key(key: Key, *, json: Json = False) -> None:
    """Revoke a key for ever; other keys are not affected."""
    say(keys.revoke_key(opened(), key), json=json)
