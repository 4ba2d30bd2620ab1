"""Strict JSON: only bodies that can be understood in exactly one way are accepted."""

import json
from codecs import BOM_UTF8
from collections import Counter
from decimal import Decimal
from typing import Any

from retainer.errors import Refusal
from retainer.values.texts import encodes

DEEPEST = 32
MOST_MEMBERS = 1000


def read_json(raw: bytes) -> Any:
    """Parse JSON (RFC 8259) without duplicate names, NaN, a byte order mark or nesting deeper than 32.

    Decimals are exact. Raises `malformed_json`.
    """
    if raw.startswith(BOM_UTF8):
        raise malformed("it begins with a byte order mark. Leave out its three bytes, EF BB BF")
    if not raw.strip():
        raise malformed("it is empty")
    try:
        text = raw.decode()
        if raw.count(b"[") + raw.count(b"{") > DEEPEST:
            _check_depth(text)
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise malformed(
            f"it cannot be read at {where} ({error.msg[:1].lower()}{error.msg[1:].removesuffix(' at')})"
        ) from None
    except UnicodeDecodeError:
        raise malformed("it is not UTF-8") from None


def read_object(raw: bytes, content_type: str, encoding: str | None) -> dict[str, Any]:
    """Return the fields of a body. Raises `unsupported_media_type` and `malformed_json`."""
    media = content_type.split(";", maxsplit=1)[0].strip().lower()
    if media != "application/json":
        raise Refusal(
            "unsupported_media_type", f"Send the header Content-Type: application/json, not {media or 'none'}."
        )
    if encoding not in {None, "identity"}:
        raise Refusal("unsupported_media_type", "Send the body without Content-Encoding.")
    fields = read_json(raw)
    if not isinstance(fields, dict):
        raise malformed('it must be an object, like {"name": "..."}')
    return fields


def meaning(fields: dict[str, Any]) -> bytes:
    """Return the canonical form of a body: the same bytes for all bodies with equal values, however written."""
    return json.dumps(fields, sort_keys=True, default=_number).encode()


def _number(exact: Decimal) -> Any:
    """Return the canonical form of a number: 1.5 for 1.50, and 1 for 1.0."""
    is_whole = exact.adjusted() < 20 and exact == exact.to_integral_value()
    return int(exact) if is_whole else [str(exact.normalize())]


def malformed(reason: str) -> Refusal:
    """Return the error 400 for a body that is no valid JSON, or is ambiguous."""
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


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_MEMBERS:
        raise malformed(f"an object has more than {MOST_MEMBERS} fields")
    fields = dict(pairs)
    if not encodes("".join(fields)):
        raise malformed("the name of a field has an unpaired surrogate")
    if len(fields) != len(pairs):
        duplicate = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise malformed(f"the field {json.dumps(duplicate)} is there twice")
    return fields


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) < 20 else Decimal(digits)


def _constant(name: str) -> None:
    raise malformed(f"{name} is no JSON number")


DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_fields, parse_float=Decimal, parse_int=_integer, parse_constant=_constant
)
