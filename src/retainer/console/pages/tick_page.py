"""The tick that finishes a task from a list, and takes that back."""

from retainer.console.editing.calls import change_record
from retainer.console.labels import word_of
from retainer.console.names import title_of
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.sign_in_pages import destination
from retainer.kernel.resource import read_id
from retainer.store.tx import Tx
from retainer.work.tasks import Task


def tick(tx: Tx, context: PageContext) -> Reply:
    """Give a task the status of the form, and offer its former one. Raises `not_found` and the errors of the API."""
    kind = context.catalogue.find("tasks", "changing")
    task = kind.get(tx, read_id(context.path_parameters["record"], kind.table))
    status, path = context.form.text("status"), kind.path_of(task)
    former = task.status if isinstance(task, Task) else status
    change_record(tx, kind, task, {"status": status})
    said = f"{title_of(tx, kind.table, task)} is {word_of(status).lower()}."
    undo = f"{path}/tick?status={former}" if status == "done" != former else ""
    return context.redirect(destination(context) or path, said, undo=undo)
