"""Schemas: the named schemas of the models, as they are in responses, lists, and bodies of requests."""

import inspect
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

import msgspec
from msgspec import Meta

from retainer.kernel import paging
from retainer.openapi.values import Json, description_of, schema_of
from retainer.values.kinds import Id, Instant
from retainer.values.reading import WritableField, writable_fields
from retainer.values.records import SERVER_DEFAULT, WRITE_ONLY, DetailOnly, Record

Address = Annotated[str, Meta(examples=["https://agency.example/?page=1"], extra_json_schema={"format": "uri"})]
CLOSER: dict[type, Json] = {  # the base models declare plain types; these are their descriptions and examples
    Record: {
        "id": Annotated[Id, "Given by the server, and never used again."],
        "created_at": Annotated[Instant, "Never changes; in UTC, with microseconds."],
        "updated_at": Annotated[
            Instant, "Moves when one of the record's own fields changes, for any reason; not for derived figures."
        ],
    },
    paging.PageLinks: {
        "first": Annotated[Address, "Address of page 1, with every other query parameter as it was sent."],
        "last": Annotated[Address, "Address of the page with the last records; page 1 when there are none."],
        "prev": Annotated[Address | None, "Address of the page before this one; null on page 1."],
        "next": Annotated[
            Address | None, "Address of the page after this one; null at the end. Follow it to read all."
        ],
    },
    paging.PageMeta: {
        "current_page": Annotated[int, "The `page` that was asked for, also when it lies past the end."],
        "from_": Annotated[int | None, "Place of the page's first record in the whole list, from 1; null when empty."],
        "last_page": Annotated[int, "How many pages there are; 1 when there are no records."],
        "path": Annotated[Address, "Address of the list without its query parameters."],
        "per_page": Annotated[int, "How many records a page holds at most."],
        "to": Annotated[int | None, "Place of the page's last record in the whole list; null when empty."],
        "total": Annotated[int, "How many records pass the filters, on all pages."],
    },
}


RECORD = "The record, whole, as it is now."
PAGE = "Part of a list, where it stands in it, and the way to the other parts."


class Field(NamedTuple):
    """A field of a model: its name in JSON, type hint and default; `place` names it to developers."""

    name: str
    hint: Any
    default: Any
    place: str

    @property
    def answered(self) -> bool:
        """Whether responses have the field: all but write-only ones."""
        return self.default is not WRITE_ONLY or self.single

    @property
    def single(self) -> bool:
        """Whether only responses with a single record have the field: lists leave it out."""
        return any(isinstance(mark, DetailOnly) for mark in getattr(self.hint, "__metadata__", ()))


NAMES_CHILD = "When sent, it names one that is there, which keeps what is left out; without it, a new one is made."


@cache
def fields_of(model: Any) -> list[Field]:
    """Return the fields of a model, in their order."""
    overrides = {name: hint for base in CLOSER if issubclass(model, base) for name, hint in CLOSER[base].items()}
    hints = get_type_hints(model, include_extras=True) | overrides
    where = f"{model.__module__}.{model.__qualname__}"
    return [
        Field(field.encode_name, hints[field.name], field.default, f"{where}.{field.name}")
        for field in msgspec.structs.fields(model)
    ]


class Schemas:
    """The named schemas; `undescribed` lists the declarations that have no description."""

    def __init__(self) -> None:
        self.named: Json = {}
        self.undescribed: list[str] = []
        self._models: Json = {}
        self._in_responses: set[Any] = set()

    def answer(self, model: Any) -> Json:
        """Return the reference to a model in responses, which always have all its fields."""
        self._in_responses.add(model)
        return self._response_schema(model, model.__name__, [field for field in fields_of(model) if field.answered])

    def row(self, model: Any) -> Json:
        """Return the reference to a record in lists, without the fields that only single records have."""
        fields = [field for field in fields_of(model) if field.answered]
        if not any(field.single for field in fields):
            return self.answer(model)
        listed = [field for field in fields if not field.single]
        return self._response_schema(model, f"{model.__name__}Summary", listed)

    def create(self, model: Any) -> Json:
        """Return the reference to the body that creates a record: fields without a default are required."""
        return self._request_schema(model, f"{model.__name__}Create", "Create")

    def update(self, model: Any) -> Json:
        """Return the reference to the body that changes a record: fields that are left out keep their values."""
        return self._request_schema(model, f"{model.__name__}Update", "Update")

    def child(self, model: Any) -> Json:
        """Return the reference to a record in a set of children: with an `id` it is changed, without it is created."""
        return self._request_schema(model, f"{model.__name__}Upsert", "Child")

    def part(self, model: Any, field: str) -> Json:
        """Return the reference to a model within a body.

        One whose field is a command, like `record_payment` of a Payment, is named after the field: RecordPayment.
        """
        name = "".join(word.title() for word in field.split("_"))
        if name.endswith(model.__name__) or model not in self._in_responses:
            return self._request_schema(model, name if name.endswith(model.__name__) else model.__name__, "")
        return self.create(model)

    def page(self, model: Any) -> Json:
        """Return the reference to a page of a list."""
        rows = {"type": "array", "description": "The records of this page, in the order of `sort`."}
        fields = {
            "data": {**rows, "items": self.row(model)},
            "links": {**self.answer(paging.PageLinks), "description": "Addresses of other pages of the same list."},
            "meta": {**self.answer(paging.PageMeta), "description": "Where this page stands in the list."},
        }
        return self.add(f"{model.__name__}Page", model, {"description": PAGE}, fields, fields)

    def response(self, model: Any, meta: Any) -> Json:
        """Return the reference to a response with a model under `data` and another, if any, under `meta`.

        Its name is that of the model; of the latter, if that has the model's name in front: reads answer it alone.
        """
        record = issubclass(model, Record)
        fields = {"data": {**self.answer(model), "description": RECORD if record else docstring_of(model)}}
        if meta is not None:
            fields["meta"] = {**self.answer(meta), "description": docstring_of(meta)}
        about = {"description": f"{docstring_of(model).removesuffix('.')}, under `data`."}
        name = meta.__name__ if meta is not None and meta.__name__.startswith(model.__name__) else model.__name__
        return self.add(f"{name}Response", (model, meta), about, fields, fields)

    def enumeration(self, schema: Json) -> Json:
        """Return the reference to an enumeration, which has its name from its title."""
        name, words = schema.pop("title", ""), schema["enum"]
        if not name:
            raise TypeError(f'Name the enumeration {", ".join(words)}: Annotated[Literal[...], Meta(title="...")].')
        if not self._exists(name, tuple(words)):
            listed = ", ".join(f"`{word}`" for word in words)
            self.named[name] = {"description": f"One of {listed}.", **schema}
        return _reference(name)

    def example(self, schema: Json) -> Any:
        """Return a value that is valid by the schema."""
        kind = schema["anyOf"][0] if "anyOf" in schema else schema
        return (self.named[kind["$ref"].rpartition("/")[2]] if "$ref" in kind else kind)["examples"][0]

    def described(self, field: Field, schema: Json, more: str = "") -> Json:
        """Return a field's schema with its description: that of the declaration, the accepted form, and `more`."""
        description = description_of(field.hint)
        if not description:
            self.undescribed.append(field.place)
        return schema | {"description": " ".join(filter(None, (description, schema.get("description"), more)))}

    def _response_schema(self, model: Any, name: str, fields: list[Field]) -> Json:
        if self._exists(name, model):
            return _reference(name)
        properties = {field.name: self.described(field, schema_of(field.hint, field.name, self)) for field in fields}
        return self.add(name, model, {"description": docstring_of(model)}, properties, properties)

    def _request_schema(self, model: Any, name: str, use: str) -> Json:
        """Return the reference to a model in a body: to `Create` or `Update` a record, as its `Child`, or within ("").

        Bodies of records have read-only fields, too: a record may be sent as it was answered.
        """
        if self._exists(name, model):
            return _reference(name)
        writable, properties = writable_fields(model, use or "Create"), Json()
        for field in fields_of(model):
            write = writable.get(field.name)
            if write is not None:
                hint = field.hint | None if field.default is SERVER_DEFAULT else field.hint
                schema = schema_of(hint, field.name, self, sent=True)
                more = "" if use == "Update" else NAMES_CHILD if field.name == "id" else default_text(write)
                properties[field.name] = self.described(field, schema, more)
                properties[field.name] |= {} if field.answered else {"writeOnly": True}
            elif field.answered and use:
                schema = schema_of(field.hint, field.name, self)
                properties[field.name] = {**self.described(field, schema), "readOnly": True}
        needed = [key for key, write in writable.items() if write.required and not write.unless]
        required = [] if use in {"Update", "Child"} else needed
        taken = {key: schema for key, schema in properties.items() if "readOnly" not in schema and key != "id"}
        about = {
            "description": docstring_of(model),
            "examples": [{key: self.example(schema) for key, schema in taken.items()}],
        }
        return self.add(name, model, about | {"additionalProperties": False}, properties, required)

    def add(self, name: str, model: Any, about: Json, properties: Json, required: Iterable[str]) -> Json:
        """Add the schema of a model unless it exists; return the reference to it.

        It is open, since fields may be added to responses; `about` closes those of requests, which refuse unknown ones.
        """
        if not self._exists(name, model):
            self.named[name] = {"type": "object", **about, "properties": properties, "required": list(required)}
        return _reference(name)

    def _exists(self, name: str, model: Any) -> bool:
        """Whether there is this schema already. Raises TypeError if it has the name of another model's schema."""
        if self._models.setdefault(name, model) != model:
            raise TypeError(f"{model} and {self._models[name]} cannot both be called {name}: rename one.")
        return name in self.named


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def docstring_of(model: Any) -> str:
    """Return the docstring of a model."""
    return inspect.getdoc(model) or ""


def default_text(write: WritableField) -> str:
    """Return the sentence on a field's default.

    It is no `default` of the schema, because generated clients demand fields that have one.
    """
    if write.default in (None, msgspec.NODEFAULT, []):
        return ""
    text = write.default if isinstance(write.default, str) else msgspec.json.encode(write.default).decode().strip('"')
    return f"Defaults to `{text}`."
