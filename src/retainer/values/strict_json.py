"""JSON that can be understood in one way only."""

import json
from collections import Counter
from decimal import Decimal
from typing import Any

from retainer.errors import Refusal
from retainer.values.reading import encodes

DEEPEST = 32
MOST_MEMBERS = 1000


def read_json(raw: bytes) -> Any:
    """JSON as RFC 8259 means it, and stricter: no duplicate member, NaN, byte order mark or nesting deeper than 32.

    Decimals are exact. Raises `malformed_json`.
    """
    try:
        text = raw.decode()
        if raw.count(b"[") + raw.count(b"{") > DEEPEST:
            _check_depth(text)
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise malformed(f"it cannot be read at {where} ({error.msg[:1].lower()}{error.msg[1:]})") from None
    except UnicodeDecodeError:
        raise malformed("it is not UTF-8") from None


def read_object(raw: bytes, content_type: str, encoding: str | None) -> dict[str, Any]:
    """Return the members of a body. Raises `unsupported_media_type` and `malformed_json`."""
    media = content_type.split(";", maxsplit=1)[0].strip().lower()
    if media != "application/json":
        raise Refusal(
            "unsupported_media_type", f"Send the header Content-Type: application/json, not {media or 'none'}."
        )
    if encoding not in {None, "identity"}:
        raise Refusal("unsupported_media_type", "Send the body without Content-Encoding.")
    members = read_json(raw)
    if not isinstance(members, dict):
        raise malformed('it must be an object, like {"name": "..."}')
    return members


def meaning(members: dict[str, Any]) -> bytes:
    """Return what is the same for all bodies that mean the same, however they are written."""
    return json.dumps(members, sort_keys=True, default=_number).encode()


def _number(exact: Decimal) -> Any:
    """A number as all its spellings are compared: 1.50 as 1.5, and 1.0 as 1."""
    is_whole = exact.adjusted() < 20 and exact == exact.to_integral_value()
    return int(exact) if is_whole else [str(exact.normalize())]


def malformed(reason: str) -> Refusal:
    """400: the body is no JSON that could be understood in one way only."""
    return Refusal("malformed_json", f"Send a body of valid JSON: {reason}.")


def _check_depth(text: str) -> None:
    depth, quoted, escaped = 0, False, False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            if depth > DEEPEST:
                raise malformed(f"it is nested deeper than {DEEPEST}")
        elif character in "]}":
            depth -= 1


def _members_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_MEMBERS:
        raise malformed(f"an object has more than {MOST_MEMBERS} members")
    members = dict(pairs)
    if not encodes("".join(members)):
        raise malformed("the name of a member has an unpaired surrogate")
    if len(members) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise malformed(f"the member {json.dumps(twice)} is there twice")
    return members


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) < 20 else Decimal(digits)


def _constant(name: str) -> None:
    raise malformed(f"{name} is no JSON number")


DECODER = json.JSONDecoder(
    object_pairs_hook=_members_once, parse_float=Decimal, parse_int=_integer, parse_constant=_constant
)
