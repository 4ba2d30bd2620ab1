"""My week: the hours of the signed-in user by work and day, as a form whose cells are time entries with their notes.

Other buttons of the form save what was typed before they lead on, so that no hours are lost, with or without script.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cached_property
from typing import NamedTuple, cast
from urllib.parse import urlencode

from retainer.console import typed
from retainer.console.catalogue import shortened
from retainer.console.controls.control import NOT_OFFERED
from retainer.console.editing.calls import change_record, create_record, delete_record, digest_of, errors_at
from retainer.console.names import Link, load_names
from retainer.console.page_context import PageContext, Reply
from retainer.console.tracked import WORK, Options, load_offered, load_works, part_of, work_of
from retainer.errors import FieldErrors, InvalidValue, Refusal, invalid
from retainer.identity.audit import Fields
from retainer.store.tx import Tx
from retainer.web.forms import Form
from retainer.work.time_rules import TimeEntry

DAYS, DAY_MINUTES = 7, 1440
MAX_CHANGED = 140
"""Cells that one form changes: twenty rows."""
CHANGED = "Your week has changed since you opened this page, so nothing was saved. Check it, and save again."
NOTE = ".note"
"""What follows the name of a cell in that of its note."""
NEW = "new"
"""The choice of work in the blank row, and what the names of its cells begin with."""


class WeekCell(NamedTuple):
    """The time of a row on a day; several entries, and billed ones, are changed on their own pages."""

    name: str
    day: date
    entries: list[TimeEntry]

    @property
    def minutes(self) -> int:
        return sum(entry.duration_minutes for entry in self.entries)

    @property
    def text(self) -> str:
        return typed.minutes_text(self.minutes) if self.entries else ""

    @property
    def note(self) -> str:
        return (self.entries[0].description or "") if self.entries else ""

    @property
    def lock(self) -> str:
        """Return why the hours cannot change here; empty if they can."""
        if any(entry.is_locked for entry in self.entries):
            return "billed"
        if len(self.entries) > 1:
            return "several"
        return "deleted" if self.name.startswith(".") else ""

    @property
    def link(self) -> Link | None:
        """Return the page of a note that a cell cannot show: of locked hours, or one of several lines."""
        if not self.entries or not (self.lock or "\n" in self.note):
            return None
        if len(self.entries) > 1:
            return Link(f"{len(self.entries)} entries", f"?ids={','.join(str(entry.id) for entry in self.entries)}")
        return Link(shortened(self.note or "Add note"), f"/{self.entries[0].id}/edit")


class WeekRow(NamedTuple):
    name: str
    work: Link
    detail: str
    cells: list[WeekCell]

    @property
    def minutes(self) -> int:
        return sum(cell.minutes for cell in self.cells)


class CellChange(NamedTuple):
    """What was typed in a cell: the minutes that it then has, and its note if that is another."""

    row: WeekRow
    cell: WeekCell
    minutes: int
    note: str | None


class Week:
    def __init__(self, tx: Tx, context: PageContext) -> None:
        self.tx, self.context = tx, context
        self.kind = context.catalogue.find("time-entries")
        try:
            day = date.fromisoformat(context.typed.text("from") or tx.today)
            self.first = day - timedelta(day.weekday())
            self.before, self.after = self.first - timedelta(DAYS), self.first + timedelta(DAYS)
        except (ValueError, OverflowError):
            raise Refusal("not_found", "There is no such week.") from None
        self.days = [self.first + timedelta(number) for number in range(DAYS)]
        self.entries = self.load(self.first)
        name_new_row(context.form)

    def load(self, first: date) -> list[TimeEntry]:
        last = first + timedelta(DAYS - 1)
        filters = {"user_id": "me", "date_from": f"{first}", "date_to": f"{last}"}
        return cast(list[TimeEntry], self.kind.page(self.tx, filters, size=DAYS * DAY_MINUTES, sort="date").data)

    @property
    def state(self) -> str:
        return digest_of((entry.id, entry.updated_at) for entry in self.entries)

    @cached_property
    def rows(self) -> list[WeekRow]:
        """The rows with time, and those that the form or the address adds."""
        by_cell = defaultdict[tuple[str, str], list[TimeEntry]](list)
        for entry in self.entries:
            by_cell[work_of(entry), entry.date].append(entry)
        names = {name for name, _ in by_cell} | set(self.asked())
        found = [
            WeekRow(name, work, detail, [WeekCell(f"{name}.{day}", day, by_cell[name, f"{day}"]) for day in self.days])
            for name, work, detail in self.works(names)
        ]
        return sorted(found, key=lambda row: (row.work.text.casefold(), row.name))

    def asked(self) -> Iterator[str]:
        """Yield the names of rows that are asked for, if the role sees their work or the week before has them."""
        typed = self.context.typed
        names = {name for name in (*typed.texts_of("row"), typed.text(NEW)) if part_of(name)}
        for field, table in WORK.items():
            asked = {name for name in names if name.startswith(f"{field}-")}
            owner = self.context.catalogue.owner_of(table, is_named=True)
            if asked and owner:
                ids = [int(name.removeprefix(f"{field}-")) for name in asked]
                own = {f"{field}-{each}" for each in load_names(self.tx, table, ids, owner)}
                asked &= own | {work_of(entry) for entry in self.load(self.before)}
            yield from asked

    def works(self, names: set[str]) -> Iterator[tuple[str, Link, str]]:
        """Yield the names of rows whose work exists, with its name and page, and what it belongs to."""
        if "" in names:
            yield "", Link("Other", ""), ""
        yield from load_works(self.tx, self.context.catalogue, names)

    def choices(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return the work that the blank row can be for: what is offered and has no row."""
        shown = {row.name for row in self.rows}
        left = {title: [each for each in options if each[0] not in shown] for title, options in self.offered}
        return [(title, options) for title, options in left.items() if options]

    @cached_property
    def offered(self) -> Options:
        return load_offered(self.tx, self.context.catalogue)


def name_new_row(form: Form) -> None:
    """Name the cells of the blank row by the work that was chosen in it: they are then those of any other row."""
    if work := form.text(NEW):
        for name in [name for name in form.texts if name.startswith(f"{NEW}.")]:
            form.texts[work + name.removeprefix(NEW)] = form.texts.pop(name)


def show(tx: Tx, context: PageContext) -> Reply:
    week = Week(tx, context)
    days = [(day, sum(row.cells[place].minutes for row in week.rows)) for place, day in enumerate(week.days)]
    timer, offered = context.timer, week.offered
    if timer and timer.work and all(name != timer.timer.work for _, options in offered for name, _ in options):
        offered = [("Your timer", [(timer.timer.work, timer.work.text)]), *offered]
    return context.render(
        "week",
        week=week,
        days=days,
        choices=week.choices(),
        today=tx.today,
        hours=typed.minutes_text,
        locks={cell.lock for row in week.rows for cell in row.cells},
        offered=offered,
    )


def read(tx: Tx, context: PageContext) -> Reply | None:
    """Read the cells that were changed, for `save`; without any, other buttons lead on. Raises errors by cell.

    Work that was chosen without hours becomes a row of the page.
    """
    week, form = Week(tx, context), context.form
    errors = FieldErrors()
    if form.text(NEW) not in {"", *(row.name for row in week.rows)}:
        errors.note(NEW, NOT_OFFERED)
    elif not form.text(NEW) and any(form.text(name).strip() for name in form.texts if name.startswith(f"{NEW}.")):
        errors.note(NEW, "Choose the work of these hours.")
    wanted = [change for row in week.rows for cell in row.cells if (change := read_cell(context, row, cell, errors))]
    if (form.text("step") or form.text(NEW)) and not wanted and not errors:
        return context.redirect(path_after(week, form.text("step")))
    if form.text("state") != week.state:
        raise Refusal("precondition_failed", CHANGED)
    errors.raise_errors()
    if len(wanted) > MAX_CHANGED:
        raise invalid({"": [f"Save at most {MAX_CHANGED} changed cells at once; these are {len(wanted)}."]})
    context.filled = wanted
    return None


def read_cell(context: PageContext, row: WeekRow, cell: WeekCell, errors: FieldErrors) -> CellChange | None:
    """Return what was typed in a cell; None if it says what is stored, or has an error, which is noted."""
    form, minutes = context.form, cell.minutes
    text, note = form.text(cell.name, cell.text).strip(), form.text(cell.name + NOTE, cell.note).strip()
    if cell.lock or (text == cell.text and note == cell.note):
        return None
    try:
        if text != cell.text:
            minutes = typed.read_minutes(text or "0", context.person.language, 0, DAY_MINUTES)
    except InvalidValue as error:
        errors.note(cell.name, str(error))
        return None
    if note and not minutes and not cell.entries:
        errors.note(cell.name, "Enter the hours of this note.")
        return None
    return CellChange(row, cell, minutes, None if note == cell.note else note)


def save(tx: Tx, context: PageContext) -> Reply:
    """Create, change and delete the entries of the cells that were changed. Raises the errors of the API by cell."""
    week, wanted = Week(tx, context), context.filled
    if context.form.text("state") != week.state:
        raise Refusal("precondition_failed", CHANGED)
    for change in wanted:
        with errors_at(change.cell.name):
            write(tx, week, change)
    notice, kind = ("Week saved.", "good") if wanted else ("Nothing was changed.", "warn")
    return context.redirect(path_after(week, context.form.text("step")), notice, kind=kind)


def write(tx: Tx, week: Week, change: CellChange) -> None:
    row, cell, minutes, note = change
    body: Fields = {} if note is None else {"description": note or None}
    body |= {"duration_minutes": minutes} if minutes != cell.minutes else {}
    if not cell.entries and minutes:
        field, record_id = part_of(row.name) or ("", "")
        create_record(tx, week.kind, {field: int(record_id), "date": f"{cell.day}", **body})
    elif cell.entries and minutes and body:
        change_record(tx, week.kind, cell.entries[0], body)
    elif cell.entries and not minutes:
        delete_record(tx, week.kind, cell.entries[0])


def path_after(week: Week, step: str) -> str:
    """Return the page to which a button of the form leads: another week, or this one with its rows without hours."""
    if step == "today":
        return "/week"
    others = {"earlier": week.before, "later": week.after}
    rows = [] if step in others else [row.name for row in week.rows if row.name and not row.minutes]
    if step == "copy":
        rows += sorted({work_of(entry) for entry in week.load(week.before)} - {"", *(row.name for row in week.rows)})
    return f"/week?{urlencode([('from', others.get(step, week.first)), *(('row', row) for row in rows)])}"
