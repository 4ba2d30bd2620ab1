"""Values: the JSON Schema of a declared kind of value, as it is answered and as it is sent."""

from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Protocol, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from retainer.values.parameters import LONGEST_LIST
from retainer.values.records import Record

Json = dict[str, Any]
UNIONS = {Union, UnionType}
EXAMPLES: dict[Any, Any] = {bool: True, float: 1.5, Decimal: "1.5"}


class Types(Protocol):
    """The schemas of the types that values are made of."""

    def answer(self, hint: Any) -> Json:
        """Return a reference to a type as it is answered."""

    def part(self, hint: Any, member: str) -> Json:
        """Return a reference to a type as it is sent in a member of a body."""

    def child(self, hint: Any) -> Json:
        """Return a reference to a record as it is sent in a set of children."""

    def example(self, schema: Json) -> Any:
        """Return a value that a schema takes."""


def said_of(hint: Any) -> str:
    """The sentences of a declaration: what it says of the member, and then what its kind says of itself."""
    bare, marks = unwrapped(hint)
    said = [mark for mark in reversed(marks) if isinstance(mark, str)]
    if get_origin(bare) in UNIONS:
        said += [said_of(part) for part in get_args(bare)]
    return " ".join(filter(None, said))


def schema_of(hint: Any, name: str, types: Types, *, sent: bool = False) -> Json:
    """A value as it is answered or, with its form as the description, sent; examples of texts are made of the name."""
    bare, marks = unwrapped(hint)
    origin, parts = get_origin(bare), get_args(bare)
    if origin in UNIONS:
        (inner,) = (part for part in parts if part is not NoneType)
        return _or_null(schema_of(Annotated[inner, *marks, Meta()], name, types, sent=sent))
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        return types.part(bare, name) if sent else types.answer(bare)
    its: Json = msgspec.json.schema(Annotated[list[Any] if origin in {list, tuple} else bare, *marks, Meta()])
    form = its.pop("description", "")  # it says what is taken, which is wider than what is answered
    if sent and "enum" not in its and form:
        its = {"description": form, **its}
    if origin in {list, tuple}:
        is_child = sent and isinstance(parts[0], type) and issubclass(parts[0], Record)
        its["items"] = types.child(parts[0]) if is_child else schema_of(parts[0], name, types, sent=sent)
        if origin is tuple:
            its |= {"minItems": 1, "maxItems": LONGEST_LIST}
            its["items"] |= _or_none(its["items"]) if NoneType in get_args(parts[0]) else {}
        return its | ({"examples": [[types.example(its["items"])]]} if sent else {})
    if origin is Literal:
        its |= {"type": "string", "enum": list(parts)}
    words = name.replace("_", " ").capitalize()
    usual = its.get("minimum") or 1 if bare is int else EXAMPLES.get(bare, words[: its.get("maxLength")])
    wider: Json = (
        next((mark.extra["sent"] for mark in marks if isinstance(mark, Meta) and mark.extra), {}) if sent else {}
    )
    return {"examples": its.get("enum", [usual])[:1], **its, **wider}


def unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A hint without its marks, and these."""
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


def _or_null(schema: Json) -> Json:
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema | {"type": [*kinds, "null"]} | ({"enum": [*schema["enum"], None]} if "enum" in schema else {})


def _or_none(schema: Json) -> Json:
    """How a value of a comma list is written where the word `none` stands for null."""
    words = [schema["pattern"].strip("^$"), "none"] if "pattern" in schema else ["none"]
    kinds = dict.fromkeys([*(kind for kind in schema["type"] if kind != "null"), "string"])
    said = f"{schema['description'].removesuffix('.')}, or none." if "description" in schema else "An id, or none."
    return {"type": list(kinds), "pattern": f"^({'|'.join(words)})$", "description": said}
