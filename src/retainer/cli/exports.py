"""The command that exports everything of one account: a JSON or CSV file for each kind of record."""

import json as jsons
import tempfile
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Annotated, TextIO, get_args

import msgspec
import typer
from sqlalchemy import Table

from retainer.backup import Progress
from retainer.cli import common as cli
from retainer.cli.progress import progress_bars
from retainer.errors import invalid
from retainer.identity import accounts
from retainer.store.engines.files import private
from retainer.store.streams import stream_records
from retainer.store.tx import Tx
from retainer.values.records import Record
from retainer.web.csv_files import BYTE_ORDER_MARK, write_row

export_cli = typer.Typer()
SHOWN = 500
"""Records between two updates of the progress on a terminal."""

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write: a new one.")]
Formats = Annotated[str, typer.Option("--format", help="csv, json, or both: csv,json.")]


@cli.command(export_cli)
def export(account: cli.Account, folder: Folder, *, formats: Formats = "csv,json", json: bool) -> dict[str, object]:
    """Write everything of an account to files: its settings, and the records of each list of the API.

    All files show the same moment. Secrets, passwords and logs are not in them, and neither are PDFs.
    """
    chosen = sorted({part.strip() for part in formats.split(",")})
    if not set(chosen) <= {"csv", "json"}:
        raise invalid({"format": ["Must be csv, json, or csv,json."]})
    if folder.exists():
        raise invalid({"dir": [f"{folder} exists already. Name a new folder."]})
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        cli.acting_for(account, write=False) as tx,
        tempfile.TemporaryDirectory(prefix=".retainer-export-", dir=folder.parent) as unfinished,
        progress_bars() as show,
    ):
        tx.snapshot()
        counts = write(tx, Path(unfinished), chosen, show)
        Path(unfinished).rename(folder)  # all or nothing
    return {"folder": str(folder), "records": sum(counts.values()), **({"files": counts} if json else counts)}


def write(tx: Tx, folder: Path, formats: list[str], show: Progress = lambda *_: None) -> dict[str, int]:
    """Write the files of an account; return the number of records of each kind."""
    with new_file(folder / "account.json") as file:
        jsons.dump(accounts.get_account(tx), file, indent=1, default=str, ensure_ascii=False)
    counts = {}
    for name, (table, model) in kinds().items():
        counts[name] = 0
        with ExitStack() as opened:
            files = {each: opened.enter_context(new_file(folder / f"{name}.{each}")) for each in formats}
            for record in stream_records(tx, table, model):
                is_first = not counts[name]
                if "json" in files:
                    files["json"].write(("[\n" if is_first else ",\n") + msgspec.json.encode(record).decode())
                if "csv" in files:
                    add_csv(files["csv"], record, is_first=is_first)
                counts[name] += 1
                if is_first or counts[name] % SHOWN == 0:
                    show(name.replace("_", " ").capitalize(), counts[name], 0)
            if "json" in files:
                files["json"].write("\n]\n" if counts[name] else "[]\n")
    return counts


def new_file(path: Path) -> TextIO:
    return open(path, "x", encoding="utf-8", newline="", opener=private)


def kinds() -> dict[str, tuple[Table, type[Record]]]:
    """Return the tables of all lists of the API, with the types of their records."""
    from retainer.app import ROUTES  # noqa: PLC0415  # other commands need no application

    lists = [each for each in ROUTES.operations if each.paged]
    found = [(each.resource.table, get_args(each.answers)[0]) for each in lists]
    return {table.name: (table, model) for table, model in found if table is not None}


def add_csv(file: TextIO, record: Record, *, is_first: bool) -> None:
    """Add a row with a column for each field; lists, such as the lines of an invoice, are JSON in their cell."""
    values = msgspec.to_builtins(record, builtin_types=(Decimal,))
    if is_first:
        file.write(BYTE_ORDER_MARK)
        write_row(file, values)
    for name, value in values.items():
        if isinstance(value, bool | list | dict):
            values[name] = jsons.dumps(value, ensure_ascii=False, default=str)
    write_row(file, values.values())
