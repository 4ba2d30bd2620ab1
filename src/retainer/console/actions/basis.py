"""The basis of an action: the record as its page showed it, and the form's fields as a body for the API's function."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple, get_args

from sqlalchemy import Table

from retainer.console.catalogue import label_of
from retainer.console.forms import Form
from retainer.console.labels import word_of
from retainer.console.page_context import Reply, View
from retainer.errors import FieldErrors, Refusal, invalid
from retainer.identity import audit
from retainer.identity.audit import Action, Fields, Target
from retainer.kernel import etag
from retainer.kernel.body import Patch, RequestBody
from retainer.store.constraints import singular
from retainer.store.row_mapper import R
from retainer.store.tx import Tx
from retainer.values.reading import unwrapped
from retainer.values.records import Record

CHANGED = (
    "Nothing was done this time: the {noun} has changed since you opened this page. Check it, then decide again. "
    "If you pressed the button twice, the first press may have done it."
)
NO_NAMES: Mapping[str, str] = MappingProxyType({})
NO_STATE = '"none"'


class Rehearsed(Exception):  # nothing failed
    """Ends a transaction without writing: its page shows what was done in it."""

    def __init__(self, view: View) -> None:
        super().__init__()
        self.view = view


class Change(NamedTuple):
    """A figure or word that an action changes, before and after it."""

    name: str
    now: str
    then: str


class Consequences(NamedTuple):
    """What an action does, in sentences, and the figures that it changes."""

    sentences: list[str]
    changes: list[Change]


NO_CONSEQUENCES = Consequences([], [])


class ActionPage(NamedTuple):
    """The page of an action: its template, its button, and why it is not possible now; empty if it is."""

    template: str
    table: Table
    button: str
    obstacle: str
    is_danger: bool = False

    def render(self, record: Record, consequences: Consequences, **values: object) -> Reply:
        """Return the page. Its form carries the state of the record that it shows."""
        kind = self.table.name.replace("_", "-")
        shown = {
            "page": self,
            "noun": singular(self.table),
            "kind_name": self.table.name.replace("_", " ").capitalize(),
            "list_path": f"/console/records/{kind}",
            "record_path": f"/console/records/{kind}/{record.id}",
            "label": label_of(record),
            "record": record,
            "state": state_of(record),
            "consequences": NO_CONSEQUENCES if self.obstacle else consequences,
        }
        return View(f"action_{self.template}", shown | values)


def state_of(record: Record) -> str:
    return etag.compute_for_record(record, b"")


def check_state(table: Table, record: Record, form: Form) -> None:
    """Raise `precondition_failed` if the record is not in the state that the page of the form showed."""
    try:
        etag.check_unchanged(form.text("state") or NO_STATE, record)
    except Refusal:
        raise Refusal("precondition_failed", CHANGED.format(noun=singular(table))) from None


def patch_of(tx: Tx, model: type[R], fields: dict[str, object]) -> Patch[R]:
    """Return fields as the body of a PATCH, which the API's function applies."""
    return Patch(tx, RequestBody(fields, model, "Update"))


def new_of(tx: Tx, model: type[R], fields: dict[str, object]) -> R:
    """Return the record that fields describe as the body of a POST; note their errors."""
    record: R = RequestBody(fields, model, "Create").new(tx)
    return record


@contextmanager
def errors_of(tx: Tx, names: Mapping[str, str] = NO_NAMES) -> Iterator[None]:
    """Raise the errors that the API's function has noted in a block, by the fields of the form.

    `names` has the form's fields by the API's names. Errors of other fields stand beside the first wrong field, or at
    the head of the form.
    """
    try:
        yield
        tx.raise_errors()
    except Refusal as refusal:
        found: FieldErrors = refusal.members.get("errors", {})
        if not found:
            raise
        errors = FieldErrors()
        others: list[str] = []
        for name, messages in found.items():
            (errors.setdefault(names[name], []) if name in names else others).extend(messages)
        if not errors:
            raise Refusal(refusal.code, " ".join(others)) from None
        next(iter(errors.values())).extend(others)
        raise invalid(errors, refusal.code) from None


def note(tx: Tx, action: Action, target: Target, before: Fields, after: Fields) -> None:
    """Add an action to the audit log, with what it changed."""
    audit.note(tx, action, target, before=before or None, after=after or None)


def options_of(kind: object) -> list[tuple[str, str]]:
    """Return the values of an enumeration with their labels."""
    return [(value, word_of(value)) for value in get_args(unwrapped(kind)[0])]


def filled(form: Form, *names: str) -> dict[str, object]:
    return {name: form.text(name) for name in names if form.text(name)}
