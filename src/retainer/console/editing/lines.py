"""The lines of a document as its form sends them: `lines.0.description`."""

import re
from typing import NamedTuple

from retainer.console.editing.fields import Field
from retainer.console.forms import Form


class Row(NamedTuple):
    """A line of a document on its form: its place, its id if it is stored, and its texts by field."""

    place: int
    id: str
    texts: dict[str, str]


def read_rows(form: Form, field: Field) -> list[Row]:
    """Return the lines as typed and numbered again, without blank ones and the one that its button removes."""
    pattern = re.compile(rf"{field.name}\.(0|[1-9][0-9]{{0,3}})\.(\w+)")
    sent, step = dict[int, dict[str, str]](), form.text("step")
    for name in form.texts:
        if found := pattern.fullmatch(name):
            sent.setdefault(int(found[1]), {})[found[2]] = form.text(name)
    blank = {column.name: column.default for column in field.columns}
    kept = [
        row
        for place, row in sorted(sent.items())
        if step != f"remove {place}" and any(text not in {"", blank.get(name)} for name, text in row.items())
    ]
    texts = [{name: row.get(name, "") for name in blank} for row in kept]
    return [Row(place, kept[place].get("id", ""), each) for place, each in enumerate(texts)]
