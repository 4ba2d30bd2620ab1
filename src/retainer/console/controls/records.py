"""Controls of references: a record by its name or number, and several records."""

from collections.abc import Sequence

from sqlalchemy import Table

from retainer.console.controls.control import Control, Field, FormPlace
from retainer.console.controls.plain import ID, SeveralValues
from retainer.console.names import Only


class Reference(Control, frozen=True):
    """A record of a table; the options stand before its records."""

    table: Table
    only: Only = "open"
    macro, cell, verb = "reference", "picker", "Choose"

    def value(self, text: str, at: FormPlace, _: str) -> object:
        return at.find(self.table, self.only, text)

    def blanks(self, field: Field) -> list[tuple[str, str]]:
        blank = "Me" if field.is_filled_in else "None" if not field.is_required else "Select…"
        return [("", field.empty or blank)]


class References(SeveralValues, frozen=True):
    table: Table
    only: Only = "open"
    macro, verb = "references", "Choose"

    def read(self, texts: Sequence[str], _: FormPlace, __: str) -> object:
        return [int(text) if ID.fullmatch(text) else text for text in texts if text]


def reference_of(field: Field) -> Reference | References | None:
    return field.control if isinstance(field.control, Reference | References) else None
