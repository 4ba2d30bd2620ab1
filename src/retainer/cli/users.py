"""Commands on users, their password links and their sessions."""

from typing import Annotated

import msgspec
import typer

from retainer.cli.common import (
    Account,
    Json,
    PublicAddress,
    acting_for,
    acting_on,
    changes,
    defaults,
    public_address,
    say,
    whole,
)
from retainer.errors import invalid
from retainer.identity.audit import Fields
from retainer.identity.keys import key_changes, key_list
from retainer.identity.people import password_links, passwords, second_factors, sessions, users
from retainer.identity.people.tokens import Token
from retainer.identity.people.users import UserDetails
from retainer.schema import identity as schema
from retainer.values.kinds import MAX_INTEGER
from retainer.work import cost_rates

user_cli = typer.Typer(
    help="Create, list, change, deactivate and activate users; remove their second factor.", no_args_is_help=True
)
session_cli = typer.Typer(help="List and revoke the sessions in the console.", no_args_is_help=True)

User = Annotated[int, typer.Argument(metavar="USER", min=1, max=MAX_INTEGER, help="The user's id.")]
Session = Annotated[int, typer.Argument(metavar="SESSION", min=1, max=MAX_INTEGER, help="The session's id.")]
NAME = typer.Option(help="The user's name.")
EMAIL = typer.Option(help="The user's email, to sign in with.")
ROLE = typer.Option(help="admin, manager or member: what the user may do.")
CAPACITY = typer.Option(metavar="MINUTES", help="Working minutes a week, from 0 to 10080.")
TARGET = typer.Option(metavar="PERCENT", help="Billable part of the working time to aim for, like 75.")
NEW = defaults(UserDetails)

HourlyRate = Annotated[
    str | None,
    typer.Option(
        metavar="AMOUNT",
        help="Price of an hour in the account's currency, like 80.00. Without one, the account's applies.",
    ),
]
CostRate = Annotated[
    str | None, typer.Option(metavar="AMOUNT", help="Cost of an hour in the account's currency, like 45.")
]
CostRateFrom = Annotated[
    str | None,
    typer.Option(metavar="DAY", help="First day of the cost rate, like 2026-01-01.", show_default="all days"),
]
Password = Annotated[
    str | None, typer.Option(help="The user's password, 12 to 1000 characters.", show_default="chosen by a link")
]
KeysTo = Annotated[
    int | None,
    typer.Option(
        metavar="USER", min=1, max=MAX_INTEGER, help="The user as whom the keys then act.", show_default="the keys stop"
    ),
]
NewPassword = Annotated[str | None, typer.Option("--password", help="A new password, 12 to 1000 characters.")]


@user_cli.command("create")
def create_user(
    account: Account,
    *,
    name: Annotated[str, NAME],
    email: Annotated[str, EMAIL],
    role: Annotated[str, ROLE] = NEW["role"],
    weekly_capacity_minutes: Annotated[int, CAPACITY] = NEW["weekly_capacity_minutes"],
    target_percent: Annotated[str, TARGET] = NEW["target_percent"],
    hourly_rate: HourlyRate = None,
    cost_rate: CostRate = None,
    password: Password = None,
    base_url: PublicAddress = None,
    json: Json = False,
) -> None:
    """Add a user to an account; without a password, print a one-time link to choose one."""
    details = whole(UserDetails, locals())
    if details.password is None:
        address = public_address(base_url, json=json)
        with acting_for(account) as tx:
            user_id, link = users.invite(tx, details)
        say_link(user_id, link, address, json=json)
        return
    password_hash = passwords.hash_password(details.password)
    with acting_for(account) as tx:
        user_id = users.create_user(tx, details, password_hash)
    say({"user_id": user_id}, json=json)


@user_cli.command("list")
def list_users(account: Account, *, json: Json = False) -> None:
    """List the users of an account."""
    with acting_for(account) as tx:
        rows = users.list_users(tx)
    names = ("id", "name", "email", "role", "is_active", "weekly_capacity_minutes", "hourly_rate")
    say({"users": rows if json else [{name: row[name] for name in names} for row in rows]}, json=json)


@user_cli.command("set")
def set_user(
    user: User,
    *,
    name: Annotated[str | None, NAME] = None,
    email: Annotated[str | None, EMAIL] = None,
    role: Annotated[str | None, ROLE] = None,
    weekly_capacity_minutes: Annotated[int | None, CAPACITY] = None,
    target_percent: Annotated[str | None, TARGET] = None,
    hourly_rate: HourlyRate = None,
    cost_rate: CostRate = None,
    cost_rate_from: CostRateFrom = None,
    password: NewPassword = None,
    json: Json = False,
) -> None:
    """Change a user; a cost rate applies from --cost-rate-from."""
    if cost_rate_from is not None and cost_rate is None:
        raise invalid({"cost_rate_from": ["Set the rate that applies from then on: --cost-rate."]})
    change_user(user, passwords.hashed_fields(changes(UserDetails, locals())), json=json)


@user_cli.command("deactivate")
def deactivate_user(user: User, *, keys_to: KeysTo = None, json: Json = False) -> None:
    """Deactivate a user; the user's keys stop working immediately, or act as another user."""
    with acting_on(schema.users, user) as tx:
        if keys_to is not None:
            for key in key_list.live_keys(tx, user_id=user).keys:
                key_changes.hand_over(tx, key.id, keys_to)
        changed = cost_rates.change_user(tx, user, {"is_active": False})
    say(changed, json=json)


@user_cli.command("activate")
def activate_user(user: User, *, json: Json = False) -> None:
    """Activate a user again; the user's keys work again."""
    change_user(user, {"is_active": True}, json=json)


@user_cli.command("link")
def create_link(user: User, *, base_url: PublicAddress = None, json: Json = False) -> None:
    """Print a one-time link with which a user sets a new password."""
    address = public_address(base_url, json=json)
    with acting_on(schema.users, user) as tx:
        link = password_links.create(tx, user)
    say_link(user, link, address, json=json)


@user_cli.command("remove-second-factor")
def remove_second_factor(user: User, *, json: Json = False) -> None:
    """Remove a user's second factor, if the phone and the recovery codes are lost."""
    with acting_on(schema.users, user) as tx:
        second_factors.remove(tx, user)
    say({"user_id": user, "second_factor": False}, json=json)


@session_cli.command("list")
def list_sessions(account: Account, *, json: Json = False) -> None:
    """List the sessions of an account, most recently used first."""
    with acting_for(account) as tx:
        rows = [msgspec.structs.asdict(session) for session in sessions.list_sessions(tx)]
    say({"sessions": rows}, json=json)


@session_cli.command("revoke")
def revoke_session(session: Session, *, json: Json = False) -> None:
    """End a session immediately."""
    with acting_on(schema.sessions, session) as tx:
        sessions.end(tx, session)
    say({"session_id": session, "revoked": True}, json=json)


def change_user(user: int, values: Fields, *, json: bool) -> None:
    with acting_on(schema.users, user) as tx:
        changed = cost_rates.change_user(tx, user, values)
    say(changed, json=json)


def say_link(user_id: int, link: Token, address: str, *, json: bool) -> None:
    say({"user_id": user_id, "link": link.url(address), "expires_at": link.expires_at}, json=json)
