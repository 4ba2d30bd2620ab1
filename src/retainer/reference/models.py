"""Models: the fields of records and of their nested objects, with type, use and description."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, get_args

import msgspec

from retainer.openapi.schemas import Field as Declared
from retainer.openapi.schemas import default_text, docstring_of, fields_of
from retainer.openapi.values import Json, description_of, schema_of
from retainer.reference.markdown import slug
from retainer.values.reading import WritableField, unwrapped, writable_fields
from retainer.values.records import Record

FORMATS = {"date": "day", "date-time": "instant", "email": "email", "uri": "URL", "decimal": "decimal"}
UPPER = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Field(NamedTuple):
    """A field or a parameter: its kind, its use, and its description."""

    name: str
    kind: str
    use: str
    text: str


class Model(NamedTuple):
    """An object with fields; `is_sent` if request bodies can contain it."""

    title: str
    text: str
    is_sent: bool
    fields: list[Field]


class Names:
    """References to models by name, where the OpenAPI document has schemas."""

    def answer(self, model: type[msgspec.Struct]) -> Json:
        return {"$ref": model.__name__}

    def part(self, model: type[msgspec.Struct], field: str) -> Json:  # noqa: ARG002  # whatever field holds it
        return self.answer(model)

    def body(self, model: type[msgspec.Struct], use: str) -> Json:  # noqa: ARG002
        return self.answer(model)

    def enumeration(self, schema: Json) -> Json:
        return schema

    def example(self, schema: Json) -> object:  # examples were recorded
        """Return no value."""


NAMES = Names()


def models_of(answered: Iterable[Any], sent: Iterable[Any]) -> list[Model]:
    in_answers, in_bodies = dict.fromkeys(walk(answered)), dict.fromkeys(walk(sent))
    return [described(model, is_sent=model in in_bodies) for model in in_answers | in_bodies]


def walk(hints: Iterable[Any]) -> Iterator[Any]:
    todo, seen = list(hints), set()
    while todo:
        bare, _ = unwrapped(todo.pop(0))
        if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
            if bare not in seen:
                seen.add(bare)
                yield bare
                todo += [field.hint for field in fields_of(bare)]
        else:
            todo += get_args(bare)


def described(model: type[msgspec.Struct], *, is_sent: bool) -> Model:
    created = writable_fields(model, "Create") if is_sent else {}
    updated = writable_fields(model, "Update") if is_sent and issubclass(model, Record) else {}
    fields = []
    for field in fields_of(model):
        write = created.get(field.name) or updated.get(field.name)
        schema = schema_of(field.hint, field.name, NAMES, sent=write is not None)
        text = text_of(field, schema, default_text(write) if write else "")
        fields.append(Field(field.name, kind_of(schema), use_of(field, write, is_sent=is_sent), text))
    return Model(title_of(model.__name__), docstring_of(model), is_sent, fields)


def body_fields(model: type[msgspec.Struct], *, is_new: bool) -> list[Field]:
    writable = writable_fields(model, "Create" if is_new else "Update")
    found = []
    for field in fields_of(model):
        write = writable.get(field.name)
        if write is None:
            continue
        schema = schema_of(field.hint, field.name, NAMES, sent=True)
        text = text_of(field, schema, default_text(write) if is_new else "")
        kind = ", ".join(filter(None, (kind_of(schema), limits_of(schema))))
        use = "required" if is_new and write.required and not write.unless else ""
        found.append(Field(field.name, kind, use, text))
    return found


def text_of(field: Declared, schema: Json, default: str) -> str:
    return " ".join(filter(None, (description_of(field.hint), schema.get("description"), default, words_of(schema))))


def limits_of(schema: Json) -> str:
    schema = schema["anyOf"][0] if "anyOf" in schema else schema
    for names, unit in (
        (("minLength", "maxLength"), " characters"),
        (("minItems", "maxItems"), " entries"),
        (("minimum", "maximum"), ""),
    ):
        low, high = (schema.get(name) for name in names)
        if high is not None:
            return f"{low} to {high}{unit}" if low else f"up to {high}{unit}"
        if low:
            return f"at least {low}{unit if low != 1 else unit.removesuffix('s')}"
    return ""


def use_of(field: Declared, write: WritableField | None, *, is_sent: bool) -> str:
    if write is None:
        use = "read-only" if is_sent else ""
    elif write.required and not write.unless:
        use = "required"
    else:
        use = "" if field.answered else "write-only"
    return ", ".join(filter(None, (use, "not in lists" if field.single else "")))


def kind_of(schema: Json) -> str:
    if "anyOf" in schema:
        return f"{kind_of(schema['anyOf'][0])} or null"
    if "$ref" in schema:
        title = title_of(schema["$ref"])
        return f"[{title}](#{slug(title)})"
    kinds: list[str] = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    word = (
        f"array of {kind_of(schema['items'])}" if "items" in schema else FORMATS.get(schema.get("format", ""), kinds[0])
    )
    return f"{word} or null" if "null" in kinds else word


def words_of(schema: Json) -> str:
    words = [f"`{word}`" for word in schema.get("enum", []) if word is not None]
    return f"One of {', '.join(words)}." if words else ""


def title_of(name: str) -> str:
    return UPPER.sub(" ", name).capitalize()
