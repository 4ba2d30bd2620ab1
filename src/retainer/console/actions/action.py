"""An action on a record: a page rehearses the operation of the API, and shows the record before and after it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from operator import sub
from typing import Any, NamedTuple

import msgspec

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.types import Invoice
from retainer.billing.rules import is_credited
from retainer.console import words
from retainer.console.catalogue import Kind, label_from
from retainer.console.controls.control import Field
from retainer.console.editing.calls import call, state_of, worded
from retainer.console.editing.form_pages import PREVIEW, FormButton, FormPage
from retainer.console.editing.record_forms import section_of
from retainer.console.editing.sheet import Sheet
from retainer.console.kinds.clients import load_effects, work_in_words
from retainer.console.kinds.display import AnyPage
from retainer.console.labels import field_label, in_words, word_of
from retainer.console.names import load_names, title_of
from retainer.console.page_context import PageContext, Reply
from retainer.console.values import Block, Value, Values
from retainer.documents.wording import unit_text
from retainer.errors import FieldErrors, Refusal, invalid
from retainer.identity import audit
from retainer.schema.crm import clients
from retainer.store.tx import Tx
from retainer.web.forms import Form

SHOWN = (
    *("status", "number", "issue_date", "due_date"),
    *("total", "amount_paid", "amount_credited", "balance_due", "refund_due"),
    *("awaiting", "priority", "assignee_id", "due_at", "reopened_count", "monitoring_enabled", "maintenance_until"),
)
"""The fields that a page compares, in this order."""
UNSEEN = "Other changes are being saved, so this page does not show yet what the action leads to. Select Preview."


def say(facts: dict[str, Any], templates: Sequence[str]) -> Iterator[str]:
    """Yield the sentences with what they name, like `{client}` or `{after.due_date}`; without those that lack it."""
    known = {name: value for name, value in facts.items() if value}
    for template in templates:
        try:
            yield template.format_map(known)
        except (KeyError, AttributeError):
            continue


class WordedFields:
    """The fields of a record in words, as a sentence uses them; it has no blank ones, and no amounts of 0."""

    def __init__(self, values: Values, record: Any) -> None:
        self.values, self.record = values, record

    def __getattr__(self, name: str) -> str:
        if not getattr(self.record, name, None):
            raise AttributeError(name)
        value = self.values.field(self.record, name)
        text = value.moment.day if value.moment is not None else value.text
        return text.lower() if value.kind == "badge" else text


class Stage(NamedTuple):
    """Where an action takes place: the record as it is, and its form. Once it is performed, also what it has done."""

    tx: Tx
    context: PageContext
    kind: Kind
    record: Any
    sheet: Sheet
    values: audit.Fields = {}
    """What the form says, by its fields."""
    after: Any = None
    made: Any = None
    meta: Any = None
    owed: tuple[str, str] = ("", "")
    """What the client owes before and after."""
    freed: str = ""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """An action on the records of a kind: its words, the fields of its form, and the operation that it calls.

    In sentences, `before` and `after` are the record, `made` is what the operation has created, `client` its client,
    `freed` the work that can be billed again, `paid` what was paid or paid back, and `became` another status.
    """

    path: str
    label: str
    """What the button at the head of the record says."""
    button: str = ""
    """What the button of the page says, if it is not the label."""
    notice: tuple[str, ...]
    sentences: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    creates: str = ""
    """The path at which the operation creates a record; by default, it changes the record of the page."""
    fixed: dict[str, Any] = {}
    """What is sent to the operation in addition to the fields of the form."""
    when: Callable[[Any], object] = lambda _: True
    """Whether the record's page offers the action; the operation decides whether it succeeds."""
    needs: str = ""
    """The field without which the record's page does not offer the action; its own page says what is missing."""
    next_in: tuple[str, ...] | None = ()
    """The statuses in which it is the likely next step; None for all."""
    unchanged: str = ""
    """What the next page says if the record is as it was."""
    audited: audit.Action | None = "record changed"
    is_danger: bool = False
    is_reviewed: bool = False  # whether the form must have been previewed as it is sent
    needs_mail: bool = False  # whether only a server that sends mail offers it
    of: str = "changing"  # the operation of its `Kind` without which a role has no such action
    is_inline: bool = False
    """Whether the record's page has its form: see `Display.forms`."""

    @property
    def word(self) -> str:
        return self.label.removesuffix("…")

    def heading(self, name: str) -> str:
        """Return the title of the page about a record."""
        return f"{self.word}: {name}"

    def is_next(self, record: Any) -> bool:
        return self.next_in is None or getattr(record, "status", "") in self.next_in

    def fields_of(self, _: Any) -> Sequence[Field]:
        return self.fields

    def preset(self, _tx: Tx, _record: Any) -> dict[str, str] | None:
        """Return the texts of a new form; None for one that shows the record's own fields."""
        return {} if self.creates else None

    def build_body(self, _record: Any, values: dict[str, Any], _errors: FieldErrors) -> dict[str, Any]:
        """Return the body of the operation from the values of the form; note the errors of its own fields."""
        return {**self.fixed, **values}

    def field_of(self, path: str, _: dict[str, Any]) -> str:
        return path.rpartition(".")[2]

    def run(self, stage: Stage, body: dict[str, Any]) -> Any:
        """Call the operation of the API; return its result. Raises its errors."""
        if not self.creates:
            return call(stage.tx, stage.kind.changing, stage.record.id, body=body)
        operation = stage.context.catalogue.operation("POST", self.creates)
        return call(stage.tx, operation, *([stage.record.id] if operation.parameters else []), body=body)

    def next_path(self, stage: Stage) -> str:
        return stage.kind.path_of(stage.after)

    def facts(self, stage: Stage, values: Values) -> dict[str, Any]:
        record, after = stage.record, stage.after or stage.record
        client_id = getattr(record, "client_id", None)
        client = load_names(stage.tx, clients, [client_id]).get(client_id, "") if client_id else ""
        paid = abs(getattr(after, "amount_paid", Decimal(0)) - getattr(record, "amount_paid", Decimal(0)))
        return {
            "before": WordedFields(values, record),
            "after": WordedFields(values, after),
            "made": WordedFields(values, stage.made),
            "client": client,
            "freed": stage.freed,
            "paid": words.money(paid, after.currency) if paid else "",
            "advice": "To send it, use Send." if stage.tx.store.mail_from else "Download the PDF, and send it.",
            "became": word_of(after.status).lower() if "status" in changed_fields(stage) else "",
        }

    def choose(self, name: str, _: Tx, context: PageContext) -> FormPage:
        """Return the form of the action on the records of a kind. Raises `not_found`."""
        kind = context.catalogue.find(name, self.of)
        return FormPage(
            *(section_of(kind), self.word, self.button or self.word, partial(self.act, kind)),
            sheet_of=partial(self.sheet, kind),
            rehearse=partial(self.rehearse, kind),
            is_danger=self.is_danger,
            is_reviewed=self.is_reviewed,
            has_preview=True,
            reads_on=True,
        )

    def rehearse(
        self, kind: Kind, tx: Tx, context: PageContext, record: Any, sheet: Sheet, values: audit.Fields | None
    ) -> dict[str, Any]:
        """Return what the page shows, with what the form leads to; without `values`, the form as it is opened.

        Leaves its rehearsal in `tx`. Raises errors of the values.
        """
        stage, form = Stage(tx, context, kind, record, sheet), context.form
        if values is not None:
            return self.shown(self.perform(stage._replace(values=values)))
        if form.errors or (form.texts and sheet.fields):  # they were typed: a preview reads them
            return self.shown(stage)
        if not tx.writes:
            return self.shown(stage, "" if self.when(record) else self.obstacle(stage, None))
        open_to_input = {field.name for field in sheet.fields if field.is_required and not any(sheet.initial(field))}
        try:
            return self.shown(self.perform(stage._replace(values=sheet.read_preset())))
        except Refusal as refusal:
            wrong = refusal.members.get("errors", {}).keys()
            return self.shown(stage, "" if wrong and wrong <= open_to_input else self.obstacle(stage, refusal))

    def act(self, kind: Kind, tx: Tx, context: PageContext, record: Any, values: audit.Fields) -> Reply:
        """Act once, with what the form says. Raises the API's errors, and those of typing with them."""
        sheet = self.sheet(kind, tx, context, record)
        stage = self.perform(Stage(tx, context, kind, record, sheet, values))
        path = self.next_path(stage)
        if self.unchanged and state_of(stage.after) == state_of(record):
            return context.redirect(path, self.unchanged, kind="warn")
        self.note(stage)
        said = say(self.facts(stage, Values(tx, context)), self.notice)
        return context.redirect(path, " ".join(said), kind="warn" if self.is_danger else "good")

    def sheet(self, kind: Kind, tx: Tx, context: PageContext, record: Any) -> Sheet:
        preset = self.preset(tx, record)
        own, texts = record if preset is None else None, Form([*(preset or {}).items()])
        fields = [field for field in self.fields_of(record) if field.name not in kind.left_out]
        sheet = Sheet(tx, context, fields, own, kind=kind, preset=texts)
        sheet.about = record
        return sheet

    def perform(self, stage: Stage) -> Stage:
        """Call the operation; return what it has changed. Raises its errors, by the fields of the form."""
        owed, work = load_effects(stage.tx, stage.record)
        errors, made = FieldErrors(), None
        body = self.build_body(stage.record, stage.values, errors)
        try:
            made = self.run(stage, body)
        except Refusal as refusal:
            if not errors or "errors" in refusal.members:
                raise self._by_fields(refusal, stage, body, errors) from None
        errors.raise_errors()
        after = stage.kind.get(stage.tx, stage.record.id)
        owed_then, work_then = load_effects(stage.tx, stage.record)
        return stage._replace(
            after=after,
            made=getattr(made, "data", made),
            meta=getattr(made, "meta", None),
            owed=(owed, owed_then),
            freed=work_in_words(map(sub, work, work_then)),
        )

    def _by_fields(self, refusal: Refusal, stage: Stage, body: dict[str, Any], errors: FieldErrors) -> Refusal:
        """Return a refusal with its errors by the fields of the form, together with the form's own.

        Errors of other fields are shown at the first wrong field, or at the top of the form.
        """
        others = list[str]()
        offered = {field.name for field in stage.sheet.fields}
        for path, messages in refusal.members.get("errors", {}).items():
            name = self.field_of(path, body)
            said = errors.setdefault(name, []) if name in offered else others
            said.extend(message for message in messages if message not in said)
        if not errors:
            return Refusal(refusal.code, worded(refusal, stage.kind.record.__struct_encode_fields__))
        next(iter(errors.values())).extend(others)
        return invalid(errors, refusal.code)

    def obstacle(self, stage: Stage, refusal: Refusal | None) -> str:
        """Return why an action is not possible: because of the status of the record, or as the API says it."""
        status, target = getattr(stage.record, "status", ""), self.fixed.get("status", "")
        if refusal is not None and (not target or refusal.code != "invalid_transition" or self.when(stage.record)):
            return worded(refusal, stage.kind.record.__struct_encode_fields__)
        if not target:
            return ""
        own = {"draft": "a draft", "void": "voided"}.get(status) or word_of(status).lower()
        word = "credited" if isinstance(stage.record, Invoice) and is_credited(stage.record) else own
        if status == target:
            at = stage.context.moment(getattr(stage.record, f"{word}_at".replace(" ", "_"), None))
            return f"This {stage.kind.noun} was already {word} on {at.day}." if at else f"It is already {word}."
        then = word_of(target).lower()
        return f"This {stage.kind.noun} is {word}, so it cannot become {then}."

    def shown(self, stage: Stage, obstacle: str = "") -> dict[str, Any]:
        kind, record, sheet = stage.kind, stage.record, stage.sheet
        if stage.after and "status" in self.fixed and stage.after.status == record.status:
            obstacle = self.obstacle(stage, None)
        values = Values(stage.tx, stage.context)
        facts = self.facts(stage, values)
        changes = list(changes_of(values, stage, facts["client"]))
        values.names.load()
        warnings = [in_words(warning.message, ()) for warning in getattr(stage.meta, "warnings", ())]
        is_document = type(stage.made) in {Invoice, CreditNote} - {kind.record}
        document = [Block("lines_of", document=stage.made, unit_text=unit_text)] if is_document else []
        unseen = [] if stage.after or stage.context.form.texts else [UNSEEN]
        number = getattr(record, "number", None)
        label = title_of(stage.tx, kind.table, record) if number is None else label_from({"number": number}, record.id)
        return {
            "look": "action",
            "title": self.heading(getattr(record, "name", None) or label),
            "told": [Block("effects", sentences=[*say(facts, self.sentences), *unseen], warnings=warnings)],
            "below": [*document, *([Block("changes", rows=changes)] if changes else [])],
            "obstacle": obstacle,
            "steps": [FormButton(PREVIEW, "Preview")] if sheet.fields or unseen else [],
            "hidden": {"seen": sheet.content} if self.is_reviewed and stage.after else {},
        }

    def block(self, page: AnyPage, record: Any, title: str, *without: str) -> Block:
        """Return the form as a part of the record's page; `without` are fields that stand elsewhere on it."""
        sheet = self.sheet(page.kind, page.tx, page.context, record)
        sheet.fields = [field for field in sheet.fields if field.name not in without]
        sheet.load()
        stage = Stage(page.tx, page.context, page.kind, record, sheet)
        advice = [] if without else [*say(self.facts(stage, page), self.sentences)]
        shown = {"path": self.path, "button": self.button or self.word, "sheet": sheet, "state": state_of(record)}
        return Block("form", title=title, advice=advice, has_preview=hasattr(record, "total"), **shown)

    def note(self, stage: Stage) -> None:
        if self.audited is None:
            return
        before, after = (
            {name: msgspec.to_builtins(getattr(record, name), enc_hook=str) for name in changed_fields(stage)}
            for record in (stage.record, stage.after)
        )
        target = audit.Target(stage.kind.noun, stage.after.id, title_of(stage.tx, stage.kind.table, stage.after))
        after = stage.values | after
        audit.note(stage.tx, self.audited, target, before=before or None, after=after or None)


def changed_fields(stage: Stage) -> list[str]:
    after = stage.after or stage.record
    return [name for name in SHOWN if getattr(stage.record, name, None) != getattr(after, name, None)]


def changes_of(values: Values, stage: Stage, client: str) -> Iterator[tuple[str, Value, Value]]:
    """Yield the fields that an action changes, and what the client owes: the label, and the values before and after."""
    for name in changed_fields(stage):
        now, then = (values.field(record, name, stage.kind.table) for record in (stage.record, stage.after))
        yield field_label(name), now, then
    if stage.owed[0] != stage.owed[1]:
        now, then = (Value("number", amount) for amount in stage.owed)
        yield f"Outstanding of {client}", now, then


def become(
    transitions: Mapping[str, tuple[str, ...]], status: str, *, of: type[Action] = Action, **others: Any
) -> Action:
    """Return an action that gives a record a status, where the API allows that."""
    return of(fixed={"status": status}, when=lambda record: status in transitions[record.status], **others)
