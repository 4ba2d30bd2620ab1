"""API keys: each acts as one user of one account, within its scopes (contract 1.2)."""

import hashlib
import re
import secrets
import string
import zlib
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from sqlalchemy import bindparam, func, insert, literal, select, update

from retainer.errors import Refusal, invalid
from retainer.identity.accounts import PLANS, account_of
from retainer.kernel.caller import Caller
from retainer.schema.identity import accounts, api_keys, users
from retainer.store.engines.sql import INSTANT, json_row
from retainer.store.records import decode_row
from retainer.store.tx import Store
from retainer.values.kinds import Id, Instant, Text100, kind, one_of

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
KEY = re.compile(r"rtn_[0-9A-Za-z]{38}")

SCOPE_RESOURCES = ("clients", "projects", "tasks", "time", "invoices", "expenses", "tickets", "sites")
SCOPES = (*(f"{name}:{level}" for name in SCOPE_RESOURCES for level in ("read", "write")), "reports:read")
Scope = Annotated[str, kind(one_of(lambda: SCOPES), f"one of: {', '.join(SCOPES)}", enum=list(SCOPES))]


class KeyDetails(msgspec.Struct):
    """The fields of a new key."""

    name: Text100
    user_id: Id
    scopes: Annotated[list[Scope], Meta(min_length=1)]
    expires_at: Instant | None = None


CALLER = [
    *api_keys.c["account_id", "user_id"],
    users.c.role,
    *accounts.c["currency", "timezone", "payment_terms_days", "client_number_pattern"],
    *api_keys.c["id", "scopes", "prefix", "expires_at", "revoked_at"],
    users.c.is_active,
    *accounts.c["plan", "trial_ends_at", "api_enabled"],
]
"""The fields of Caller in their order, but for the last."""
BY_HASH = (
    select(json_row(*CALLER))
    .select_from(api_keys)
    .join(users, users.c.id == api_keys.c.user_id)
    .join(accounts, accounts.c.id == api_keys.c.account_id)
    .where(api_keys.c.hash == bindparam("hash"))
)
PLAN = Caller.__struct_fields__.index("plan")


def caller_of(store: Store, key: str) -> Caller | None:
    """Return the caller of a key, if any; read every time, so that changes have effect from the next request on."""
    row = store.unscoped_one("whose key is this", BY_HASH, hash=digest(key))
    if row is None:
        return None
    values = decode_row(row[0])
    values.append(PLANS[values[PLAN]].requests_per_minute)
    return Caller(*values)


def create_key(store: Store, account_id: int, details: KeyDetails) -> tuple[int, str]:
    """Create a key; return its id and its value, which is not stored. Raises `api_disabled`, `validation_failed`."""
    with store.unscoped("a key is made by an admin", write=True) as tx:
        if not account_of(tx, account_id)["api_enabled"]:
            raise Refusal("api_disabled", f"The API is off. Switch it on first: retainer api on {account_id}")
        holder = select(users.c.is_active).where(users.c.id == details.user_id, users.c.account_id == account_id)
        active = tx.value(holder)
        if not active:
            reason = "There is no such user in this account." if active is None else "This user is deactivated."
            raise invalid({"user": [f"{reason} Choose an active user of account {account_id}."]})
        if details.expires_at is not None and details.expires_at <= tx.now:
            reason = f"Must be later than now, which is {tx.now}. Leave it out for a key that does not expire."
            raise invalid({"expires_at": [reason]})
        value = new_key()
        key_id: int = tx.value(
            insert(api_keys)
            .values(
                account_id=account_id,
                created_at=tx.now,
                updated_at=tx.now,
                user_id=details.user_id,
                name=details.name,
                hash=digest(value),
                prefix=value[:8],
                last_four=value[-4:],
                scopes=" ".join(scope for scope in SCOPES if scope in details.scopes),
                expires_at=details.expires_at,
            )
            .returning(api_keys.c.id)
        )
        return key_id, value


def list_keys(store: Store, account_id: int) -> list[dict[str, Any]]:
    """Return the keys of an account, revoked ones included, without their values. Raises `not_found`."""
    with store.unscoped("admins see their keys") as tx:
        account_of(tx, account_id)
        rows = tx.all(select(api_keys).where(api_keys.c.account_id == account_id).order_by(api_keys.c.id))
        return [_key_shown(row) for row in rows]


def revoke_key(store: Store, key_id: int) -> dict[str, Any]:
    """Revoke a key for ever; repeated, `revoked_at` stays. Return it. Raises `not_found`."""
    with store.unscoped("a key is revoked by an admin", write=True) as tx:
        revoked = func.coalesce(api_keys.c.revoked_at, literal(tx.now, INSTANT))
        tx.run(update(api_keys).where(api_keys.c.id == key_id).values(updated_at=tx.now, revoked_at=revoked))
        row = tx.one(select(api_keys).where(api_keys.c.id == key_id))
        if row is None:
            raise Refusal("not_found", f"There is no key {key_id}.")
        return _key_shown(row)


def new_key() -> str:
    """Return a new key: `rtn_`, 32 random base62 characters, and the CRC-32 of all that in 6 (contract 1.2)."""
    body = "rtn_" + "".join(secrets.choice(BASE62) for _ in range(32))
    return body + checksum(body)


@lru_cache(maxsize=4096)
def digest(value: str) -> str | None:
    """Return the SHA-256 of a key, which is what is stored of it, or None if its form or checksum is wrong.

    A fast hash is enough: 190 random bits cannot be guessed.
    """
    if not KEY.fullmatch(value) or checksum(value[:-6]) != value[-6:]:
        return None
    return hashlib.sha256(value.encode()).hexdigest()


def checksum(body: str) -> str:
    """Return the CRC-32 as six base62 characters: mistyped keys are refused without database access."""
    number, text = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        text = BASE62[digit] + text
    return text


def _key_shown(row: tuple[Any, ...]) -> dict[str, Any]:
    shown = dict(zip(api_keys.c.keys(), row, strict=True))
    shown["scopes"] = shown["scopes"].split()
    return {name: value for name, value in shown.items() if name != "hash"}
