"""The form pages of administration: what one tells, asks for and does is declared, and the page follows.

Each calls the function of its area, which notes the change in the audit log.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Table

from retainer.console.editing.fields import Field
from retainer.console.editing.sheet import Sheet
from retainer.console.page_context import PageContext, Reply
from retainer.errors import invalid
from retainer.identity.audit import Fields
from retainer.kernel.resource import read_id
from retainer.store.tx import Tx
from retainer.values.decoding import decoder, json_text

Read = Callable[[Tx, PageContext, Any], Any]
"""Reads something about the record of a form page; a new one has none."""


def stored(model: type[msgspec.Struct], row: Fields) -> dict[str, Any]:
    """Return the fields of a type from the columns of a row."""
    values = {str(name): value for name, value in row.items()}
    return msgspec.structs.asdict(decoder(model)(json_text(values)))


class Section(NamedTuple):
    """The part of the console to which a form page belongs: its list, and how one of its records is found and named."""

    title: str
    path: str
    table: Table
    get: Callable[[Tx, int], Any]
    name_of: Callable[[Any], str] = lambda record: str(record.name)

    def find(self, tx: Tx, context: PageContext) -> Any:
        """Return the record that the path names; None without one. Raises `not_found`."""
        return next((self.get(tx, read_id(each, self.table)) for each in context.path_parameters.values()), None)


class FormPage(NamedTuple):
    """A page with a form about a record of a section, which the title names, or about a new one."""

    section: Section
    title: str
    """Its heading, which is a question if the form ends something."""
    button: str
    act: Callable[[Tx, PageContext, Any, Fields], Reply]
    """Does what the form asks for, with the fields that were filled in or changed. Raises its errors."""
    tell: Read = lambda *_: ()
    """Returns what stands above the form: sentences and tables."""
    fields: Read = lambda *_: ()
    values: Read = lambda *_: None
    """Returns the stored values of the fields; None for a form that begins empty."""
    is_confirmed: Read = lambda *_: False
    """Whether the name of the record must be typed, as confirmation."""
    presets: Mapping[str, tuple[str, ...]] = {}

    def sheet(self, tx: Tx, context: PageContext, record: Any) -> Sheet:
        fields = [*self.fields(tx, context, record)]
        if self.is_confirmed(tx, context, record):
            label = f"To confirm, type “{self.section.name_of(record)}”"
            fields.append(Field("confirmation", label, "text", is_required=True))
        return Sheet(tx, context, None, self.values(tx, context, record), fields)

    def show(self, tx: Tx, context: PageContext) -> Reply:
        record = self.section.find(tx, context)
        name = "" if record is None else self.section.name_of(record)
        back = self.section.path if record is None else f"{self.section.path}/{record.id}"
        told, sheet = [*self.tell(tx, context, record)], self.sheet(tx, context, record)
        title = self.title.format(name=name)
        return context.render("form_page", page=self, title=title, name=name, back=back, sheet=sheet, told=told)

    def send(self, tx: Tx, context: PageContext) -> Reply:
        record = self.section.find(tx, context)
        sheet = self.sheet(tx, context, record)
        body = sheet.read()
        if not body and sheet.record is not None and not tx.errors:
            return context.redirect(f"{self.section.path}/{record.id}", "Nothing was changed.")
        typed = str(body.pop("confirmation", ""))
        if self.is_confirmed(tx, context, record) and typed.casefold() != self.section.name_of(record).casefold():
            raise invalid({"confirmation": [f"To confirm, type “{self.section.name_of(record)}”."]})
        return self.act(tx, context, record, body)
