"""A request and its response: a line of the log, and a row of the request log."""

import re

import msgspec

from retainer.errors import Refusal
from retainer.kernel.http import Request, Response
from retainer.settings import BASE_PATH

MAX_PATH_LENGTH, MAX_METHOD_LENGTH = 500, 20
MAX_NAMES, MAX_NAME_LENGTH = 20, 60
"""Limits of the names in a reason, since callers choose the names of unknown fields."""
KEY_PATTERN = re.compile(r"rtn_[0-9A-Za-z]+")
RECORD = re.compile(r"/[a-z-]+/[1-9][0-9]*")


class Reason(msgspec.Struct, gc=False):
    """Why a request was refused: its error code, and the missing scope or the names of the wrong fields, no values."""

    code: str
    names: list[str]


class RequestLine(msgspec.Struct, gc=False, tag_field="event", tag="request"):
    """A request and its response: the key by its prefix, no query, no body, no header but the request id.

    `record` is the path of the record that the request has written, like `/clients/17`.
    """

    time: str
    request_id: str
    method: str
    path: str
    status: int
    duration_ms: float
    operation: str | None
    account_id: int | None
    user_id: int | None
    key_id: int | None
    key: str | None
    address: str | None
    record: str | None
    reason: Reason | None = None
    level: str = "info"


def shown_path(path: str) -> str:
    """Return a path that every database can store: not too long, and without a key that was put there by mistake."""
    path = path[:MAX_PATH_LENGTH].replace("\0", "\ufffd")
    return KEY_PATTERN.sub("rtn_***", path) if "rtn_" in path else path


def reason_of(refusal: Refusal) -> Reason:
    """Return the reason of a refusal: at most MAX_NAMES names, each shortened, and without keys."""
    scope = refusal.members.get("required_scope")
    names = [scope] if scope else list(refusal.members.get("errors", ()))[:MAX_NAMES]
    return Reason(
        refusal.code, [shown_path(name[:MAX_NAME_LENGTH]).encode(errors="replace").decode() for name in names]
    )


def written_record(request: Request, response: Response) -> str | None:
    """Return the path of the record that a write has written. A part of a record, like a line, counts as that record.

    None if nothing was written: after an error, or when a response was replayed for an Idempotency-Key.
    """
    if response.status >= 300:
        return None
    headers = dict(response.headers)
    if "idempotency-replayed" in headers:
        return None
    path = headers.get("location", "").partition(BASE_PATH)[2] if response.status == 201 else request.path
    found = RECORD.match(request.record or path)
    return found and found[0]
