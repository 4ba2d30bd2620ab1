"""The command that exports everything of one account into a new folder."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from retainer.cli import common as cli
from retainer.cli.progress import progress_bars
from retainer.errors import invalid, none_of
from retainer.exchange.export import FORMATS, MANIFEST, ExportSummary
from retainer.exchange.export import export as export_account

export_cli = typer.Typer()
SHOWN = 20
"""Documents that were left out, as a terminal shows them; the manifest has all of them."""

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write: a new one.")]
Formats = Annotated[str, typer.Option("--format", help="Of records: csv, json (JSON Lines), or both: csv,json.")]


@cli.command(export_cli)
def export(account: cli.Account, folder: Folder, *, formats: Formats = "csv,json", json: bool) -> dict[str, object]:
    """Write everything of an account to files: its settings, records, documents (PDF and XML) and files of records.

    All show the same moment; manifest.json has their counts and SHA-256, and names the PDFs and XMLs that could not be
    made. Secrets, passwords and logs are not in them.
    """
    from retainer.api import ROUTES  # noqa: PLC0415  # other commands need no application

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
    left_out = cli.Listing(exported.left_out if json else exported.left_out[:SHOWN])
    return {
        **told,
        **({"files": exported.records} if json else exported.records),
        **({"left_out_documents": left_out} if json or exported.left_out else {}),
        **({"message": message_of(exported, folder)} if json or exported.left_out else {}),
    }


def message_of(exported: ExportSummary, folder: Path) -> str | None:
    """Return what the files lack, and where to read it; None if they lack nothing."""
    count = len(exported.left_out)
    if not count:
        return None
    what = "1 PDF or XML of a document" if count == 1 else f"{count} PDFs and XMLs of documents"
    lists = f"{folder.joinpath(MANIFEST)} names {'it' if count == 1 else 'each'} with the reason, under left_out."
    return (
        f"{what} could not be made and {'is' if count == 1 else 'are'} not in the files. {lists} All records are there."
    )
