"""Parts of every command: its options, the database, and its result."""

import json as jsons
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import sqlalchemy
import typer
from typer.core import TyperCommand, TyperGroup

from retainer import settings
from retainer.console.shapes import DeclaredType, declared
from retainer.errors import FieldErrors, Refusal, Sentence, about_pattern, invalid, nearest, shown
from retainer.identity.actors import operator_of
from retainer.mail.people import send_notice
from retainer.schema import fingerprint
from retainer.store.engines import Engine, connect
from retainer.store.engines.base import ELSEWHERE, Unavailable
from retainer.store.tx import Store, Tx
from retainer.values.kinds import MAX_INTEGER
from retainer.values.parameters import words_of
from retainer.values.reading import read_changes, read_record, writable_fields
from retainer.values.sentences import form_of

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=msgspec.Struct)
Fields = Mapping[str, Any]
MISSING = f"There is no database at {{}}. {ELSEWHERE} To create a new one here: retainer migrate, or retainer serve."
WORDS = {None: "-", True: "yes", False: "no"}
RENAMED = {"admin_password": "password", "user_id": "user", "event_id": "event", "is_small_business": "small_business"}
"""The fields whose options have shorter names."""
NUMBER = re.compile(r"-?[0-9]{1,16}")


class PlainHelp:
    """Help with flags that show no type, as they take no value, and with commands that are described in full."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in found:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return found

    def get_short_help_str(self, _limit: int = 0) -> str:
        return str(super().get_short_help_str(sys.maxsize))  # type: ignore[misc]


class PlainCommand(PlainHelp, TyperCommand):
    """A command of our own."""


class PlainGroup(PlainHelp, TyperGroup):
    """A group of such commands."""


def group(name: str, description: str) -> typer.Typer:
    return typer.Typer(name=name, help=description, no_args_is_help=True, cls=PlainGroup)


def number(least: int = 1, most: int = MAX_INTEGER, form: str = "") -> Callable[[object], int]:
    """Return the parser of a whole number, whose errors are ours and not those of Typer."""
    form = form or form_of(int, (msgspec.Meta(ge=least, le=most),))

    def read(given: object) -> int:
        text = str(given)
        if not NUMBER.fullmatch(text) or not least <= int(text) <= most:
            raise typer.BadParameter(f"Must be {form}.")
        return int(text)

    return read


def id_argument(name: str, description: str) -> Any:
    return typer.Argument(metavar=name, parser=number(), help=description)


Account = Annotated[int, id_argument("ACCOUNT", "The account's id.")]


class Listing(NamedTuple):
    """Records of a result: whole as JSON, and as a table with some of their fields."""

    records: Sequence[msgspec.Struct | Fields]
    columns: Sequence[str] = ()


def option(name: str, kind: Any, description: str, *names: str, default: Any = None, **more: Any) -> Parameter:
    """Return an option of a command, `--name` unless other names are given; Parameter.empty makes it required."""
    annotation = Annotated[kind | None, typer.Option(*(names or [option_name(name)]), help=description, **more)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def option_name(field: str) -> str:
    return f"--{RENAMED.get(field, field).replace('_', '-')}"


JSON = option("json", bool, "Print one JSON object on standard output.", "--json", default=False)
ADDRESS = "The public address of the server in the link, like https://agency.example."
BASE_URL = option("base_url", str, ADDRESS, metavar="URL", show_default="RETAINER_BASE_URL")


def fields_of(model: type[msgspec.Struct], *names: str, is_new: bool = True) -> list[Parameter]:
    """Return an option for each field of a type, or for some: its sentence and what it accepts are the help.

    A new record requires the fields without a default; a change requires nothing.
    """
    hints, found = get_type_hints(model, include_extras=True), []
    for name, field in writable_fields(model).items():
        if names and name not in names:
            continue
        declaration, named = declared(hints[field.name]), option_name(name)
        label = named[2:].replace("-", " ").capitalize()
        sentence = next((mark for mark in declaration.marks if isinstance(mark, str)), "")
        if declaration.type is bool:
            both = f"{named}/--no-{named[2:]}"
            found.append(option(name, bool, sentence or f"{label}.", both, show_default=False))
            continue
        form = _form(declaration)
        description = f"{sentence} Must be {form}." if sentence else f"{label}: {form}."
        is_number, is_required = declaration.type is int, is_new and field.required
        parser = number(-MAX_INTEGER, form=form) if is_number else None  # the record knows its range
        shown = str(field.default) if is_new and not is_required and field.default is not None else False
        default = Parameter.empty if is_required else None
        kind = int if is_number else str
        found.append(option(name, kind, description, default=default, show_default=shown, parser=parser))
    return found


def _form(found: DeclaredType) -> str:
    if get_origin(found.type) is list:
        (item,) = get_args(found.type)
        return f"a list separated by commas, each {_form(declared(item))}"
    own = (getattr(mark, "extra", None) for mark in found.marks)
    return str(Sentence(next((extra["form"] for extra in own if extra), "") or form_of(found.type, tuple(found.marks))))


def command(group: typer.Typer, name: str | None = None, options: Iterable[Parameter] = ()) -> Callable[[F], F]:
    """Add a function to a group as a command with --json that prints what the function returns.

    The function takes `options` as `given`, and may ask for `json`. Typer reads them from its signature (PEP 362).
    """

    def add(function: F) -> F:
        declared = signature(function, eval_str=True)
        own = [each for each in declared.parameters.values() if each.name not in {"given", "json"}]
        given = sorted(options, key=lambda each: each.default is not Parameter.empty)  # help shows required ones first
        first = sum(each.kind is Parameter.POSITIONAL_OR_KEYWORD for each in own)
        takes_json = "json" in declared.parameters

        @wraps(function)
        def run(*, json: bool, **values: Any) -> None:
            result = function(**values, json=json) if takes_json else function(**values)
            if result is not None:
                say(result, json=json)

        run.__signature__ = declared.replace(parameters=[*own[:first], *given, *own[first:], JSON])  # type: ignore[attr-defined]
        paragraphs = (function.__doc__ or "").split("\n\n")
        run.__doc__ = "\n\n".join(" ".join(each.split()) for each in paragraphs)  # Typer would keep our line breaks
        group.command(name, cls=PlainCommand)(run)
        return function

    return add


def say(result: msgspec.Struct | Fields, *, json: bool) -> None:
    """Print a result as one JSON object, or as text, with lists of objects as tables; at once, also into a pipe."""
    printed = {name: _printed(value, json=json) for name, value in _fields(result).items()}
    if json:
        print(jsons.dumps(printed), flush=True)
        return
    for name, value in printed.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            from rich.console import Console  # noqa: PLC0415  # a server needs no tables
            from rich.table import Table  # noqa: PLC0415

            table = Table(*value[0], box=None, pad_edge=False)
            for row in value:
                table.add_row(*map(cell_text, row.values()))
            Console(width=None if sys.stdout.isatty() else 300).print(table)
        else:
            print(f"{name}: {cell_text(value)}")
    sys.stdout.flush()  # a server goes on for weeks after it has printed its address


def _fields(record: msgspec.Struct | Fields) -> Fields:
    return msgspec.structs.asdict(record) if isinstance(record, msgspec.Struct) else record


def _printed(value: Any, *, json: bool) -> Any:
    if not isinstance(value, Listing):
        return value
    records = map(_fields, value.records)
    return [*records] if json else [{name: each[name] for name in value.columns or each} for each in records]


def cell_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {each}" for name, each in value.items())
    return WORDS[value] if value is None or isinstance(value, bool) else str(value)


def connected() -> Engine:
    """Return the engine of the configured database, without the time limits of requests."""
    return connect(settings.load().database, is_limited=False)


def opened() -> Store:
    """Return the configured database. Raises Unavailable if there is none, or if it lacks migrations.

    Only few commands create a database or migrate it: the version that served it could not start any more.
    """
    engine = connected()
    require_database(engine)
    fingerprint.check(engine)
    return Store(engine, mail_from=settings.load().sender, tell_user=send_notice)


def require_database(engine: Engine) -> None:
    if not engine.exists():
        raise Unavailable(MISSING.format(engine.location))


def warn(sentence: str) -> None:
    print(sentence, file=sys.stderr)


@contextmanager
def acting_for(account_id: int, *, write: bool = True) -> Iterator[Tx]:
    """Run a block in a transaction of an account's operator. Raises `not_found`."""
    store = opened()
    with store.begin(operator_of(store, account_id), write=write) as tx:
        yield tx


@contextmanager
def acting_on(table: sqlalchemy.Table, row_id: int) -> Iterator[Tx]:
    """Run a block in a transaction of the operator of a row's account. Raises `not_found`."""
    store = opened()
    with store.begin(operator_of(store, row_id, table), write=True) as tx:
        yield tx


def site(host: str = "127.0.0.1", port: int = 8000) -> str:
    return settings.load().base_url or f"http://{'127.0.0.1' if host in {'0.0.0.0', '::'} else host}:{port}"  # noqa: S104


def public_address(base_url: str | None, *, json: bool) -> str:
    """Return the public address for links: as given, else of the settings. Warns if it is that of this machine.

    Raises `validation_failed` if it is no address.
    """
    if base_url is not None:
        try:
            return settings.read_base_url(base_url)
        except ValueError:
            raise invalid({"base_url": ["Must be an address like https://agency.example."]}) from None
    if not settings.load().base_url and not json:
        warn("The link leads to port 8000 of this machine. For another address: --base-url, or RETAINER_BASE_URL.")
    return site()


def given_fields(model: type[msgspec.Struct], options: Fields) -> dict[str, object]:
    """Return the options that were given, of those named like a field; a list is separated by commas, or empty."""
    hints = get_type_hints(model, include_extras=True)
    given = {name: options[name] for name in model.__struct_fields__ if options.get(name) is not None}
    for name, value in given.items():
        if get_origin(declared(hints[name]).type) is list:
            given[name] = [part.strip() for part in value.split(",")] if value else []
    return given


def whole(model: type[T], options: Fields) -> T:
    """Return the record that options describe. Raises `validation_failed` with all errors."""
    given = given_fields(model, options)
    with naming_entries(model, given):
        return read_record(model, given)


def changes(model: type[msgspec.Struct], options: Fields, *, may_be_none: bool = False) -> dict[str, Any]:
    """Return the fields that options change; an empty text clears a field.

    Raises `validation_failed` with all errors, BadParameter for no change unless there may be none.
    """
    sent = {name: None if value in ("", []) else value for name, value in given_fields(model, options).items()}
    if not sent and not may_be_none:
        raise typer.BadParameter("Set at least one option; --help lists them.")
    with naming_entries(model, sent):
        return read_changes(model, sent)


@contextmanager
def naming_entries(model: type[msgspec.Struct], given: Fields) -> Iterator[None]:
    """Replace the errors of entries of lists in a block by such that name the entry: an option is one text."""
    try:
        yield
    except Refusal as refusal:
        found, hints = FieldErrors(), get_type_hints(model, include_extras=True)
        for path, messages in refusal.members.get("errors", {}).items():
            name, _, position = path.partition(".")
            if not position.isdecimal():
                found[path] = messages
                continue
            entry, (item,) = given[name][int(position)], get_args(declared(hints[name]).type)
            words, noun = words_of(item), name.replace("_", " ").removesuffix("s")
            if not words:
                found.note(name, f"{shown(entry)}: {messages[0]}")
                continue
            if pattern := about_pattern(entry, words):
                found.note(name, f"{shown(entry)} is not a {noun}: {pattern}")
                continue
            near = nearest(entry, words)
            advice = f"Did you mean {near[0]}?" if near else f"Valid are: {', '.join(words)}."
            is_listed = not near and any(message.endswith(advice) for message in found.get(name, ()))
            message = f"{shown(entry) or 'An empty word'} is not a {noun}."
            found.note(name, message if is_listed else f"{message} {advice}")
        raise (invalid(found) if found else refusal) from None
