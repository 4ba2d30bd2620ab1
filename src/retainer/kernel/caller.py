"""The caller of a request: its key, user and account."""

from collections.abc import Callable

from sqlalchemy import bindparam, select

from retainer.errors import Refusal
from retainer.schema.identity import accounts, api_keys, users
from retainer.store.engines.sql import json_row
from retainer.store.tx import Actor, Tx


class Caller(Actor, frozen=True, gc=False):
    """The caller of a request: its key, user and account."""

    key_id: int
    scopes: str
    prefix: str
    expires_at: str | None
    revoked_at: str | None
    user_is_active: bool
    plan: str
    trial_ends_at: str | None
    api_enabled: bool
    suspended_at: str | None
    requests_per_minute: int
    granted: list[str]
    """The scopes of the key that the role of its user allows."""
    row: str
    """The row of the database, from which the other fields were read."""

    @property
    def acting_key(self) -> int:
        return self.key_id

    def start_check(self, tx: Tx) -> Callable[[], bool]:
        """Ask whether the caller is unchanged, so that a revoked key writes nothing; return a function that answers."""
        rows = tx.request_rows(BY_KEY, key_id=self.key_id)
        return lambda: rows() == [(self.row,)]

    def require_scope(self, scope: str | None, use: str = "") -> None:
        """Raise `missing_scope` unless the key has a scope; `use` is what needs it, if not the operation itself."""
        if scope is not None and scope not in self.granted:
            reason = f", which {use} needs" if use else ""
            message = f"This key lacks the scope {scope}{reason}. Ask an admin for a key with this scope."
            if scope in self.scopes.split():
                message = f"This key acts as a {self.role}, whose role does not allow {scope}. Use the key of an admin."
            raise Refusal("missing_scope", message, required_scope=scope, granted_scopes=self.granted)


_columns = {
    **api_keys.c["account_id", "user_id", "scopes", "prefix", "expires_at", "revoked_at"],
    "key_id": api_keys.c.id,
    "role": users.c.role,
    "user_is_active": users.c.is_active,
    **accounts.c["currency", "timezone", "payment_terms_days", "client_number_pattern"],
    **accounts.c["plan", "trial_ends_at", "api_enabled", "suspended_at"],
}
CALLER_COLUMNS = {name: _columns[name] for name in Caller.__struct_fields__ if name in _columns}
"""Fields of `Caller` with their columns, in its order. The rate limit follows from the plan."""
_joined = api_keys.join(users, users.c.id == api_keys.c.user_id).join(accounts, accounts.c.id == api_keys.c.account_id)
CALLERS = select(json_row(*CALLER_COLUMNS.values())).select_from(_joined)
BY_KEY = CALLERS.where(api_keys.c.id == bindparam("key_id"))
