"""Export: everything of one account in a folder: its records, its documents, its files, and what there is of them.

`manifest.json` counts the records, says what each column means, and has the size and the SHA-256 of each file.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import msgspec
from sqlalchemy import Table

from retainer import __version__
from retainer.background import Progress
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.files import UNSAFE, DocumentQuery, prepare
from retainer.billing.invoices.types import Invoice
from retainer.billing.papers import is_issued
from retainer.billing.quotes.types import Quote
from retainer.errors import Refusal
from retainer.files.contents import read_pieces
from retainer.files.files import File
from retainer.identity import accounts, logos
from retainer.identity.people import users
from retainer.kernel.representations import run_here
from retainer.kernel.routes import Routes
from retainer.openapi.document import document_of
from retainer.schema.billing import credit_notes, invoices, quotes
from retainer.schema.files import files
from retainer.shared import numbering
from retainer.store.constraints import singular
from retainer.store.engines.files import private
from retainer.store.streams import stream_records
from retainer.store.tx import Tx
from retainer.values.records import Record
from retainer.web.csv_files import BYTE_ORDER_MARK, write_row

SHOWN = 500
"""Records between two updates of the progress on a terminal."""
FORMATS = {"csv": "csv", "json": "jsonl"}
"""The endings of the files of records, by the names of their formats: JSON comes as JSON Lines."""
PRINTED: tuple[tuple[Table, type[Invoice | Quote | CreditNote], tuple[str, ...]], ...] = (
    (invoices, Invoice, ("pdf", "xml")),
    (credit_notes, CreditNote, ("pdf", "xml")),
    (quotes, Quote, ("pdf",)),
)
MANIFEST = "manifest.json"
Kinds = dict[str, tuple[Table, type[Record]]]


@dataclass
class ExportSummary:
    """What an export has written."""

    records: dict[str, int] = field(default_factory=dict)
    """The number of records of each kind."""
    documents: int = 0
    left_out: list[dict[str, str]] = field(default_factory=list)
    """The documents that could not be drawn, each with the reason."""


def kinds_of(routes: Routes) -> Kinds:
    """Return the tables of all lists of the API, with the types of their records."""
    lists = [each for each in routes.operations if each.paged]
    found = [(each.resource.table, each.answer.model) for each in lists]
    return {table.name: (table, model) for table, model in found if table is not None}


def export(tx: Tx, folder: Path, routes: Routes, formats: list[str], show: Progress = lambda *_: None) -> ExportSummary:
    """Write everything of the account of a snapshot into an empty folder. Raises OSError."""
    write_account(tx, folder)
    exported, kinds = ExportSummary(), kinds_of(routes)
    for name, (table, model) in kinds.items():
        exported.records[name] = write_records(folder, name, stream_records(tx, table, model), formats, show)
    write_documents(tx, folder / "documents", exported, show)
    write_files(tx, folder / "files", show)
    write_manifest(tx, folder, describe(routes, kinds), exported)
    return exported


def write_account(tx: Tx, folder: Path) -> None:
    """Write what no list of the API has: the settings, the next numbers, the logo, and how people are billed."""
    account = accounts.get_account(tx)
    people = [
        person | {"cost_rates": [{"from": day or None, "amount": amount} for day, amount in costs]}
        for person in users.list_users(tx)
        for costs in [users.list_cost_rates(tx, person["id"])]
    ]
    facts = {"account": account | {"next_numbers": numbering.upcoming_numbers(tx)}, "people": people}
    for name, values in facts.items():
        with new_text(folder / f"{name}.json") as file:
            json.dump(values, file, indent=1, default=str, ensure_ascii=False)
    if logo := logos.find_logo(tx, account["logo_id"]):
        with new_bytes(folder / "logo.png") as picture:
            picture.write(logo.content)


def write_records(folder: Path, name: str, records: Iterator[Record], formats: list[str], show: Progress) -> int:
    count = 0
    with ExitStack() as opened:
        texts = {each: opened.enter_context(new_text(folder / f"{name}.{FORMATS[each]}")) for each in formats}
        for record in records:
            if "json" in texts:
                texts["json"].write(msgspec.json.encode(record).decode() + "\n")
            if "csv" in texts:
                add_csv(texts["csv"], record, is_first=not count)
            count += 1
            if count == 1 or count % SHOWN == 0:
                show(name.replace("_", " ").capitalize(), count, 0)
    return count


def add_csv(file: TextIO, record: Record, *, is_first: bool) -> None:
    """Add a row with a column for each field; lists, such as the lines of an invoice, are JSON in their cell."""
    values = msgspec.to_builtins(record, builtin_types=(Decimal,))
    if is_first:
        file.write(BYTE_ORDER_MARK)
        write_row(file, values)
    for name, value in values.items():
        if isinstance(value, bool | list | dict):
            values[name] = json.dumps(value, ensure_ascii=False, default=str)
    write_row(file, values.values())


def write_documents(tx: Tx, folder: Path, exported: ExportSummary, show: Progress) -> None:
    """Write the PDF and the e-invoice of each issued document and of its versions, and note those that it lacks."""
    for table, record, version, suffix in papers_of(tx):
        part = "" if version is None else f".v{version}"
        try:
            drawn = prepare(suffix, tx, record, DocumentQuery(version=version)).finish(tx.actor.account_id, run_here)
        except Refusal as refusal:
            what = {"record": f"{singular(table)} {record.id}", "form": f"{part}.{suffix}".removeprefix(".")}
            exported.left_out.append(what | {"reason": refusal.message})
            continue
        stem = drawn.name.removesuffix(f".{suffix}")
        with new_bytes(folder / table.name / f"{record.id}-{stem}{part}.{suffix}") as file:
            file.write(drawn.content)
        exported.documents += 1
        show("Documents", exported.documents, 0)


def papers_of(tx: Tx) -> Iterator[tuple[Table, Invoice | Quote | CreditNote, int | None, str]]:
    """Yield each issued document with its table, once for each of its versions in each form."""
    for table, model, suffixes in PRINTED:
        for record in filter(is_issued, stream_records(tx, table, model)):
            for version, suffix in product(versions_of(record), suffixes):
                yield table, record, version, suffix


def versions_of(record: Invoice | Quote | CreditNote) -> list[int | None]:
    """Return the versions of a document: None, which says what has become of it, and the others as they were issued.

    The newest comes as it was issued only if it is void, since its file then says so and has no e-invoice.
    """
    newest = getattr(record, "document_version", None) or 1
    is_kept = isinstance(record, Invoice) and record.status == "void" and not record.is_imported
    return [None, *range(1, newest + is_kept)]


def write_files(tx: Tx, folder: Path, show: Progress) -> None:
    """Write the files of records, each with its id in front of its name, which `files.csv` has as it was sent."""
    for count, record in enumerate(stream_records(tx, files, File), 1):
        with new_bytes(folder / f"{record.id}-{UNSAFE.sub('-', record.name).strip('-.')}") as file:
            for piece in read_pieces(tx, record.id, record.size):
                file.write(piece)
        show("Files", count, 0)


def describe(routes: Routes, kinds: Kinds) -> dict[str, dict[str, str]]:
    """Return what each column of each kind means, as the reference says it."""
    schemas: dict[str, Any] = document_of(routes)["components"]["schemas"]

    def sentence(schema: dict[str, Any]) -> str:
        named = schemas.get(schema.get("$ref", "").rpartition("/")[2], {})
        return str(schema.get("description") or named.get("description") or "")

    return {
        name: {column: sentence(schema) for column, schema in schemas[model.__name__]["properties"].items()}
        for name, (_, model) in kinds.items()
    }


def write_manifest(tx: Tx, folder: Path, columns: dict[str, dict[str, str]], exported: ExportSummary) -> None:
    written = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        written.append({"path": path.relative_to(folder).as_posix(), "size": path.stat().st_size, "sha256": digest})
    manifest = {
        "program": f"Retainer {__version__}",
        "account_id": tx.actor.account_id,
        "exported_at": tx.now,
        "records": exported.records,
        "documents": exported.documents,
        "left_out": exported.left_out,
        "columns": columns,
        "files": written,
    }
    with new_text(folder / MANIFEST) as file:
        json.dump(manifest, file, indent=1, ensure_ascii=False)


def new_text(path: Path) -> TextIO:
    return open(path, "x", encoding="utf-8", newline="", opener=private)


def new_bytes(path: Path) -> BinaryIO:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return open(path, "xb", opener=private)
