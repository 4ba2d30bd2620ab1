"""Commands on API keys."""

from typing import Annotated, Any

import msgspec
import typer

from retainer.cli import common as cli
from retainer.events import webhooks
from retainer.identity.keys import key_list, keys
from retainer.identity.keys.key_list import KeyFilter
from retainer.identity.keys.keys import SCOPES, KeyChanges, KeyDetails, Rotation
from retainer.schema.identity import api_keys

key_cli = cli.group("key", "Create, list, change, rotate and revoke API keys.")

Key = Annotated[int, cli.id_argument("KEY", "The key's id.")]
Pause = Annotated[bool, typer.Option("--pause-webhooks", help="Pause the webhooks of the key, too.")]
COLUMNS = (
    *("id", "name", "user_name", "prefix", "last_four", "status", "expires_at", "revoked_at"),
    *("last_used_at", "last_used_address", "warnings", "scopes"),
)


def expanded(given: dict[str, Any]) -> dict[str, Any]:
    """Return options in which `all` stands for the list of all scopes."""
    return given | {"scopes": ",".join(SCOPES)} if given["scopes"] == "all" else given


@cli.command(key_cli, "create", cli.fields_of(KeyDetails))
def create_key(account: cli.Account, **given: Any) -> dict[str, object]:
    """Create a key; its value is shown only once. `--scopes all` grants every scope."""
    details = cli.whole(KeyDetails, expanded(given))
    with cli.acting_for(account) as tx:
        new = keys.create_key(tx, details)
    return {"key_id": new.id, "key": new.value}


@cli.command(key_cli, "list", cli.fields_of(KeyFilter))
def list_keys(account: cli.Account, **given: Any) -> dict[str, object]:
    """List the keys of an account, without their values."""
    with cli.acting_for(account, write=False) as tx:
        return {"keys": cli.Listing(key_list.list_keys(tx, cli.whole(KeyFilter, given)), COLUMNS)}


@cli.command(key_cli, "set", cli.fields_of(KeyChanges, is_new=False))
def set_key(key: Key, **given: Any) -> object:
    """Change a key's name or scopes from the next request on. `--scopes all` grants every scope."""
    values = cli.changes(KeyChanges, expanded(given))
    with cli.acting_on(api_keys, key) as tx:
        return keys.change_key(tx, key, values)


@cli.command(key_cli, "rotate", cli.fields_of(Rotation))
def rotate_key(key: Key, **given: Any) -> dict[str, object]:
    """Create a key that replaces another, which remains valid for some hours; the new value is shown only once."""
    with cli.acting_on(api_keys, key) as tx:
        new = keys.rotate_key(tx, key, cli.whole(Rotation, given))
        former = key_list.get_key(tx, key)
    return {"key_id": new.id, "key": new.value, "former_key_id": key, "former_expires_at": former.expires_at}


@cli.command(key_cli, "revoke")
def revoke_key(key: Key, *, pause_webhooks: Pause = False) -> dict[str, object]:
    """Revoke a key permanently; other keys are not affected. Its webhooks keep sending unless they are paused."""
    with cli.acting_on(api_keys, key) as tx:
        revoked, found = keys.revoke_key(tx, key), webhooks.webhooks_of(tx, key)
        found = webhooks.pause_webhooks(tx, found) if pause_webhooks else found
    return msgspec.structs.asdict(revoked) | {"webhooks": cli.Listing(found, ("id", "url", "status"))}
