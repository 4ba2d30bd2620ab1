"""Export: everything of one account as files: its records, its documents, its files, and what there is of them.

It is read in parts, each of which has a position, so that a job can go on after any of them. `manifest.json` counts the
records, says what each column means, and has the size and the SHA-256 of each file.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from io import StringIO
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import msgspec
from sqlalchemy import Table

from retainer import __version__
from retainer.background import Progress
from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.files import UNSAFE, DocumentQuery, PaperFile, prepare
from retainer.billing.invoices.types import Invoice
from retainer.billing.papers import is_issued
from retainer.billing.quotes.types import Quote
from retainer.errors import Refusal
from retainer.files.contents import read_pieces
from retainer.files.files import File
from retainer.identity import accounts, logos
from retainer.identity.people import users
from retainer.kernel.representations import RunApart, run_here
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

PART_RECORDS = 500
"""Records of a part."""
VERSIONS, STAGE = 2**16, 2**54
"""Between the positions of two documents, and of two kinds of parts: more than there are versions, and documents."""
FORMATS = {"csv": "csv", "json": "jsonl"}
"""The endings of the files of records, by the names of their formats: JSON comes as JSON Lines."""
Paper = Invoice | Quote | CreditNote
PRINTED: tuple[tuple[Table, type[Paper], tuple[str, ...]], ...] = (
    (invoices, Invoice, ("pdf", "xml")),
    (credit_notes, CreditNote, ("pdf", "xml")),
    (quotes, Quote, ("pdf",)),
)
MANIFEST = "manifest.json"
Kinds = dict[str, tuple[Table, type[Record]]]
Stage = Callable[[Tx, int], Iterator["ExportPart"]]
"""Reads the parts of a kind after a position, which follows from the ids of their records."""


@dataclass
class ExportSummary:
    """What an export has written."""

    records: dict[str, int] = field(default_factory=dict)
    """The number of records of each kind."""
    documents: int = 0
    left_out: list[dict[str, str]] = field(default_factory=list)
    """The documents that could not be drawn, each with the reason."""


class RecordFile(NamedTuple):
    """A file with all records of a table in a format."""

    name: str
    table: Table
    model: type[Record]
    form: str
    is_counted: bool
    """Whether its records are those that the export counts: each format has the same."""


class Made(NamedTuple):
    """The files of a part, of which a path may continue a file that the parts before it have begun."""

    files: list[tuple[str, bytes]]
    kind: str = ""
    """Of which records it has some."""
    records: int = 0
    documents: int = 0
    left_out: Sequence[dict[str, str]] = ()


PartMaker = Callable[[int, RunApart], Made]
"""Makes the files of a part from what was read, for an account; what takes long runs apart."""


class ExportPart(NamedTuple):
    """A part of an export: its position, which is above that of the part before it, and what people call it."""

    position: int
    name: str
    make: PartMaker


def kinds_of(routes: Routes) -> Kinds:
    """Return the tables of all lists of the API, with the types of their records."""
    lists = [each for each in routes.operations if each.paged]
    found = [(each.resource.table, each.answer.model) for each in lists]
    return {table.name: (table, model) for table, model in found if table is not None}


def export(tx: Tx, folder: Path, routes: Routes, formats: list[str], show: Progress = lambda *_: None) -> ExportSummary:
    """Write everything of the account of a snapshot into an empty folder. Raises OSError."""
    exported, kinds = ExportSummary(), kinds_of(routes)
    for part in read_parts(tx, kinds, formats):
        made = part.make(tx.actor.account_id, run_here)
        for path, content in made.files:
            append(folder / path, content)
        add_up(exported, made)
        show(part.name, exported.documents if made.documents else exported.records.get(made.kind, 0), 0)
    for count, (path, pieces) in enumerate(read_files(tx), 1):
        for piece in pieces:
            append(folder / path, piece)
        show("Files", count, 0)
    content = manifest_of(tx, describe(routes, kinds), exported, list_written(folder), (tx.now, tx.now))
    append(folder / MANIFEST, content)
    return exported


def add_up(exported: ExportSummary, made: Made) -> None:
    if made.kind:
        exported.records[made.kind] = exported.records.get(made.kind, 0) + made.records
    exported.documents += made.documents
    exported.left_out += made.left_out


def read_parts(tx: Tx, kinds: Kinds, formats: Sequence[str], after: int = 0) -> Iterator[ExportPart]:
    """Yield the parts of an export after a position, in a snapshot; the files of records are not among them."""
    stages: list[Stage] = [read_account]
    for (name, (table, model)), form in product(kinds.items(), formats):
        stages.append(partial(read_records, RecordFile(name, table, model, form, form == formats[0])))
    stages += [partial(read_documents, *printed) for printed in PRINTED]
    first, last = divmod(after, STAGE)
    for number, stage in enumerate(stages[first:], first):
        for part in stage(tx, last):
            yield part._replace(position=number * STAGE + part.position)
        last = 0


def read_account(tx: Tx, after: int) -> Iterator[ExportPart]:
    """Yield what no list of the API has: the settings, the next numbers, the logo, and how people are billed."""
    if after:
        return
    account = accounts.get_account(tx)
    people = [
        person | {"cost_rates": [{"from": day or None, "amount": amount} for day, amount in costs]}
        for person in users.list_users(tx)
        for costs in [users.list_cost_rates(tx, person["id"])]
    ]
    facts = {"account": account | {"next_numbers": numbering.upcoming_numbers(tx)}, "people": people}
    found = [(f"{name}.json", indented(values)) for name, values in facts.items()]
    if logo := logos.find_logo(tx, account["logo_id"]):
        found.append(("logo.png", bytes(logo.content)))
    yield ExportPart(1, "Settings", lambda *_: Made(found))


def read_records(of: RecordFile, tx: Tx, after: int) -> Iterator[ExportPart]:
    path, title = f"{of.name}.{FORMATS[of.form]}", of.name.replace("_", " ").capitalize()
    add = add_csv if of.form == "csv" else add_json

    def make(records: list[Record], *_: object, is_first: bool) -> Made:
        file = StringIO(newline="")
        for record in records:
            add(file, record, is_first=is_first and record is records[0])
        return Made([(path, file.getvalue().encode())], of.name if of.is_counted else "", len(records))

    while (found := list(islice(stream_records(tx, of.table, of.model, after), PART_RECORDS))) or not after:
        last = found[-1].id if found else 1
        yield ExportPart(last, title, partial(make, found, is_first=not after))
        after = last


def add_json(file: TextIO, record: Record, **_: object) -> None:
    file.write(msgspec.json.encode(record).decode() + "\n")


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


def read_documents(
    table: Table, model: type[Paper], suffixes: tuple[str, ...], tx: Tx, after: int
) -> Iterator[ExportPart]:
    """Yield the PDF and the e-invoice of each issued document and of its versions, a version in a part."""
    begun, done = divmod(after, VERSIONS)
    for record in filter(is_issued, stream_records(tx, table, model, max(begun - 1, 0))):
        name = f"{singular(table)} {record.id}"
        for place, version in enumerate(versions_of(record), 1):
            if record.id == begun and place <= done:
                continue
            prepared = [
                (form_of(version, suffix), prepared_or_refused(tx, record, version, suffix))
                for suffix in suffixes
                if not (suffix == "xml" and version is None and is_void(record))
            ]
            make = partial(draw, table.name, record.id, name, prepared)
            yield ExportPart(record.id * VERSIONS + place, name.capitalize(), make)


def form_of(version: int | None, suffix: str) -> str:
    return suffix if version is None else f"v{version}.{suffix}"


def prepared_or_refused(tx: Tx, record: Paper, version: int | None, suffix: str) -> PaperFile | Refusal:
    try:
        return prepare(suffix, tx, record, DocumentQuery(version=version))
    except Refusal as refusal:
        return refusal


def draw(
    folder: str,
    record_id: int,
    name: str,
    prepared: list[tuple[str, PaperFile | Refusal]],
    account_id: int,
    run_apart: RunApart,
) -> Made:
    """Return the files of a document. Raises `unavailable` for an accident, after which it can be tried again."""
    found, left_out = list[tuple[str, bytes]](), []
    for form, paper in prepared:
        try:
            if isinstance(paper, Refusal):
                raise paper
            drawn = paper.finish(account_id, run_apart)
        except Refusal as refusal:
            if refusal.code == "unavailable":
                raise
            left_out.append({"record": name, "form": form, "reason": refusal.message})
        else:
            stem = drawn.name.rpartition(".")[0]
            found.append((f"documents/{folder}/{record_id}-{stem}.{form}", drawn.content))
    return Made(found, documents=len(found), left_out=left_out)


def versions_of(record: Paper) -> list[int | None]:
    """Return the versions of a document: None, which says what has become of it, and the others as they were issued.

    The newest comes as it was issued only if it is void, since its file then says so and has no e-invoice.
    """
    newest = getattr(record, "document_version", None) or 1
    return [None, *range(1, newest + is_void(record))]


def is_void(record: Paper) -> bool:
    return isinstance(record, Invoice) and record.status == "void" and not record.is_imported


def read_files(tx: Tx) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the files of records, each with its id in front of its name, which `files.csv` has as it was sent."""
    for record in stream_records(tx, files, File):
        yield (f"files/{record.id}-{UNSAFE.sub('-', record.name).strip('-.')}", read_pieces(tx, record.id, record.size))


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


def list_written(folder: Path) -> list[dict[str, object]]:
    written = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        written.append({"path": path.relative_to(folder).as_posix(), "size": path.stat().st_size, "sha256": digest})
    return written


def manifest_of(
    tx: Tx,
    columns: dict[str, dict[str, str]],
    exported: ExportSummary,
    written: list[dict[str, object]],
    moments: tuple[str, str | None],
) -> bytes:
    """Return the manifest of an export; the moments are those of its first and of its last part."""
    return indented(
        {
            "program": f"Retainer {__version__}",
            "account_id": tx.actor.account_id,
            "began_at": moments[0],
            "exported_at": moments[1],
            "records": exported.records,
            "documents": exported.documents,
            "left_out": exported.left_out,
            "columns": columns,
            "files": written,
        }
    )


def indented(values: object) -> bytes:
    return json.dumps(values, indent=1, default=str, ensure_ascii=False).encode()


def append(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(path, "ab", opener=private) as file:  # Path.open takes no opener
        file.write(content)
