"""Parts of every command: options, the database, and results."""

import json as jsons
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import msgspec
import sqlalchemy
import typer

from retainer import settings
from retainer.errors import FieldErrors, invalid
from retainer.identity.actors import operator_for, operator_of
from retainer.schema.migrations import migrate
from retainer.store.engines import Engine, connect
from retainer.store.tx import Store, Tx
from retainer.values.kinds import MAX_INTEGER
from retainer.values.reading import complete, read_fields

T = TypeVar("T", bound=msgspec.Struct)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Account = Annotated[int, typer.Argument(metavar="ACCOUNT", min=1, max=MAX_INTEGER, help="The account's id.")]
Since = Annotated[str | None, typer.Option(metavar="INSTANT", help="From this instant on, like 2026-03-10T09:00:00Z.")]
Until = Annotated[str | None, typer.Option(metavar="INSTANT", help="Before this instant, like 2026-03-11T09:00:00Z.")]
PublicAddress = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="The public address of the server in the link, like https://agency.example.",
        show_default="RETAINER_BASE_URL",
    ),
]
WORDS = {None: "-", True: "yes", False: "no"}


def say(result: Mapping[str, object], *, json: bool) -> None:
    """Print a result as one JSON object, or as text, with lists of objects as tables."""
    if json:
        print(jsons.dumps(result))
        return
    for name, value in result.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            from rich.console import Console  # noqa: PLC0415  # a server needs no tables
            from rich.table import Table  # noqa: PLC0415

            table = Table(*value[0], box=None, pad_edge=False)
            for row in value:
                table.add_row(*map(cell_text, row.values()))
            Console(width=None if sys.stdout.isatty() else 300).print(table)
        else:
            print(f"{name}: {cell_text(value)}")


def cell_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return WORDS[value] if value is None or isinstance(value, bool) else str(value)


def listed(records: Sequence[msgspec.Struct], names: Sequence[str], *, json: bool) -> list[dict[str, object]]:
    """Return records for `say`: whole as JSON, and with these fields as a table."""
    return [msgspec.structs.asdict(each) if json else {name: getattr(each, name) for name in names} for each in records]


def opened() -> Store:
    engine = connect(settings.load().database)
    migrate(engine, warn)
    return Store(engine)


def warn(sentence: str) -> None:
    typer.echo(sentence, err=True)


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
    with store.begin(operator_for(store, table, row_id), write=True) as tx:
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


def comma_list(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",")]


def warnings(engine: Engine) -> list[str]:
    """Return a warning with the files that other users of this machine can read, if any."""
    paths = " ".join(map(str, engine.world_readable()))
    return [f"Other users of this machine can read the data. Protect it: chmod go= {paths}"] if paths else []


def given(model: type[msgspec.Struct], options: Mapping[str, object]) -> dict[str, object]:
    """Return the options that were given, of those named like a field: a command may pass its `locals()`."""
    return {name: options[name] for name in model.__struct_fields__ if options.get(name) is not None}


def any_given(model: type[msgspec.Struct], options: Mapping[str, object]) -> bool:
    return bool(given(model, options))


def whole(model: type[T], options: Mapping[str, object]) -> T:
    """Return the record that options describe. Raises `validation_failed` with all errors."""
    errors = FieldErrors()
    record = whole_part(model, options, errors)
    if errors:
        raise invalid(errors)
    return record


def whole_part(model: type[T], options: Mapping[str, object], errors: FieldErrors, prefix: str = "") -> T:
    """Return the record that some options of a command describe; notes errors.

    `prefix` stands before field names in errors: `admin_` makes `email` the option `--admin-email`.
    """
    sent = given(model, options)
    return complete(model, read_fields(model, sent, errors, prefix), sent, errors, prefix)


def defaults(model: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the defaults of a type's fields, for options; None for those without one."""
    return {
        field.name: None if field.default is msgspec.NODEFAULT else field.default
        for field in msgspec.structs.fields(model)
    }


def changes(model: type[msgspec.Struct], options: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields that options change; an empty text clears a field.

    Raises `validation_failed` with all errors, BadParameter for no change.
    """
    sent = {name: None if value == "" else value for name, value in given(model, options).items()}
    if not sent:
        raise typer.BadParameter("set at least one option; --help lists them")
    errors = FieldErrors()
    values = read_fields(model, sent, errors)
    if errors:
        raise invalid(errors)
    return values
