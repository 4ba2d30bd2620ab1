"""The keys of an account: status, use and warnings."""

from datetime import timedelta
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from sqlalchemy import bindparam, select

from retainer.errors import NoSuchRecord, invalid
from retainer.kernel.query import Query
from retainer.schema.identity import api_keys, users
from retainer.store.engines.base import Row
from retainer.store.tx import Tx
from retainer.values.collation import base_letters, sort_key
from retainer.values.exact import instant_after
from retainer.values.kinds import Id, Instant, Searched, Text100

UNUSED = timedelta(days=90)
EXPIRING = timedelta(days=14)
RECENT = timedelta(hours=1)

Status = Literal["active", "expired", "revoked"]
KeyWarning = Literal["unused", "expiring"]


class Key(msgspec.Struct):
    """A key without its value. It warns `unused` after 90 days without a request, `expiring` 14 days before expiry."""

    id: int
    account_id: int
    created_at: str
    updated_at: str
    user_id: int
    name: str
    prefix: str
    last_four: str
    scopes: list[str]
    expires_at: Instant | None
    revoked_at: str | None
    last_used_at: str | None
    last_used_address: str | None
    replaced_by_id: int | None
    user_name: str
    user_is_active: bool
    status: Status = "active"
    warnings: list[KeyWarning] = []

    @property
    def searched(self) -> str:
        return f"{self.name}\n{self.prefix}\n{self.last_four}\n{self.user_name}"


ORDERS = ("id", "name", "user_name", "created_at", "expires_at", "last_used_at")


class KeyFilter(Query):
    """The filters of the list."""

    status: Status | None = None
    user_id: Id | None = None
    q: Annotated[Searched | None, "Searches name, prefix, last four characters and user."] = None
    sort: Annotated[Text100, f"One of: {', '.join(ORDERS)}. For descending order, like -name."] = "id"


ALL = KeyFilter()


class LiveKeys(NamedTuple):
    """The keys that work now, and those of them that were used in the last hour."""

    keys: list[Key]
    used: list[Key]


COLUMNS = {name: api_keys.c[name] for name in Key.__struct_fields__ if name in api_keys.c} | {
    "user_name": users.c.name,
    "user_is_active": users.c.is_active,
}
KEYS = (
    select(*COLUMNS.values())
    .select_from(api_keys.join(users, users.c.id == api_keys.c.user_id))
    .order_by(api_keys.c.id)
)
ONE = KEYS.where(api_keys.c.id == bindparam("id"))


def list_keys(tx: Tx, filters: KeyFilter = ALL) -> list[Key]:
    """Return the keys of the account; those without a value to sort by come last. Raises `validation_failed`."""
    order = filters.sort.removeprefix("-")
    if order not in ORDERS:
        raise invalid({"sort": [f"Must be one of: {', '.join(ORDERS)}. For descending order, put - before it."]})
    keys = [
        key
        for key in (_key(row, tx.now) for row in tx.all(KEYS))
        if filters.status in {None, key.status}
        and filters.user_id in {None, key.user_id}
        and (filters.q is None or base_letters(filters.q) in base_letters(key.searched))
    ]
    present = [key for key in keys if getattr(key, order) is not None]
    absent = [key for key in keys if getattr(key, order) is None]

    def position(key: Key) -> Any:
        value = getattr(key, order)
        return sort_key(value) if order in {"name", "user_name"} else value

    return sorted(present, key=position, reverse=filters.sort != order) + absent


def get_key(tx: Tx, key_id: int) -> Key:
    row = tx.one(ONE, id=key_id)
    if row is None:
        raise NoSuchRecord("key", key_id)
    return _key(row, tx.now)


def live_keys(tx: Tx, *, user_id: int | None = None) -> LiveKeys:
    """Return the keys that stop if the API is switched off, or if a user is deactivated."""
    keys = [key for key in list_keys(tx, KeyFilter(status="active", user_id=user_id)) if key.user_is_active]
    recent = instant_after(tx.now, -RECENT)
    return LiveKeys(keys, [key for key in keys if key.last_used_at is not None and key.last_used_at >= recent])


def _key(row: Row, now: str) -> Key:
    key = Key(**dict(zip(COLUMNS, row, strict=True)))
    key.scopes = str(key.scopes).split()
    key.user_is_active = bool(key.user_is_active)
    if key.revoked_at is not None:
        key.status = "revoked"
    elif key.expires_at is not None and key.expires_at <= now:
        key.status = "expired"
    if key.status == "active" and (key.last_used_at or key.created_at) <= instant_after(now, -UNUSED):
        key.warnings.append("unused")
    is_expected = key.status != "active" or key.replaced_by_id is not None
    if key.expires_at is not None and not is_expected and key.expires_at <= instant_after(now, EXPIRING):
        key.warnings.append("expiring")
    return key
