"""The form pages of administration and of a person's own data: what one tells, asks for and does is declared.

The page follows. Each calls the function of its area, which notes the change in the audit log.
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
from retainer.schema.identity import accounts
from retainer.store.tx import Store, Tx
from retainer.values.decoding import decoder, json_text

Read = Callable[[Tx, PageContext, Any], Any]
"""Reads something about the record of a form page; a new one has none."""


def stored(model: type[msgspec.Struct], row: Fields) -> dict[str, Any]:
    """Return the fields of a type from the columns of a row."""
    values = {str(name): value for name, value in row.items()}
    return msgspec.structs.asdict(decoder(model)(json_text(values)))


class Section(NamedTuple):
    """The part of the console to which a form page belongs: its list, and how one of its records is found and named.

    A section about the account or the person who is signed in has no records.
    """

    title: str
    path: str
    table: Table = accounts
    get: Callable[[Tx, int], Any] = lambda *_: None
    name_of: Callable[[Any], str] = lambda record: str(record.name)

    def find(self, tx: Tx, context: PageContext) -> Any:
        """Return the record that the path names; None without one. Raises `not_found`."""
        return next((self.get(tx, read_id(each, self.table)) for each in context.path_parameters.values()), None)

    def confirm_name(self, _: Tx, __: PageContext, record: Any) -> str:
        return self.name_of(record)


class Step(NamedTuple):
    """Another button of a form, which sends its step with the fields."""

    step: str
    label: str
    is_danger: bool = False


class FormPage(NamedTuple):
    """A page with a form about a record of a section, which the title names, or about a new one."""

    section: Section
    title: str
    """Its heading, which is a question if the form ends something."""
    button: str
    act: Callable[[Any, PageContext, Any, Fields], Reply]
    """Does what the form asks for, with the fields that were filled in or changed. Raises its errors."""
    tell: Read = lambda *_: ()
    """Returns what stands above the form: sentences and blocks."""
    fields: Read = lambda *_: ()
    values: Read = lambda *_: None
    """Returns the stored values of the fields; None for a form that begins empty."""
    confirmed_by: Read = lambda *_: ""
    """Returns what must be typed as confirmation, such as the name of the record."""
    obstacle: Read = lambda *_: ""
    """Returns why nothing can be done now, which stands in place of the form."""
    links: Read = lambda *_: ()
    """Returns the labels and paths of the buttons at the head."""
    steps: Read = lambda *_: ()
    """Returns the other buttons of the form."""
    step: str = ""
    """What the form's own button sends as its step."""
    headings: Mapping[str, str] = {}
    """The headings of the form, by the first field below each."""
    presets: Mapping[str, tuple[str, ...]] = {}

    def sheet(self, tx: Tx, context: PageContext, record: Any) -> Sheet:
        fields = [*self.fields(tx, context, record)]
        if text := self.confirmed_by(tx, context, record):
            fields.append(Field("confirmation", f"To confirm, type “{text}”", "text", is_required=True))
        return Sheet(tx, context, None, self.values(tx, context, record), fields)

    def show(self, tx: Tx, context: PageContext) -> Reply:
        record = self.section.find(tx, context)
        name = "" if record is None else self.section.name_of(record)
        told, sheet = [*self.tell(tx, context, record)], self.sheet(tx, context, record)
        return context.render(
            "form_page",
            page=self,
            title=self.title.format(name=name, person=context.person),
            name=name,
            back=self.section.path if record is None else f"{self.section.path}/{record.id}",
            sheet=sheet,
            told=told,
            obstacle=self.obstacle(tx, context, record),
            links=self.links(tx, context, record),
            steps=self.steps(tx, context, record),
        )

    def read(self, tx: Tx, context: PageContext) -> tuple[Any, Fields | None]:
        """Return the record with the fields that were sent; None if a stored one was left as it is. Raises errors."""
        record = self.section.find(tx, context)
        sheet = self.sheet(tx, context, record)
        body = sheet.read()
        if not body and sheet.record is not None and not tx.errors:
            return record, None
        text, typed = self.confirmed_by(tx, context, record), str(body.pop("confirmation", ""))
        if typed.casefold() != text.casefold():
            raise invalid({"confirmation": [f"To confirm, type “{text}”."]})
        return record, body

    def send(self, tx: Tx, context: PageContext) -> Reply:
        record, body = self.read(tx, context)
        if body is None:
            return context.redirect(f"{self.section.path}/{record.id}", "Nothing was changed.")
        return self.act(tx, context, record, body)


Choose = Callable[[Tx, PageContext], FormPage]
"""Chooses the form of a page that has another one in each state."""


def send_apart(choose: Choose, store: Store, context: PageContext) -> Reply:
    """Act outside of a transaction, with what the form says: its function hashes passwords, and begins its own."""
    with store.begin(context.person, write=False) as tx:
        tx.snapshot()
        page = choose(tx, context)
        record, body = page.read(tx, context)
        tx.raise_errors()
    return page.act(store, context, record, body or {})
