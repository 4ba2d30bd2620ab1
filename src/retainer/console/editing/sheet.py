"""The sheet of a form: its fields with their texts and places, the records that these name, and the body they describe.

Only what was changed is sent: a field whose text is as it was stored, or blank in a new record, is left out. So fields
that follow from others keep following, and what is locked stays as it is.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

from sqlalchemy import Table

from retainer.console.catalogue import Kind
from retainer.console.controls import rows
from retainer.console.controls.control import Field
from retainer.console.controls.plain import LongText
from retainer.console.controls.records import Reference, reference_of
from retainer.console.controls.rows import Row, Rows
from retainer.console.editing.calls import digest_of
from retainer.console.editing.inputs import Inputs
from retainer.console.editing.references import CURRENCIES, ReferenceLookup, WantedRecord, currency_of, number_in
from retainer.console.kinds.display import FREE, FieldLock
from retainer.console.labels import field_label, in_words, missing
from retainer.console.names import Offer, Only
from retainer.console.page_context import PageContext
from retainer.errors import STATUS, Unreadable
from retainer.identity.audit import Fields
from retainer.store.tx import Tx
from retainer.values.exact import DIGITS
from retainer.values.reading import REQUIRED
from retainer.web.forms import Form


class Sheet(Inputs):
    about: Any
    """The record whose currency amounts have; that of an action, too, whose form shows none of its fields."""
    lock: FieldLock = FREE
    """What cannot change of the record; its fields are not among those of the form."""
    rare_names: Collection[str] = ()
    """The fields under "More fields"."""
    parts: Mapping[str, tuple[str, ...]] = {}
    """The fields that stand together below a heading, in their order, after those without one."""

    def __init__(
        self,
        tx: Tx,
        context: PageContext,
        fields: Sequence[Field],
        record: Any = None,
        *,
        kind: Kind | None = None,
        preset: Form | None = None,
    ) -> None:
        """Begin the form about a record of a kind, or about something else.

        `preset` are the texts of one about no record, by default those of a link.
        """
        super().__init__(tx, context, context.form)
        self.fields = [*fields]
        self.kind, self.record, self.about = kind, record, record
        self.preset = preset or (context.query if record is None else Form())

    @property
    def state(self) -> str:
        """Return a digest of the stored values of the fields; empty for a new form."""
        return self.state_of(self.record) if self.record else ""

    def state_of(self, record: Any) -> str:
        values = [getattr(record, field.name, None) for field in self.fields]
        return digest_of(values) if values else ""

    @property
    def content(self) -> str:
        """Return a digest of the form as it would be sent: a final action is confirmed as it was previewed."""
        return digest_of(self.texts(field) for field in self.fields)

    def initial(self, field: Field) -> list[str]:
        """Return the texts of a field before it is edited: as a link or the default sets it, or as stored.

        The default of several values comes before all others: it adds to what is stored.
        """
        is_default, is_preset = field.default is not None, self.record is None and field.name in self.preset
        if is_preset and not (is_default and field.control.is_several):
            return self.preset.texts_of(field.name)
        is_default = is_default and (self.record is None or field.control.is_several)
        return field.control.texts(field.default, self) if is_default else self.stored(field)

    def load(self) -> Self:
        """Read what the inputs show; of a stale form, also what is stored now where something else was typed."""
        if not self.is_loaded and self.form.status == STATUS["precondition_failed"]:
            changed = [field for field in self.fields if self._is_changed(field)]
            self.stored_now = {field.name: self.stored_text(field) or "nothing" for field in changed}
        return super().load()

    def read(self) -> Fields:
        """Return the body that the form describes.

        What cannot be read, and a required field that is blank, is `Unreadable` in it. Raises `validation_failed` for
        too many lines.
        """
        if self.lines and isinstance(self.lines.control, Rows):
            self.lines.control.check_number(self, self.lines.name)
        body = Fields()
        for field in (*self.fields, *self.hidden):
            if isinstance(field.control, Rows):
                lines = field.control.read_lines(self, field.name)
                body |= {} if lines is None else {field.name: lines}
            elif field.is_required and not self._has_text(field):
                body[field.name] = Unreadable(REQUIRED)
            elif self._is_changed(field):
                body[field.name] = rows.read(field, self.form.texts_of(field.name), self)
        return body

    def typed(self, name: str) -> object:
        """Return the value that a field of the form has now; None if it is blank or cannot be read."""
        field = next(field for field in self.fields if field.name == name)
        value = rows.read(field, self.texts(field), self)
        return None if isinstance(value, Unreadable) else value

    def read_preset(self) -> Fields:
        """Return the body of the form as its page fills it in."""
        form = self.form
        self.form = Form([(field.name, text) for field in self.fields for text in self.initial(field)])
        try:
            return self.read()
        finally:
            self.form = form

    def _has_text(self, field: Field) -> bool:
        texts = self.form.texts_of(field.name) if field.name in self.form else self.initial(field)
        return any(text.strip() for text in texts)

    def _is_changed(self, field: Field) -> bool:
        if field.name not in self.form:
            return False
        sent = self.form.texts_of(field.name)
        if self.record is None:
            return any(text.strip() for text in sent)
        texts = sent if field.control.is_several else sent[-1:]
        return field.control.is_other(texts, self.stored(field), self, field.name)

    @cached_property
    def currency(self) -> str:
        """The currency of the amounts: as chosen, or that of the record, its project or client, or the account."""
        chosen = self.form.text("currency").strip() or getattr(self.about, "currency", "")
        return chosen if chosen in DIGITS else currency_of(self.tx, {name: self.form.text(name) for name in CURRENCIES})

    @property
    def shown_currency(self) -> str:
        own = self.context.person.currency if self.kind is None else ""
        return getattr(self.about, "currency", own)

    @cached_property
    def references(self) -> ReferenceLookup:
        """The records that the form names; they are found when the first of them is read."""
        named = [(field.control, text.strip()) for field, text in self.shown()]
        wanted = [
            self._wanted(each.table, each.only, text) for each, text in named if isinstance(each, Reference) and text
        ]
        return ReferenceLookup(self.tx, self.context, wanted)

    @cached_property
    def client(self) -> str:
        """The id of the client that the page shows as chosen; empty without one."""
        field = next((field for field in self.fields if field.name == "client_id"), None)
        return self.text(field) if field else ""

    def is_of_other(self, choice: Offer) -> bool:
        return choice.client_id is not None and self.client not in {"", f"{choice.client_id}"}

    @property
    def lines(self) -> Field | None:
        return next((field for field in self.fields if isinstance(field.control, Rows)), None)

    def rows(self) -> list[Row]:
        field = self.lines
        return field.control.shown(self, field.name) if field and isinstance(field.control, Rows) else []

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.lines.control.columns if self.lines and isinstance(self.lines.control, Rows) else ()

    def shown(self) -> Iterable[tuple[Field, str]]:
        cells = [(column, row.texts[column.name]) for row in self.rows() for column in self.columns]
        return [*super().shown(), *((field, self.text(field)) for field in self.hidden), *cells]

    def label(self, field: Field) -> str:
        return field.control.label(field.label, self)

    def stored(self, field: Field) -> list[str]:
        return field.control.texts(getattr(self.record, field.name, None), self)

    def stored_text(self, field: Field) -> str:
        """Return what is stored as people read it."""
        values, reference = self.stored(field), reference_of(field)
        named = self._named(reference.table, ",".join(values)) if reference else dict(field.control.options)
        return ", ".join(named.get(each, each) for each in values)

    def owner_of(self, table: Table, text: str) -> str:
        """Return no owner for what the form's record refers to: a form shows the names of what its record refers to."""
        named = [(field, reference_of(field)) for field in self.fields] if self.record is not None else ()
        is_stored = any(each and each.table is table and self.stored(field) == [text] for field, each in named)
        return "" if is_stored else super().owner_of(table, text)

    def find(self, table: Table, only: Only, text: str) -> int:
        return self.references.id_of(self._wanted(table, only, text))

    def _wanted(self, table: Table, only: Only, text: str) -> WantedRecord:
        return WantedRecord(table, only, self.owner_of(table, number_in(text)), text)

    def _load_choices(self, table: Table, only: Only) -> list[Offer] | None:
        """Return the choices; if the client of the record is fixed, only those of this client or without one."""
        found, own = super()._load_choices(table, only), getattr(self.record, "client_id", None)
        if found and own and all(field.name != "client_id" for field in self.fields):
            return [choice for choice in found if choice.client_id in {None, own}]
        return found

    @property
    def first(self) -> list[Field]:
        return [field for field in self.fields if field not in (*self.after_lines, *self.rare, self.lines)]

    @property
    def after_lines(self) -> list[Field]:
        return [f for f in self.fields if self.lines and isinstance(f.control, LongText) and f not in self.rare]

    @property
    def rare(self) -> list[Field]:
        return [field for field in self.fields if field.name in self.rare_names]

    @property
    def is_opened(self) -> bool:
        names = [field.name for field in self.rare]
        return len(names) == len(self.fields) or any(name in self.form.errors or name in self.preset for name in names)

    def grouped_by(self, headings: Mapping[str, str]) -> dict[str, list[Field]]:
        """Return the fields by their headings: those of `parts`, else as the first field below each declares them."""
        heading_of = {name: heading for heading, names in self.parts.items() for name in names}
        groups, heading = dict[str, list[Field]](), ""
        for field in self.first:
            heading = heading_of.get(field.name, "") if self.parts else headings.get(field.name, heading)
            groups.setdefault(heading, []).append(field)
        for heading, names in self.parts.items():
            groups[heading] = sorted(groups.pop(heading, ()), key=lambda field: names.index(field.name))
        return groups

    def errors(self) -> list[tuple[str, str, str]]:
        """Return the errors of the form in words: of each its control, if it is on the page, its label and sentence."""
        found = []
        known = {field.name: field for field in (*self.fields, *self.hidden)}
        for path, sentences in self.form.errors.items():
            name, _, rest = path.partition(".")
            place, _, column = rest.partition(".")
            label = known[name].label if name in known else field_label(name)
            is_row = self.lines is not None and name == self.lines.name
            if is_row and re.fullmatch(r"[0-9]{1,4}", place):
                label = f"Line {int(place) + 1}" + (f", {field_label(column).lower()}" if column else "")
            control = path if is_row and column else name
            found.append((control if name in known else "", label, sentences[0]))
        return found

    def word_errors(self) -> None:
        """Write the labels of the page into the errors of the form."""
        names = self.kind.record.__struct_encode_fields__ if self.kind else {field.name for field in self.fields}
        for path, sentences in self.form.errors.items():
            self.form.errors[path] = [
                in_words(sentence, names, {"Is required": self.asked(path)}) for sentence in sentences
            ]

    def asked(self, path: str) -> str:
        """Return the error of a blank field, like `Enter a name`."""
        *_, name = path.split(".")
        fields = (*self.fields, *self.hidden, *self.columns)
        field = next((each for each in fields if each.name == name), None)
        label, verb = (field.label, field.control.verb) if field else (field_label(name), "Enter")
        return missing(name, label, verb)
