"""Entity tags: what a record holds itself, for If-Match, and all that is answered of it, for If-None-Match.

A record's tag has two parts. The first changes with the record: its own fields, its children, its `updated_at`. The
second changes with figures that are derived from others, too (counts, sums, overdue), so that a client that caches
sees them. If-Match compares the first part alone: nobody's change is refused because a colleague logged time.
"""

import hashlib

import msgspec
from sqlalchemy import Table

from retainer.errors import Refusal
from retainer.store.row_mapper import R, row_mapper
from retainer.store.tx import Tx
from retainer.values.records import Record

encode = msgspec.json.Encoder().encode
GZIP_SUFFIX = "-gzip"
"""Ends the tag of a compressed answer, whose bytes are others (RFC 9110, 8.8.3.3)."""


def compute(data: bytes) -> str:
    """The strong tag of a document, from its bytes."""
    return f'"{_digest(data)}"'


def compute_for_record(table: Table, record: Record, data: bytes) -> str:
    """The strong tag of a record of a table; `data` is the record as JSON, as it is answered."""
    return f'"{_held(table, record)}.{_digest(data)}"'


def check_unchanged(tx: Tx, table: Table, record: R) -> R:
    """Return the record in the state that If-Match names; 412 for any other (RFC 9110, 13.1.1: strong comparison)."""
    if tx.if_match is not None and not _names_state(tx.if_match, _held(table, record)):
        raise Refusal("precondition_failed", _reason(tx.if_match))
    return record


def matches(header: str | None, tag: str) -> bool:
    """Whether If-None-Match names this tag (weak comparison)."""
    return header is not None and (_is_any(header) or tag in _tags(header.replace("W/", "")))


def _held(table: Table, record: Record) -> str:
    return _digest(encode([getattr(record, name) for name in row_mapper(table, type(record)).held]))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _names_state(if_match: str, held: str) -> bool:
    return _is_any(if_match) or any(tag.startswith(f'"{held}.') and tag.endswith('"') for tag in _tags(if_match))


def _is_any(header: str) -> bool:
    return header.strip() == "*"


def _tags(header: str) -> list[str]:
    """The tags that a header names; compressed or not, it is the same state."""
    return [part.strip() for part in header.replace(f'{GZIP_SUFFIX}"', '"').split(",")]


def _reason(if_match: str) -> str:
    """Why If-Match names no state, or not this one: a tag that was misspelt would be so after every reading."""
    if '"' not in if_match:
        return 'If-Match names no state: send the tag in its quotes, as ETag has it, like If-Match: "9a0a.5f2b".'
    if if_match.lstrip().startswith("W/"):
        return "If-Match takes no weak tag (RFC 9110, 13.1.1): send it as ETag has it here, without W/."
    return "The record has changed since you read it (If-Match names another state). Read it again, then change it."
