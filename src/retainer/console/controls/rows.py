"""The lines of a document as its form sends them: `lines.0.description`."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from retainer.console.controls.control import Control, Field, FormPlace
from retainer.console.controls.plain import ID
from retainer.errors import InvalidValue, Unreadable, invalid
from retainer.values.records import Record

BEGUN = 3
"""Blank lines with which a document begins."""
TOO_MANY = "Must be at most {} lines; these are {}. Split the document."


class Row(NamedTuple):
    """A line of a document on its form: its place, its id if it is stored, and its texts by field."""

    place: int
    id: str
    texts: dict[str, str]


class Rows(Control, frozen=True):
    """The lines of a document, at most `high`; each has the fields of `columns`."""

    columns: tuple[Field, ...]
    high: int

    def blank(self, at: FormPlace) -> dict[str, str]:
        return {column.name: column.control.texts(column.default, at)[-1] for column in self.columns}

    def typed(self, at: FormPlace, name: str) -> list[Row]:
        """Return the lines as typed and numbered again, without blank ones and the one that its button removes."""
        pattern = re.compile(rf"{name}\.(0|[1-9][0-9]{{0,3}})\.(\w+)")
        sent, step, blank = dict[int, dict[str, str]](), at.form.text("step"), self.blank(at)
        for each in at.form.texts:
            if found := pattern.fullmatch(each):
                sent.setdefault(int(found[1]), {})[found[2]] = at.form.text(each)
        kept = [
            row
            for place, row in sorted(sent.items())
            if step != f"remove {place}" and any(text not in {"", blank.get(name)} for name, text in row.items())
        ]
        texts = [{name: row.get(name, "") for name in blank} for row in kept]
        return [Row(place, kept[place].get("id", ""), each) for place, each in enumerate(texts)]

    def shown(self, at: FormPlace, name: str) -> list[Row]:
        """Return the lines as typed or stored, and blank ones: an added one, or those with which a document begins."""
        rows = self.typed(at, name)[: self.high]
        if not at.form.texts:
            rows = [Row(place, f"{line.id}", self._stored(line, at)) for place, line in enumerate(lines_of(at, name))]
        added = BEGUN if not rows and not at.form.texts else 1 if at.form.text("step") == "add" or not rows else 0
        return [*rows, *(Row(len(rows) + place, "", self.blank(at)) for place in range(added))]

    def check_number(self, at: FormPlace, name: str) -> None:
        """Raise `validation_failed` for too many lines: before what they name is searched."""
        if (number := len(self.typed(at, name))) > self.high:
            raise invalid({name: [TOO_MANY.format(self.high, number)]})

    def read_lines(self, at: FormPlace, name: str) -> object:
        """Return the lines of the form, without blank ones; None if they are as stored."""
        rows, stored = self.typed(at, name), {str(line.id): line for line in lines_of(at, name)}
        lines = [dict(self._read(row, stored.get(row.id), at)) for row in rows]
        if not any(lines) and [row.id for row in rows] == [*stored]:
            return None
        return [
            {"id": int(row.id), **line} if ID.fullmatch(row.id) else line for row, line in zip(rows, lines, strict=True)
        ]

    def _stored(self, line: Record, at: FormPlace) -> dict[str, str]:
        return {each.name: each.control.texts(getattr(line, each.name), at)[-1] for each in self.columns}

    def _read(self, row: Row, stored: Record | None, at: FormPlace) -> Iterator[tuple[str, object]]:
        """Yield the fields of a line that were changed, or filled in."""
        before = {} if stored is None else self._stored(stored, at)
        for column in self.columns:
            text = row.texts[column.name]
            if text != before[column.name] if before else text.strip():
                yield column.name, read(column, [text], at)


def lines_of(at: FormPlace, name: str) -> list[Record]:
    return getattr(at.record, name, None) or []


def read(field: Field, texts: list[str], at: FormPlace) -> object:
    """Return what the texts of a field say, as JSON would have it."""
    try:
        return field.control.read(texts, at, field.name)
    except InvalidValue as error:
        return Unreadable(str(error))
