"""Commands on accounts, and on the API's switch."""

from typing import Annotated

import typer

from retainer import settings
from retainer.cli.account_settings import NAME, PLAN, TAX_RATE, TIMEZONE, set_account
from retainer.cli.common import (
    Account,
    Json,
    PublicAddress,
    acting_for,
    defaults,
    opened,
    public_address,
    say,
    warn,
    whole_part,
)
from retainer.errors import FieldErrors, invalid
from retainer.identity import accounts
from retainer.identity.account_types import AccountDetails
from retainer.identity.people import password_links, passwords, users
from retainer.identity.people.users import UserDetails
from retainer.identity.quotas import QUOTAS, Limits, limits_of
from retainer.traffic.usage import NOTHING, usage_by_account
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
        help="The first admin's password, 12 to 1000 characters.", show_default="the admin chooses it by a link"
    ),
]

LIMITS = [quota.setting for quota in QUOTAS.values()]

Usage = Annotated[
    bool,
    typer.Option(
        "--usage",
        help="Count rows, sites, webhooks, bytes of logos, requests, server errors and the last use of a key, with the "
        "limits of the plan; this takes a while.",
    ),
]


@account_cli.command("create")
def create_account(
    *,
    name: Annotated[str, typer.Option(help=NAME)],
    plan: Annotated[str, typer.Option(help=PLAN)],
    admin_name: AdminName,
    admin_email: AdminEmail,
    currency: Currency = NEW["currency"],
    timezone: Annotated[str, typer.Option(help=TIMEZONE)] = NEW["timezone"],
    tax_rate: Annotated[str | None, typer.Option(metavar="PERCENT", help=TAX_RATE)] = None,
    password: Password = None,
    base_url: PublicAddress = None,
    json: Json = False,
) -> None:
    """Open an account with its first admin; print the one-time link with which the admin chooses a password."""
    errors = FieldErrors()
    details = whole_part(AccountDetails, locals(), errors)
    first = {"name": admin_name, "email": admin_email, "role": "admin"}
    admin = whole_part(UserDetails, first, errors, "admin_")
    secret = read_fields(UserDetails, {} if password is None else {"password": password}, errors)
    if errors:
        raise invalid(errors)
    address, chosen = public_address(base_url, json=json), secret.get("password")
    password_hash = None if chosen is None else passwords.hash_password(chosen)
    account_id, user_id = users.open_account(opened(), details, admin, password_hash)
    result: dict[str, object] = {"account_id": account_id, "user_id": user_id}
    if chosen is None:
        with acting_for(account_id) as tx:
            link = password_links.create(tx, user_id)
        result |= {"link": link.url(address), "expires_at": link.expires_at}
    say(result, json=json)
    if details.tax_rate is None and not json:
        warn(f"Documents carry no tax until you set a rate: retainer account set {account_id} --tax-rate PERCENT")


@account_cli.command("list")
def list_accounts(*, usage: Usage = False, json: Json = False) -> None:
    """List all accounts."""
    store = opened()
    rows = accounts.list_accounts(store)
    names = ["id", "name", "plan", "trial_ends_at", "api_enabled", "currency", "timezone"]
    if usage:
        figures = usage_by_account(store)
        limits = limits_of(settings.load())
        rows = [row | figures.get(row["id"], NOTHING) | _limits(limits, row["plan"]) for row in rows]
        names = ["id", "name", "plan", *NOTHING, *LIMITS]
    say({"accounts": rows if json else [{name: row[name] for name in names} for row in rows]}, json=json)


def _limits(limits: Limits, plan: str) -> dict[str, int]:
    return {quota.setting: limits[name][plan] for name, quota in QUOTAS.items()}


@account_cli.command("show")
def show_account(account: Account, *, json: Json = False) -> None:
    """Show an account."""
    with acting_for(account) as tx:
        say(accounts.get_account(tx), json=json)


account_cli.command("set")(set_account)


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
