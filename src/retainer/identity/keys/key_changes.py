"""Changes of keys: name and scopes, rotation, handing over to another user, revocation."""

from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta
from sqlalchemy import bindparam, update

from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.audit import Fields, Target
from retainer.identity.keys import keys
from retainer.identity.keys.key_list import Key, get_key
from retainer.identity.keys.keys import KeyDetails, NewKey, Scope, scope_text
from retainer.schema.identity import api_keys
from retainer.schema.webhooks import webhooks
from retainer.store.engines.sql import INTEGER
from retainer.store.tables import NOW
from retainer.store.tx import Tx
from retainer.values.exact import instant_after
from retainer.values.kinds import Instant, Text100

OVERLAP_HOURS = 24
MAX_OVERLAP_HOURS = 30 * 24


MOVE_WEBHOOKS = (
    update(webhooks)
    .where(webhooks.c.key_id == bindparam("former"))
    .values(key_id=bindparam("new", type_=INTEGER), updated_at=NOW)
)
"""Webhooks follow a key that replaces another: it has the same scopes."""


class KeyChanges(msgspec.Struct):
    """The fields of a key that can be changed at any time; its user changes by `hand_over`, its value never."""

    name: Text100
    scopes: Annotated[list[Scope], Meta(min_length=1)]


class Rotation(msgspec.Struct):
    """A rotation: hours that the former key remains valid, and the expiry of the new key."""

    hours: Annotated[int, Meta(ge=0, le=MAX_OVERLAP_HOURS)] = OVERLAP_HOURS
    expires_at: Instant | None = None


def change_key(tx: Tx, key_id: int, changes: Fields) -> Key:
    """Change name or scopes with effect from the next request; return the key.

    Raises `not_found`, and `locked` for a revoked key.
    """
    before = get_key(tx, key_id)
    if before.status == "revoked":
        raise Refusal("locked", f"Key {key_id} was revoked and cannot be changed. Create a new one.")
    values = dict(changes)
    if "scopes" in values:
        values["scopes"] = scope_text(values["scopes"])
    tx.update_columns(api_keys, key_id, values)
    after = get_key(tx, key_id)
    audit.note_changes(
        tx, "key changed", _target(after), *({"name": key.name, "scopes": key.scopes} for key in (before, after))
    )
    return after


def rotate_key(tx: Tx, key_id: int, rotation: Rotation) -> NewKey:
    """Create a key with the name, user and scopes of another, which expires after the hours of the rotation.

    Without an expiry in the rotation, the new key has the lifetime of the former one. Raises `not_found`, `locked` for
    a key that is not active or was rotated before, and the errors of `create_key`.
    """
    former = get_key(tx, key_id)
    if former.status != "active":
        raise Refusal("locked", f"Key {key_id} is {former.status}. Create a new one.")
    if former.replaced_by_id is not None:
        raise Refusal("locked", f"Key {key_id} was already replaced by key {former.replaced_by_id}.")
    expires_at = rotation.expires_at
    if expires_at is None and former.expires_at is not None:
        created, expired = map(datetime.fromisoformat, (former.created_at, former.expires_at))
        expires_at = instant_after(tx.now, expired - created)
    new = keys.create_key(tx, KeyDetails(former.name, former.user_id, former.scopes, expires_at))
    end = instant_after(tx.now, timedelta(hours=rotation.hours))
    end = end if former.expires_at is None else min(end, former.expires_at)
    fields = {"expires_at": end, "replaced_by_id": new.id}
    tx.update_columns(api_keys, key_id, fields)
    tx.run(MOVE_WEBHOOKS, former=key_id, new=new.id)
    before = {"expires_at": former.expires_at, "replaced_by_id": None}
    audit.note_changes(tx, "key rotated", _target(former), before, fields)
    return new


def hand_over(tx: Tx, key_id: int, user_id: int) -> Key:
    """Let a key act as another user, with the same value and scopes; return it.

    Raises `not_found`, `locked` for a key that is not active, and `validation_failed` unless the user is active.
    """
    before = get_key(tx, key_id)
    if before.status != "active":
        raise Refusal("locked", f"Key {key_id} is {before.status} and cannot be handed over.")
    keys.require_holder(tx, user_id)
    tx.update_columns(api_keys, key_id, {"user_id": user_id})
    after = get_key(tx, key_id)
    states = ({"user_id": key.user_id, "user_name": key.user_name} for key in (before, after))
    audit.note_changes(tx, "key handed over", _target(after), *states)
    return after


def revoke_key(tx: Tx, key_id: int) -> Key:
    """Revoke a key permanently; return it. Repeated, `revoked_at` stays. Raises `not_found`."""
    key = get_key(tx, key_id)
    if key.revoked_at is None:
        tx.update_columns(api_keys, key_id, {"revoked_at": tx.now})
        audit.note(tx, "key revoked", _target(key))
        key = get_key(tx, key_id)
    return key


def _target(key: Key) -> Target:
    return Target("key", key.id, key.name)
