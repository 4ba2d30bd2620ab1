"""Members: how values from outside become the members of a type, with every fault named at once in our own words."""

import difflib
from collections.abc import Callable
from functools import cache, partial
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from retainer.errors import FieldErrors, Unreadable
from retainer.values.kinds import Id
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, WRITE_ONLY, AllowedOn, DetailOnly, Record, RequiredUnless

T = TypeVar("T", bound=msgspec.Struct)
REQUIRED = "Is required."

Read = Callable[[Any, str, FieldErrors], Any]
"""Reads a JSON value at a dotted path; notes faults and then answers FAULTY."""
INVALID = object()
NO_ID = 0
"""Stands in a list for an entry that could not be read; no record has it."""


class ChildChange(msgspec.Struct, frozen=True):
    """What a body says of a child that is there already: its id, and the members to change."""

    id: int
    values: dict[str, Any]


class WritableField(msgspec.Struct, frozen=True):
    """A member that callers may write; its `name` in the type, where JSON may know it by another."""

    name: str
    required: bool
    unless: frozenset[str]
    default: Any
    read: Read
    stand_in: Any
    """Stands for a required value that could not be read, so that rules can look at all the others."""


@cache
def writable_fields(shape: type[msgspec.Struct], use: str = "Create") -> dict[str, WritableField]:
    """The members of a type that a body may set, by their names in JSON.

    A body is used to `Create` or to `Update` a record, or to say a `Child` of one, which may name its id.
    """
    hints = get_type_hints(shape, include_extras=True)
    given = set(Record.__struct_fields__) if issubclass(shape, Record) else set()
    if use == "Child":
        given.discard("id")
    found = {}
    for field in msgspec.structs.fields(shape):
        marks = getattr(hints[field.name], "__metadata__", ())
        if field.name in given or field.default is READ_ONLY or any(_withheld(it, use) for it in marks):
            continue
        filled = field.default is SERVER_DEFAULT or field.default is WRITE_ONLY or field.name == "id"
        default = None if filled else field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        is_set = field.default is WRITE_ONLY and _is_list(
            hints[field.name]
        )  # null says nothing of a set: it could be emptied
        hint = Id if field.name == "id" else hints[field.name]
        hint = hint | None if filled and not is_set else hint
        unless = frozenset(it.other for it in marks if isinstance(it, RequiredUnless))
        required = default is msgspec.NODEFAULT
        stand_in = _example(hint) if required and not unless else None
        found[field.encode_name] = WritableField(field.name, required, unless, default, reader(hint), stand_in)
    return found


def _example(hint: Any) -> Any:
    """A value of a kind that has its own reading; None for a plain one, with which any rule can do."""
    kinds = [meta for meta in unwrapped(hint)[1] if getattr(meta, "extra", None)]
    return next((meta.extra["read"](meta.extra_json_schema["examples"][0]) for meta in kinds), None)


def _is_list(hint: Any) -> bool:
    return get_origin(unwrapped(hint)[0]) is list


def _withheld(mark: Any, use: str) -> bool:
    return (mark == AllowedOn("Update") and use != "Update") or (isinstance(mark, DetailOnly) and mark.read_only)


@cache
def create_only(shape: type[msgspec.Struct]) -> frozenset[str]:
    """The members that a change takes only when they say what the record has already (contract 1.4)."""
    hints = get_type_hints(shape, include_extras=True)
    return frozenset(name for name, hint in hints.items() if AllowedOn("Create") in getattr(hint, "__metadata__", ()))


@cache
def read_only(shape: type[msgspec.Struct], use: str) -> frozenset[str]:
    """The members that are answered and cannot be set."""
    hints = get_type_hints(shape, include_extras=True)
    single = {name for name, hint in hints.items() if DetailOnly(read_only=True) in getattr(hint, "__metadata__", ())}
    answered = {field.encode_name for field in msgspec.structs.fields(shape) if field.default is not WRITE_ONLY}
    return frozenset((answered | single) - writable_fields(shape, use).keys())


def read_fields(
    shape: type[msgspec.Struct], given: dict[str, Any], faults: FieldErrors, path: str = "", use: str = "Create"
) -> dict[str, Any]:
    """The members that were sent, read by their declared kinds; read-only members are left out, faults are noted."""
    members = writable_fields(shape, use)
    values = {}
    for name, value in given.items():
        member = members.get(name)
        if member is not None and member.required and value is None and use == "Create":
            faults.setdefault(path + name, []).append("Is required; this is null.")
        elif member is None:
            if name not in read_only(shape, use):
                faults.setdefault(path + name, []).append(_unknown(shape, name, list(members)))
        elif (read := member.read(value, path + name, faults)) is not INVALID:
            values[member.name] = read
    return values


def complete(shape: type[T], values: dict[str, Any], given: dict[str, Any], faults: FieldErrors, path: str = "") -> T:
    """The whole, with defaults for what was left out; faults are noted for required members that are missing.

    When there are faults it is good for nothing but to be looked at by further rules.
    """
    members = writable_fields(shape)
    for name, member in members.items():
        spared = any(given.get(other) is not None for other in member.unless)
        if member.required and name not in given and not spared:
            faults.setdefault(path + name, []).append(REQUIRED)
    plain = {it.name for it in members.values() if it.default is not None and not it.unless}
    absent = {name: None for name in shape.__struct_fields__ if name not in plain}
    stand_ins = {it.name: it.stand_in for it in members.values() if it.required} if faults else {}
    return shape(**{**absent, **stand_ins, **values})


def reader(hint: Any) -> Read:
    """How a value of a declared kind is read; the only place that looks into types."""
    hint, metas = unwrapped(hint)
    if get_origin(hint) in {Union, UnionType} and NoneType in get_args(hint):
        (inner,) = (part for part in get_args(hint) if part is not NoneType)
        return _nullable(reader(Annotated[inner, *metas] if metas else inner))
    kind = next((meta.extra for meta in metas if getattr(meta, "extra", None)), None)
    if kind:
        return _scalar(kind["read"], kind["form"])
    if get_origin(hint) is list:
        (item,) = get_args(hint)
        is_struct = isinstance(item, type) and issubclass(item, msgspec.Struct)
        is_child = is_struct and issubclass(item, Record)
        stand_in = partial(complete, item, {}, {}, {"": []}) if is_struct else lambda: NO_ID
        meta = next((meta for meta in metas if isinstance(meta, msgspec.Meta)), msgspec.Meta())
        return _list(_child(item) if is_child else reader(item), meta, stand_in)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _nested(hint)
    exact = Annotated[hint, *metas] if metas else hint
    return _scalar(lambda value: msgspec.convert(value, exact), form_of(hint, metas))


def form_of(hint: Any, metas: tuple[Any, ...] = ()) -> str:
    """What a plain kind takes, as the end of "Must be ..."."""
    meta = next((meta for meta in metas if isinstance(meta, msgspec.Meta)), msgspec.Meta())
    if get_origin(hint) is Literal:
        return f"one of: {', '.join(get_args(hint))}"
    if hint is bool:
        return "true or false"
    if hint is int:
        return f"a whole number from {meta.ge} to {meta.le}"
    return f"text of {meta.min_length} to {meta.max_length} characters"


def unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A declared kind and what is said of it."""
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


def _nullable(read: Read) -> Read:
    return lambda value, path, faults: None if value is None or _blank(value) else read(value, path, faults)


def _blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def _scalar(convert: Callable[[Any], Any], form: str) -> Read:
    def read(value: Any, path: str, faults: FieldErrors) -> Any:
        if isinstance(value, str):
            value = value.strip()
            if "\x00" in value or not encodes(value):
                return _note(faults, path, "Must not contain NUL or unpaired surrogates.")
        try:
            return convert(value)
        except Unreadable as why:
            return _note(faults, path, str(why))
        except (ValueError, msgspec.ValidationError):
            had = "; this is null. Leave it out to say nothing of it" if value is None else ""
            had = f"; this has {len(value)}" if isinstance(value, str) and form.endswith("characters") else had
            return _note(faults, path, f"Must be {form}{had}.")

    return read


def _list(read_item: Read, meta: msgspec.Meta, stand_in: Callable[[], Any]) -> Read:
    def read(value: Any, path: str, faults: FieldErrors) -> Any:
        if not isinstance(value, list):
            empty = "; send [] for none" if value is None and not meta.min_length else ""
            return _note(faults, path, f"Must be a list{empty}.")
        low, high = meta.min_length or 0, meta.max_length
        if len(value) < low or (high is not None and len(value) > high):
            return _note(faults, path, f"Must have {low} to {high} entries; this has {len(value)}.")
        items = [read_item(item, f"{path}.{position}", faults) for position, item in enumerate(value)]
        return [stand_in() if item is INVALID else item for item in items]

    return read


def _nested(shape: type[msgspec.Struct], use: str = "Create") -> Read:
    def read(value: Any, path: str, faults: FieldErrors) -> Any:
        if not isinstance(value, dict):
            return _note(faults, path, "Must be an object.")
        own: FieldErrors = {}
        whole = complete(shape, read_fields(shape, value, own, f"{path}.", use), value, own, f"{path}.")
        faults.update(own)
        return whole

    return read


def _child(shape: type[Record]) -> Read:
    """A new child as a whole; one that is named by its id as what changes of it (contract 1.4, sets of children)."""
    read_new = _nested(shape, "Child")

    def read(value: Any, path: str, faults: FieldErrors) -> Any:
        if not isinstance(value, dict) or value.get("id") is None:
            return read_new(value, path, faults)
        values = read_fields(shape, value, faults, f"{path}.", "Child")
        return ChildChange(values.pop("id", NO_ID), values)

    return read


def _note(faults: FieldErrors, path: str, sentence: str) -> object:
    faults.setdefault(path, []).append(sentence)
    return INVALID


def encodes(text: str) -> bool:
    """Whether a text is Unicode, without unpaired surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unknown(shape: type[msgspec.Struct], name: str, known: list[str]) -> str:
    if name in shape.__struct_encode_fields__:
        return (
            f"Is not taken when a record is {'changed' if name in writable_fields(shape) else 'created'}; leave it out."
        )
    near = difflib.get_close_matches(name[:64], known, n=1)
    return f"Is no member here. Did you mean {near[0]}?" if near else f"Is no member here. Known: {', '.join(known)}."
