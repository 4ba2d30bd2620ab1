"""The keys of an account as admins see them: their state, their use, and what to look at."""

from datetime import timedelta
from typing import Literal, NamedTuple

import msgspec

from retainer.store.tx import Tx

UNUSED = timedelta(days=90)
EXPIRING = timedelta(days=14)

Status = Literal["active", "expired", "revoked"]
Warning_ = Literal["unused", "expiring"]


class Key(msgspec.Struct):
    """A key without its value. `warnings` has `unused` after 90 days without a request, `expiring` 14 days before."""

    id: int
    account_id: int
    created_at: str
    updated_at: str
    user_id: int
    name: str
    prefix: str
    last_four: str
    scopes: list[str]
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None
    last_used_address: str | None
    replaced_by_id: int | None
    user_name: str
    user_is_active: bool
    status: Status
    warnings: list[Warning_]


class KeyFilter(msgspec.Struct, frozen=True):
    """Which keys are listed: `q` is searched for in name, prefix, last four and user; `-name` sorts descending."""

    status: Status | None = None
    user_id: int | None = None
    q: str | None = None
    sort: str = "id"


class LiveKeys(NamedTuple):
    """The keys that would stop if the API were switched off, and those of them that were used in the last hour."""

    keys: list[Key]
    used: list[Key]


def list_keys(tx: Tx, filters: KeyFilter = KeyFilter()) -> list[Key]:
    """Return the keys of the account. Raises `validation_failed` for an unknown order."""
    raise NotImplementedError


def get_key(tx: Tx, key_id: int) -> Key:
    """Return a key. Raises `not_found`."""
    raise NotImplementedError


def live_keys(tx: Tx, *, user_id: int | None = None) -> LiveKeys:
    """Return the keys that work: what stops with the API's switch, or with the deactivation of a user."""
    raise NotImplementedError
