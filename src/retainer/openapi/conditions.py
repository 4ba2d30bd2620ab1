"""Conditions of bodies: fields that are required unless others are sent, and words that only some bodies may have."""

from collections.abc import Mapping, Sequence

import msgspec

from retainer.openapi.headers import Json
from retainer.values.reading import WritableField
from retainer.values.records import NeededUnless, NotOn, marked

Condition = tuple[Json, Json]
"""The schema of a body that lacks other fields, and that of what it must have then."""


def conditions(model: type[msgspec.Struct], writable: Mapping[str, WritableField], properties: Json, use: str) -> Json:
    """Return the keywords `if` and `then` of a body by its use, if it has a condition; a second one is within both.

    Of an `anyOf` or `allOf`, which could say the same, generators would make other types. A child without an `id` is a
    new one.
    """
    if use == "Update":
        return {}
    marks = {name: NeededUnless(tuple(field.unless)) for name, field in writable.items() if field.required}
    marks |= {name: mark for name, _, mark in marked(model, NeededUnless)}
    groups: dict[NeededUnless, list[str]] = {}
    for name, mark in marks.items():
        groups.setdefault(mark, []).append(name)
    found: list[Condition] = []
    for mark, names in groups.items():
        if mark.others or use == "Child":
            nullable = {name: {"not": {"type": "null"}} for name in names if "null" in properties[name].get("type", ())}
            then = {"required": names, **({"properties": nullable} if nullable else {})}
            found.append((_lacks(mark, properties, is_child=use == "Child"), then))
    return _nested(found)


def _lacks(mark: NeededUnless, properties: Json, *, is_child: bool) -> Json:
    """Return the schema of a body without any of the other fields, or without one if it `takes_all` of them."""
    absent = {name: _absent(properties[name]) for name in properties if name in mark.others}
    new = {"id": _absent(properties["id"])} if is_child else {}
    if mark.takes_all:
        some = {"anyOf": [{"properties": {name: schema}} for name, schema in absent.items()]}
        return {**({"properties": new} if new else {}), **some}
    return {"properties": new | absent}


def _nested(found: Sequence[Condition]) -> Json:
    if not found:
        return {}
    (lacks, then), others = found[0], _nested(found[1:])
    return {"if": lacks, "then": then | others, **({"else": others} if others else {})}


def _absent(schema: Json) -> Json:
    """Return the schema of a field that was sent without a value; what was not sent has every schema."""
    return {"maxItems": 0} if schema.get("type") == "array" else {"type": "null"}


def excluded(model: type[msgspec.Struct], use: str) -> dict[str, Json]:
    """Return the keyword that refuses words of fields in a body by its use."""
    return {name: {"not": {"const": mark.word}} for name, _, mark in marked(model, NotOn) if mark.use == use}
