"""My week: the hours of the signed-in user by work and day, as a form whose cells are time entries; and the timer."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import date, timedelta
from functools import cached_property
from typing import NamedTuple, cast

from sqlalchemy import Table, select

from retainer.console import typed
from retainer.console.catalogue import shortened
from retainer.console.editing.calls import change_record, create_record, delete_record, digest_of, errors_at
from retainer.console.names import Link, load_choices, load_names, path_of
from retainer.console.page_context import PageContext, Reply
from retainer.errors import FieldErrors, InvalidValue, Refusal, invalid
from retainer.schema.crm import clients
from retainer.schema.support import tickets
from retainer.schema.work import projects, tasks
from retainer.store.engines.sql import is_listed
from retainer.store.tx import Tx
from retainer.values.exact import minutes_between
from retainer.work import timers
from retainer.work.time_rules import MAX_MINUTES, TimeEntry

DAYS, DAY_MINUTES = 7, 1440
MAX_CHANGED = 140
"""Cells that one form changes: twenty rows."""
WORK: dict[str, Table] = {"task_id": tasks, "ticket_id": tickets, "project_id": projects, "client_id": clients}
"""What a row can be, the narrowest first; the name of a row is such a field and an id: `task_id-5`."""
PARENTS = {"task_id": "project_id", "ticket_id": "client_id", "project_id": "client_id"}
"""What tells two rows with the same name apart."""
PARENT_IDS = {
    field: select(WORK[field].c.id, WORK[field].c[parent]).where(is_listed(WORK[field].c.id, "ids"))
    for field, parent in PARENTS.items()
}
CHANGED = "Your week has changed since you opened this page, so nothing was saved. Check it, and save again."


class Cell(NamedTuple):
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
    def is_fixed(self) -> bool:
        return self.name.startswith(".") or len(self.entries) > 1 or self.is_billed

    @property
    def is_billed(self) -> bool:
        return any(entry.is_locked for entry in self.entries)

    @property
    def link(self) -> Link | None:
        if not self.entries:
            return None
        first, *others = self.entries
        if others:
            return Link(f"{len(self.entries)} entries", f"?ids={','.join(str(entry.id) for entry in self.entries)}")
        return Link(shortened(first.description or "Add note"), f"/{first.id}/edit")


class Row(NamedTuple):
    name: str
    work: Link
    detail: str
    cells: list[Cell]

    @property
    def minutes(self) -> int:
        return sum(cell.minutes for cell in self.cells)


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

    def load(self, first: date) -> list[TimeEntry]:
        last = first + timedelta(DAYS - 1)
        filters = {"user_id": "me", "date_from": f"{first}", "date_to": f"{last}"}
        return cast(list[TimeEntry], self.kind.page(self.tx, filters, size=DAYS * DAY_MINUTES, sort="date").data)

    @property
    def has_billed(self) -> bool:
        return any(entry.is_locked for entry in self.entries)

    @property
    def state(self) -> str:
        return digest_of((entry.id, entry.updated_at) for entry in self.entries)

    @cached_property
    def rows(self) -> list[Row]:
        """The rows with time, those that were added to the form, and on request those of the week before."""
        by_cell = defaultdict[tuple[str, str], list[TimeEntry]](list)
        for entry in self.entries:
            by_cell[row_of(entry), entry.date].append(entry)
        names = {name for name, _ in by_cell} | set(self.asked())
        if self.context.form.text("step") == "copy":
            names |= {row_of(entry) for entry in self.load(self.before)} - {""}
        found = [
            Row(name, work, detail, [Cell(f"{name}.{day}", day, by_cell[name, f"{day}"]) for day in self.days])
            for name, work, detail in self.works(names)
        ]
        return sorted(found, key=lambda row: (row.work.text.casefold(), row.name))

    def asked(self) -> Iterator[str]:
        """Yield the names of rows that the form has, if the role sees their work or the week before has them."""
        names = {name for name in self.context.form.texts_of("row") if part_of(name)}
        for field, table in WORK.items():
            asked = {name for name in names if name.startswith(f"{field}-")}
            owner = self.context.catalogue.owner_of(table)
            if asked and owner:
                ids = [int(name.removeprefix(f"{field}-")) for name in asked]
                own = {f"{field}-{each}" for each in load_names(self.tx, table, ids, owner)}
                asked &= own | {row_of(entry) for entry in self.load(self.before)}
            yield from asked

    def works(self, names: set[str]) -> Iterator[tuple[str, Link, str]]:
        """Yield the names of rows whose work exists, with its name and page, and what it belongs to."""
        if "" in names:
            yield "", Link("Other", ""), ""
        for field, table in WORK.items():
            ids = {int(part[1]) for name in names if (part := part_of(name)) and part[0] == field}
            details = self.details(field, ids)
            owner = self.context.catalogue.owner_of(table)
            own = load_names(self.tx, table, ids, owner) if owner else {}
            for record_id, text in load_names(self.tx, table, ids).items():
                work = Link(text, path_of(self.context.catalogue, table, record_id, is_own=record_id in own))
                yield f"{field}-{record_id}", work, details.get(record_id, "")

    def details(self, field: str, ids: Collection[int]) -> dict[int, str]:
        if field not in PARENTS or not ids:
            return {}
        rows = self.tx.all(PARENT_IDS[field], ids=json.dumps(sorted(ids)))
        parents: dict[int, int] = {record_id: parent or 0 for record_id, parent in rows}
        names = load_names(self.tx, WORK[PARENTS[field]], {*parents.values()})
        return {record_id: names.get(parent, "") for record_id, parent in parents.items()}

    def choices(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return the work that a new row can be for: what is offered and has no row."""
        shown = {row.name for row in self.rows}
        left = {title: [each for each in options if each[0] not in shown] for title, options in self.offered}
        return [(title, options) for title, options in left.items() if options]

    @cached_property
    def offered(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return the work that the user can record time on: open projects, and the user's open tasks and tickets."""
        catalogue, me = self.context.catalogue, {"assignee_id": "me"}
        own = {
            "task_id": catalogue.find("tasks").first(self.tx, me | {"open": "true"}, size=100),
            "ticket_id": catalogue.find("tickets").first(self.tx, me | {"status": "unresolved"}, size=100),
        }
        open_projects = load_choices(self.tx, projects, only="open", is_cut=True) or []
        found = {"Projects": [(f"project_id-{choice.id}", choice.text) for choice in open_projects]}
        for field, records in own.items():
            works = self.works({f"{field}-{record.id}" for record in records})
            named = [(name, f"{work.text} ({detail})" if detail else work.text) for name, work, detail in works]
            found[f"My {WORK[field].name}"] = sorted(named, key=lambda each: each[1].casefold())
        return [(title, options) for title, options in found.items() if options]


def row_of(entry: TimeEntry) -> str:
    """Return the name of the row of an entry; empty for one whose work was deleted."""
    return next((f"{field}-{value}" for field in WORK if (value := getattr(entry, field)) is not None), "")


def part_of(name: str) -> tuple[str, str] | None:
    """Return the field and the id of the name of a row; None for other text."""
    field, _, record_id = name.partition("-")
    return (field, record_id) if field in WORK and record_id.isdecimal() and len(record_id) < 16 else None


def show(tx: Tx, context: PageContext) -> Reply:
    week = Week(tx, context)
    days = [(day, sum(row.cells[place].minutes for row in week.rows)) for place, day in enumerate(week.days)]
    timer = timers.find(tx)
    timed = next((work for _, work, _ in week.works({timer.work})), None) if timer else None
    offered = week.offered
    if timer and timed and all(name != timer.work for _, options in offered for name, _ in options):
        offered = [("Your timer", [(timer.work, timed.text)]), *offered]
    return context.render(
        "week",
        week=week,
        days=days,
        choices=week.choices(),
        today=tx.today,
        hours=typed.minutes_text,
        timer=timer,
        timed=timed,
        passed=minutes_between(timer.started_at, tx.now) if timer else 0,
        offered=offered,
    )


def read(tx: Tx, context: PageContext) -> Reply | None:
    """Read the cells that were changed, for `save`; a button of the table shows it. Raises errors by cell."""
    week, form = Week(tx, context), context.form
    if form.text("step"):
        return show(tx, context)
    if form.text("state") != week.state:
        raise Refusal("precondition_failed", CHANGED)
    errors = FieldErrors()
    wanted = list[tuple[Row, Cell, int]]()
    for row in week.rows:
        for cell in row.cells:
            text = form.text(cell.name, cell.text).strip()
            if text != cell.text and not cell.is_fixed:
                try:
                    wanted.append((row, cell, typed.read_minutes(text or "0", context.person.language, 0, DAY_MINUTES)))
                except InvalidValue as error:
                    errors.note(cell.name, str(error))
    errors.raise_errors()
    if len(wanted) > MAX_CHANGED:
        raise invalid({"": [f"Save at most {MAX_CHANGED} changed cells at once; these are {len(wanted)}."]})
    context.filled = wanted
    return None


def save(tx: Tx, context: PageContext) -> Reply:
    """Create, change and delete the entries of the cells that were changed. Raises the errors of the API by cell."""
    week, wanted = Week(tx, context), context.filled
    if context.form.text("state") != week.state:
        raise Refusal("precondition_failed", CHANGED)
    for row, cell, minutes in wanted:
        with errors_at(cell.name):
            write(tx, week, row, cell, minutes)
    notice, kind = ("Week saved.", "good") if wanted else ("Nothing was changed.", "warn")
    return context.redirect(f"/week?from={week.first}", notice, kind=kind)


def write(tx: Tx, week: Week, row: Row, cell: Cell, minutes: int) -> None:
    if not cell.entries and minutes:
        field, record_id = part_of(row.name) or ("", "")
        body = {field: int(record_id), "date": f"{cell.day}", "duration_minutes": minutes}
        create_record(tx, week.kind, body)
    elif cell.entries and minutes:
        change_record(tx, week.kind, cell.entries[0], {"duration_minutes": minutes})
    elif cell.entries:
        delete_record(tx, week.kind, cell.entries[0])


def read_timer(tx: Tx, context: PageContext) -> None:
    """Check the work of a timer, for `move_timer`. Raises `validation_failed` for work that is not offered."""
    running, step = timers.find(tx), context.form.text("timer")
    if step == "discard" or (running is None) != (step == "start"):
        return
    context.filled = {name for _, options in Week(tx, context).offered for name, _ in options}
    check_work(context, running)


def check_work(context: PageContext, running: timers.Timer | None) -> str:
    """Return the work of the form, or that of the timer. Raises `validation_failed` for work that is not offered."""
    own = running.work if running else ""
    work = context.form.text("work", own)
    if not work or work not in {own, *(context.filled or ())}:
        raise invalid({"work": [f"Choose the work that {'the time is for' if running else 'you begin'}."]})
    return work


def move_timer(tx: Tx, context: PageContext) -> Reply:
    """Start, stop or discard the timer. Raises `validation_failed`, and the errors of the API at the work."""
    form, running = context.form, timers.find(tx)
    step = form.text("timer")
    if step == "start":
        if running is not None:
            raise invalid({"work": ["Your timer is running already. Stop it first."]})
        timers.start(tx, check_work(context, None), form.text("description").strip())
        return context.redirect("/week", "Timer started.")
    if running is None:
        return context.redirect("/week", "No timer is running.", kind="warn")
    if step == "discard":
        timers.discard(tx)
        return context.redirect("/week", "Timer discarded. Nothing was recorded.", kind="warn")
    entry = record_timer(tx, context, running)
    timers.discard(tx)
    return context.redirect("/week", f"{typed.minutes_text(entry.duration_minutes)} recorded.")


def record_timer(tx: Tx, context: PageContext, timer: timers.Timer) -> TimeEntry:
    """Record the time of a timer until now, on the work of the form, with its note; by default those of the start.

    Raises `validation_failed`, with the errors of the API at the work. The timer then goes on.
    """
    work, description = check_work(context, timer), context.form.text("description", timer.description).strip()
    if minutes_between(timer.started_at, tx.now) > MAX_MINUTES:
        raise invalid({"work": ["The timer has run for more than a day. Discard it, and type your hours below."]})
    field, record_id = part_of(work) or ("", "0")
    body = {
        field: int(record_id),
        "started_at": timer.started_at,
        "ended_at": tx.now,
        "description": description or None,
    }
    with errors_at("work"):
        return cast(TimeEntry, create_record(tx, context.catalogue.find("time-entries"), body))
