"""The sheet of a form: its fields with their texts, and the body that they describe.

Only what was changed is sent: a field whose text is as it was stored, or blank in a new record, is left out. So fields
that follow from others keep following, and what is locked stays as it is.
"""

from collections.abc import Sequence
from typing import Any, Self

from retainer.console.catalogue import Kind
from retainer.console.controls import rows
from retainer.console.controls.control import Field
from retainer.console.controls.rows import Rows
from retainer.console.editing.calls import digest_of
from retainer.console.editing.form_inputs import FormInputs
from retainer.console.page_context import PageContext
from retainer.errors import STATUS, Unreadable
from retainer.identity.audit import Fields
from retainer.store.tx import Tx
from retainer.values.reading import REQUIRED
from retainer.web.forms import Form


class Sheet(FormInputs):
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
        """Begin the form; `preset` are the texts of one about no record, by default those of a link."""
        super().__init__(tx, context, kind, record)
        self.fields = [*fields]
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
