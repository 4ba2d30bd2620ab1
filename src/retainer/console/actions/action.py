"""An action on a record: a page rehearses the operation of the API, and shows the record before and after it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

from retainer.console.actions.basis import Rehearsed, check_state, note, patch_of, state_of, worded
from retainer.console.actions.effects import Work, load_live_work, load_outstanding, work_in_words
from retainer.console.catalogue import Kind
from retainer.console.editing.fields import Field
from retainer.console.editing.sheet import Sheet
from retainer.console.forms import Form
from retainer.console.labels import field_label, word_of
from retainer.console.names import load_names, title_of
from retainer.console.page_context import PageContext, Reply, View
from retainer.console.records.blocks import FormBlock
from retainer.console.records.page import AnyPage
from retainer.console.values import Value, Values
from retainer.documents.wording import unit_text
from retainer.errors import FieldErrors, Refusal, invalid
from retainer.identity import audit
from retainer.identity.audit import Target
from retainer.kernel.resource import read_id
from retainer.schema.crm import clients
from retainer.store.tx import Tx
from retainer.values.records import Record

R = TypeVar("R", bound=Record)
SHOWN = (
    *("status", "number", "issue_date", "due_date", "amount_paid", "amount_credited", "balance_due", "refund_due"),
    *("awaiting", "priority", "assignee_id", "due_at", "reopened_count", "monitoring_enabled", "maintenance_until"),
)
"""The fields that a page compares, in this order."""
NOTHING_FIXED: Mapping[str, object] = MappingProxyType({})
PREVIEW = "preview"
REVIEW = "The fields have changed since the preview. This is what they lead to now: check it, then confirm."


class Change(NamedTuple):
    """A figure or word that an action changes, before and after it."""

    label: str
    now: Value
    then: Value


class Seen(NamedTuple, Generic[R]):
    """A record before and after an action, what the operation returned, and the name of its client."""

    before: R
    after: R
    made: Any
    client: str
    freed: str
    """The work that can be billed again, in words."""
    outstanding: tuple[str, str] | None
    """What the client owes before and after it."""


class Action(Generic[R]):
    """An action on the records of a kind: its words, the fields of its form, and the operation that it calls."""

    path: str
    label: str
    """What the button at the head of the record says."""
    title: str
    """The heading of the page; `{name}` is the number or name of the record."""
    button: str
    operation: tuple[str, str]
    fixed: Mapping[str, object] = NOTHING_FIXED
    """What the operation is sent beside the fields of the form."""
    instead = ""
    """What to do if the status of the record does not allow the action."""
    audited: ClassVar[audit.Action | None] = "record changed"
    is_danger = False
    is_inline = False
    """Whether the record's page has the form, too."""
    is_reviewed = False
    """Whether the form must have been previewed as it is sent."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def is_offered(self, record: R) -> bool:
        """Return whether the record's page offers the action; the operation decides whether it succeeds."""
        raise NotImplementedError

    def is_next(self, record: R) -> bool:  # noqa: ARG002
        """Return whether it is the likely next step."""
        return False

    def fields(self, record: R) -> Sequence[Field]:  # noqa: ARG002
        return ()

    def preset(self, tx: Tx, record: R) -> dict[str, str] | None:  # noqa: ARG002
        """Return the texts of a new form; None for one that shows the record's own fields."""
        return None

    def build_body(self, record: R, values: dict[str, object]) -> dict[str, object]:  # noqa: ARG002
        """Return the body of the operation from the values of the form. Raises `validation_failed`."""
        return {**self.fixed, **values}

    def field_of(self, path: str, body: dict[str, Any]) -> str:  # noqa: ARG002
        """Return the field of the form that an error of the body is about."""
        return path.rpartition(".")[2]

    def run(self, tx: Tx, context: PageContext, record: R, body: dict[str, object]) -> Any:
        """Call the operation of the API; return its result. Raises its errors."""
        handler = context.catalogue.operation(*self.operation).handler
        return handler(tx, record.id, patch_of(tx, type(record), body))

    def sentences(self, seen: Seen[R]) -> Iterator[str]:  # noqa: ARG002
        """Yield what the figures do not say."""
        return iter(())

    def advice(self, record: R) -> Sequence[str]:  # noqa: ARG002
        """Return what the page says before it is known what the form leads to."""
        return ()

    def notice(self, seen: Seen[R]) -> str:
        """Return what the next page says."""
        raise NotImplementedError

    def document(self, seen: Seen[R]) -> Any:  # noqa: ARG002
        """Return the invoice or credit note whose lines the page shows, if there is one."""
        return None

    def show(self, tx: Tx, context: PageContext) -> Reply:
        """Return the page, with what the form as typed leads to. Raises `not_found`; leaves its rehearsal in `tx`."""
        kind, record = self.find(tx, context)
        sheet = self.sheet(tx, context, kind, record)
        if context.form.errors:
            return self.view(sheet, kind, record, None)
        blank = {field.name for field in sheet.fields if field.is_required and not sheet.stored(field)}
        if not context.form.texts:
            context.form.texts = {field.name: [sheet.stored(field)] for field in sheet.fields}
        else:
            blank |= {field.name for field in sheet.fields}
        try:
            return self.view(sheet, kind, record, self.perform(sheet, kind, record))
        except Refusal as refusal:
            wrong = refusal.members.get("errors", {}).keys()
            obstacle = "" if wrong and wrong <= blank else self.obstacle(sheet, record, refusal)
            return self.view(sheet, kind, record, None, obstacle)

    def act(self, tx: Tx, context: PageContext) -> Reply:
        """Act once on the record that the page showed. Raises `precondition_failed`, Rehearsed, the API's errors."""
        kind, record = self.find(tx, context)
        sheet, form = self.sheet(tx, context, kind, record), context.form
        if form.text("step") != PREVIEW:
            check_state(kind.table, record, form)
        seen = self.perform(sheet, kind, record)
        if form.text("step") == PREVIEW:
            raise Rehearsed(self.view(sheet, kind, record, seen))
        if self.is_reviewed and form.text("seen") != digest(sheet):
            form.message = REVIEW
            raise Rehearsed(self.view(sheet, kind, record, seen))
        self.note(sheet, kind, seen)
        return context.redirect(
            self.next_path(kind, seen), self.notice(seen), kind="warn" if self.is_danger else "good"
        )

    def next_path(self, kind: Kind, seen: Seen[R]) -> str:
        return kind.path_of(seen.after)

    def find(self, tx: Tx, context: PageContext) -> tuple[Kind, R]:
        """Return the record of the path, with its kind. Raises `not_found`."""
        kind = context.catalogue.find(self.kind)
        return kind, kind.get(tx, read_id(context.path_parameters["record"], kind.table))  # type: ignore[return-value]

    def sheet(self, tx: Tx, context: PageContext, kind: Kind, record: R) -> Sheet:
        preset = self.preset(tx, record)
        own = record if preset is None else None
        return Sheet(tx, context, kind, own, self.fields(record), Form([*(preset or {}).items()]))

    def perform(self, sheet: Sheet, kind: Kind, record: R) -> Seen[R]:
        """Call the operation; return what it has changed. Raises its errors, by the fields of the form."""
        tx, context = sheet.tx, sheet.context
        client_id = getattr(record, "client_id", None)
        client = load_names(tx, clients, [client_id]).get(client_id, "") if client_id else ""
        work, owed = load_live_work(tx, record), load_outstanding(tx, record)
        values, body = sheet.read(), dict[str, object]()
        try:
            body = self.build_body(record, values)
            made = self.run(tx, context, record, body)
            tx.raise_errors()
        except Refusal as refusal:
            raise self._by_fields(refusal, sheet, body) from None
        after: R = kind.get(tx, record.id)  # type: ignore[assignment]
        freed = Work(*(before - now for before, now in zip(work, load_live_work(tx, record), strict=True)))
        outstanding = None if owed is None else (owed, load_outstanding(tx, record) or "")
        return Seen(record, after, made, client, work_in_words(freed), outstanding)

    def _by_fields(self, refusal: Refusal, sheet: Sheet, body: dict[str, object]) -> Refusal:
        """Return a refusal with its errors by the fields of the form.

        Errors of other fields stand beside the first wrong field, or at the head of the form.
        """
        errors, others = FieldErrors(), list[str]()
        offered = {field.name for field in sheet.fields}
        for path, messages in refusal.members.get("errors", {}).items():
            name = self.field_of(path, body)
            (errors.setdefault(name, []) if name in offered else others).extend(messages)
        if not errors:
            return Refusal(refusal.code, worded(refusal, sheet.kind.record.__struct_encode_fields__))
        next(iter(errors.values())).extend(others)
        return invalid(errors, refusal.code)

    def obstacle(self, sheet: Sheet, record: R, refusal: Refusal | None) -> str:
        """Return why an action is not possible: because of the status of the record, or as the API says it."""
        status, target = getattr(record, "status", ""), str(self.fixed.get("status", ""))
        if not target or (refusal is not None and refusal.code != "invalid_transition"):
            return worded(refusal, ()) if refusal is not None else ""
        word = "a draft" if status == "draft" else "voided" if status == "void" else word_of(status).lower()
        if status == target:
            at = sheet.context.moment(getattr(record, f"{word}_at".replace(" ", "_"), None))
            return f"This {sheet.kind.noun} was already {word} on {at.day}." if at else f"It is already {word}."
        then = word_of(target).lower()
        return f"This {sheet.kind.noun} is {word}, so it cannot become {then}. {self.instead}".rstrip()

    def view(self, sheet: Sheet, kind: Kind, record: R, seen: Seen[R] | None, obstacle: str = "") -> View:
        """Return the page of an action that was rehearsed; one that changes no status has an obstacle."""
        if seen and "status" in self.fixed and seen.after.status == seen.before.status:  # type: ignore[attr-defined]
            obstacle = self.obstacle(sheet, record, None)
        sheet.word_errors()
        values = Values(sheet.tx, sheet.context)
        changes = [] if seen is None or obstacle else list(changes_of(values, kind, seen))
        values.names.load()
        label = title_of(kind.table, record)
        name = getattr(record, "name", None) or getattr(record, "number", None)
        return sheet.context.render(
            "action",
            action=self,
            kind=kind,
            label=label,
            title=self.title.format(name=name or "this draft"),
            back=kind.path_of(record),
            sheet=sheet,
            obstacle=obstacle,
            sentences=[*self.advice(record), *(self.sentences(seen) if seen else ())],
            warnings=[
                warning.message for warning in getattr(getattr(seen and seen.made, "meta", None), "warnings", ())
            ],
            document=self.document(seen) if seen else None,
            unit_text=unit_text,
            changes=changes,
            state=state_of(record),
            seen=digest(sheet),
        )

    def block(self, page: AnyPage, record: R, title: str, *without: str) -> FormBlock:
        """Return the form as a part of the record's page; `without` are fields that stand elsewhere on it."""
        sheet = self.sheet(page.tx, page.context, page.kind, record)
        sheet.fields = [field for field in sheet.fields if field.name not in without]
        advice = () if without else self.advice(record)
        return FormBlock(title, self.path, self.button, advice, sheet, state_of(record))

    def note(self, sheet: Sheet, kind: Kind, seen: Seen[R]) -> None:
        """Add the action to the audit log, with what it changed and what was typed."""
        if self.audited is None or state_of(seen.after) == state_of(seen.before):
            return
        changed = [name for name in SHOWN if getattr(seen.before, name, None) != getattr(seen.after, name, None)]
        before, after = (
            {name: msgspec.to_builtins(getattr(record, name), enc_hook=str) for name in changed}
            for record in (seen.before, seen.after)
        )
        target = Target(kind.noun, seen.after.id, title_of(kind.table, seen.after))
        note(sheet.tx, self.audited, target, before, sheet.read() | after)


def changes_of(values: Values, kind: Kind, seen: Seen[Any]) -> Iterator[Change]:
    """Yield the fields that an action changes, and what the client owes."""
    for name in SHOWN:
        if getattr(seen.before, name, None) != getattr(seen.after, name, None):
            now, then = (values.field(record, name, kind.table) for record in (seen.before, seen.after))
            yield Change(field_label(name), now, then)
    if seen.outstanding is not None and len(set(seen.outstanding)) > 1:
        now, then = (Value("number", amount) for amount in seen.outstanding)
        yield Change(f"Outstanding of {seen.client}", now, then)


def digest(sheet: Sheet) -> str:
    """Return a digest of the form as it would be sent: a final action is confirmed as it was previewed."""
    texts = [sheet.form.text(field.name, sheet.stored(field)) for field in sheet.fields]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
