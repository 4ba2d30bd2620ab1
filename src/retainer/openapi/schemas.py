"""Schemas: the named types of the document, each as it is answered, listed, created, changed, or sent within others."""

import inspect
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

import msgspec
from msgspec import Meta

from retainer.kernel import paging
from retainer.openapi.values import Json, said_of, schema_of
from retainer.values.kinds import Id, Instant
from retainer.values.reading import WritableField, writable_fields
from retainer.values.records import SERVER_DEFAULT, WRITE_ONLY, DetailOnly, Record

Address = Annotated[str, Meta(examples=["https://agency.example/?page=1"], extra_json_schema={"format": "uri"})]
CLOSER: dict[type, Json] = {  # what members of the base types are, more closely than their plain types say
    Record: {
        "id": Annotated[Id, "Given by the server, and never used again."],
        "created_at": Annotated[Instant, "Never changes; in UTC, with microseconds."],
        "updated_at": Annotated[
            Instant, "Moves when any of the record's own fields changes, whoever caused it; not for derived figures."
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
    """A member of a type: its name in JSON, what it is, and its default."""

    name: str
    hint: Any
    default: Any
    place: str

    @property
    def answered(self) -> bool:
        """Whether it is answered at all."""
        return self.default is not WRITE_ONLY or self.single

    @property
    def single(self) -> bool:
        """Whether it is answered with a single record alone."""
        return any(isinstance(mark, DetailOnly) for mark in getattr(self.hint, "__metadata__", ()))


NAMES_CHILD = "When sent, it names one that is there, which keeps what is left out; without it, a new one is made."


@cache
def fields_of(shape: Any) -> list[Field]:
    """The members of a type, in their order."""
    closer = {name: hint for base in CLOSER if issubclass(shape, base) for name, hint in CLOSER[base].items()}
    hints = get_type_hints(shape, include_extras=True) | closer
    where = f"{shape.__module__}.{shape.__qualname__}"
    return [
        Field(its.encode_name, hints[its.name], its.default, f"{where}.{its.name}")
        for its in msgspec.structs.fields(shape)
    ]


class Schemas:
    """The named schemas, and the places of declarations that do not say what they mean."""

    def __init__(self) -> None:
        self.named: Json = {}
        self.silent: list[str] = []
        self._of: Json = {}
        self._answers: set[Any] = set()

    def answer(self, shape: Any) -> Json:
        """A type as it is answered: everything always comes."""
        self._answers.add(shape)
        return self._answered(shape, shape.__name__, [its for its in fields_of(shape) if its.answered])

    def row(self, shape: Any) -> Json:
        """A record as lists answer it: without what comes with a single one alone."""
        fields = [its for its in fields_of(shape) if its.answered]
        if not any(its.single for its in fields):
            return self.answer(shape)
        return self._answered(shape, f"{shape.__name__}Summary", [its for its in fields if not its.single])

    def create(self, shape: Any) -> Json:
        """A record as it is created: what has no default must be sent."""
        return self._sent(shape, f"{shape.__name__}Create", "Create")

    def update(self, shape: Any) -> Json:
        """A record as it is changed: what is left out keeps its value."""
        return self._sent(shape, f"{shape.__name__}Update", "Update")

    def child(self, shape: Any) -> Json:
        """A record in a set of children: one that names its id is changed, another is new."""
        return self._sent(shape, f"{shape.__name__}Upsert", "Child")

    def part(self, shape: Any, member: str) -> Json:
        """A type within a body; one that tells what to do, like `record_payment` of a Payment, is called after that."""
        told = "".join(word.title() for word in member.split("_"))
        if told.endswith(shape.__name__) or shape not in self._answers:
            return self._sent(shape, told if told.endswith(shape.__name__) else shape.__name__, "")
        return self.create(shape)

    def page(self, shape: Any) -> Json:
        """A page of a list."""
        rows = {"type": "array", "description": "The records of this page, in the order of `sort`."}
        members = {
            "data": {**rows, "items": self.row(shape)},
            "links": {**self.answer(paging.PageLinks), "description": "Addresses of other pages of the same list."},
            "meta": {**self.answer(paging.PageMeta), "description": "Where this page stands in the list."},
        }
        return self.add(f"{shape.__name__}Page", shape, {"description": PAGE}, members, members)

    def response(self, shape: Any, beside: Any) -> Json:
        """What is answered, under `data`, and under `meta` what stands beside it, if anything does."""
        record = issubclass(shape, Record)
        members = {"data": {**self.answer(shape), "description": RECORD if record else said_in(shape)}}
        if beside is not None:
            members["meta"] = {**self.answer(beside), "description": said_in(beside)}
        about = {"description": f"{said_in(shape).removesuffix('.')}, under `data`."}
        return self.add(f"{shape.__name__}Response", (shape, beside), about, members, members)

    def example(self, schema: Json) -> Any:
        """A value that a schema takes."""
        its = schema["anyOf"][0] if "anyOf" in schema else schema
        return (self.named[its["$ref"].rpartition("/")[2]] if "$ref" in its else its)["examples"][0]

    def described(self, its: Field, schema: Json, more: str = "") -> Json:
        """A member's schema with its sentence, the form in which it is taken, and what more there is to say."""
        said = said_of(its.hint)
        if not said:
            self.silent.append(its.place)
        return schema | {"description": " ".join(filter(None, (said, schema.get("description"), more)))}

    def _answered(self, shape: Any, name: str, fields: list[Field]) -> Json:
        if self._made(name, shape):
            return _reference(name)
        members = {its.name: self.described(its, schema_of(its.hint, its.name, self)) for its in fields}
        return self.add(name, shape, {"description": said_in(shape)}, members, members)

    def _sent(self, shape: Any, name: str, use: str) -> Json:
        """A type as it is sent to `Create` or to `Update`, where it may be sent as it was answered, or else within."""
        if self._made(name, shape):
            return _reference(name)
        writes, members = writable_fields(shape, use or "Create"), Json()
        for its in fields_of(shape):
            write = writes.get(its.name)
            if write is not None:
                hint = its.hint | None if its.default is SERVER_DEFAULT else its.hint
                schema = schema_of(hint, its.name, self, sent=True)
                more = "" if use == "Update" else NAMES_CHILD if its.name == "id" else usual(write)
                members[its.name] = self.described(its, schema, more)
                members[its.name] |= {} if its.answered else {"writeOnly": True}
            elif its.answered and use:
                members[its.name] = {**self.described(its, schema_of(its.hint, its.name, self)), "readOnly": True}
        needed = [known for known, own in writes.items() if own.required and not own.unless]
        required = [] if use in {"Update", "Child"} else needed
        taken = {known: its for known, its in members.items() if "readOnly" not in its and known != "id"}
        about = {
            "description": said_in(shape),
            "examples": [{known: self.example(its) for known, its in taken.items()}],
        }
        return self.add(name, shape, about, members, required)

    def add(self, name: str, shape: Any, about: Json, members: Json, required: Iterable[str]) -> Json:
        """The reference to a closed object, which is of a type."""
        if not self._made(name, shape):
            its = {"type": "object", **about, "properties": members, "required": list(required)}
            self.named[name] = {**its, "additionalProperties": False}
        return _reference(name)

    def _made(self, name: str, shape: Any) -> bool:
        """Whether there is this schema already. Two types of one name do not pass for one another."""
        if self._of.setdefault(name, shape) != shape:
            raise TypeError(f"{shape} and {self._of[name]} cannot both be called {name}: rename one.")
        return name in self.named


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def said_in(shape: Any) -> str:
    """What the docstring of a type says."""
    return inspect.getdoc(shape) or ""


def usual(write: WritableField) -> str:
    """The sentence for what a member is when it is left out; no `default`, for that makes clients demand it."""
    if write.default in (None, msgspec.NODEFAULT, []):
        return ""
    words = write.default if isinstance(write.default, str) else msgspec.json.encode(write.default).decode().strip('"')
    return f"Defaults to `{words}`."
