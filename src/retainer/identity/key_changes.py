"""Changes of keys: names and scopes, rotation, revocation; each in the audit."""

from typing import Any

from retainer.identity.key_list import Key
from retainer.identity.keys import NewKey
from retainer.store.tx import Tx


def change_key(tx: Tx, key_id: int, changes: dict[str, Any]) -> Key:
    """Change name and scopes, from the next request on; return the key. Raises `not_found`, `locked` if revoked."""
    raise NotImplementedError


def rotate_key(tx: Tx, key_id: int, hours: int, expires_at: str | None = None) -> NewKey:
    """Create a key with name, user and scopes of another, which remains valid for so many hours at most.

    Without `expires_at` the new key is valid for as long as the other was to be when it was created. Raises
    `not_found`, `locked` for a key that is revoked or has expired, and what `create_key` raises.
    """
    raise NotImplementedError


def revoke_key(tx: Tx, key_id: int) -> Key:
    """Revoke a key for ever; repeated, `revoked_at` stays. Return it. Raises `not_found`."""
    raise NotImplementedError
