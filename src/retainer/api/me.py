"""Me: what the key of the request is, and what it can do."""

import msgspec
from sqlalchemy import bindparam, select

from retainer import __version__
from retainer.domain.accounts import accounts
from retainer.domain.keys import Caller, Scope, api_keys
from retainer.domain.limits import WINDOW_SECONDS, Allowance
from retainer.domain.users import users
from retainer.domain.values import Currency, Instant, Timezone
from retainer.kernel.resource import Resource
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx


class MyKey(msgspec.Struct):
    """The key of the request."""

    id: int
    name: str
    prefix: str
    scopes: list[Scope]
    created_at: Instant
    expires_at: Instant | None
    last_used_at: Instant | None


class MyUser(msgspec.Struct):
    """The user that the key acts as."""

    id: int
    name: str
    email: str
    role: str


class MyAccount(msgspec.Struct):
    """The account that the key belongs to."""

    id: int
    name: str
    plan: str
    trial_ends_at: Instant | None
    currency: Currency
    timezone: Timezone


class MyRateLimit(msgspec.Struct):
    """The key's figures after this request."""

    limit: int
    remaining: int
    reset: int
    window_seconds: int


class Server(msgspec.Struct):
    """What answers."""

    version: str
    api_version: str
    time: Instant


class Me(msgspec.Struct):
    """The identity of a key."""

    key: MyKey
    user: MyUser
    account: MyAccount
    rate_limit: MyRateLimit
    server: Server


KEY = select(*(api_keys.c[name] for name in MyKey.__struct_fields__)).where(api_keys.c.id == bindparam("id"))
USER = select(*(users.c[name] for name in MyUser.__struct_fields__)).where(users.c.id == bindparam("id"))
MINE = select(*(accounts.c[name] for name in MyAccount.__struct_fields__)).where(accounts.c.id == ACCOUNT)

api = Resource("/me", tag="Me", scope=None)


@api.get()
def get_me(tx: Tx, caller: Caller, allowance: Allowance) -> Me:
    """Read what this key is and what it can do. Any valid key may."""
    tx.snapshot()
    key = MyKey(*(tx.one(KEY, id=caller.key_id) or ()))
    key.scopes = str(key.scopes).split()
    figures = MyRateLimit(allowance.limit, allowance.remaining, allowance.reset, WINDOW_SECONDS)
    user = MyUser(*(tx.one(USER, id=caller.user_id) or ()))
    return Me(key, user, MyAccount(*(tx.one(MINE) or ())), figures, Server(__version__, "v1", tx.now))
