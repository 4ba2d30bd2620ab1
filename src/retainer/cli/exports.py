"""The command that exports everything of one account: a JSON or CSV file for each kind of record."""

import csv
import json as jsons
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Protocol, get_args

import msgspec
import typer
from sqlalchemy import Select, Table, bindparam

from retainer.cli.common import Account, Json, acting_for, say
from retainer.errors import invalid
from retainer.identity import accounts
from retainer.store.details import load_details
from retainer.store.engines.files import private
from retainer.store.row_mapper import row_mapper
from retainer.store.tx import Tx
from retainer.values.records import Record
from retainer.web.csv_files import BYTE_ORDER_MARK, safe

FORMATS = ("csv", "json")
CHUNK = 500
"""Records that are read at once, with their lines, payments and replies."""

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write: a new one.")]
Formats = Annotated[str, typer.Option("--format", help="csv, json, or both: csv,json.")]


def export(account: Account, folder: Folder, *, formats: Formats = "csv,json", json: Json = False) -> None:
    """Write everything of an account to files: its settings, and the records of each list of the API.

    All files show the same moment. Secrets, passwords and logs are not in them, and neither are PDFs.
    """
    chosen = sorted({part.strip() for part in formats.split(",")})
    if not set(chosen) <= set(FORMATS):
        raise invalid({"format": ["Must be csv, json, or csv,json."]})
    if folder.exists():
        raise invalid({"dir": [f"{folder} exists already. Name a new folder."]})
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        acting_for(account, write=False) as tx,
        tempfile.TemporaryDirectory(prefix=".retainer-export-", dir=folder.parent) as unfinished,
    ):
        tx.snapshot()
        counts = write(tx, Path(unfinished), chosen)
        Path(unfinished).rename(folder)  # all or nothing
    say({"folder": str(folder), "records": sum(counts.values()), **({"files": counts} if json else counts)}, json=json)


def write(tx: Tx, folder: Path, formats: list[str]) -> dict[str, int]:
    """Write the files of an account; return the number of records of each kind."""
    with open(folder / "account.json", "x", encoding="utf-8", opener=private) as file:
        jsons.dump(accounts.get_account(tx), file, indent=1, default=str, ensure_ascii=False)
    counts = {}
    for name, (table, model) in kinds().items():
        writers = [WRITERS[each](folder / f"{name}.{each}") for each in formats]
        counts[name] = 0
        for record in read(tx, table, model):
            counts[name] += 1
            for writer in writers:
                writer.add(record)
        for writer in writers:
            writer.close()
    return counts


def kinds() -> dict[str, tuple[Table, type[Record]]]:
    """Return the tables of all lists of the API, with the types of their records."""
    from retainer.app import RESOURCES  # noqa: PLC0415  # other commands need no application
    from retainer.kernel.routes import Routes  # noqa: PLC0415

    lists = [each for each in Routes(RESOURCES).operations if each.paged]
    found = [(each.resource.table, get_args(each.answers)[0]) for each in lists]
    return {table.name: (table, model) for table, model in found if table is not None}


def read(tx: Tx, table: Table, model: type[Record]) -> Iterator[Record]:
    """Yield the records of a table as the API returns them one by one, in the order of their ids."""
    last = 0
    while records := row_mapper(table, model).read_all(tx.all(_after(table, model), after=last, size=CHUNK)):
        load_details(tx, table, records)
        yield from records
        last = records[-1].id


@cache
def _after(table: Table, model: type[Record]) -> Select[str]:
    return (
        row_mapper(table, model)
        .rows.where(table.c.id > bindparam("after"))
        .order_by(table.c.id)
        .limit(bindparam("size"))
    )


class Writer(Protocol):
    """Writes the records of one kind to a file."""

    def add(self, record: Record) -> None: ...
    def close(self) -> None: ...


class JsonFile:
    """A JSON array with a record on each line."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "x", encoding="utf-8", opener=private)  # noqa: SIM115  # close ends it
        self._before = "[\n"

    def add(self, record: Record) -> None:
        self._file.write(self._before + msgspec.json.encode(record).decode())
        self._before = ",\n"

    def close(self) -> None:
        self._file.write("[]\n" if self._before == "[\n" else "\n]\n")
        self._file.close()


class CsvFile:
    """A CSV file with a column for each field; lists, such as the lines of an invoice, are JSON in their cell."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "x", encoding="utf-8", newline="", opener=private)  # noqa: SIM115  # close ends it
        self._file.write(BYTE_ORDER_MARK)
        self._writer = csv.writer(self._file, quoting=csv.QUOTE_NONNUMERIC)
        self._is_begun = False

    def add(self, record: Record) -> None:
        values = msgspec.to_builtins(record, builtin_types=(Decimal,))
        if not self._is_begun:
            self._writer.writerow(values)
            self._is_begun = True
        self._writer.writerow([_cell(value) for value in values.values()])

    def close(self) -> None:
        self._file.close()


WRITERS: dict[str, Callable[[Path], Writer]] = {"csv": CsvFile, "json": JsonFile}


def _cell(value: object) -> object:
    if isinstance(value, bool | list | dict):
        return jsons.dumps(value, ensure_ascii=False, default=str)
    return safe(value) if isinstance(value, str) or value is None else value
