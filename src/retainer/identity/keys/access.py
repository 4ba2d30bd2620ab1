"""Authentication by key, and admission by plan and the API's switch."""

from retainer.errors import Refusal
from retainer.identity.keys.keys import caller_of, digest
from retainer.identity.plans import require_api
from retainer.kernel.caller import Caller
from retainer.kernel.http import Request
from retainer.store.tx import Store
from retainer.values.exact import utcnow

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="Retainer"'}


def authenticate(request: Request, store: Store) -> Caller:
    """Return the caller of a request.

    Raises a 401 if the key is missing, unknown, revoked or expired, or its user is deactivated.
    """
    caller = caller_of(store, credential(request))
    if caller is None:
        raise refused(
            "invalid_key", "This key does not exist. Check that it was copied completely, and from the right server."
        )
    if caller.revoked_at is not None:
        raise refused("revoked_key", "This key was revoked. Ask an admin of the account for a new one.")
    if caller.expires_at is not None and caller.expires_at <= utcnow():
        raise refused("expired_key", "This key has expired. Ask an admin of the account for a new one.")
    if not caller.user_is_active:
        raise refused("user_deactivated", "The user of this key is deactivated. Ask an admin for another user's key.")
    return caller


def account_of(request: Request, store: Store) -> int | None:
    """Return the account of a request's key; None if there is no such key or it cannot be looked up."""
    try:
        caller = caller_of(store, credential(request))
    except Exception:  # noqa: BLE001  # the pipeline will meet the same error, and answers it
        return None
    return caller.account_id if caller else None


def credential(request: Request) -> str:
    """Return the hash of the sent key: of the Bearer token, else of X-Api-Key.

    Raises `missing_key`, and `invalid_key` for a wrong form or checksum, without a database access.
    """
    scheme, _, value = request.environ.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
    if scheme.lower() != "bearer":
        value = request.header("X_API_KEY") or ""
    value = value.strip()
    if not value:
        raise refused("missing_key", "Send an API key: in the header Authorization: Bearer <key>, or in X-Api-Key.")
    key_hash = digest(value)
    if key_hash is None:
        raise refused(
            "invalid_key",
            "This is not a key. Keys are rtn_ and 38 letters or digits: check that it was copied completely.",
        )
    return key_hash


def admit(caller: Caller) -> None:
    """Raise 402 if the plan of the account does not include the API, and 403 if the API is off."""
    require_api(caller.plan, caller.trial_ends_at)
    if not caller.api_enabled:
        raise Refusal("api_disabled", "The API is switched off for this account. Ask an admin to switch it on.")


def refused(code: str, message: str) -> Refusal:
    """Return a 401 with its challenge (RFC 9110, 15.5.2)."""
    return Refusal(code, message, headers=CHALLENGE)
