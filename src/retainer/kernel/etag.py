"""Entity tags, and the preconditions If-Match and If-None-Match.

A record's tag has two parts. The first is `updated_at`, which moves with the record's own fields and children. The
second is a digest of the response, so that caches also notice derived values (counts, sums, overdue). If-Match compares
only the first: a change to a client is not refused because a colleague logged time.

Two changes within one transaction have the same `updated_at`. Nobody could read the record between them.
"""

import hashlib
from collections.abc import Collection
from wsgiref.types import WSGIEnvironment

from retainer.errors import FieldErrors, Refusal
from retainer.values.records import Record

NOT_HONOURED = {
    "If-Match": "Works only on requests that change one record. Leave it out.",
    "If-None-Match": "Works only on reading one record, and on PUT by external id. Leave it out.",
    "If-Modified-Since": "Is not supported: send the ETag of the record in If-None-Match.",
    "If-Unmodified-Since": "Is not supported: send the ETag of the record in If-Match.",
}
"""The errors of preconditions that an operation does not honour: to ignore one would do what it should prevent."""
HEADERS = {f"HTTP_{name.upper().replace('-', '_')}": name for name in NOT_HONOURED}
"""The preconditions by their WSGI names."""
DIGITS = 32
GZIP_SUFFIX = "-gzip"
"""Suffix of the tag of a compressed response, which has different bytes (RFC 9110, 8.8.3.3)."""


def compute(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()[:DIGITS]}"'


def compute_for_record(record: Record, data: bytes) -> str:
    """Return the strong tag of a record, whose JSON is `data`."""
    return f'"{record.updated_at}.{hashlib.sha256(data).hexdigest()[:DIGITS]}"'


def check_honoured(environ: WSGIEnvironment, honoured: Collection[str], *, writes: bool) -> None:
    """Raise `validation_failed` if a request has a precondition that its operation does not honour."""
    errors = FieldErrors()
    for header, name in HEADERS.items():
        if header not in environ:
            continue
        if name not in honoured:
            errors.note(name, NOT_HONOURED[name])
        elif name == "If-None-Match" and writes and not _is_any(environ[header]):
            errors.note(name, "Must be * here: it creates the record only if there is none.")
    errors.raise_errors()


def check_unchanged(if_match: str, record: Record) -> None:
    """Raise 412 if If-Match names another state than that of a record (RFC 9110, 13.1.1: strong comparison)."""
    state = f'"{record.updated_at}.'
    if not _is_any(if_match) and not any(tag.startswith(state) and tag.endswith('"') for tag in _tags(if_match)):
        raise Refusal("precondition_failed", _reason(if_match))


def matches(header: str | None, tag: str) -> bool:
    """Return whether If-None-Match names this tag (weak comparison)."""
    return header is not None and (_is_any(header) or tag in _tags(header.replace("W/", "")))


def _is_any(header: str) -> bool:
    return header.strip() == "*"


def _tags(header: str) -> list[str]:
    return [part.strip() for part in header.replace(f'{GZIP_SUFFIX}"', '"').split(",")]


def _reason(if_match: str) -> str:
    """Return the message of a failed If-Match; a malformed tag would fail again after another read."""
    if '"' not in if_match:
        return 'If-Match needs the quotes of the ETag, like If-Match: "9a0a.5f2b".'
    if if_match.lstrip().startswith("W/"):
        return "If-Match does not accept weak tags (RFC 9110, 13.1.1). Send the ETag as it was received, without W/."
    return "The record has changed since you read it. Read it again, then send your change with its new ETag."
