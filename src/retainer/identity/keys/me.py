"""The resource `/me`: the key of the request, its user and its account."""

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

    id: Annotated[int, "Identifies the key in commands; it is not a secret."]
    name: Annotated[str, "The name that an admin gave the key."]
    prefix: Annotated[str, "The first 8 characters of the key's value."]
    scopes: Annotated[list[Scope], "The scopes of the key that its user's role allows; write does not include read."]
    created_at: Annotated[Instant, "When an admin created it."]
    expires_at: Annotated[Instant | None, "When it expires; null if never."]
    last_used_at: Annotated[Instant | None, "When it was last used, to the minute; null if never."]


class MyUser(msgspec.Struct):
    """The user that the key acts as."""

    id: Annotated[int, "The user that `me` means in filters and bodies."]
    name: Annotated[str, "The name of the user."]
    email: Annotated[str, "The email of the user, who signs in to the console with it."]
    role: Annotated[str, "`admin`, `manager` or `member`: what the user may do, and so the key."]


class MyAccount(msgspec.Struct):
    """The account that the key belongs to."""

    id: Annotated[int, "The account of all records that the key can see."]
    name: Annotated[str, "The name of the agency."]
    plan: Annotated[str, "`agency`, `scale` or `enterprise`; during a trial also `solo` or `studio`."]
    trial_ends_at: Annotated[
        Instant | None, "End of the trial, during which every plan includes the API; null without a trial."
    ]
    currency: Annotated[Currency, "Default currency of clients and of internal work."]
    timezone: Annotated[Timezone, "Time zone in which days begin and end."]


class MyRateLimit(msgspec.Struct):
    """The rate limit of the key, after this request."""

    limit: Annotated[int, "Maximum number of requests in any `window_seconds`."]
    remaining: Annotated[int, "Number of requests that are left."]
    reset: Annotated[
        int, "Unix time, in seconds, at which the whole limit is available again if no more requests are sent."
    ]
    window_seconds: Annotated[int, "Length of the moving window, in seconds."]


class ServerInfo(msgspec.Struct):
    """The software that answers, and its clock."""

    version: Annotated[str, "Version of Retainer, like 1.0.0."]
    api_version: Annotated[str, "Version of the API, as in the path."]
    time: Annotated[Instant, "Time of the server's clock, in UTC."]


class Me(msgspec.Struct):
    """A key, its user and its account."""

    key: Annotated[MyKey, "The key of the request."]
    user: Annotated[MyUser, "The user that the key acts as."]
    account: Annotated[MyAccount, "The account that the key belongs to."]
    rate_limit: Annotated[MyRateLimit, "The rate limit of the key, after this request."]
    server: Annotated[ServerInfo, "The software that answers, and its clock."]


KEY = select(*(api_keys.c[name] for name in MyKey.__struct_fields__)).where(api_keys.c.id == bindparam("id"))
USER = select(*(users.c[name] for name in MyUser.__struct_fields__)).where(users.c.id == bindparam("id"))
MINE = select(*(accounts.c[name] for name in MyAccount.__struct_fields__)).where(accounts.c.id == ACCOUNT)

api = Resource("/me", tag="Me", scope=None)


@api.get()
def get_me(tx: Tx, caller: Caller, allowance: Allowance) -> Me:
    """Read the key of the request, its user and its account. Any valid key may."""
    tx.snapshot()
    key = MyKey(*(tx.one(KEY, id=caller.key_id) or ()))
    key.scopes = caller.granted
    rate_limit = MyRateLimit(allowance.limit, allowance.remaining, allowance.reset, WINDOW_SECONDS)
    user = MyUser(*(tx.one(USER, id=caller.user_id) or ()))
    return Me(key, user, MyAccount(*(tx.one(MINE) or ())), rate_limit, ServerInfo(__version__, "v1", tx.now))
