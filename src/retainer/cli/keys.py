"""Commands on API keys."""

from typing import Annotated

import msgspec
import typer

from retainer.cli.common import Account, Json, acting_for, acting_on, changes, comma_list, listed, say, whole
from retainer.events import webhooks
from retainer.identity.keys import key_changes, key_list, keys
from retainer.identity.keys.key_changes import MAX_OVERLAP_HOURS, OVERLAP_HOURS, KeyChanges, Rotation
from retainer.identity.keys.key_list import KeyFilter
from retainer.identity.keys.keys import SCOPES, KeyDetails
from retainer.schema.identity import api_keys
from retainer.values.kinds import MAX_INTEGER

key_cli = typer.Typer(help="Create, list, change, rotate and revoke API keys.", no_args_is_help=True)

Key = Annotated[int, typer.Argument(metavar="KEY", min=1, max=MAX_INTEGER, help="The key's id.")]
NAME = typer.Option(help="The integration that uses the key, like Zapier.")
Holder = Annotated[int, typer.Option(min=1, max=MAX_INTEGER, help="The user that the key acts as, by id.")]
OfUser = Annotated[int | None, typer.Option("--user", min=1, max=MAX_INTEGER, help="Only keys of this user, by id.")]
Status = Annotated[str | None, typer.Option(help="Only active, expired or revoked keys.")]
Search = Annotated[
    str | None, typer.Option("--q", help="Only keys with this in their name, prefix, last four characters or user.")
]
Sort = Annotated[str, typer.Option(help=f"One of: {', '.join(key_list.ORDERS)}. For descending order, like -name.")]
Scopes = Annotated[str, typer.Option(help="Scopes separated by commas, like clients:read,time:write; or all.")]
NewScopes = Annotated[str | None, typer.Option("--scopes", help="All scopes from now on, separated by commas; or all.")]
EXPIRY = "When the key expires, like 2027-01-01T00:00:00Z."
Expiry = Annotated[str | None, typer.Option(metavar="INSTANT", help=EXPIRY, show_default="never")]
NewExpiry = Annotated[
    str | None, typer.Option("--expires-at", metavar="INSTANT", help=EXPIRY, show_default="the same lifetime as before")
]
Hours = Annotated[
    int, typer.Option(metavar="HOURS", help=f"Hours that the former key remains valid, 0 to {MAX_OVERLAP_HOURS}.")
]


Pause = Annotated[bool, typer.Option("--pause-webhooks", help="Pause the webhooks of the key, too.")]


def scope_list(text: str | None) -> list[str] | None:
    return list(SCOPES) if text == "all" else comma_list(text)


@key_cli.command("create")
def create_key(
    account: Account,
    *,
    user: Holder,
    name: Annotated[str, NAME],
    scopes: Scopes,
    expires_at: Expiry = None,
    json: Json = False,
) -> None:
    """Create a key; its value is shown only once."""
    details = whole(KeyDetails, locals() | {"user_id": user, "scopes": scope_list(scopes)})
    with acting_for(account) as tx:
        new = keys.create_key(tx, details)
    say({"key_id": new.id, "key": new.value}, json=json)


@key_cli.command("list")
def list_keys(
    account: Account,
    *,
    status: Status = None,
    user: OfUser = None,
    q: Search = None,
    sort: Sort = "id",
    json: Json = False,
) -> None:
    """List the keys of an account, without their values."""
    filters = whole(KeyFilter, locals() | {"user_id": user})
    with acting_for(account, write=False) as tx:
        rows = key_list.list_keys(tx, filters)
    names = (
        *("id", "name", "user_name", "prefix", "last_four", "status", "expires_at", "revoked_at"),
        *("last_used_at", "last_used_address", "warnings", "scopes"),
    )
    say({"keys": listed(rows, names, json=json)}, json=json)


@key_cli.command("set")
def set_key(
    key: Key, *, name: Annotated[str | None, NAME] = None, scopes: NewScopes = None, json: Json = False
) -> None:
    """Change a key's name or scopes; the change applies from the next request."""
    values = changes(KeyChanges, locals() | {"scopes": scope_list(scopes)})
    with acting_on(api_keys, key) as tx:
        changed = key_changes.change_key(tx, key, values)
    say(msgspec.structs.asdict(changed), json=json)


@key_cli.command("rotate")
def rotate_key(key: Key, *, hours: Hours = OVERLAP_HOURS, expires_at: NewExpiry = None, json: Json = False) -> None:
    """Create a key that replaces another, which remains valid for some hours; the new value is shown only once."""
    rotation = whole(Rotation, locals())
    with acting_on(api_keys, key) as tx:
        new = key_changes.rotate_key(tx, key, rotation)
        former = key_list.get_key(tx, key)
    say({"key_id": new.id, "key": new.value, "former_key_id": key, "former_expires_at": former.expires_at}, json=json)


@key_cli.command("revoke")
def revoke_key(key: Key, *, pause_webhooks: Pause = False, json: Json = False) -> None:
    """Revoke a key permanently; other keys are not affected. Its webhooks send on unless they are paused."""
    with acting_on(api_keys, key) as tx:
        revoked, found = key_changes.revoke_key(tx, key), webhooks.webhooks_of_key(tx, key)
        found = webhooks.pause_webhooks(tx, found) if pause_webhooks else found
    listed = [{"id": each.id, "url": each.url, "status": each.status} for each in found]
    say(msgspec.structs.asdict(revoked) | {"webhooks": listed}, json=json)
