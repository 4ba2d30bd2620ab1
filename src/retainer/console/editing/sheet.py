"""The sheet of a record: the fields of its form with their texts and choices, and the body that the form describes.

Only what was changed is sent: a field whose text is as it was stored, or blank in a new record, is left out. So fields
that follow from others keep following, and what is locked stays as it is.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Self

from sqlalchemy import Table

from retainer.console import typed
from retainer.console.displays import display_of
from retainer.console.editing.calls import digest_of
from retainer.console.editing.fields import ID, SEVERAL, Field, Inputs, fields_of
from retainer.console.editing.lines import Row, read_rows
from retainer.console.editing.moments import Moments
from retainer.console.editing.references import CURRENCIES, References, Wanted, currency_of, number_in
from retainer.console.forms import YES_OR_NO, Form
from retainer.console.kinds.display import FREE
from retainer.console.labels import field_label, in_words, word_of
from retainer.console.names import Choice, Only
from retainer.console.page_context import PageContext
from retainer.errors import STATUS, FieldErrors, InvalidValue, Unreadable, invalid
from retainer.store.tx import Tx
from retainer.values.exact import DIGITS
from retainer.values.reading import create_only
from retainer.values.records import Record

NOT_OFFERED = "Is no longer offered. Check the choices, and select again."
MAX_TYPED = 100
"""Characters of a number, a time or a day."""
NUMBERS = {"money", "number", "percent", "whole"}
TYPED = NUMBERS | {"hours", "moment", "first_day", "last_day", "flag"}
TOO_MANY = "Must be at most {} lines; these are {}. Split the document."


class Sheet(Inputs):
    def __init__(
        self,
        kind: Any,
        tx: Tx,
        context: PageContext,
        record: Any = None,
        chosen: Sequence[Field] | None = None,
        preset: Form | None = None,
    ) -> None:
        """Begin the form. One of `chosen` fields has no lock, and may be about no kind of records."""
        super().__init__(tx, context, context.form)
        self.kind, self.record, self.is_chosen = kind, record, chosen is not None
        self.about = record
        """The record whose currency amounts have; that of an action, too, whose form shows none of its fields."""
        self.preset = preset or (context.query if record is None else Form())
        self.display = display_of(kind.name if kind else "")
        self.lock = FREE if chosen is not None or record is None else self.display.lock(record)
        without = {*self.lock.fields, *(self.display.preset_only if chosen is None else ())}
        use = "Create" if record is None else "Update"
        without |= create_only(kind.record) if use == "Update" and chosen is None else set()
        offered = fields_of(kind.record, kind.table, use) if chosen is None else tuple(chosen)
        offered = tuple(field for field in offered if kind is None or field.name not in kind.left_out)
        self.fields = [field for field in offered if field.name not in without]
        sent = {*self.preset.texts, *self.form.texts}
        self.hidden = [field for field in offered if field.name in without and field.name in sent]
        """The fields that a link has set, and that are only shown."""

    @property
    def moments(self) -> Moments:
        return Moments(self.form, self.record, self.tx.actor.timezone)

    @property
    def language(self) -> str:
        return self.context.person.language

    @cached_property
    def currency(self) -> str:
        """The currency of the amounts: as chosen, or that of the record, its project or client, or the account."""
        chosen = self.form.text("currency").strip() or getattr(self.about, "currency", "")
        return chosen if chosen in DIGITS else currency_of(self.tx, {name: self.form.text(name) for name in CURRENCIES})

    @cached_property
    def references(self) -> References:
        """The records that the form names; they are found when the first of them is read."""
        named = [(field, text.strip()) for field, text in self.shown() if field.shape == "reference"]
        wanted = [self._wanted(field, text) for field, text in named if text]
        return References(self.tx, self.context, wanted)

    @property
    def first(self) -> list[Field]:
        return [field for field in self.fields if field not in (*self.after_lines, *self.rare, self.lines)]

    @property
    def after_lines(self) -> list[Field]:
        return [field for field in self.fields if self.lines and field.shape == "long" and field not in self.rare]

    @property
    def rare(self) -> list[Field]:
        rare = () if self.is_chosen else ("external_id", *self.display.rare)
        return [field for field in self.fields if field.name in rare]

    @property
    def is_opened(self) -> bool:
        names = [field.name for field in self.rare]
        return len(names) == len(self.fields) or any(name in self.form.errors or name in self.preset for name in names)

    @property
    def lines(self) -> Field | None:
        return next((field for field in self.fields if field.shape == "rows"), None)

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
        return digest_of(self.form.text(field.name, self.stored(field)) for field in self.fields)

    def label(self, field: Field) -> str:
        own = self.context.person.currency if self.kind is None else ""
        unit = getattr(self.about, "currency", own) if field.shape == "money" else ""
        if field.shape == "hours" and "hours" not in field.label.lower():
            unit = "hours"
        return f"{field.label}, {unit}" if unit else field.label

    def stored(self, field: Field) -> str:
        """Return the text of a field before it is edited: as stored, or as a link or the default sets it."""
        if self.record is None:
            default = field.default.replace(".", typed.decimal_mark(self.language))
            return self.preset.text(field.name, field.default if field.shape == "text" else default)
        return self.text_of(field, getattr(self.record, field.name, None))

    def stored_ids(self, field: Field) -> list[str]:
        stored = [str(each) for each in getattr(self.record, field.name, None) or ()]
        return stored or self.preset.texts_of(field.name)

    def chosen(self, field: Field) -> list[str]:
        """Return the values that are chosen of several: as typed, as the default adds to them, or as stored."""
        return self.form.texts_of(field.name) if self.form.texts else field.default.split() or self.stored_ids(field)

    def grouped_by(self, headings: Mapping[str, str]) -> dict[str, list[Field]]:
        """Return the fields by their headings, which are declared by the first field below each."""
        groups, heading = dict[str, list[Field]](), ""
        for field in self.first:
            heading = headings.get(field.name, heading)
            groups.setdefault(heading, []).append(field)
        return groups

    def grouped(self, field: Field) -> dict[str, list[tuple[str, str]]]:
        """Return the values of a choice of several by their group, the part before a point, if they have one."""
        groups = dict[str, list[tuple[str, str]]]()
        for value, text in field.options:
            group, _, rest = value.rpartition(".")
            groups.setdefault(word_of(group), []).append((value, word_of(rest) if group else text))
        return groups

    def text_of(self, field: Field, value: object) -> str:
        if value and field.shape == "moment":
            return self.moments.local(str(value))
        return typed.value_text(value, field.shape, self.language)

    def rows(self) -> list[Row]:
        field = self.lines
        if field is None:
            return []
        stored = getattr(self.record, field.name, None) or []
        rows = self.typed_rows[: field.high]
        if not self.form.texts:
            rows = [Row(place, str(line.id), self.row_texts(field, line)) for place, line in enumerate(stored)]
        blank = Row(len(rows), "", {column.name: column.default for column in field.columns})
        return [*rows, blank] if self.form.text("step") == "add" or not rows else rows

    @cached_property
    def typed_rows(self) -> list[Row]:
        return [] if self.lines is None else read_rows(self.form, self.lines)

    def load(self) -> Self:
        """Read what the inputs show; of a stale form, also what is stored now where something else was typed."""
        if self.is_loaded:
            return self
        if self.form.status == STATUS["precondition_failed"]:
            changed = [field for field in self.fields if field.name in self.form and self._is_changed(field)]
            self.stored_now = {field.name: self._stored_text(field) or "nothing" for field in changed}
        return super().load()

    def shown(self) -> Iterable[tuple[Field, str]]:
        columns = self.lines.columns if self.lines else ()
        cells = [(column, row.texts[column.name]) for row in self.rows() for column in columns]
        return [*super().shown(), *((field, self.text(field)) for field in self.hidden), *cells]

    def row_texts(self, field: Field, line: Record) -> dict[str, str]:
        return {column.name: self.text_of(column, getattr(line, column.name)) for column in field.columns}

    def owner_of(self, table: Table, text: str) -> str:
        """Return no owner for what the form's record refers to: a form shows the names of what its record refers to."""
        is_stored = any(field.target is table and self.stored(field) == text for field in self.fields)
        return "" if self.record is not None and is_stored else super().owner_of(table, text)

    def _load_choices(self, table: Table, only: Only) -> list[Choice] | None:
        """Return what can be chosen; if the client of the record is fixed, only what is its own or nobody's."""
        found, own = super()._load_choices(table, only), getattr(self.record, "client_id", None)
        if found and own and all(field.name != "client_id" for field in self.fields):
            return [choice for choice in found if choice.client_id in {None, own}]
        return found

    def _stored_text(self, field: Field) -> str:
        """Return what is stored as people read it."""
        values = self.stored_ids(field) if field.shape in SEVERAL else [self.stored(field)]
        named = self._named(field.target, ",".join(values)) if field.target is not None else dict(field.options)
        return ", ".join(named.get(each, each) for each in values)

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
            self.form.errors[path] = [in_words(sentence, names) for sentence in sentences]

    def read(self, *, with_unreadable: bool = False) -> dict[str, object]:
        """Return the body that the form describes. Of `chosen` fields, notes those that are required and blank.

        Raises `validation_failed` for input that cannot be read, unless the body may say it by `Unreadable`.
        """
        if self.lines and len(self.typed_rows) > self.lines.high:
            raise invalid({self.lines.name: [TOO_MANY.format(self.lines.high, len(self.typed_rows))]})
        errors, body = FieldErrors(), dict[str, object]()
        for field in (*self.fields, *self.hidden):
            if field.shape == "file":
                continue
            if field.shape == "rows":
                self._read_rows(field, body, errors)
            elif self.is_chosen and field.is_required and not self._text(field):
                self.tx.error(field.name, "Is required.")
            elif field.name in self.form and self._is_changed(field):
                body[field.name] = self._read(field, field.name, self.form.text(field.name), errors)
        if errors and not with_unreadable:
            raise invalid(self.tx.errors | errors)
        return body

    def typed(self, name: str) -> object:
        """Return the value that a field of the form has now; None if it is blank or cannot be read."""
        field = next(field for field in self.fields if field.name == name)
        value = self._read(field, name, self.text(field), FieldErrors())
        return None if isinstance(value, Unreadable) else value

    def read_preset(self) -> dict[str, object]:
        """Return the body of the form as its page fills it in. Raises `validation_failed`."""
        form = self.form
        self.form = Form([(field.name, self.stored(field)) for field in self.fields])
        try:
            return self.read()
        finally:
            self.form = form

    def _text(self, field: Field) -> str:
        return self.form.text(field.name, field.default if self.record is None else self.stored(field)).strip()

    def _is_changed(self, field: Field) -> bool:
        if field.shape in SEVERAL:
            return sorted(self._ids(field)) != sorted(self.stored_ids(field) if self.record is not None else ())
        text = self.form.text(field.name)
        if field.shape == "moment" and self.moments.is_other(field.name, text):
            return True
        return text != self.stored(field) if self.record is not None else text.strip() != ""

    def _ids(self, field: Field) -> list[str]:
        return [text for text in self.form.texts_of(field.name) if text]

    def _read(self, field: Field, path: str, typed_text: str, errors: FieldErrors) -> object:
        """Return a typed value as JSON would have it; note an error for one that cannot be read."""
        if field.shape in SEVERAL:
            if field.shape == "choices" and not dict(field.options).keys() >= {*self._ids(field)}:
                errors.note(path, NOT_OFFERED)
                return Unreadable(NOT_OFFERED)
            return [int(text) if field.target is not None and ID.fullmatch(text) else text for text in self._ids(field)]
        text = typed_text if field.shape == "secret" else typed_text.strip()
        try:
            return None if not text else self._value(field, text)
        except InvalidValue as error:
            errors.note(path, str(error))
            return Unreadable(str(error))

    def _value(self, field: Field, text: str) -> object:
        if field.shape in TYPED and len(text) > MAX_TYPED:
            raise InvalidValue(f"Must have at most {MAX_TYPED} characters.")
        if field.shape in NUMBERS:
            unit, decimals = (self.currency, DIGITS[self.currency]) if field.shape == "money" else (field.unit, None)
            return typed.read_quantity(text, unit, self.language, decimals, is_whole=field.shape == "whole")
        if field.shape == "url":
            return typed.with_scheme(text)
        if field.shape == "hours":
            return typed.read_minutes(text, self.language, field.low, field.high)
        if field.shape == "moment":
            return self.moments.read(field.name, text)
        if field.shape in {"first_day", "last_day"}:
            return typed.read_boundary(text, self.tx.actor.timezone, is_end=field.shape == "last_day")
        if field.shape == "flag":
            return YES_OR_NO.get(text, text)
        if field.shape == "numbers":
            return [int(part) if ID.fullmatch(part) else part for part in re.split(r"[,;\s]+", text)]
        if field.shape == "choice" and text not in dict(field.options):
            raise InvalidValue(NOT_OFFERED)
        return self.references.id_of(self._wanted(field, text)) if field.target is not None else text

    def _wanted(self, field: Field, text: str) -> Wanted:
        if field.target is None:
            raise TypeError(f"The field {field.name} names no record.")
        return Wanted(field.target, field.only, self.owner_of(field.target, number_in(text)), text)

    def _read_rows(self, field: Field, body: dict[str, object], errors: FieldErrors) -> None:
        """Add the lines of the form to the body, if they differ from the stored ones; drop blank ones."""
        stored = {str(line.id): line for line in getattr(self.record, field.name, None) or ()}
        lines, is_changed = list[dict[str, object]](), False
        for row in self.typed_rows:
            before = self.row_texts(field, stored[row.id]) if row.id in stored else {}
            changed = [
                column
                for column in field.columns
                if (row.texts[column.name] != before[column.name] if before else row.texts[column.name].strip())
            ]
            line = {
                each.name: self._read(each, f"{field.name}.{row.place}.{each.name}", row.texts[each.name], errors)
                for each in changed
            }
            is_changed = is_changed or bool(line)
            lines.append({"id": int(row.id), **line} if ID.fullmatch(row.id) else line)
        if is_changed or [str(line.get("id")) for line in lines] != list(stored):
            body[field.name] = lines
