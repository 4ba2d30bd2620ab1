"""Conditions of bodies: fields that are required unless others are sent, and words that only some bodies may have."""

from collections.abc import Mapping

import msgspec

from retainer.openapi.headers import Json
from retainer.values.reading import WritableField
from retainer.values.records import NeededUnless, NotOn, marked


def conditions(model: type[msgspec.Struct], writable: Mapping[str, WritableField], properties: Json, use: str) -> Json:
    """Return the keywords `if` and `then` of a body by its use, if it has a condition.

    Of an `anyOf`, which could say the same, generators would make a choice of types. A child without an `id` is a new
    one. Raises ValueError if the fields depend on different ones.
    """
    if use == "Update":
        return {}
    needed = {name: field.unless for name, field in writable.items() if field.required}
    needed |= {name: frozenset(mark.others) for name, _, mark in marked(model, NeededUnless)}
    if use == "Child":
        needed = {name: unless | {"id"} for name, unless in needed.items()}
    groups = {unless for unless in needed.values() if unless}
    if not groups:
        return {}
    (unless,) = groups
    names = [name for name in needed if needed[name]]
    absent = {name: _absent(properties[name]) for name in properties if name in unless}
    nullable = {name: {"not": {"type": "null"}} for name in names if "null" in properties[name].get("type", ())}
    then = {"required": names, **({"properties": nullable} if nullable else {})}
    return {"if": {"properties": absent}, "then": then}


def _absent(schema: Json) -> Json:
    """Return the schema of a field that was sent without a value; what was not sent has every schema."""
    return {"maxItems": 0} if schema.get("type") == "array" else {"type": "null"}


def excluded(model: type[msgspec.Struct], use: str) -> dict[str, Json]:
    """Return the keyword that refuses words of fields in a body by its use."""
    return {name: {"not": {"const": mark.word}} for name, _, mark in marked(model, NotOn) if mark.use == use}
