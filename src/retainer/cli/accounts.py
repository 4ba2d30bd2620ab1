"""Commands on accounts, and on the API's switch."""

from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from retainer import settings
from retainer.cli import common as cli
from retainer.documents.logo_files import read_logo
from retainer.errors import FieldErrors
from retainer.identity import accounts, bank_accounts, closing, logos
from retainer.identity.accounts import AccountDetails
from retainer.identity.audit import Fields
from retainer.identity.bank_accounts import BankAccount
from retainer.identity.closing import Suspension
from retainer.identity.people import passwords, users
from retainer.identity.people.users import UserDetails
from retainer.identity.plans import QUOTAS, limits_of
from retainer.kernel.representations import run_here
from retainer.shared import numbering
from retainer.shared.numbering import NextNumbers
from retainer.store.tx import Tx
from retainer.traffic.usage import NOTHING, usage_by_account
from retainer.values.reading import read_part

account_cli = cli.group("account", "Open, list, show, change, suspend and delete accounts.")
api_cli = cli.group("api", "Switch an account's API on or off.")

OPENING = (
    *cli.fields_of(AccountDetails, "name", "plan", "currency", "timezone", "tax_rate"),
    cli.option("admin_name", str, "The first admin's name.", default=Parameter.empty),
    cli.option("admin_email", str, "The email with which the first admin signs in.", default=Parameter.empty),
    cli.option("admin_password", str, "The first admin's password. Without one, a link lets the admin choose it."),
    cli.BASE_URL,
)
SETTINGS = (*cli.fields_of(AccountDetails, is_new=False), *cli.fields_of(NextNumbers))
Logo = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", exists=True, dir_okay=False, help="Logo of documents: a PNG or SVG file of at most 200 KB."
    ),
]
RemoveLogo = Annotated[bool, typer.Option("--remove-logo", help="Remove the logo.")]
USAGE = (
    "Count rows, sites, webhooks, bytes of logos and files, requests, server errors and the last use of a key, with "
    "the limits of the plan; this takes a while."
)
COLUMNS = ("id", "name", "status", "plan", "trial_ends_at", "api_enabled", "currency", "timezone")
OF_USAGE = ("id", "name", "status", "plan", *NOTHING, *(quota.setting for quota in QUOTAS.values()))


@cli.command(account_cli, "create", OPENING)
def create_account(*, json: bool, **given: Any) -> dict[str, object]:
    """Open an account with its first admin; print the one-time link with which the admin chooses a password."""
    errors = FieldErrors()
    details = read_part(AccountDetails, cli.given_fields(AccountDetails, given), errors)
    first = {name: given[f"admin_{name}"] for name in ("name", "email", "password")}
    admin = read_part(UserDetails, {**first, "role": "admin"}, errors, "admin_")
    errors.raise_errors()
    address = cli.public_address(given["base_url"], json=json)
    password_hash = None if admin.password is None else passwords.hash_password(admin.password)
    account_id, user_id = users.open_account(cli.opened(), details, admin, password_hash)
    result: dict[str, object] = {"account_id": account_id, "user_id": user_id}
    if admin.password is None:
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


@cli.command(account_cli, "set", SETTINGS)
def set_account(
    account: cli.Account, *, logo: Logo = None, remove_logo: RemoveLogo = False, **given: Any
) -> dict[str, object]:
    """Change an account, with effect from the next request. An empty text ("") clears a field."""
    has_logo = logo is not None or remove_logo
    numbers = cli.changes(NextNumbers, given, may_be_none=True)
    values = cli.changes(AccountDetails, given, may_be_none=has_logo or bool(numbers))
    image = read_logo(account, logo.read_bytes(), run_here) if logo else None
    with cli.acting_for(account) as tx:
        accounts.set_account(tx, values)
        numbering.set_next_numbers(tx, numbers)
        if has_logo:
            logos.set_logo(tx, image)
        return accounts.get_account(tx) | (numbering.upcoming_numbers(tx) if numbers else {})


@cli.command(account_cli, "bank-account", cli.fields_of(BankAccount))
def set_bank_account(
    account: cli.Account,
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the account for the currency.")] = False,
    **given: Any,
) -> dict[str, object]:
    """Set the bank account of documents in a currency; those in others print the account of `account set`."""
    details = cli.whole(BankAccount, given)
    with cli.acting_for(account) as tx:
        if remove:
            bank_accounts.remove_bank_account(tx, details.currency)
        else:
            bank_accounts.set_bank_account(tx, details)
        return {"bank_accounts": cli.Listing(bank_accounts.list_bank_accounts(tx))}


@cli.command(account_cli, "suspend", cli.fields_of(Suspension))
def suspend_account(account: cli.Account, **given: Any) -> Fields:
    """Suspend an account from the next request on: keys, the console, checks and webhooks stop until it is resumed."""
    with cli.acting_for(account) as tx:
        return standing(closing.suspend(tx, cli.whole(Suspension, given).reason))


@cli.command(account_cli, "resume")
def resume_account(account: cli.Account) -> Fields:
    """Resume a suspended account, and undo the announcement of its deletion; webhooks send what they have missed."""
    with cli.acting_for(account) as tx:
        resume(tx)
        return standing(accounts.get_account(tx))


@cli.command(account_cli, "delete", cli.fields_of(Suspension, is_new=False))
def delete_account(account: cli.Account, *, json: bool, **given: Any) -> Fields:
    """Suspend an account, and delete it with all its data 30 days later. Until then, it can be exported and resumed."""
    reason = cli.changes(Suspension, given, may_be_none=True).get("reason")
    with cli.acting_for(account) as tx:
        closed = closing.close(tx, reason)
    if not json:
        cli.warn(f"Export its data before {closed['deletes_at'][:10]}: retainer export {account} DIR")
        cli.warn(f"To keep the account: retainer account resume {account}")
    return standing(closed)


def resume(tx: Tx) -> None:
    """Resume an account: its sites were not down in the meantime, and its receivers have not failed."""
    from retainer.events.sender import schedule  # noqa: PLC0415  # only this command and the server need them
    from retainer.sites import uptime  # noqa: PLC0415

    since = closing.resume(tx)
    if since is not None:
        uptime.suspend_account(tx, since)
        schedule.retry(tx)


def standing(account: Fields) -> Fields:
    return {name: account[name] for name in ("id", "name", "status", "suspended_at", "suspension_reason", "deletes_at")}


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
