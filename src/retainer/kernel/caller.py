"""Who is calling: the facts of the key, its user and its account."""

from functools import lru_cache

from retainer.errors import Refusal
from retainer.store.tx import Actor


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
    requests_per_minute: int

    def require_scope(self, scope: str | None) -> None:
        """Refuse when the key does not hold the operation's scope; the message names it."""
        if scope is not None and scope not in _set_of(self.scopes):
            raise Refusal(
                "missing_scope",
                f"This key lacks the scope {scope}. Ask an admin for a key that holds it.",
                required_scope=scope,
                granted_scopes=self.scopes.split(),
            )


@lru_cache(maxsize=1024)
def _set_of(scopes: str) -> frozenset[str]:
    return frozenset(scopes.split())
