"""Me: what the key of the request is, and what it can do."""

from typing import Annotated

import msgspec
from sqlalchemy import bindparam, select

from retainer import __version__
from retainer.identity.keys.keys import Scope
from retainer.kernel.caller import Caller
from retainer.kernel.limits import WINDOW_SECONDS, Allowance
from retainer.kernel.resource import Resource
from retainer.schema.identity import accounts, api_keys, users
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.kinds import Currency, Instant, Timezone


class MyKey(msgspec.Struct):
    """The key of the request."""

    id: Annotated[int, "Names the key in commands; it is no secret."]
    name: Annotated[str, "What an admin called the key."]
    prefix: Annotated[str, "The first 8 characters of the key's value."]
    scopes: Annotated[list[Scope], "What the key may do; write does not include read."]
    created_at: Annotated[Instant, "When an admin made it."]
    expires_at: Annotated[Instant | None, "From when on it is refused; null: never."]
    last_used_at: Annotated[Instant | None, "When it was last used, to the minute; null before."]


class MyUser(msgspec.Struct):
    """The user that the key acts as."""

    id: Annotated[int, "What `me` stands for in filters and bodies."]
    name: Annotated[str, "What the user is called."]
    email: Annotated[str, "With which the user signs in."]
    role: Annotated[str, "A `member` records and changes time and expenses of its own alone, an `admin` everyone's."]


class MyAccount(msgspec.Struct):
    """The account that the key belongs to."""

    id: Annotated[int, "The account to which all records belong that the key can see."]
    name: Annotated[str, "What the agency is called."]
    plan: Annotated[str, "`agency`, `scale` or `enterprise`; during a trial also `solo` or `studio`."]
    trial_ends_at: Annotated[Instant | None, "Until when any plan has the API; null without a trial."]
    currency: Annotated[Currency, "Default of clients and of internal work."]
    timezone: Annotated[Timezone, "In which days begin and end."]


class MyRateLimit(msgspec.Struct):
    """The key's figures after this request."""

    limit: Annotated[int, "How many requests the plan allows in any `window_seconds`."]
    remaining: Annotated[int, "How many are left now."]
    reset: Annotated[int, "The Unix second at which all are free again if nothing more is sent."]
    window_seconds: Annotated[int, "Length of the moving window, in seconds."]


class ServerInfo(msgspec.Struct):
    """What answers."""

    version: Annotated[str, "Of Retainer, like 1.0.0."]
    api_version: Annotated[str, "As in the path, like v1."]
    time: Annotated[Instant, "By the server's clock, in UTC."]


class Me(msgspec.Struct):
    """The identity of a key."""

    key: Annotated[MyKey, "The key of the request."]
    user: Annotated[MyUser, "The user that the key acts as."]
    account: Annotated[MyAccount, "The account that the key belongs to."]
    rate_limit: Annotated[MyRateLimit, "How the key stands after this request."]
    server: Annotated[ServerInfo, "What answers."]


KEY = select(*(api_keys.c[name] for name in MyKey.__struct_fields__)).where(api_keys.c.id == bindparam("id"))
USER = select(*(users.c[name] for name in MyUser.__struct_fields__)).where(users.c.id == bindparam("id"))
MINE = select(*(accounts.c[name] for name in MyAccount.__struct_fields__)).where(accounts.c.id == ACCOUNT)

api = Resource("/me", tag="Me", scope=None)
api.instead["users"] = "GET /me names the user of the key; other users are not listed."


@api.get()
def get_me(tx: Tx, caller: Caller, allowance: Allowance) -> Me:
    """Read what this key is and what it can do. Any valid key may."""
    tx.snapshot()
    key = MyKey(*(tx.one(KEY, id=caller.key_id) or ()))
    key.scopes = str(key.scopes).split()
    figures = MyRateLimit(allowance.limit, allowance.remaining, allowance.reset, WINDOW_SECONDS)
    user = MyUser(*(tx.one(USER, id=caller.user_id) or ()))
    return Me(key, user, MyAccount(*(tx.one(MINE) or ())), figures, ServerInfo(__version__, "v1", tx.now))
