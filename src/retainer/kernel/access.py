"""Who is calling, and may they: key, plan, switch, scope (contract 1.1 and 1.2)."""

import re
from functools import lru_cache

from sqlalchemy import bindparam, select

from retainer.domain.accounts import PLANS, accounts, api_keys, checksum, key_hash, require_api, users
from retainer.errors import Refusal
from retainer.kernel.http import Request
from retainer.store.tx import Actor, Store, utcnow

BEARER = re.compile(r"bearer(?:\s+(.*))?", re.IGNORECASE)
KEY = re.compile(r"rtn_[0-9A-Za-z]{38}")
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="Retainer"'}


class Caller(Actor, frozen=True, gc=False):
    """Whose request it is: the key's facts beside those of its user and account."""

    key_id: int
    scopes: str
    prefix: str
    expires_at: str | None
    revoked_at: str | None
    user_is_active: bool
    plan: str
    trial_ends_at: str | None
    api_enabled: bool

    @property
    def ceiling(self) -> int:
        """Requests a minute for this key."""
        return PLANS[self.plan].requests_per_minute


BY_HASH = (
    select(
        api_keys.c.account_id,
        api_keys.c.user_id,
        users.c.role,
        accounts.c.currency,
        accounts.c.timezone,
        accounts.c.payment_terms_days,
        api_keys.c.id,
        api_keys.c.scopes,
        api_keys.c.prefix,
        api_keys.c.expires_at,
        api_keys.c.revoked_at,
        users.c.is_active,
        accounts.c.plan,
        accounts.c.trial_ends_at,
        accounts.c.api_enabled,
    )
    .join(users, users.c.id == api_keys.c.user_id)
    .join(accounts, accounts.c.id == api_keys.c.account_id)
    .where(api_keys.c.hash == bindparam("hash"))
)
"""In the order of Caller's members."""


def authenticate(request: Request, store: Store) -> Caller:
    """The caller whose key the request carries; read from the database every time, so that every change counts.

    Raises the 401s: no key, none that is known, revoked, expired, or of a deactivated user.
    """
    value = credential(request)
    with store.everywhere("whose key is this") as tx:
        row = tx.one(BY_HASH, hash=key_hash(value))
    if row is None:
        raise refused("invalid_key", "No such key exists. Check that it was copied whole and from the right place.")
    caller = Caller(*row)
    if caller.revoked_at is not None:
        raise refused("revoked_key", "This key was revoked. Ask an admin of the account for a new one.")
    if caller.expires_at is not None and caller.expires_at <= tx.now:
        raise refused("expired_key", "This key has expired. Ask an admin of the account for a new one.")
    if not caller.user_is_active:
        raise refused("user_deactivated", "The user of this key is deactivated. Ask an admin for another user's key.")
    return caller


def credential(request: Request) -> str:
    """The key as sent: Bearer wins, X-Api-Key is read only when no Bearer credential is there.

    A key whose checksum is wrong is refused before any database access.
    """
    bearer = BEARER.fullmatch(request.header("AUTHORIZATION") or "")
    value = (bearer[1] or "") if bearer else (request.header("X_API_KEY") or "")
    if not value.strip():
        raise refused("missing_key", "Send an API key: in the header Authorization: Bearer <key>, or in X-Api-Key.")
    value = value.strip()
    if not KEY.fullmatch(value) or checksum(value[:-6]) != value[-6:]:
        raise refused(
            "invalid_key",
            "This is no key: keys are rtn_ and 38 letters or digits. Check that it was copied whole.",
        )
    return value


def admit(caller: Caller) -> None:
    """Refuse when the account's plan does not include the API (402) or it is switched off (403)."""
    if not PLANS[caller.plan].has_api:
        require_api(caller.plan, caller.trial_ends_at, utcnow())
    if not caller.api_enabled:
        raise Refusal("api_disabled", "The API is switched off for this account. Ask an admin to switch it on.")


def require(caller: Caller, scope: str | None) -> None:
    """Refuse when the key does not hold the operation's scope; the message names it."""
    if scope is not None and scope not in scopes_of(caller.scopes):
        raise Refusal(
            "missing_scope",
            f"This key lacks the scope {scope}. Ask an admin for a key that holds it.",
            required_scope=scope,
            granted_scopes=caller.scopes.split(),
        )


@lru_cache(maxsize=1024)
def scopes_of(text: str) -> frozenset[str]:
    """The scopes of a key as a set."""
    return frozenset(text.split())


def refused(code: str, sentence: str) -> Refusal:
    """A 401 with its challenge (RFC 9110, 15.5.2)."""
    return Refusal(code, sentence, headers=CHALLENGE)
