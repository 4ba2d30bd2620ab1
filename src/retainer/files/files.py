"""Files: receipts, contracts and pictures that belong to a record.

Clients, projects, quotes, invoices, expenses, tickets and replies can have files. A key needs the scope of the record:
`expenses:read` reads the files of expenses, and `expenses:write` adds and deletes them. A file is never changed, and is
deleted with its record. The files of an issued document stay.

Adding or deleting a file changes its record: `updated_at` moves, and an event like `expense.updated` names `files` in
its `fields`. The type of a file follows from its first bytes: `application/pdf`, `image/png`, `image/jpeg`, else
`application/octet-stream`.
"""

from collections.abc import Iterable
from functools import lru_cache, partial
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta
from sqlalchemy import ColumnElement, Select, Table, bindparam, case, func, or_, select

from retainer.billing import expenses
from retainer.billing.invoices import invoices
from retainer.billing.quotes import quotes
from retainer.crm import clients
from retainer.errors import Refusal, invalid, not_found
from retainer.files.contents import BYTES, SHOWN, Content, examine, read_pieces, store_pieces
from retainer.identity.plans import find_excess
from retainer.kernel import etag, representations
from retainer.kernel.body import New
from retainer.kernel.caller import Caller
from retainer.kernel.downloads import DOWNLOADS, MAX_IN_MEMORY, OPEN_FILES, Download
from retainer.kernel.paging import ListPage, Page, listing
from retainer.kernel.query import Filter, OneOf, Query
from retainer.kernel.representations import SANDBOX, Representation, RunApart
from retainer.kernel.resource import Resource
from retainer.schema import support as schema
from retainer.schema.files import OF_RECORDS, files
from retainer.schema.filters import Where
from retainer.shared import relations
from retainer.store.constraints import MISSING, singular
from retainer.store.engines import Sqlite
from retainer.store.engines.sql import LIMIT
from retainer.store.outbox import resource_of
from retainer.store.row_mapper import Derived, row_mapper
from retainer.store.tx import Actor, Store, Tx
from retainer.support import ticket_replies, tickets
from retainer.values.common import Base64
from retainer.values.kinds import Id, Text191
from retainer.values.reading import with_defaults
from retainer.values.records import READ_ONLY, Record
from retainer.values.texts import without_path
from retainer.work import projects

HOLDERS = {
    resource_of(table): (table, str(api.scope))
    for api in (
        *(clients.api, projects.api, quotes.api, invoices.api),
        *(expenses.api, tickets.api, ticket_replies.api),
    )
    if (table := api.table) is not None
}
"""The tables and the scopes of the records that have files, by their names."""
ISSUABLE = ("quote", "invoice")
"""The documents that keep their files once they are issued."""
Holder = Annotated[
    Literal["client", "project", "quote", "invoice", "expense", "ticket", "ticket_reply"],
    Meta(title="FileHolder"),
    "The type of the record that the file belongs to.",
]


def _column(table: Table, holder: str) -> ColumnElement[int]:
    return table.c[f"{holder}_id"]


def _holder(table: Table) -> ColumnElement[str]:
    return case(*((_column(table, name).is_not(None), name) for name in OF_RECORDS))


def _holder_id(table: Table) -> ColumnElement[int]:
    return func.coalesce(*(_column(table, name) for name in OF_RECORDS))


def _of_holders(table: Table, holders: frozenset[str]) -> ColumnElement[bool]:
    return or_(*(_column(table, name).is_not(None) for name in sorted(holders)))


def _of_records(
    table: Table, ids: list[ColumnElement[int]], holders: frozenset[str] | None = None
) -> ColumnElement[bool]:
    return or_(*(_column(table, name).in_(ids) for name in sorted(holders or OF_RECORDS)))


class File(Record):
    """What is stored about a file; its bytes are another form of it."""

    record: Annotated[Holder, Derived(_holder)] = READ_ONLY
    record_id: Annotated[Id, Derived(_holder_id), "The record that it belongs to."] = READ_ONLY
    name: Annotated[Text191, "As it was sent; `q` searches it."] = READ_ONLY
    media_type: Annotated[str, "PDF, PNG and JPEG by their first bytes; `application/octet-stream` otherwise."] = (
        READ_ONLY
    )
    size: Annotated[int, "Number of bytes."] = READ_ONLY
    sha256: Annotated[str, "SHA-256 of the bytes, in hexadecimal digits."] = READ_ONLY
    user_id: Annotated[Id | None, "The user who added it; null: the operator."] = READ_ONLY


class NewFile(msgspec.Struct):
    """A file to add to a record."""

    record: Holder
    record_id: Annotated[Id, "The record that it belongs to."]
    name: Annotated[Text191, "Its name, with which it is saved."]
    content: Annotated[Base64, "Its bytes."]


class FileFilter(Filter):
    sorts = ("created_at", "size")
    record: Annotated[
        OneOf[Holder] | None, Where(_of_holders, description="Files of records of these types.", is_literal=True)
    ] = None
    record_id: Annotated[
        OneOf[Id] | None,
        Where(
            _of_records, description="Files of records with one of these ids, of the type `record`.", beside=("record",)
        ),
    ] = None


class StoredFile(NamedTuple):
    """A file whose bytes are read if they are wanted."""

    record: File
    store: Store
    actor: Actor

    @property
    def tag(self) -> str:
        return etag.compute(self.record.sha256.encode())

    def finish(self, account_id: int, _: RunApart) -> representations.RenderedFile:
        """Return the file. Raises `not_found` if it was deleted meanwhile, and `unavailable`."""
        with self.store.begin(self.actor, write=False) as tx:
            tx.snapshot()
            file = tx.get(files, self.record.id, File)
            content, download = b"", None
            if file.size > MAX_IN_MEMORY and OPEN_FILES.exists():
                download = DOWNLOADS.get(
                    account_id, file.sha256, partial(copy, tx, read_pieces(tx, file.id, file.size))
                )
            else:
                content = b"".join(read_pieces(tx, file.id, file.size))
        is_shown = file.media_type in SHOWN
        return representations.RenderedFile(content, file.name, SANDBOX, is_shown, download)


def copy(tx: Tx, pieces: Iterable[bytes]) -> Download:
    """Copy a file to the disk of the embedded database, because the folder for temporary files is often in memory."""
    engine = tx.store.engine
    folder = engine.path.parent if isinstance(engine, Sqlite) else None
    return Download(pieces, folder)


def prepare(tx: Tx, record: File, _: Query | None = None) -> StoredFile:
    return StoredFile(record, tx.store, tx.actor)


class HolderState(NamedTuple):
    """The fields of a record that decide whether its files may change."""

    id: int
    user_id: int | None
    status: str | None


def load_holder(tx: Tx, holder: str, record_id: int) -> HolderState:
    """Return the state of a record of the account. Raises `not_owner`, and every error so far if there is none."""
    table, _ = HOLDERS[holder]
    found = relations.load_row(tx, HolderState, table, record_id)
    if found is None:
        tx.error("record_id", MISSING.format(singular(table)))
        raise invalid(tx.errors)
    if holder == "expense":
        relations.check_deletion(tx, found.user_id or 0, None, "expense")
    return found


def add_file(tx: Tx, holder: str, record_id: int, name: str, content: Content) -> File:
    """Store a file of a record, by its name without a path.

    Raises the errors of `load_holder`, and `validation_failed` for a path that ends with a folder and above the quota.
    """
    name = without_path(name).strip()
    if not name:
        tx.error("name", "Must be the name of a file, not of a folder.")
    load_holder(tx, holder, record_id)
    tx.raise_errors()
    described = {"media_type": content.media_type, "size": content.size, "sha256": content.sha256}
    record = with_defaults(File, name=name, user_id=tx.actor.user_id or None, **described)
    file_id = tx.insert(files, record, **{f"{holder}_id": record_id})
    if excess := find_excess(tx, "files", added=0):
        raise invalid({"content": [excess]})
    store_pieces(tx, file_id, content.stream)
    tx.touch(HOLDERS[holder][0], record_id, "files")
    return tx.get(files, file_id, File)


def list_shown(tx: Tx, holder: str, record_id: int, limit: int) -> list[File]:
    """Return the first files of a record, with those of a ticket's replies, oldest first."""
    rows = tx.all(_of_page(holder), id=record_id, limit=limit)
    found: list[File] = row_mapper(files, File).read_all(rows)
    return found


@lru_cache(maxsize=2 * len(OF_RECORDS))
def _of_page(holder: str, *, is_single: bool = False) -> Select[str]:
    shown = files.c[f"{holder}_id"] == bindparam("id")
    if holder == "ticket":
        replies = select(schema.ticket_replies.c.id).where(schema.ticket_replies.c.ticket_id == bindparam("id"))
        shown = or_(shown, files.c.ticket_reply_id.in_(replies))
    rows = row_mapper(files, File).rows.where(shown)
    if is_single:
        return rows.where(files.c.id == bindparam("file_id"))
    return rows.order_by(files.c.created_at, files.c.id).suffix_with(LIMIT)


def find_shown(tx: Tx, holder: str, record_id: int, file_id: int) -> File:
    """Return a file of a record, or of a reply to the ticket. Raises `not_found`."""
    row = tx.one(_of_page(holder, is_single=True), id=record_id, file_id=file_id)
    if row is None:
        raise not_found("file")
    (found,) = row_mapper(files, File).read_all([row])
    return found  # type: ignore[no-any-return]


def remove_file(tx: Tx, file: File) -> None:
    """Delete a file. Raises `not_owner`, and `locked` for a file of an issued document."""
    table, _ = HOLDERS[file.record]
    state = load_holder(tx, file.record, file.record_id)
    if file.record in ISSUABLE and state.status != "draft":
        message = f"This file belongs to {singular(table)} {file.record_id}, which was issued, so it stays."
        raise Refusal("locked", message, errors={"record_id": [message]})
    tx.delete(files, file.id)
    tx.touch(table, file.record_id, "files")


api = Resource(
    "/files",
    tag="Files",
    scope=None,
    table=files,
    takes_files=True,
    needs="Needs the scope of the record, like `expenses:read` to read and `expenses:write` to add and delete.",
)


@api.get()
def list_files(tx: Tx, caller: Caller, filters: FileFilter, page: Page) -> ListPage[File]:
    """List the files of a record, oldest first: `?record=expense&record_id=5`.

    Without `record`, the key needs the scopes of all records that have files.
    """
    for holder in filters.record or HOLDERS:
        caller.require_scope(f"{HOLDERS[holder][1]}:read", f"the files of type {holder}")
    return listing(tx, files, File, filters, page)


@api.post()
def create_file(tx: Tx, caller: Caller, body: New[NewFile]) -> File:
    """Add a file to a record.

    A JSON body has at most 1 MiB. A file of up to 25 MiB is sent as `multipart/form-data`, with the fields `record`,
    `record_id` and, as a file, `content`, whose name is that of the file unless a field `name` has another.
    """
    if body.record is not None:
        caller.require_scope(f"{HOLDERS[body.record][1]}:write")
        if tx.errors and body.record_id is not None:
            load_holder(tx, body.record, body.record_id)  # what is wrong with it is named with the others
    tx.raise_errors()
    return add_file(tx, body.record, body.record_id, body.name, examine(body.content))


@api.get("/{file_id}", representations=(Representation(BYTES, "bytes", prepare),))
def get_file(tx: Tx, caller: Caller, file_id: Id) -> File:
    """Read what a file is; with `Accept: application/octet-stream`, its bytes."""
    return _get(tx, caller, file_id, "read")


@api.delete("/{file_id}")
def delete_file(tx: Tx, caller: Caller, file_id: Id) -> None:
    """Delete a file for good. The files of an issued document stay."""
    remove_file(tx, _get(tx, caller, file_id, "write"))


def _get(tx: Tx, caller: Caller, file_id: int, use: str) -> File:
    """Return a file. Raises `not_found`, and `missing_scope` unless the key may use its record."""
    file = tx.get(files, file_id, File)
    caller.require_scope(f"{HOLDERS[file.record][1]}:{use}")
    return file
