"""Strict JSON: accepts only bodies with exactly one meaning."""

import json
import re
from codecs import BOM_UTF8
from collections import Counter
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation

from retainer.errors import Refusal
from retainer.values.texts import encodes

TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
"""A text of JSON, also one without an end: so each character is read once."""
BRACKET = re.compile(r"[][{}]")
MAX_DEPTH = 32
MAX_FIELDS = 1000
EXACT = Context(MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""Holds every decimal that can be read: it neither rounds nor overflows."""


def read_object(raw: bytes, content_type: str, encoding: str | None) -> dict[str, object]:
    """Return the fields of a body in JSON (RFC 8259) with exact decimals. Raises `unsupported_media_type`.

    Raises `malformed_json`, also for duplicate names, NaN, a byte order mark, and nesting deeper than MAX_DEPTH.
    """
    media = content_type.split(";", maxsplit=1)[0].strip().lower()
    if media != "application/json":
        message = f"Send the header Content-Type: application/json, not {media or 'none'}."
        raise Refusal("unsupported_media_type", message)
    if encoding not in {None, "identity"}:
        raise Refusal("unsupported_media_type", "Send the body without Content-Encoding.")
    if raw.startswith(BOM_UTF8):
        raise malformed("the body starts with a byte order mark. Remove the bytes EF BB BF")
    if not raw.strip():
        raise malformed("the body is empty")
    try:
        text = raw.decode()
        if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
            _check_depth(text)
        fields = DECODER.decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise malformed(
            f"the body cannot be parsed at {where} ({error.msg[:1].lower()}{error.msg[1:].removesuffix(' at')})"
        ) from None
    except UnicodeDecodeError:
        raise malformed("the body is not UTF-8") from None
    if not isinstance(fields, dict):
        raise malformed('the body must be an object, like {"name": "..."}')
    return fields


def meaning(fields: dict[str, object]) -> bytes:
    """Return the canonical form of a body: equal values give equal bytes, however they are written."""
    return json.dumps(fields, sort_keys=True, default=_number).encode()


def _number(exact: Decimal) -> object:
    is_whole = exact.adjusted() < 20 and exact == exact.to_integral_value()
    return int(exact) if is_whole else [str(exact.normalize(EXACT))]


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise malformed(f"a number has an exponent beyond {MAX_EMAX}") from None


def malformed(reason: str) -> Refusal:
    return Refusal("malformed_json", f"Send valid JSON: {reason}.")


def _check_depth(text: str) -> None:
    depth = 0
    for bracket in BRACKET.findall(TEXT.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            raise malformed(f"the body is nested deeper than {MAX_DEPTH}")


def _unique_fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(pairs) > MAX_FIELDS:
        raise malformed(f"an object has more than {MAX_FIELDS} fields")
    fields = dict(pairs)
    if not encodes("".join(fields)):
        raise malformed("a field name has an unpaired surrogate")
    if len(fields) != len(pairs):
        duplicate = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise malformed(f"the field {json.dumps(duplicate)} appears twice")
    return fields


def _constant(name: str) -> None:
    raise malformed(f"{name} is not a JSON number")


DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_fields,
    parse_float=_decimal,
    parse_int=lambda digits: int(digits) if len(digits) < 20 else Decimal(digits),
    parse_constant=_constant,
)
