"""The JSON Schema of type hints, in responses and requests."""

from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Protocol, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from retainer.values.parameters import MAX_LIST
from retainer.values.reading import unwrapped
from retainer.values.records import Record
from retainer.values.texts import Characters

Json = dict[str, Any]
UNIONS = {Union, UnionType}
EXAMPLES: dict[type, object] = {bool: True, float: 1.5, Decimal: "1.5"}


class Types(Protocol):
    """The schemas of models, for references."""

    def answer(self, model: type[Struct]) -> Json: ...

    def part(self, model: type[Struct], field: str) -> Json: ...

    def body(self, model: type[Struct], use: str) -> Json: ...

    def enumeration(self, schema: Json) -> Json: ...

    def example(self, schema: Json) -> object: ...


def description_of(hint: Any) -> str:
    """Return the description in a type hint: sentences about the field, then about its kind of value."""
    bare, marks = unwrapped(hint)
    sentences = [mark for mark in reversed(marks) if isinstance(mark, str)]
    if get_origin(bare) in UNIONS:
        sentences += [description_of(part) for part in get_args(bare)]
    return " ".join(filter(None, sentences))


def schema_of(hint: Any, name: str, types: Types, *, sent: bool = False) -> Json:
    """Return the JSON Schema of a type hint; if `sent`, with the accepted form as its description."""
    bare, marks = unwrapped(hint)
    origin, parts = get_origin(bare), get_args(bare)
    if origin in UNIONS:
        (inner,) = (part for part in parts if part is not NoneType)
        return _or_null(schema_of(Annotated[inner, *marks, Meta()], name, types, sent=sent))
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return types.part(bare, name) if sent else types.answer(bare)
    outer = {list: list, tuple: list}.get(origin, bare)
    schema: Json = msgspec.json.schema(Annotated[dict if bare == dict[str, object] else outer, *marks, Meta()])
    if origin is Literal:
        schema |= {"type": "string", "enum": list(parts)}
    if "enum" in schema:
        return types.enumeration({"examples": schema["enum"][:1], **schema})
    form = schema.pop("description", "")  # requests accept more than responses have
    if sent and form:
        schema = {"description": form, **schema}
    if origin in {list, tuple}:
        is_child = sent and isinstance(parts[0], type) and issubclass(parts[0], Record)
        schema["items"] = types.body(parts[0], "Child") if is_child else schema_of(parts[0], name, types, sent=sent)
        if origin is tuple:
            schema |= {"minItems": 1, "maxItems": MAX_LIST}
            schema["items"] |= _or_none(schema["items"]) if NoneType in get_args(parts[0]) else {}
        return schema | ({"examples": [[types.example(schema["items"])]]} if sent else {})
    text = name.replace("_", " ").capitalize()
    example = schema.get("minimum") or 1 if bare is int else EXAMPLES.get(bare, text[: schema.get("maxLength")])
    other = next((_of_requests(mark) for mark in marks if _of_requests(mark)), {}) if sent else {}
    return {"examples": [example], **schema, **other}


def _of_requests(mark: object) -> Json:
    """Return the keywords that a mark of a kind adds in requests: what they accept beyond responses, or refuse."""
    if isinstance(mark, Characters):
        return {"pattern": mark.pattern} if mark.pattern else {}
    return mark.extra["sent"] if isinstance(mark, Meta) and mark.extra else {}


def _or_null(schema: Json) -> Json:
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema | {"type": [*kinds, "null"]}


def _or_none(schema: Json) -> Json:
    """Return the schema of an item of a comma-separated list in which `none` means null."""
    words = [schema["pattern"].strip("^$"), "none"] if "pattern" in schema else ["none"]
    kinds = dict.fromkeys([*(kind for kind in schema["type"] if kind != "null"), "string"])
    description = (
        f"{schema['description'].removesuffix('.')}, or none." if "description" in schema else "An id, or none."
    )
    return {"type": list(kinds), "pattern": f"^({'|'.join(words)})$", "description": description}
