"""Files that forms upload: the field, what is read before the transaction, and what the transaction stores."""

from typing import Any, NamedTuple

from retainer.console.catalogue import Kind
from retainer.console.controls.control import Field
from retainer.console.controls.plain import FileInput
from retainer.console.editing.calls import errors_at, target_of
from retainer.console.page_context import PageContext
from retainer.errors import invalid
from retainer.files.contents import Content, examine
from retainer.files.files import add_file
from retainer.identity import audit
from retainer.store.outbox import resource_of
from retainer.store.tx import Tx
from retainer.values.kinds import Text191
from retainer.values.reading import reader

UPLOAD = Field(
    "file", "File", FileInput(), "At most 25 MB. PDFs and photos open in the browser, other files are saved."
)
RECEIPT = Field("file", "Receipt", FileInput(accept=".pdf,.png,.jpg,.jpeg"), "A PDF or a photo of at most 25 MB.")
read_name = reader(Text191)


class UploadedFile(NamedTuple):
    name: str
    content: Content


def read_upload(context: PageContext) -> None:
    """Read the file of a form. Raises `validation_failed` without one."""
    read_optional(context)
    if context.upload is None:
        raise invalid({"file": ["Choose a file that is not empty."]})


def read_optional(context: PageContext) -> None:
    """Read the file of a form, if it has one. Raises `validation_failed` for one that cannot be stored."""
    sent = context.form.files.get("file")
    with errors_at("file"):
        content = examine(sent.stream) if sent else None
    if sent and content and content.size:
        name = read_name(sent.name, "file", context.form.errors)
        context.form.errors.raise_errors()
        context.upload = UploadedFile(str(name), content)


def save_upload(tx: Tx, context: PageContext, kind: Kind, record: Any) -> None:
    """Store the file of the form, if it has one, and note it in the audit log. Raises its errors."""
    upload: UploadedFile | None = context.upload
    if upload is not None:
        with errors_at("file"):
            add_file(tx, resource_of(kind.table), record.id, *upload)
        audit.note(tx, "record changed", target_of(tx, kind, record), after={"file": upload.name})
