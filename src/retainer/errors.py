"""The closed catalogue of errors: every error response of the API is one of these."""

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
"""Sentences for each faulty field; nested fields are dotted: `lines.0.quantity`."""


class Refusal(Exception):
    """A request that is answered with an error: its code, a sentence that says what to do, and what goes with it.

    `members` stand beside `message` in the body, `headers` are sent besides the usual ones.
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
    """A value that is not taken, with a sentence of its own that says why."""


class Slip(ValueError):
    """A value that is not what it must be, with what is wrong with it: that follows "Must be ...; "."""


def invalid(errors: FieldErrors, code: str = "validation_failed") -> Refusal:
    """Return a refusal that lists every wrong field; its message is the first error and the number of the others."""
    messages = [f"{field}: {message}" for field, texts in errors.items() for message in texts]
    others = len(messages) - 1
    more = f" (and {others} more {'error' if others == 1 else 'errors'})" if others else ""
    return Refusal(code, f"Correct the request and send it again. {messages[0]}{more}", errors=errors)


def not_found(noun: str) -> Refusal:
    """404 in the same words whether the record never existed, was deleted, or belongs to another account."""
    return Refusal("not_found", f"There is no such {noun} in this account. Check the id in the path.")


def method_not_allowed(method: str, allow: str, advice: str = "") -> Refusal:
    """405 with the methods that the path takes, in the sentence and in `Allow` (RFC 9110, 15.5.6)."""
    message = f"This path does not take {method}. It takes: {allow}. {advice}".rstrip()
    return Refusal("method_not_allowed", message, headers={"Allow": allow})


class BodyErrors:
    """What is wrong with a body: rules note it, and all of it is refused at once, before anything is written."""

    def __init__(self) -> None:
        self.errors: FieldErrors = {}
        self.codes: set[str] = set()
        self.prefix = ""  # where the fields that are validated stand in the body: `lines.0.`
        self.unreadable: frozenset[str] = frozenset()

    def note_unreadable(self, errors: FieldErrors, misspelt: Iterable[str] = ()) -> None:
        """Note the fields that could not be read; rules say nothing more of them, nor of those that were misspelt."""
        if errors:
            self.errors |= errors
            self.codes.add("validation_failed")
            self.unreadable = frozenset((*errors, *misspelt))

    def readable(self, *fields: str) -> bool:
        """Whether these fields of the body were read, so that a rule may draw conclusions from them."""
        names = [self.prefix + field for field in fields]
        nested = tuple(f"{name}." for name in names)
        return not any(map(self._is_unreadable, names)) and not any(name.startswith(nested) for name in self.unreadable)

    def _is_unreadable(self, name: str) -> bool:
        """Whether a field could not be read, or one that it is part of."""
        return any(name == other or name.startswith(f"{other}.") for other in self.unreadable)

    def error(self, field: str, message: str, code: str = "validation_failed") -> None:
        """Note what is wrong with a field of the body; all errors are raised together before anything is written."""
        if self._is_unreadable(self.prefix + field):
            return
        messages = self.errors.setdefault(self.prefix + field, [])
        if message not in messages:  # a rule may look at a line before the row is validated
            messages.append(message)
        self.codes.add(code)

    def raise_errors(self) -> None:
        """Raise the errors that were noted: with their code, or `validation_failed` when they have several."""
        if self.errors:
            raise invalid(self.errors, self.codes.pop() if len(self.codes) == 1 else "validation_failed")
