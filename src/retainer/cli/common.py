"""What every command shares: reading options, opening the database, answering people and programs."""

import json as jsons
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from retainer import settings
from retainer.errors import FieldErrors, invalid
from retainer.store.engines import Sqlite
from retainer.store.migrations import exposed, migrate
from retainer.store.store import Store
from retainer.values.reading import complete, read_fields

T = TypeVar("T", bound=msgspec.Struct)
Json = Annotated[bool, typer.Option("--json", help="Answer one JSON object on standard output.")]
WORDS = {None: "-", True: "yes", False: "no"}


def say(answer: Mapping[str, Any], *, json: bool) -> None:
    """Print an answer: as one JSON object, or for a person to read, lists of objects as tables."""
    if json:
        print(jsons.dumps(answer))
        return
    for name, value in answer.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            table = Table(*value[0], box=None, pad_edge=False)
            for row in value:
                table.add_row(*map(shown, row.values()))
            Console(width=None if sys.stdout.isatty() else 300).print(table)
        else:
            print(f"{name}: {shown(value)}")


def shown(value: Any) -> str:
    """A value as a person reads it."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return WORDS[value] if value is None or isinstance(value, bool) else str(value)


def opened() -> Store:
    """The database of the settings in force, brought up to date."""
    engine = Sqlite(settings.load().database_path)
    migrate(engine)
    return Store(engine)


def warnings(database: Path) -> list[str]:
    """What others on this machine can reach and should not, as a sentence; none when all is well."""
    found = " ".join(map(str, exposed(database)))
    return [f"Others on this machine can reach the data. Close it: chmod go= {found}"] if found else []


def whole(shape: type[T], given: dict[str, Any], prefix: str = "", faults: FieldErrors | None = None) -> T | None:
    """What options say of a shape; raises `validation_failed` with every fault, or adds them to `faults`."""
    own: FieldErrors = {}
    sent = {name: value for name, value in given.items() if value is not None}
    found = complete(shape, read_fields(shape, sent, own, prefix), sent, own, prefix)
    if own and faults is None:
        raise invalid(own)
    (faults if faults is not None else own).update(own)
    return found


def changes(shape: type[msgspec.Struct], given: dict[str, Any]) -> dict[str, Any]:
    """What options change of a shape. Raises `validation_failed` with every fault, or wrong usage for none."""
    sent = {name: value for name, value in given.items() if value is not None}
    if not sent:
        raise typer.BadParameter("say what to change; --help lists the options")
    faults: FieldErrors = {}
    values = read_fields(shape, sent, faults)
    if faults:
        raise invalid(faults)
    return values
