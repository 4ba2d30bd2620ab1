"""Commands on users, their password links and their sessions."""

from typing import Annotated, Any

from retainer.cli import common as cli
from retainer.identity.audit import Fields
from retainer.identity.keys import key_list, keys
from retainer.identity.people import passwords, second_factors, sessions, users
from retainer.identity.people.users import UserDetails
from retainer.schema import identity as schema
from retainer.work import cost_rates

user_cli = cli.group("user", "Create, list, change, deactivate and activate users; remove their second factor.")
session_cli = cli.group("session", "List and revoke the sessions in the console.")

User = Annotated[int, cli.id_argument("USER", "The user's id.")]
Session = Annotated[int, cli.id_argument("SESSION", "The session's id.")]
CREATING = (*cli.fields_of(UserDetails), cli.BASE_URL)
ALL_DAYS = cli.option("all_days", bool, "The new cost is for past days, too.", "--all-days", default=False)
CHANGING = (*cli.fields_of(UserDetails, is_new=False), ALL_DAYS)
ACTING = "The user as whom the keys then act."
KEYS_TO = cli.option("keys_to", int, ACTING, parser=cli.number(), show_default="the keys stop")
COLUMNS = ("id", "name", "email", "role", "is_active", "weekly_capacity_minutes", "hourly_rate")


@cli.command(user_cli, "create", CREATING)
def create_user(account: cli.Account, *, json: bool, **given: Any) -> dict[str, object]:
    """Add a user to an account; without a password, print a one-time link to choose one."""
    details = cli.whole(UserDetails, given)
    if details.password is None:
        address = cli.public_address(given["base_url"], json=json)
        with cli.acting_for(account) as tx:
            user_id, link = users.invite(tx, details)
        return {"user_id": user_id, "link": link.url(address), "expires_at": link.expires_at}
    password_hash = passwords.hash_password(details.password)
    with cli.acting_for(account) as tx:
        return {"user_id": users.create_user(tx, details, password_hash)}


@cli.command(user_cli, "list")
def list_users(account: cli.Account) -> dict[str, object]:
    """List the users of an account."""
    with cli.acting_for(account) as tx:
        return {"users": cli.Listing(users.list_users(tx), COLUMNS)}


@cli.command(user_cli, "set", CHANGING)
def set_user(user: User, **given: Any) -> Fields:
    """Change a user; another cost rate applies from --cost-rate-from, or to --all-days."""
    values = cli.changes(UserDetails, given)
    if values.get("password") is not None:
        values["password_hash"] = passwords.hash_password(values["password"])
    with cli.acting_on(schema.users, user) as tx:
        return cost_rates.set_user(tx, user, values, all_days=given["all_days"])


@cli.command(user_cli, "deactivate", [KEYS_TO])
def deactivate_user(user: User, **given: Any) -> Fields:
    """Deactivate a user; the user's keys stop immediately, or act as another user. Their webhooks keep sending."""
    with cli.acting_on(schema.users, user) as tx:
        if given["keys_to"] is not None:
            for key in key_list.live_keys(tx, user_id=user).keys:
                keys.hand_over(tx, key.id, given["keys_to"])
        return cost_rates.change_user(tx, user, {"is_active": False})


@cli.command(user_cli, "activate")
def activate_user(user: User) -> Fields:
    """Activate a user again; the user's keys work again."""
    with cli.acting_on(schema.users, user) as tx:
        return cost_rates.change_user(tx, user, {"is_active": True})


@cli.command(user_cli, "link", [cli.BASE_URL])
def create_link(user: User, *, json: bool, **given: Any) -> dict[str, object]:
    """Print a one-time link with which a user sets a new password."""
    address = cli.public_address(given["base_url"], json=json)
    with cli.acting_on(schema.users, user) as tx:
        link = users.create_link(tx, user)
    return {"user_id": user, "link": link.url(address), "expires_at": link.expires_at}


@cli.command(user_cli, "remove-second-factor")
def remove_second_factor(user: User) -> dict[str, object]:
    """Remove a user's second factor, if the phone and the recovery codes are lost."""
    with cli.acting_on(schema.users, user) as tx:
        second_factors.remove(tx, user)
    return {"user_id": user, "second_factor": False}


@cli.command(session_cli, "list")
def list_sessions(account: cli.Account) -> dict[str, object]:
    """List the sessions of an account, most recently used first."""
    with cli.acting_for(account) as tx:
        return {"sessions": cli.Listing(sessions.list_sessions(tx))}


@cli.command(session_cli, "revoke")
def revoke_session(session: Session) -> dict[str, object]:
    """End a session immediately."""
    with cli.acting_on(schema.sessions, session) as tx:
        sessions.end(tx, session)
    return {"session_id": session, "revoked": True}
