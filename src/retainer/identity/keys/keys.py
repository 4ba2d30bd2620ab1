"""API keys: requests with them, their checksums, creation, rotation, handing over to another user, and revocation."""

import hashlib
import itertools
import re
import secrets
import string
import zlib
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta
from sqlalchemy import bindparam, select, update

from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.keys.key_list import Key, get_key
from retainer.identity.plans import PLANS, require_api
from retainer.kernel.caller import CALLER_COLUMNS, CALLERS, Caller
from retainer.kernel.http import Request
from retainer.kernel.roles import allows
from retainer.schema.identity import accounts, api_keys, users
from retainer.schema.webhooks import webhooks
from retainer.store.engines.sql import INTEGER
from retainer.store.row_mapper import decode_row
from retainer.store.tables import NOW
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after, utcnow
from retainer.values.kinds import Id, Instant, Text100, kind, one_of

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
PAIRS = ["".join(pair) for pair in itertools.product(BASE62, repeat=2)]
"""A checksum is three of these: each request computes one, and digit by digit takes twice as long."""
KEY_PATTERN = re.compile(r"rtn_[0-9A-Za-z]{38}")
SCOPE_RESOURCES = ("clients", "projects", "tasks", "time", "invoices", "expenses", "tickets", "sites", "webhooks")
SCOPES = (*(f"{name}:{level}" for name in SCOPE_RESOURCES for level in ("read", "write")), "reports:read")
Scope = Annotated[str, kind(one_of(lambda: SCOPES), f"one of: {', '.join(SCOPES)}", title="Scope", enum=list(SCOPES))]


class KeyDetails(msgspec.Struct):
    name: Text100
    user_id: Id
    scopes: Annotated[list[Scope], Meta(min_length=1)]
    expires_at: Instant | None = None


class NewKey(NamedTuple):
    """A new key: its id, and its value, which is not stored."""

    id: int
    value: str


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


CHALLENGE = {"WWW-Authenticate": 'Bearer realm="Retainer"'}
BY_HASH = CALLERS.where(api_keys.c.hash == bindparam("hash"))
HOLDER = select(users.c.name, users.c.is_active).where(users.c.id == bindparam("id"))


def caller_of(store: Store, key_hash: str) -> Caller | None:
    """Return the caller of a key's hash, if any. It is read each time, so that changes apply from the next request."""
    row = store.unscoped_one(BY_HASH, hash=key_hash)
    return None if row is None else _caller(row[0])


@lru_cache(maxsize=4096)
def _caller(row: str) -> Caller:
    """Return the caller of a row; most requests find the same row as the last request of their key."""
    values = dict(zip(CALLER_COLUMNS, decode_row(row), strict=True))
    granted = [scope for scope in values["scopes"].split() if allows(values["role"], scope)]
    return Caller(**values, requests_per_minute=PLANS[values["plan"]].requests_per_minute, granted=granted, row=row)


def authenticate(request: Request, store: Store) -> Caller:
    """Return the caller of a request. Raises a 401 unless the key is known and valid, and its user active.

    The key of a suspended account has no caller, either: its requests are in no log of the account, which stands still.
    """
    caller = caller_of(store, credential(request))
    if caller is None:
        raise refused(
            "invalid_key", "This key does not exist. Check that it was copied completely, and from the right server."
        )
    if caller.revoked_at is not None:
        raise refused("revoked_key", "This key was revoked. Ask an admin of the account for a new one.")
    if caller.expires_at is not None and caller.expires_at <= utcnow():
        raise refused("expired_key", "This key has expired. Ask an admin of the account for a new one.")
    if not caller.user_is_active:
        raise refused("user_deactivated", "The user of this key is deactivated. Ask an admin for another user's key.")
    if caller.suspended_at is not None:
        raise Refusal(
            "account_suspended",
            "The account of this key is suspended. Its admins read the reason when they sign in to the console, and "
            "only the operator of this server can resume it.",
        )
    return caller


def credential(request: Request) -> str:
    """Return the hash of the key: the Bearer token, else X-Api-Key. Raises `missing_key`, `invalid_key`."""
    scheme, _, value = request.environ.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
    if scheme.lower() != "bearer" or not value:
        value = request.header("X_API_KEY") or ""
    value = value.strip()
    if not value:
        raise refused("missing_key", "Send an API key: in the header Authorization: Bearer <key>, or in X-Api-Key.")
    key_hash = digest(value)
    if key_hash is None:
        raise refused(
            "invalid_key",
            "This is not a key. Keys are rtn_ and 38 letters or digits: check that it was copied completely.",
        )
    return key_hash


def admit(caller: Caller) -> None:
    """Raise 402 if the plan of the account does not include the API, and 403 if the API is off."""
    require_api(caller.plan, caller.trial_ends_at)
    if not caller.api_enabled:
        raise Refusal("api_disabled", "The API is switched off for this account. Ask an admin to switch it on.")


def refused(code: str, message: str) -> Refusal:
    """Return a 401 with its challenge (RFC 9110, 15.5.2)."""
    return Refusal(code, message, headers=CHALLENGE)


def create_key(tx: Tx, details: KeyDetails) -> NewKey:
    """Create a key. Raises `api_disabled`, `validation_failed`."""
    if not tx.field(accounts.c.api_enabled, tx.account_id):
        switch = f"on the page API of the console, or with: retainer api on {tx.actor.account_id}"
        raise Refusal("api_disabled", f"The API is off. Switch it on first, {switch}")
    validate_holder(tx, details.user_id)
    if details.expires_at is not None and details.expires_at <= tx.now:
        reason = f"Must be in the future; it is {tx.now}. For a key that does not expire, leave this blank."
        tx.error("expires_at", reason)
    tx.raise_errors()
    value = new_key()
    values = {
        "user_id": details.user_id,
        "name": details.name,
        "prefix": value[:8],
        "last_four": value[-4:],
        "scopes": scope_text(details.scopes),
        "expires_at": details.expires_at,
    }
    key_id = tx.insert_raw(api_keys, values | {"hash": digest(value)})
    target = audit.Target("key", key_id, details.name)
    audit.note(tx, "key created", target, after=values)
    return NewKey(key_id, value)


def validate_holder(tx: Tx, user_id: int) -> None:
    """Note an error unless it is an active user, as whom a key may act."""
    name, is_active = tx.one(HOLDER, id=user_id) or (None, False)
    if not is_active:
        reason = "There is no such user in this account." if name is None else "This user is deactivated."
        tx.error("user_id", f"{reason} Choose an active user of account {tx.actor.account_id}.")


def scope_text(scopes: list[str]) -> str:
    return " ".join(scope for scope in SCOPES if scope in scopes)


def new_key() -> str:
    """Return a new key: `rtn_`, 32 random base62 characters, and their CRC-32 in 6 more."""
    body = "rtn_" + "".join(secrets.choice(BASE62) for _ in range(32))
    return body + checksum(body)


def digest(value: str) -> str | None:
    """Return the SHA-256 of a key, enough for 190 random bits; None if its form or checksum is wrong."""
    if not KEY_PATTERN.fullmatch(value) or checksum(value[:-6]) != value[-6:]:
        return None
    return hashlib.sha256(value.encode()).hexdigest()


def checksum(body: str) -> str:
    """Return the CRC-32 as six base62 characters, so that mistyped keys need no database access."""
    rest, last = divmod(zlib.crc32(body.encode()), len(PAIRS))
    first, middle = divmod(rest, len(PAIRS))
    return PAIRS[first] + PAIRS[middle] + PAIRS[last]


def change_key(tx: Tx, key_id: int, changes: audit.Fields) -> Key:
    """Change name or scopes from the next request on; return the key. Raises `not_found`, `locked` if revoked."""
    before = get_key(tx, key_id)
    if before.status == "revoked":
        raise Refusal("locked", f"Key {key_id} was revoked and cannot be changed. Create a new one.")
    tx.raise_errors()
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
    new = create_key(tx, KeyDetails(former.name, former.user_id, former.scopes, expires_at))
    end = instant_after(tx.now, timedelta(hours=rotation.hours))
    end = end if former.expires_at is None else min(end, former.expires_at)
    fields = {"expires_at": end, "replaced_by_id": new.id}
    tx.update_columns(api_keys, key_id, fields)
    tx.run(MOVE_WEBHOOKS, former=key_id, new=new.id)
    before = {"expires_at": former.expires_at, "replaced_by_id": None}
    audit.note_changes(tx, "key rotated", _target(former), before, fields)
    return new


def hand_over(tx: Tx, key_id: int, user_id: int) -> Key:
    """Let a key act as another active user; return it. Raises `not_found`, `locked`, `validation_failed`."""
    before = get_key(tx, key_id)
    if before.status != "active":
        raise Refusal("locked", f"Key {key_id} is {before.status} and cannot be handed over.")
    validate_holder(tx, user_id)
    tx.raise_errors()
    tx.update_columns(api_keys, key_id, {"user_id": user_id})
    after = get_key(tx, key_id)
    audit.note_changes(tx, "key handed over", _target(after), *({"user_id": key.user_id} for key in (before, after)))
    return after


def revoke_key(tx: Tx, key_id: int) -> Key:
    """Revoke a key permanently; return it. Repeated, `revoked_at` stays. Raises `not_found`."""
    key = get_key(tx, key_id)
    if key.revoked_at is None:
        tx.update_columns(api_keys, key_id, {"revoked_at": tx.now})
        audit.note(tx, "key revoked", _target(key))
        key = get_key(tx, key_id)
    return key


def _target(key: Key) -> audit.Target:
    return audit.Target("key", key.id, key.name)
