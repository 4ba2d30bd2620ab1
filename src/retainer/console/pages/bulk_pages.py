"""The form below a list that changes the selected records: it starts a job, and leads to its page."""

from retainer.batches import bulk
from retainer.console.names import load_names
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.list_pages import find
from retainer.errors import Refusal, invalid
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_INTEGER
from retainer.values.parameters import read_whole


def start(tx: Tx, context: PageContext) -> Reply:
    """Start the job. Raises `not_found`, and `validation_failed` without a change or a record, and for too many."""
    kind, _ = find(context)
    if not context.may("records"):
        raise Refusal("not_found", "This page does not exist, or your role does not include it.")
    change = next((each for each in bulk.changes_of(tx, kind.name) if each.value == context.form.text("change")), None)
    if change is None:
        raise invalid({"change": ["Choose what to do with the selected records."]})
    ids = {number for text in context.form.texts_of("record") if (number := read_whole(text)) and number <= MAX_INTEGER}
    records = load_names(tx, kind.table, ids) if len(ids) <= bulk.MAX_SELECTED else {}
    if not records:
        some = f"at least one record, and at most {bulk.MAX_SELECTED}"
        raise invalid({"change": [f"Select {some}."]})
    job_id = bulk.start(tx, kind.name, change, records)
    return context.redirect(f"/jobs/{job_id}")
