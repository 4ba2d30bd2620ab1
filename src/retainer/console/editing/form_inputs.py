"""The inputs of a form: what its controls know of its record, the records that its texts name, and where fields are."""

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

from sqlalchemy import Table

from retainer.console.catalogue import Kind
from retainer.console.controls.control import Field
from retainer.console.controls.plain import LongText
from retainer.console.controls.records import Reference, reference_of
from retainer.console.controls.rows import Row, Rows
from retainer.console.editing.inputs import Inputs
from retainer.console.editing.references import CURRENCIES, ReferenceLookup, WantedRecord, currency_of, number_in
from retainer.console.kinds.display import FREE, FieldLock
from retainer.console.labels import field_label, in_words, missing
from retainer.console.names import Offer, Only
from retainer.console.page_context import PageContext
from retainer.store.tx import Tx
from retainer.values.exact import DIGITS
from retainer.web.forms import Form


class FormInputs(Inputs):
    kind: Kind | None
    """The kind of records that the form is about, if it is about one."""
    about: Any
    """The record whose currency amounts have; that of an action, too, whose form shows none of its fields."""
    preset: Form
    lock: FieldLock = FREE
    """What cannot change of the record; its fields are not among those of the form."""
    rare_names: Collection[str] = ()
    """The fields under "More fields"."""
    parts: Mapping[str, tuple[str, ...]] = {}
    """The fields that stand together below a heading, in their order, after those without one."""

    def __init__(self, tx: Tx, context: PageContext, kind: Kind | None, record: Any) -> None:
        super().__init__(tx, context, context.form)
        self.kind, self.record, self.about = kind, record, record

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
