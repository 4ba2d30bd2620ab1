"""The layout of a form: where its fields stand, and its errors in the words of the page."""

import re
from collections.abc import Collection, Mapping

from retainer.console.controls.control import Field
from retainer.console.controls.plain import LongText
from retainer.console.controls.rows import Rows
from retainer.console.editing.form_inputs import FormInputs
from retainer.console.kinds.display import FREE, FieldLock
from retainer.console.labels import field_label, in_words, missing
from retainer.web.forms import Form


class FormLayout(FormInputs):
    preset: Form
    lock: FieldLock = FREE
    """What cannot change of the record; its fields are not among those of the form."""
    rare_names: Collection[str] = ()
    """The fields under "More fields"."""
    parts: Mapping[str, tuple[str, ...]] = {}
    """The fields that stand together below a heading, in their order, after those without one."""

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
        lines = self.lines.control if self.lines and isinstance(self.lines.control, Rows) else None
        fields = [*self.fields, *self.hidden, *(lines.columns if lines else ())]
        field = next((each for each in fields if each.name == name), None)
        label, verb = (field.label, field.control.verb) if field else (field_label(name), "Enter")
        return missing(name, label, verb)
