"""The JSON Schema of type hints, in responses and requests; and the headers of both."""

from collections.abc import Collection
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Protocol, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from retainer.kernel.idempotency import KEY_PATTERN
from retainer.values.parameters import MAX_LIST
from retainer.values.reading import unwrapped
from retainer.values.records import Record
from retainer.values.texts import Characters

Json = dict[str, Any]
UNIONS = {Union, UnionType}
EXAMPLES: dict[type, object] = {bool: True, float: 1.5, Decimal: "1.5"}
RESPONSE_HEADERS: dict[str, tuple[str, int | str]] = {
    "X-RateLimit-Limit": ("Number of requests allowed in any 60 seconds.", 600),
    "X-RateLimit-Remaining": ("Number of requests left.", 599),
    "X-RateLimit-Reset": (
        "Unix time in seconds at which the whole limit is available again, if no more requests are sent.",
        1774967460,
    ),
    "X-Request-Id": ("The id of the request in the logs: the client's, or one from the server.", "req_5f2b8c0d"),
    "ETag": ("The version of the record, for If-Match and If-None-Match.", '"5f2b8c0d"'),
    "Location": ("The address of the new record.", "https://agency.example/1"),
    "Idempotency-Replayed": ("`true` on the stored response to an earlier request.", "true"),
    "Preference-Applied": ("The `Prefer` that was followed; absent if no place to wait was left.", "wait=20"),
    "Retry-After": ("Seconds to wait before trying again.", 2),
    "WWW-Authenticate": ("How to authenticate.", 'Bearer realm="Retainer"'),
}
REQUEST_HEADERS: dict[str, tuple[str, str, Json]] = {
    "Idempotency-Key": (
        "A unique value for this write, like a UUID. Within 24 hours, a retry with it gets the first response.",
        "0d9f6c1e-5b7a-4f0e-9a43-2f6c8e1b7d55",
        {"pattern": f"^{KEY_PATTERN.pattern}$", "minLength": 1, "maxLength": 255},
    ),
    "If-Match": ("Refuse the write with 412 unless the last record in the path still has this ETag.", '"5f2b8c0d"', {}),
    "Prefer": (
        "`wait=20`: if there is nothing new, wait for it, up to 20 seconds (RFC 7240). The server may answer at once.",
        "wait=20",
        {},
    ),
    "If-None-Match": (
        "GET: return 304 without a body if the record still has this ETag. PUT by external id: `*` only creates.",
        '"5f2b8c0d"',
        {},
    ),
}


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


def header_of(description: str, example: str | int, more: Json | None = None) -> Json:
    """Return the Header Object; `more` goes into its schema."""
    kind = "integer" if isinstance(example, int) else "string"
    return {"description": description, "schema": {"type": kind, **(more or {}), "examples": [example]}}


def always_and(names: Collection[str]) -> Json:
    carried = [name for name in RESPONSE_HEADERS if name in names or name.startswith("X-")]
    return {name: {"$ref": f"#/components/headers/{name}"} for name in carried}
