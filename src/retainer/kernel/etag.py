"""Entity tags: a record's state as it is answered, so that children and derived members change it too."""

import hashlib

import msgspec

from retainer.errors import Refusal
from retainer.store.records import R
from retainer.store.tx import Tx

encode = msgspec.json.Encoder().encode
GZIP_SUFFIX = "-gzip"
"""Ends the tag of a compressed answer, whose bytes are others (RFC 9110, 8.8.3.3)."""


def of(data: bytes) -> str:
    """The strong tag of JSON: a record's, or a whole document."""
    return f'"{hashlib.sha256(data).hexdigest()[:32]}"'


def check_unchanged(tx: Tx, record: R) -> R:
    """Return the record in the state that If-Match names; 412 for any other (RFC 9110, 13.1.1: strong comparison)."""
    if tx.if_match is not None and not _names(tx.if_match, of(encode(record))):
        raise Refusal("precondition_failed", _reason(tx.if_match))
    return record


def _reason(if_match: str) -> str:
    """Why If-Match names no state, or not this one: a tag that was misspelt would be so after every reading."""
    if '"' not in if_match:
        return 'If-Match names no state: send the tag in its quotes, as ETag has it, like If-Match: "9a0a".'
    if if_match.lstrip().startswith("W/"):
        return "If-Match takes no weak tag (RFC 9110, 13.1.1): send it as ETag has it here, without W/."
    return "The record has changed since you read it (If-Match names another state). Read it again, then change it."


def matches(header: str | None, tag: str) -> bool:
    """Whether If-None-Match names this tag (weak comparison)."""
    return header is not None and _names(header.replace("W/", ""), tag)


def _names(header: str, tag: str) -> bool:
    known = header.replace(f'{GZIP_SUFFIX}"', '"').split(",")  # compressed or not, it is the same state
    return header.strip() == "*" or tag in (part.strip() for part in known)
