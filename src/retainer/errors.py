"""The closed catalogue of errors: every error response of the API has one of these codes."""

from collections.abc import Iterable
from typing import Any

STATUS = {
    "malformed_json": 400,
    "bad_request": 400,
    "missing_key": 401,
    "invalid_key": 401,
    "revoked_key": 401,
    "expired_key": 401,
    "user_deactivated": 401,
    "plan_required": 402,
    "trial_ended": 402,
    "api_disabled": 403,
    "missing_scope": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "idempotency_in_progress": 409,
    "events_gone": 410,
    "precondition_failed": 412,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "validation_failed": 422,
    "unknown_parameter": 422,
    "invalid_transition": 422,
    "in_use": 422,
    "locked": 422,
    "already_billed": 422,
    "nothing_to_bill": 422,
    "idempotency_key_reused": 422,
    "not_owner": 422,
    "rate_limited": 429,
    "server_error": 500,
    "unavailable": 503,
}

FieldErrors = dict[str, list[str]]
"""Messages by field; nested fields are dotted: `lines.0.quantity`."""


class Refusal(Exception):
    """An error response: its code, and a message that says what to do.

    `members` are more fields of its body, `headers` are sent in addition to the common ones.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        errors: FieldErrors | None = None,
        headers: dict[str, str] | None = None,
        **members: Any,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = STATUS[code]
        self.message = message
        self.headers = headers or {}
        self.members = members if errors is None else {"errors": errors, **members}


class Unreadable(ValueError):
    """A refused value, with its whole message."""


class Slip(ValueError):
    """A refused value, with the reason that follows "Must be ...; " in its message."""


def invalid(errors: FieldErrors, code: str = "validation_failed") -> Refusal:
    """Return a refusal with all errors; its message has the first one and the number of the others."""
    messages = [f"{field}: {message}" for field, texts in errors.items() for message in texts]
    others = len(messages) - 1
    more = f" (and {others} more {'error' if others == 1 else 'errors'})" if others else ""
    return Refusal(code, f"Correct the request and send it again. {messages[0]}{more}", errors=errors)


def not_found(noun: str) -> Refusal:
    """Return a 404; the same for records that never existed, were deleted, or belong to another account."""
    return Refusal("not_found", f"There is no such {noun} in this account. Check the id in the path.")


def method_not_allowed(method: str, allow: str, advice: str = "") -> Refusal:
    """Return a 405 with the methods of the path, in the message and in `Allow` (RFC 9110, 15.5.6)."""
    message = f"This path does not support {method}. Supported: {allow}. {advice}".rstrip()
    return Refusal("method_not_allowed", message, headers={"Allow": allow})


class BodyErrors:
    """The errors of a body. Rules note them, and all are raised together before anything is written."""

    def __init__(self) -> None:
        self.errors: FieldErrors = {}
        self.codes: set[str] = set()
        self.prefix = ""  # of nested fields, like `lines.0.`
        self.unreadable: frozenset[str] = frozenset()

    def note_unreadable(self, errors: FieldErrors, misspelt: Iterable[str] = ()) -> None:
        """Note the fields that could not be read. Errors of rules for them, or for misspelt ones, are dropped."""
        if errors:
            self.errors |= errors
            self.codes.add("validation_failed")
            self.unreadable = frozenset((*errors, *misspelt))

    def readable(self, *fields: str) -> bool:
        """Return whether these fields could be read, so that a rule may rely on their values."""
        names = [self.prefix + field for field in fields]
        nested = tuple(f"{name}." for name in names)
        return not any(map(self._is_unreadable, names)) and not any(name.startswith(nested) for name in self.unreadable)

    def _is_unreadable(self, name: str) -> bool:
        """Return whether a field, or a field that contains it, could not be read."""
        return any(name == other or name.startswith(f"{other}.") for other in self.unreadable)

    def error(self, field: str, message: str, code: str = "validation_failed") -> None:
        """Note an error of a field."""
        if self._is_unreadable(self.prefix + field):
            return
        messages = self.errors.setdefault(self.prefix + field, [])
        if message not in messages:  # a rule may check a line before its row is validated
            messages.append(message)
        self.codes.add(code)

    def raise_errors(self) -> None:
        """Raise the errors, if any: with their code, or as `validation_failed` if they have several codes."""
        if self.errors:
            raise invalid(self.errors, self.codes.pop() if len(self.codes) == 1 else "validation_failed")
