"""The form pages of the console: what one says, asks for and does is declared, and the page follows.

Each calls the function of its area, which checks its rules and notes the change in the audit log.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Table

from retainer.console.catalogue import Kind
from retainer.console.controls.control import Control, Field
from retainer.console.editing.calls import state_of, take_unreadable
from retainer.console.editing.references import ReferenceLookup
from retainer.console.editing.sheet import Sheet
from retainer.console.names import Link
from retainer.console.page_context import PageContext, Rehearsal, Reply, View
from retainer.errors import FieldErrors, Refusal
from retainer.identity.audit import Fields
from retainer.kernel.resource import read_id
from retainer.schema.identity import accounts
from retainer.store.constraints import singular
from retainer.store.tx import Store, Tx
from retainer.values.decoding import decoder, json_text

CHANGED = "Nothing was done this time: the {} has changed since you opened this page. Check it, then decide again."
PREVIEW, SAMPLE, OF_LINES = "preview", "sample", ("add", "remove ")
"""The steps of the buttons that show what a form leads to, or a document, and that add a line, and remove one."""
REVIEW = "This is what the form leads to: check it, then confirm."
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
    name_of: Callable[[Tx, Any], str] = lambda _, record: str(record.name)
    kind: Kind | None = None
    """The kind of its records, if the page of each shows all of it: a form is about the state that it showed."""

    def find(self, tx: Tx, context: PageContext) -> Any:
        """Return the record that the path names; None without one. Raises `not_found`."""
        ids = [text for name, text in context.path_parameters.items() if name != "kind"]
        return next((self.get(tx, read_id(each, self.table)) for each in ids), None)

    def page_of(self, tx: Tx, record: Any) -> Link:
        if record is None:
            return Link("", self.path)
        return Link(self.name_of(tx, record), self.kind.path_of(record) if self.kind else f"{self.path}/{record.id}")

    def confirm_name(self, tx: Tx, _: PageContext, record: Any) -> str:
        return self.name_of(tx, record)


class FormButton(NamedTuple):
    """Another button of a form, which sends its step with the fields."""

    step: str
    label: str
    is_danger: bool = False


class FormPage(NamedTuple):
    """A page with a form about a record of a section, which the title names, or about a new one."""

    section: Section
    title: str
    button: str
    act: Callable[[Any, PageContext, Any, Fields], Reply]
    """Does what the form asks for to the record, with the fields that were filled in or changed. Raises its errors.

    One that begins its own transactions gets the errors of typing in place of a record, and raises them with its own.
    """
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
    headings: Mapping[str, str] = {}
    """The headings of the form, by the first field below each."""
    is_danger: bool = False
    """Whether the form ends something."""
    has_preview: bool = False
    """Whether the form can be sent to see what it leads to."""
    is_reviewed: bool = False
    """Whether the form must have been previewed as it is sent."""
    sheet_of: Callable[[Tx, PageContext, Any], Sheet] | None = None
    """Makes a form whose fields follow from something else."""
    rehearse: Callable[[Tx, PageContext, Any, Sheet, Fields | None], dict[str, Any]] | None = None
    """Does what the form would do, in a transaction that is rolled back; returns what the page shows of it.

    Without fields, the page is shown as it is opened; in a transaction that cannot write, without what would follow.
    """
    reads_on: bool = False
    """Whether the function that acts reads the fields as a body of the API, and so reports what could not be read."""
    back: Link | None = None
    """The page to which a form about a new record leads back, if it is not the list."""
    hidden: Mapping[str, str] = {}
    """What the form sends in addition to its fields, such as a step."""

    def sheet(self, tx: Tx, context: PageContext, record: Any) -> Sheet:
        if self.sheet_of is not None:
            return self.sheet_of(tx, context, record)
        fields = [*self.fields(tx, context, record)]
        if text := self.confirmed_by(tx, context, record):
            fields.append(Field("confirmation", f"To confirm, type “{text}”", Control(), is_required=True))
        return Sheet(tx, context, fields, self.values(tx, context, record))

    def show(self, tx: Tx, context: PageContext) -> View:
        record = self.section.find(tx, context)
        sheet = self.sheet(tx, context, record)
        if self.rehearse is not None:
            return self.render(tx, context, record, sheet, **self.rehearse(tx, context, record, sheet, None))
        back = self.back or self.section.page_of(tx, record)  # before a rehearsal that may delete the record
        return self._replace(back=back).render(
            *(tx, context, record, sheet),
            told=[*self.tell(tx, context, record)],
            obstacle=self.obstacle(tx, context, record),
            links=self.links(tx, context, record),
            steps=self.steps(tx, context, record),
        )

    def render(self, tx: Tx, context: PageContext, record: Any, sheet: Sheet, **shown: Any) -> View:
        """Return the page; `told` stands above the form, `below` between its fields and its buttons."""
        sheet.load().word_errors()
        back = self.back or self.section.page_of(tx, record)
        hidden = {**self.hidden, "state": self.state(record, sheet), **shown.pop("hidden", {})}
        title = shown.pop("title", "") or self.title.format(name=back.text, person=context.person)
        shown = {"below": (), "links": (), "look": "", **shown}
        return context.render("form_page", page=self, title=title, back=back, sheet=sheet, hidden=hidden, **shown)

    def state(self, record: Any, sheet: Sheet) -> str:
        """Return the state of what the page shows: of the record with its parts, or of the fields that have values."""
        return state_of(record) if record is not None and self.section.kind else sheet.state

    def read(self, tx: Tx, context: PageContext) -> "FilledForm | None":
        """Return what the form says; None if it leaves a stored record as it is. Raises errors."""
        record = self.section.find(tx, context)
        sheet = self.sheet(tx, context, record)
        is_preview = self.has_preview and context.form.text("step") in {PREVIEW, SAMPLE}
        state = self.state(record, sheet)
        is_of_record = self.section.kind is not None and self.rehearse is None
        if (is_of_record or not is_preview) and context.form.text("state", "" if self.section.kind else state) != state:
            raise Refusal("precondition_failed", CHANGED.format(singular(self.section.table)))
        body = sheet.read()
        if not body and sheet.record is not None and self.rehearse is None and not is_preview:
            return None
        text, typed = self.confirmed_by(tx, context, record), body.pop("confirmation", "")
        is_confirmed = isinstance(typed, str) and typed.casefold() == text.casefold()
        errors = FieldErrors() if self.reads_on else take_unreadable(body)
        if not is_confirmed:
            errors.note("confirmation", "Does not match.")
        is_unseen = self.rehearse is not None and self.is_reviewed and context.form.text("seen") != sheet.content
        if is_preview or is_unseen:
            sheet.load()
            context.form.message = "" if is_preview else REVIEW
        is_rehearsed = self.rehearse is not None and (is_preview or is_unseen)
        return FilledForm(self, state, sheet, body, errors, sheet.references, is_rehearsed)

    def find_again(self, tx: Tx, context: PageContext, filled: "FilledForm") -> Any:
        """Return the record in the transaction that writes it. Raises `precondition_failed` if it is another now."""
        record, sheet = self.section.find(tx, context), filled.sheet
        if record is not None and self.section.kind:
            state = state_of(record)
        else:
            state = sheet.state_of(self.values(tx, context, record)) if sheet.record is not None else ""
        if state != filled.state:
            raise Refusal("precondition_failed", CHANGED.format(singular(self.section.table)))
        if not filled.references.are_own(tx):
            raise Refusal("precondition_failed", "A record that the form names is no longer yours. Choose another one.")
        return record


class FilledForm(NamedTuple):
    """A form as it was sent: its page, the state that this showed, and the fields that were filled in."""

    page: FormPage
    state: str
    sheet: Sheet
    body: Fields
    errors: FieldErrors
    """Errors of typing that the function that acts does not find in the body: they are shown with its own."""
    references: ReferenceLookup
    is_preview: bool = False
    """Whether the page only shows what the form leads to."""


Choose = Callable[[Tx, PageContext], FormPage]
"""Chooses the form of a page that has another one in each state."""


def read(choose: Choose, tx: Tx, context: PageContext) -> Reply | None:
    """Read a form for `act`. Returns a page if nothing is to be done. Raises errors."""
    page = choose(tx, context)
    if context.form.text("step").startswith(OF_LINES):
        return page.show(tx, context)
    context.filled = page.read(tx, context)
    if context.filled is not None:
        return None
    path = page.section.page_of(tx, page.section.find(tx, context)).path
    return context.redirect(path, "Nothing was changed.", kind="warn")


def act(tx: Tx, context: PageContext) -> Reply:
    """Do what a form says, or show what it leads to. Raises errors, `precondition_failed`, and Rehearsed."""
    filled: FilledForm = context.filled
    page, record = filled.page, filled.page.find_again(tx, context, filled)
    if filled.is_preview and page.rehearse is not None:
        shown = page.rehearse(tx, context, record, filled.sheet, {**filled.body})
        raise Rehearsal(page.render(tx, context, record, filled.sheet, **shown))
    if filled.errors:  # the rules add theirs, and nothing is written
        tx.note_unreadable(filled.errors)
        with filled.errors.noting():
            page.act(tx, context, record, {**filled.body})
        filled.errors.raise_errors()
    return page.act(tx, context, record, {**filled.body})


def act_apart(store: Store, context: PageContext) -> Reply:
    """Do what a form says outside of a transaction: its function hashes passwords, and begins its own."""
    filled: FilledForm = context.filled
    return filled.page.act(store, context, filled.errors, {**filled.body})
