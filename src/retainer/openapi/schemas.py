"""Schemas: the JSON Schema of type hints, and the named schemas of models in responses, lists and request bodies."""

import inspect
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from retainer.kernel import paging
from retainer.kernel.paging import FeedPage
from retainer.openapi.conditions import conditions, excluded
from retainer.openapi.headers import Json
from retainer.values.parameters import MAX_LIST
from retainer.values.reading import WritableField, unwrapped, writable_fields
from retainer.values.records import SERVER_DEFAULT, WRITE_ONLY, DetailOnly, Record
from retainer.values.texts import Characters

UNIONS = {Union, UnionType}
EXAMPLES: dict[type, object] = {bool: True, float: 1.5, Decimal: "1.5"}
PARTIAL = "Partial"
"""The prefix of responses that `fields` limits."""
PARTIAL_RECORD = "A {} of which `fields` selects some fields: only the id is required."
RECORD = "The current record."
INCLUDED = "Related records, each once, as their own GET returns them; only with `include`."
RELATED = "The included {}, by id."
ONLY_WITH = "Only with `include={}`."
AS_FILE = "The file, of at most 25 MiB. Its part needs a file name."
OF_FILE = "Omitted: the file name of its part."
TOTALS = "The sums of the whole filtered list, an entry for each currency; only with `totals=true`."


class ModelField(NamedTuple):
    """A field of a model: its name in JSON, type hint, default, and place in the code."""

    name: str
    hint: Any
    default: object
    place: str

    @property
    def bare(self) -> Any:
        return unwrapped(self.hint)[0]

    @property
    def answered(self) -> bool:
        """Whether responses have the field, as all but write-only ones."""
        return self.default is not WRITE_ONLY or self.single

    @property
    def single(self) -> bool:
        """Whether only responses with a single record have the field: lists leave it out."""
        return any(isinstance(mark, DetailOnly) for mark in getattr(self.hint, "__metadata__", ()))


NAMES_CHILD = "Identifies an existing one, whose omitted fields keep their values. Without an id, a new one is created."


@cache
def fields_of(model: type[Struct]) -> list[ModelField]:
    hints = get_type_hints(model, include_extras=True)
    where = f"{model.__module__}.{model.__qualname__}"
    return [
        ModelField(field.encode_name, hints[field.name], field.default, f"{where}.{field.name}")
        for field in msgspec.structs.fields(model)
    ]


class Schemas:
    """The named schemas, and the declarations without a description."""

    def __init__(self, included: Mapping[type[Struct], Mapping[str, type[Struct]]] = MappingProxyType({})) -> None:
        self.named: Json = {}
        self.included = included
        """The models that responses with a model can include, by name."""
        self.undescribed: list[str] = []
        self._models: Json = {}
        self._in_responses: set[type[Struct]] = set()

    def answer(self, model: type[Struct]) -> Json:
        self._in_responses.add(model)
        return self._response_schema(model, model.__name__, [field for field in fields_of(model) if field.answered])

    def row(self, model: type[Struct]) -> Json:
        """Return the reference to a record in lists, without the fields that only single records have."""
        fields = [field for field in fields_of(model) if field.answered]
        if not any(field.single for field in fields):
            return self.answer(model)
        return self._response_schema(model, f"{model.__name__}Summary", fields, is_list=True)

    def partial(self, model: type[Struct]) -> Json:
        """Return the reference to a record that `fields` limits; the whole record describes its properties."""
        name = f"{PARTIAL}{model.__name__}"
        if not self._exists(name, model):
            about = {"description": PARTIAL_RECORD.format(model.__name__)}
            fields = [field for field in fields_of(model) if field.answered]
            schemas = {field.name: self.schema_of(field.hint, field.name) for field in fields}
            for schema in schemas.values():
                schema.pop("examples", None)
            self.add(name, model, about, schemas, ["id"])
        return _reference(name)

    def part(self, model: type[Struct], field: str) -> Json:
        """Return the reference to a model within a body.

        One whose field is a command, like `record_payment` of a Payment, is named after the field: RecordPayment.
        """
        name = "".join(word.title() for word in field.split("_"))
        if name.endswith(model.__name__) or model not in self._in_responses:
            return self._part(model, name if name.endswith(model.__name__) else model.__name__, "")
        return self.body(model, "Create")

    def page(self, answers: Any, *, is_partial: bool = False) -> Json:
        """Return the reference to a page of a list, or to what follows a position; their types describe their parts."""
        kind, (model, *totals) = get_origin(answers), get_args(answers)
        fields = {}
        for field in fields_of(kind):
            if field.name == "data":
                schema = {"type": "array", "items": self.partial(model) if is_partial else self.row(model)}
            elif field.answered:
                schema = self._page_meta(model, *totals) if totals and field.name == "meta" else self.answer(field.bare)
            else:
                continue
            fields[field.name] = {**schema, "description": description_of(field.hint) or docstring_of(field.bare)}
        name = f"{PARTIAL if is_partial else ''}{model.__name__}Page"
        about = {"description": docstring_of(FeedPage if kind is FeedPage else paging.ListPage)}
        return self.add(name, model, about, fields | self._included(model), fields)

    def _included(self, model: type[Struct]) -> Json:
        related = self.included.get(model)
        if not related:
            return {}
        records = {
            name: {"type": "array", "description": RELATED.format(name), "items": self.answer(other)}
            for name, other in related.items()
        }
        name, about = f"{model.__name__}Included", {"description": INCLUDED}
        return {"included": {**self.add(name, (model, "included"), about, records, ()), "description": INCLUDED}}

    def _page_meta(self, model: type[Struct], totals: type[Struct]) -> Json:
        self.answer(paging.PageMeta)
        name, fields = f"{model.__name__}PageMeta", self.named[paging.PageMeta.__name__]["properties"]
        about = {"description": docstring_of(paging.SummedMeta)}
        sums = {"type": "array", "description": TOTALS, "items": self.answer(totals)}
        return self.add(name, totals, about, fields | {"totals": sums}, fields)

    def response(self, model: type[Struct], meta: type[Struct] | None, *, is_partial: bool = False) -> Json:
        """Return the reference to a response with a model under `data`, and another under `meta` if there is one.

        It is named after the model, or after that under `meta` if its name begins with the model's. The model is whole
        or partial.
        """
        record = issubclass(model, Record)
        data = self.partial(model) if is_partial else self.answer(model)
        fields = {"data": {**data, "description": RECORD if record else docstring_of(model)}}
        if meta is not None:
            fields["meta"] = {**self.answer(meta), "description": docstring_of(meta)}
        about = {"description": f"{docstring_of(model).removesuffix('.')}, under `data`."}
        name = meta.__name__ if meta is not None and meta.__name__.startswith(model.__name__) else model.__name__
        name = f"{PARTIAL if is_partial else ''}{name}Response"
        return self.add(name, (model, meta), about, fields | self._included(model), fields)

    def schema_of(self, hint: Any, name: str, *, sent: bool = False) -> Json:
        """Return the JSON Schema of a type hint; if `sent`, with the accepted form as its description."""
        bare, marks = unwrapped(hint)
        origin, parts = get_origin(bare), get_args(bare)
        if origin in UNIONS:
            (inner,) = (part for part in parts if part is not NoneType)
            return _or_null(self.schema_of(Annotated[inner, *marks, Meta()], name, sent=sent))
        if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
            return self.part(bare, name) if sent else self.answer(bare)
        outer = {list: list, tuple: list}.get(origin, bare)
        schema: Json = msgspec.json.schema(Annotated[dict if bare == dict[str, object] else outer, *marks, Meta()])
        if origin is Literal:
            schema |= {"type": "string", "enum": list(parts)}
        if "enum" in schema:
            return self.enumeration({"examples": schema["enum"][:1], **schema})
        form = schema.pop("description", "")  # requests accept more than responses have
        if sent and form:
            schema = {"description": form, **schema}
        if origin in {list, tuple}:
            is_child = sent and isinstance(parts[0], type) and issubclass(parts[0], Record)
            schema["items"] = self.body(parts[0], "Child") if is_child else self.schema_of(parts[0], name, sent=sent)
            if origin is tuple:
                schema |= {"minItems": 1, "maxItems": MAX_LIST}
                schema["items"] |= _or_none(schema["items"]) if NoneType in get_args(parts[0]) else {}
            return schema | ({"examples": [[self.example(schema["items"])]]} if sent else {})
        text = name.replace("_", " ").capitalize()
        example = schema.get("minimum") or 1 if bare is int else EXAMPLES.get(bare, text[: schema.get("maxLength")])
        other = next((_of_requests(mark) for mark in marks if _of_requests(mark)), {}) if sent else {}
        return {"examples": [example], **schema, **other}

    def enumeration(self, schema: Json) -> Json:
        name, words = schema.pop("title", ""), schema["enum"]
        if not name:
            raise TypeError(f'Name the enumeration {", ".join(words)}: Annotated[Literal[...], Meta(title="...")].')
        if not self._exists(name, tuple(words)):
            listed = ", ".join(f"`{word}`" for word in words)
            self.named[name] = {"description": f"One of {listed}.", **schema}
        return _reference(name)

    def example(self, schema: Json) -> object:
        kind = schema["anyOf"][0] if "anyOf" in schema else schema
        return (self.named[kind["$ref"].rpartition("/")[2]] if "$ref" in kind else kind)["examples"][0]

    def described(self, field: ModelField, schema: Json, more: str = "") -> Json:
        """Return a field's schema with its description: the declared one, the accepted form, and `more`."""
        description = description_of(field.hint)
        if not description:
            self.undescribed.append(field.place)
        return schema | {"description": " ".join(filter(None, (description, schema.get("description"), more)))}

    def _response_schema(
        self, model: type[Struct], name: str, fields: list[ModelField], *, is_list: bool = False
    ) -> Json:
        if self._exists(name, model):
            return _reference(name)
        asked = [field.name for field in fields if field.single and is_list]
        properties = {
            field.name: self.described(
                field,
                self.schema_of(field.hint, field.name),
                ONLY_WITH.format(field.name) if field.name in asked else "",
            )
            for field in fields
        }
        required = [key for key in properties if key not in asked]
        return self.add(name, model, {"description": docstring_of(model)}, properties, required)

    def body(self, model: type[Struct], use: str) -> Json:
        """Return the reference to a body that creates or updates a record, or to a child in a body.

        A child with an `id` is changed, one without is created.
        """
        return self._part(model, f"{model.__name__}{'Upsert' if use == 'Child' else use}", use)

    def form(self, model: type[Struct]) -> Json:
        """Return the reference to the form that creates a record with a file, whose name is that of the record."""
        name = f"{model.__name__}Form"
        if self._exists(name, model):
            return _reference(name)
        whole, hints = self.named[f"{model.__name__}Create"], get_type_hints(model)
        properties: Json = dict(whole["properties"])
        for key in properties:
            if hints[key] is BinaryIO:
                properties[key] = {"type": "string", "format": "binary", "description": AS_FILE}
        properties["name"] = properties["name"] | {"description": f"{properties['name']['description']} {OF_FILE}"}
        about = {"description": docstring_of(model), "additionalProperties": False}
        return self.add(name, model, about, properties, [key for key in whole["required"] if key != "name"])

    def _part(self, model: type[Struct], name: str, use: str) -> Json:
        """Return the reference to a model in a body, by its use: `Create`, `Update`, `Child`, or "" for a part.

        Bodies of records include read-only fields, so that a record can be sent back as it was received.
        """
        if self._exists(name, model):
            return _reference(name)
        writable, properties = writable_fields(model, use or "Create"), Json()
        for field in fields_of(model):
            write = writable.get(field.name)
            if write is not None:
                hint = field.hint | None if field.default is SERVER_DEFAULT else field.hint
                schema = self.schema_of(hint, field.name, sent=True)
                more = "" if use == "Update" else NAMES_CHILD if field.name == "id" else default_text(write)
                properties[field.name] = self.described(field, schema, more)
                properties[field.name] |= {} if field.answered else {"writeOnly": True}
            elif field.answered and use:
                schema = self.schema_of(field.hint, field.name)
                properties[field.name] = {**self.described(field, schema), "readOnly": True}
        for key, refused in excluded(model, use).items():
            properties[key] |= refused
        needed = [key for key, write in writable.items() if write.required and not write.unless]
        required = [] if use in {"Update", "Child"} else needed
        taken = {key: schema for key, schema in properties.items() if "readOnly" not in schema and key != "id"}
        about = {
            "description": docstring_of(model),
            "examples": [getattr(model, "EXAMPLE", None) or {key: self.example(each) for key, each in taken.items()}],
            "additionalProperties": False,
        }
        return self.add(name, model, about | conditions(model, writable, properties, use), properties, required)

    def add(self, name: str, model: object, about: Json, properties: Json, required: Iterable[str]) -> Json:
        """Add the schema of a model unless it exists; return its reference.

        Schemas of responses are open, because fields may be added; those of requests are closed by `about`.
        """
        if not self._exists(name, model):
            self.named[name] = {"type": "object", **about, "properties": properties, "required": list(required)}
        return _reference(name)

    def _exists(self, name: str, model: object) -> bool:
        """Return whether the schema exists. Raises TypeError if another model has its name."""
        if self._models.setdefault(name, model) != model:
            raise TypeError(f"{model} and {self._models[name]} cannot both be called {name}: rename one.")
        return name in self.named


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def description_of(hint: Any) -> str:
    """Return the description in a type hint: sentences about the field, then about its kind of value."""
    bare, marks = unwrapped(hint)
    sentences = [mark for mark in reversed(marks) if isinstance(mark, str)]
    if get_origin(bare) in UNIONS:
        sentences += [description_of(part) for part in get_args(bare)]
    return " ".join(filter(None, sentences))


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


def docstring_of(model: type[Struct]) -> str:
    return inspect.getdoc(model) or ""


def default_text(write: WritableField) -> str:
    """Return the sentence about a field's default; generated clients would require a field with a `default`."""
    if write.default in (None, msgspec.NODEFAULT, []):
        return ""
    text = write.default if isinstance(write.default, str) else msgspec.json.encode(write.default).decode().strip('"')
    return f"Defaults to `{text}`."
