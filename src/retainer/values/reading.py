"""Reading: the fields of a type from JSON values, with all errors at once."""

from collections.abc import Callable
from decimal import Decimal
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from retainer.errors import LEAVE_OUT, MAX_OF_A_KIND, NULL, FieldErrors, InvalidValue, Unreadable, part
from retainer.values.decoding import converter
from retainer.values.kinds import Id, Parse
from retainer.values.records import (
    READ_ONLY,
    SERVER_DEFAULT,
    WRITE_ONLY,
    AllowedOn,
    DetailOnly,
    MustMatch,
    Record,
    RequiredUnless,
    marked,
)
from retainer.values.sentences import form_of, hint_about
from retainer.values.texts import LINES, Characters, clean, is_blank, prints

T = TypeVar("T", bound=msgspec.Struct)
REQUIRED, NOTHING_SENT = f"{part('Is required')}.", f"this is {NULL}. Omit the field instead."

Read = Callable[[object, str, FieldErrors], object]
"""Reads a JSON value at a dotted path; notes errors and then returns INVALID."""
INVALID = object()
NO_ID = 0
"""Placeholder in a list for an entry that could not be read; no record has this id."""


class ChildChange(msgspec.Struct, frozen=True):
    """An existing child in a body: its id and the fields to change."""

    id: int
    values: dict[str, object]


class WritableField(msgspec.Struct, frozen=True):
    """A field that clients may write; its `name` in the type may differ from its name in JSON."""

    name: str
    required: bool
    is_nullable: bool
    unless: frozenset[str]
    default: object
    read: Read
    placeholder: object
    """Placeholder for a required value that could not be read, so that rules can check the other fields."""


@cache
def writable_fields(model: type[msgspec.Struct], use: str = "Create") -> dict[str, WritableField]:
    """Return the fields of a type that a body may set, by their names in JSON.

    A body is used to `Create` or `Update` a record, or describes a `Child` of one, which may have an id.
    """
    hints = get_type_hints(model, include_extras=True)
    hidden = set(Record.__struct_fields__) if issubclass(model, Record) else set()
    if use == "Child":
        hidden.discard("id")
    fields = {}
    for field in msgspec.structs.fields(model):
        marks = getattr(hints[field.name], "__metadata__", ())
        is_part = any(isinstance(mark, DetailOnly) and mark.read_only for mark in marks)
        is_later = use != "Update" and AllowedOn("Update") in marks
        if field.name in hidden or field.default is READ_ONLY or is_part or is_later:
            continue
        filled = field.default is SERVER_DEFAULT or field.default is WRITE_ONLY or field.name == "id"
        default = None if filled else field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        is_list = get_origin(unwrapped(hints[field.name])[0]) is list
        is_set = field.default is WRITE_ONLY and is_list  # null is refused: it could mean empty
        hint = Id if field.name == "id" else hints[field.name]
        hint = hint | None if filled and not is_set else hint
        unless = frozenset(mark.other for mark in marks if isinstance(mark, RequiredUnless))
        required = default is msgspec.NODEFAULT
        # an example of a kind with a parser of its own; for a plain kind, rules accept None
        kinds = [meta for meta in unwrapped(hint)[1] if getattr(meta, "extra", None)] if required and not unless else []
        placeholder = next((meta.extra["read"](meta.extra_json_schema["examples"][0]) for meta in kinds), None)
        fields[field.encode_name] = WritableField(
            *(field.name, required, NoneType in get_args(unwrapped(hint)[0]), unless),
            *(default, reader(hint, use), placeholder),
        )
    return fields


@cache
def create_only(model: type[msgspec.Struct]) -> frozenset[str]:
    """Return the fields that an update accepts only with their current value."""
    return frozenset(name for name, _, mark in marked(model, AllowedOn) if mark.use == "Create")


@cache
def must_match(model: type[msgspec.Struct]) -> dict[str, tuple[Read, MustMatch]]:
    """Return the read-only fields that an update accepts only with their current value, each with its reader."""
    hints = get_type_hints(model, include_extras=True)
    return {name: (reader(hints[name]), mark) for name, _, mark in marked(model, MustMatch)}


def fixed_errors(record: Record, values: dict[str, object]) -> dict[str, str]:
    """Remove the fields that an update cannot set from its values; return an error for each with a new value.

    In a field that only a create sets, null and empty are equal.
    """
    model, errors = type(record), {}
    for name in create_only(model) & values.keys():
        if (values.pop(name) or None) != (getattr(record, name) or None):
            errors[name] = f"Can be set only when the record is created. {LEAVE_OUT}."
    for name, (_, mark) in must_match(model).items():
        held = getattr(record, name)
        if name in values and values.pop(name) != held:
            text = "null" if held is None else format(held, "f") if isinstance(held, Decimal) else held
            errors[name] = f"{'Cannot be set' if isinstance(held, list) else f'Is {text}'}: {mark.advice}"
    return errors


@cache
def read_only(model: type[msgspec.Struct], use: str) -> frozenset[str]:
    detail = {name for name, _, mark in marked(model, DetailOnly) if mark.read_only}
    answered = {field.encode_name for field in msgspec.structs.fields(model) if field.default is not WRITE_ONLY}
    return frozenset((answered | detail) - writable_fields(model, use).keys())


def read_fields(
    model: type[msgspec.Struct], sent: dict[str, object], errors: FieldErrors, path: str = "", use: str = "Create"
) -> dict[str, Any]:
    """Return the fields that were sent, parsed by their declared kinds; note errors.

    An update ignores read-only fields, except those that must have their current value. A create refuses them.
    """
    fields, values = writable_fields(model, use), dict[str, Any]()
    is_new = use == "Create" or (use == "Child" and sent.get("id") is None)
    stated = {} if is_new else must_match(model)
    for name, value in sent.items():
        field, is_empty = fields.get(name), value is None or (isinstance(value, str) and is_blank(value))
        read = INVALID
        if isinstance(value, Unreadable):
            errors.note(path + name, value.message)
        elif field is not None and field.required and value is None and use == "Create":
            errors.note(path + name, f"Is required; this is {NULL}.")
        elif field is not None:
            read = None if is_empty and field.is_nullable else field.read(value, path + name, errors)
        elif name in stated:
            read = None if is_empty else stated[name][0](value, path + name, errors)
        elif name not in read_only(model, use) or (is_new and value is not None):
            _note_unwritable(model, name, errors, path, use)
        if read is not INVALID:
            values[field.name if field else name] = read
    return values


def _note_unwritable(model: type[msgspec.Struct], name: str, errors: FieldErrors, path: str, use: str) -> None:
    """Note why a body may not set a field."""
    known = must_match(model).get(name)
    if name not in model.__struct_encode_fields__:
        errors.note_unknown(name, writable_fields(model, use), path)
    elif name not in read_only(model, use):
        when = "created" if name in writable_fields(model) else "changed"
        errors.note(path + name, f"Can be set only when a record is {when}. {LEAVE_OUT}.")
    elif known:
        errors.note(path + name, f"Cannot be set: {known[1].advice}")
    else:
        errors.note(path + name, f"Is read-only: Retainer sets it. {LEAVE_OUT}.")


def complete(model: type[T], values: dict[str, Any], sent: dict[str, object], errors: FieldErrors, path: str = "") -> T:
    """Return the record, with defaults for omitted fields; note errors for missing required fields.

    If there are errors, the record only serves further rules.
    """
    required, absent = _completion(model)
    for name, field in required.items():
        if name not in sent and all(values.get(other, sent.get(other)) is None for other in field.unless):
            errors.note(path + name, REQUIRED)
    placeholders = {field.name: field.placeholder for field in required.values()} if errors else {}
    return model(**{**absent, **placeholders, **values})


def read_record(model: type[T], fields: dict[str, object]) -> T:
    """Return the record that fields describe, with defaults for others. Raises `validation_failed` with all errors."""
    errors = FieldErrors()
    record = read_part(model, fields, errors)
    errors.raise_errors()
    return record


def read_changes(model: type[msgspec.Struct], fields: dict[str, object]) -> dict[str, Any]:
    """Return the values of fields. Raises `validation_failed` with all errors."""
    errors = FieldErrors()
    values = read_fields(model, fields, errors)
    errors.raise_errors()
    return values


def read_part(model: type[T], fields: dict[str, object], errors: FieldErrors, path: str = "") -> T:
    """Return a record that is read with others; note errors, after which it only serves further rules."""
    return complete(model, read_fields(model, fields, errors, path), fields, errors, path)


def with_defaults(model: type[T], **values: object) -> T:
    return complete(model, values, values, FieldErrors())


def placeholder_of(model: type[T]) -> T:
    """Return a record of examples, in place of one that could not be read."""
    required, absent = _completion(model)
    return model(**absent, **{field.name: field.placeholder for field in required.values()})


@cache
def _completion(model: type[msgspec.Struct]) -> tuple[dict[str, WritableField], dict[str, None]]:
    fields = writable_fields(model)
    plain = {field.name for field in fields.values() if field.default is not None and not field.unless}
    absent = {name: None for name in model.__struct_fields__ if name not in plain}
    return {name: field for name, field in fields.items() if field.required}, absent


def reader(hint: Any, use: str = "Create") -> Read:
    """Return the reader of a declared kind of value; the only function that inspects types.

    Days and timestamps in bodies must be plausible; those of a `Query` need not. Null is read with the whole record.
    """
    hint, metas = unwrapped(hint)
    if get_origin(hint) in {Union, UnionType} and NoneType in get_args(hint):
        (inner,) = (part for part in get_args(hint) if part is not NoneType)
        return reader(Annotated[inner, *metas] if metas else inner, use)
    characters = next((meta for meta in metas if isinstance(meta, Characters)), LINES)
    kind = next((meta.extra for meta in metas if getattr(meta, "extra", None)), None)
    if kind:
        return _scalar(kind["read"] if use == "Query" else kind["read_field"], kind["form"], characters)
    if get_origin(hint) is list:
        (item,) = get_args(hint)
        is_struct = isinstance(item, type) and issubclass(item, msgspec.Struct)
        is_child = is_struct and issubclass(item, Record)
        placeholder = partial(placeholder_of, item) if is_struct else lambda: NO_ID
        meta = next((meta for meta in metas if isinstance(meta, msgspec.Meta)), msgspec.Meta())
        return _list(_child(item) if is_child else reader(item, use), meta, placeholder)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _nested(hint, "Create" if issubclass(hint, Record) else use)
    convert = converter(Annotated[hint, *metas] if metas else hint)
    if hint is str and use != "Query":
        convert = partial(_visible, convert)
    return _scalar(convert, form_of(hint, metas), characters, partial(hint_about, hint))


def _visible(convert: Parse, value: object) -> object:
    if isinstance(value, str) and value and not prints(value):
        raise InvalidValue(hint="this has none that prints.")
    return convert(value)


def unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


def _scalar(convert: Parse, form: str, characters: Characters, hint_of: Callable[[object], str] = lambda _: "") -> Read:
    def read(value: object, path: str, errors: FieldErrors) -> object:
        try:
            value = clean(value, characters) if isinstance(value, str) else value
            return convert(value)
        except InvalidValue as error:
            return _note(errors, path, f"Must be {form}; {error.hint}" if error.hint else str(error))
        except (ValueError, msgspec.ValidationError):
            what = NOTHING_SENT if value is None else hint_of(value)
            return _note(errors, path, f"Must be {form}; {what}" if what else f"Must be {form}.")

    return read


def _list(read_item: Read, meta: msgspec.Meta, placeholder: Callable[[], object]) -> Read:
    def read(value: object, path: str, errors: FieldErrors) -> object:
        if not isinstance(value, list):
            empty = "; send [] for none" if not meta.min_length else ""
            advice = empty if value is None else "; put a single value in brackets"
            return _note(errors, path, f"Must be a list{advice}.")
        low, high = meta.min_length or 0, meta.max_length
        if len(value) < low or (high is not None and len(value) > high):
            wanted = f"{low} or more" if high is None else f"{low} to {high}"
            return _note(errors, path, f"Must have {wanted} entries; this has {len(value)}.")
        items, invalid = [], 0
        for position, item in enumerate(value):
            found = read_item(item, f"{path}.{position}", errors)
            if found is INVALID:
                found, invalid = placeholder(), invalid + 1
            items.append(found)
            if invalid > MAX_OF_A_KIND:
                break
        return items

    return read


def _nested(model: type[msgspec.Struct], use: str = "Create") -> Read:
    def read(value: object, path: str, errors: FieldErrors) -> object:
        if not isinstance(value, dict):
            return _note(errors, path, "Must be an object.")
        return complete(model, read_fields(model, value, errors, f"{path}.", use), value, errors, f"{path}.")

    return read


def _child(model: type[Record]) -> Read:
    read_new = _nested(model, "Child")

    def read(value: object, path: str, errors: FieldErrors) -> object:
        if not isinstance(value, dict) or value.get("id") is None:
            return read_new(value, path, errors)
        values = read_fields(model, value, errors, f"{path}.", "Child")
        return ChildChange(values.pop("id", NO_ID), values)

    return read


def _note(errors: FieldErrors, path: str, message: str) -> object:
    errors.note(path, message)
    return INVALID
