"""The command that exports everything of one account into a new folder."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from retainer.cli import common as cli
from retainer.cli.progress import progress_bars
from retainer.errors import invalid, none_of
from retainer.exchange.export import FORMATS
from retainer.exchange.export import export as export_account

export_cli = typer.Typer()

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write: a new one.")]
Formats = Annotated[str, typer.Option("--format", help="Of records: csv, json (JSON Lines), or both: csv,json.")]


@cli.command(export_cli)
def export(account: cli.Account, folder: Folder, *, formats: Formats = "csv,json", json: bool) -> dict[str, object]:
    """Write everything of an account to files: its settings, records, documents (PDF and XML) and files of records.

    All show the same moment; manifest.json has their counts and SHA-256. Secrets, passwords and logs are not in them.
    """
    from retainer.app import ROUTES  # noqa: PLC0415  # other commands need no application

    chosen = sorted({part.strip() for part in formats.split(",")})
    if not set(chosen) <= FORMATS.keys():
        raise invalid({"format": [f"Must be csv, json, or csv,json. {none_of(chosen, FORMATS)}"]})
    if folder.exists():
        raise invalid({"dir": [f"{folder} exists already. Name a new folder."]})
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        cli.acting_for(account, write=False) as tx,
        tempfile.TemporaryDirectory(prefix=".retainer-export-", dir=folder.parent) as unfinished,
        progress_bars() as show,
    ):
        tx.snapshot()
        exported = export_account(tx, Path(unfinished), ROUTES, chosen, show)
        Path(unfinished).rename(folder)  # all or nothing
    counts = {"documents": exported.documents, "left_out": len(exported.left_out)}
    told = {"folder": str(folder), "records": sum(exported.records.values()), **counts}
    return {**told, **({"files": exported.records} if json else exported.records)}
