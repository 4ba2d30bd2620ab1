"""Entity tags: a record's state as it is answered, so that children and derived members change it too."""

import hashlib

import msgspec

from retainer.errors import Refusal
from retainer.store.records import R
from retainer.store.tx import Tx

encode = msgspec.json.Encoder().encode


def of(data: bytes) -> str:
    """The strong tag of a record's JSON."""
    return f'"{hashlib.sha256(data).hexdigest()[:32]}"'


def unchanged(tx: Tx, record: R) -> R:
    """The record, if it is in the state that If-Match names; 412 otherwise (RFC 9110, 13.1.1: strong comparison)."""
    if tx.if_match is not None and not _names(tx.if_match, of(encode(record))):
        raise Refusal(
            "precondition_failed",
            "The record has changed since you read it (If-Match names another state). Read it again, then change it.",
        )
    return record


def matches(header: str | None, tag: str) -> bool:
    """Whether If-None-Match names this tag (weak comparison)."""
    return header is not None and _names(header.replace("W/", ""), tag)


def _names(header: str, tag: str) -> bool:
    known = header.replace('-gzip"', '"').split(",")  # the same state, as it is told compressed
    return header.strip() == "*" or tag in (part.strip() for part in known)
