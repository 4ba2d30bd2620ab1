"""Commands on API keys."""

from inspect import Parameter
from typing import Annotated, Any

import msgspec
import typer

from retainer.cli import common as cli
from retainer.events import webhooks
from retainer.identity.keys import key_list, keys
from retainer.identity.keys.key_list import KeyFilter
from retainer.identity.keys.keys import MAX_OVERLAP_HOURS, OVERLAP_HOURS, SCOPES, KeyChanges, KeyDetails, Rotation
from retainer.schema.identity import api_keys
from retainer.values.kinds import MAX_INTEGER

key_cli = cli.group("key", "Create, list, change, rotate and revoke API keys.")

Key = Annotated[int, typer.Argument(metavar="KEY", min=1, max=MAX_INTEGER, help="The key's id.")]
EXPIRY = "When the key expires, like 2027-01-01T00:00:00Z."
NAME = cli.text("The integration that uses the key, like Zapier.")
CREATING = (
    cli.option("user", cli.number("The user that the key acts as, by id.", min=1, max=MAX_INTEGER), Parameter.empty),
    cli.option("name", NAME, Parameter.empty),
    cli.option(
        "scopes", cli.text("Scopes separated by commas, like clients:read,time:write; or all."), Parameter.empty
    ),
    cli.option("expires_at", cli.text(EXPIRY, "INSTANT", show_default="never")),
)
CHANGING = {"name": NAME, "scopes": cli.text("All scopes from now on, separated by commas; or all.")}
FILTERS = (
    cli.option("status", cli.text("Only active, expired or revoked keys.")),
    cli.option("user", cli.number("Only keys of this user, by id.", min=1, max=MAX_INTEGER)),
    cli.option("q", cli.text("Only keys with this in their name, prefix, last four characters or user.")),
    cli.option("sort", cli.text(f"One of: {', '.join(key_list.ORDERS)}. For descending order, like -name."), "id"),
)
OVERLAP = f"Hours that the former key remains valid, 0 to {MAX_OVERLAP_HOURS}."
ROTATING = (
    cli.option("hours", cli.number(OVERLAP, "HOURS"), OVERLAP_HOURS),
    cli.option("expires_at", cli.text(EXPIRY, "INSTANT", show_default="the same lifetime as before")),
)
Pause = Annotated[bool, typer.Option("--pause-webhooks", help="Pause the webhooks of the key, too.")]
COLUMNS = (
    *("id", "name", "user_name", "prefix", "last_four", "status", "expires_at", "revoked_at"),
    *("last_used_at", "last_used_address", "warnings", "scopes"),
)


def scope_list(scopes: str | None) -> list[str] | None:
    return list(SCOPES) if scopes == "all" else cli.comma_list(scopes)


@cli.command(key_cli, "create", CREATING)
def create_key(account: cli.Account, **given: Any) -> dict[str, object]:
    """Create a key; its value is shown only once."""
    details = cli.whole(KeyDetails, given | {"user_id": given["user"], "scopes": scope_list(given["scopes"])})
    with cli.acting_for(account) as tx:
        new = keys.create_key(tx, details)
    return {"key_id": new.id, "key": new.value}


@cli.command(key_cli, "list", FILTERS)
def list_keys(account: cli.Account, **given: Any) -> dict[str, object]:
    """List the keys of an account, without their values."""
    filters = cli.whole(KeyFilter, given | {"user_id": given["user"]})
    with cli.acting_for(account, write=False) as tx:
        return {"keys": cli.Listing(key_list.list_keys(tx, filters), COLUMNS)}


@cli.command(key_cli, "set", CHANGING)
def set_key(key: Key, **given: Any) -> object:
    """Change a key's name or scopes; the change applies from the next request."""
    values = cli.changes(KeyChanges, given | {"scopes": scope_list(given["scopes"])})
    with cli.acting_on(api_keys, key) as tx:
        return keys.change_key(tx, key, values)


@cli.command(key_cli, "rotate", ROTATING)
def rotate_key(key: Key, **given: Any) -> dict[str, object]:
    """Create a key that replaces another, which remains valid for some hours; the new value is shown only once."""
    with cli.acting_on(api_keys, key) as tx:
        new = keys.rotate_key(tx, key, cli.whole(Rotation, given))
        former = key_list.get_key(tx, key)
    return {"key_id": new.id, "key": new.value, "former_key_id": key, "former_expires_at": former.expires_at}


@cli.command(key_cli, "revoke")
def revoke_key(key: Key, *, pause_webhooks: Pause = False) -> dict[str, object]:
    """Revoke a key permanently; other keys are not affected. Its webhooks send on unless they are paused."""
    with cli.acting_on(api_keys, key) as tx:
        revoked, found = keys.revoke_key(tx, key), webhooks.webhooks_of_key(tx, key)
        found = webhooks.pause_webhooks(tx, found) if pause_webhooks else found
    return msgspec.structs.asdict(revoked) | {"webhooks": cli.Listing(found, ("id", "url", "status"))}
