"""Files of a record: their part of its page, the forms that add and delete one, and their bytes."""

from collections.abc import Iterator, Sequence
from typing import Any

from retainer.console import words
from retainer.console.catalogue import Kind, no_such_page
from retainer.console.editing import record_forms
from retainer.console.editing.calls import target_of
from retainer.console.editing.form_pages import FormPage, Section
from retainer.console.editing.sheet import Sheet
from retainer.console.editing.uploads import UPLOAD, save_upload
from retainer.console.kinds.display import AnyPage
from retainer.console.names import Link
from retainer.console.page_context import FileReply, PageContext, Reply
from retainer.console.values import Block, Value, table_of
from retainer.files import files
from retainer.files.contents import BYTES, SHOWN
from retainer.identity import audit
from retainer.identity.audit import Fields
from retainer.kernel.resource import read_id
from retainer.schema import files as schema
from retainer.store.outbox import resource_of
from retainer.store.tx import Tx

MAX_SHOWN = 100
"""Files that a page shows, the oldest first."""


def has_files(kind: Kind) -> bool:
    """Return whether records of a kind have files, which those see who may change the record."""
    return kind.changing is not None and resource_of(kind.table) in files.HOLDERS


def blocks(page: AnyPage) -> Iterator[Block]:
    """Yield the files of a record, with the form that adds another one."""
    if not has_files(page.kind):
        return
    found = files.list_shown(page.tx, resource_of(page.kind.table), page.own.id, MAX_SHOWN)
    base = f"{page.kind.path_of(page.own)}/files"
    rows = [
        (
            Value("link", link=Link(file.name, f"{base}/{file.id}")),
            words.file_size(file.size),
            page.since(file.created_at),
            page.person(file.user_id),
            Value("link", link=Link("Delete…", f"{base}/{file.id}/delete")),
        )
        for file in found
    ]
    table = table_of("Files", ("File", "Size", "Added", "By", "Delete"), rows)
    yield Block("files", table=table, sheet=Sheet(page.tx, page.context, [UPLOAD]))


def kind_of(context: PageContext) -> Kind:
    kind = context.catalogue.find(context.path_parameters["kind"])
    if not has_files(kind):
        raise no_such_page()
    return kind


def section_of(kind: Kind) -> Section:
    """Return the list of a kind; its forms about files do not depend on the other fields of the record."""
    return record_forms.section_of(kind)._replace(kind=None)


def file_of(tx: Tx, context: PageContext) -> files.File:
    """Return the file in the path, of a record that the role may see. Raises `not_found`."""
    kind = kind_of(context)
    record = kind.get(tx, read_id(context.path_parameters["record"], kind.table))
    file_id = read_id(context.path_parameters["file"], schema.files)
    return files.find_shown(tx, resource_of(kind.table), record.id, file_id)


def show(tx: Tx, context: PageContext) -> Reply:
    """Return the bytes of a file: a PDF or a picture opens in the browser, any other file is saved."""
    tx.snapshot()
    file = file_of(tx, context)
    return FileReply(file.media_type if file.media_type in SHOWN else BYTES, files.prepare(tx, file).finish)


def choose_addition(_: Tx, context: PageContext) -> FormPage:
    kind = kind_of(context)

    def add(tx: Tx, context: PageContext, record: Any, __: Fields) -> Reply:
        save_upload(tx, context, kind, record)
        return context.redirect(f"{kind.path_of(record)}#files", f"{context.upload.name} added.")

    return FormPage(section_of(kind), "Add a file to {name}", "Add file", add, fields=lambda *_: [UPLOAD])


def choose_deletion(tx: Tx, context: PageContext) -> FormPage:
    kind, file = kind_of(context), file_of(tx, context)

    def delete(tx: Tx, context: PageContext, record: Any, __: Fields) -> Reply:
        files.remove_file(tx, file_of(tx, context))
        audit.note(tx, "record changed", target_of(tx, kind, record), before={"file": file.name})
        return context.redirect(f"{kind.path_of(record)}#files", f"{file.name} deleted.", kind="warn")

    gone: Sequence[str] = [f"{file.name} is removed for good. This can't be undone."]
    return FormPage(section_of(kind), "Delete a file of {name}", "Delete file", delete, lambda *_: gone, is_danger=True)
