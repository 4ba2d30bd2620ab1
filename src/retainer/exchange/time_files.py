"""Files of time: a file of another program as entries to import, each with the records that it needs.

Everything that follows from the file alone is decided here, once and before anything is written: how its numbers and
days are read, which moment a local time is, how seconds become minutes, and by which `external_id` an entry is found
again. The result is a text with a JSON value on each line, which a job reads in any number of steps.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from retainer.exchange import tables
from retainer.exchange.columns import (
    CellFields,
    CellForm,
    Cells,
    ColumnMapping,
    ImportSource,
    check_mapping,
    read_currency,
    read_source,
)
from retainer.exchange.plans import DescribedRow, ImportPlan, Sum, encode, require_few
from retainer.exchange.sources import CSV
from retainer.exchange.tables import TOO_LONG, BadCell, name_of
from retainer.values.collation import sort_key
from retainer.values.decoding import decoder
from retainer.values.exact import DIGITS, as_instant, half_up

A_SECOND, A_DAY = timedelta(seconds=1), timedelta(days=1)
SECONDS_OF_HOUR = 3600
NO_PROJECT = "No project"
"""The internal project of time that has neither a client nor a project in the file."""
NO_PERSON = ""
MAX_NAME = 255
"""Characters of the longest name that a record can have, the title of a task."""


class NamedRecord(msgspec.Struct, array_like=True, frozen=True, tag="record"):
    """A record that entries need, by its name; one that exists is used."""

    kind: Literal["person", "client", "project", "task"]
    name: str
    client: str | None = None
    project: str | None = None
    detail: str | None = None
    """The email address of a person, the currency of a client."""
    is_namesake: bool = False
    """Whether the file has a person with the same name and another address; then the name says nothing."""

    @property
    def label(self) -> str:
        return f"{self.name} ({self.detail})" if self.is_namesake else self.name


class BookingPart(msgspec.Struct, array_like=True, frozen=True):
    """A time entry: its day, its seconds, its start and the id by which it is found again."""

    date: str
    seconds: int
    started_at: str | None
    external_id: str

    @property
    def minutes(self) -> int:
        """The seconds to the minute, halves up; at least one."""
        return max(1, half_up(self.seconds, 60))


class Booking(msgspec.Struct, array_like=True, tag="booking"):
    """A row of the file with its entries: one, or one for each day if it is longer than a day."""

    line: int
    cells: list[str]
    reason: str | None = None
    """Why it cannot be imported; then it has no entries."""
    parts: list[BookingPart] = []
    person: NamedRecord | None = None
    client: NamedRecord | None = None
    project: NamedRecord | None = None
    task: NamedRecord | None = None
    description: str | None = None
    billable: bool | None = None
    is_settled: bool = False
    hourly_rate: Decimal | None = None
    currency: str | None = None

    def named(self) -> tuple[NamedRecord, ...]:
        """Return the records that it needs, each after those that it belongs to; none if it cannot be imported."""
        records = (self.person, self.client, self.project, self.task)
        return () if self.reason is not None else tuple(each for each in records if each is not None)


Item = NamedRecord | Booking
"""A line of a plan: a record that entries need, or a row of the file."""


decode: Callable[[bytes | str], Item] = decoder(Item)  # type: ignore[arg-type]  # a union


FIELDS = CellFields(
    days=("date", "start_date", "end_date", "start", "end"),
    numbers=("duration", "minutes", "rate", "amount"),
    truths=("billable", "invoiced"),
    amounts=("rate", "amount"),
)


def plan(content: bytes, source: ImportSource, mapping: ColumnMapping, zone: ZoneInfo) -> ImportPlan:
    """Return what a file would import. Local times are in the zone.

    Raises `validation_failed` for what the file as a whole leaves open.
    """
    check_mapping(mapping, CSV.columns)
    table = read_source(content, source, mapping, zone, FIELDS)
    seen, namesakes = Counter[str](), _namesakes(table.rows)
    bookings = [_read_row(source, cells, table.form, seen, namesakes) for cells in table.rows]
    records = dict.fromkeys(name for booking in bookings for name in booking.named())
    items: list[Item] = [*records, *bookings]
    return ImportPlan(table.headings, encode(items), len(items), _sums(bookings))


def describe(line: bytes) -> DescribedRow | None:
    """Return a row of a plan as people read it; None for a record that entries need."""
    item = decode(line)
    if isinstance(item, NamedRecord):
        return None
    values = {each.kind: each.name for each in item.named()} | {"description": item.description or ""}
    minutes = sum(part.minutes for part in item.parts)
    values |= {"date": item.parts[0].date, "time": f"{minutes // 60}:{minutes % 60:02}"} if item.parts else {}
    values |= {} if item.billable is None else {"billable": "Yes" if item.billable else "No"}
    values |= {"is_settled": "Yes"} if item.is_settled else {}
    values |= {"hourly_rate": f"{item.hourly_rate:f}"} if item.hourly_rate else {}
    return DescribedRow(item.line, values, [item.reason] if item.reason else [])


def _namesakes(rows: Iterable[Cells]) -> frozenset[str]:
    """Return the names, as they are compared, that belong to several email addresses."""
    addresses: dict[str, set[str]] = {}
    for cells in rows:
        if email := name_of(cells["email"]).casefold():
            addresses.setdefault(sort_key(_person_of(cells)), set()).add(email)
    return frozenset(name for name, emails in addresses.items() if len(emails) > 1)


def _person_of(cells: Cells) -> str:
    return name_of(cells["person"]) or name_of(f"{cells['first_name']} {cells['last_name']}")


def _read_row(
    source: ImportSource, cells: Cells, form: CellForm, seen: Counter[str], namesakes: Container[str]
) -> Booking:
    booking = Booking(cells.row.line, cells.row.cells)
    try:
        _fill(booking, source, cells, form, seen, namesakes)
    except BadCell as reason:
        return Booking(cells.row.line, cells.row.cells, str(reason))
    return booking


def _fill(
    booking: Booking, source: ImportSource, cells: Cells, form: CellForm, seen: Counter[str], namesakes: Container[str]
) -> None:
    if cells.row.is_too_long:
        raise BadCell(TOO_LONG)
    start, seconds, day = _read_time(cells, form)
    if seconds <= 0:
        raise BadCell("Has no time: a time entry has at least a minute.")
    _name_records(booking, cells, form, namesakes)
    booking.description = cells["description"] or None
    if cells["billable"]:
        booking.billable = tables.read_truth(cells["billable"], "billable", form.yes, form.no)
    booking.is_settled = booking.billable is not False and bool(
        cells["invoiced"] and tables.read_truth(cells["invoiced"], "invoiced", form.yes, form.no)
    )
    if booking.billable is not False:
        booking.hourly_rate = _read_rate(cells, form, seconds, booking.currency)
    identity = f"{source.name}:{cells['id']}" if cells["id"] else _identity(source, booking, cells, seconds, seen)
    booking.parts = list(_divide(identity, start, seconds, day, form.zone))


def _read_time(cells: Cells, form: CellForm) -> tuple[datetime | None, int, date]:
    """Return the start if there is one, the seconds, and the day as the file has it."""
    start = _moment(cells, "start", "start_date" if "start_date" in cells else "date", "start_time", form)
    if cells["duration"]:
        seconds = tables.read_seconds(cells["duration"], form.marks["duration"])
    elif cells["minutes"]:
        seconds = int(tables.read_decimal(cells["minutes"], form.marks["minutes"]) * 60)
    else:
        end = _moment(cells, "end", "end_date" if "end_date" in cells else "date", "end_time", form)
        if start is None or end is None:
            raise BadCell("Has no duration.")
        passed = end - start
        if passed < timedelta() and "end_date" not in cells and "end" not in cells:
            passed += A_DAY  # it ended after midnight
        seconds = passed // A_SECOND
    if start is not None:
        return start, seconds, start.astimezone(form.zone).date()
    day = cells["date"] or cells["start_date"]
    return None, seconds, tables.read_day(day, form.order)


def _moment(cells: Cells, whole: str, day: str, time: str, form: CellForm) -> datetime | None:
    """Return a moment of a row in UTC, or None. Raises BadCell for a time that the clocks of the zone skipped."""
    if cells[whole]:
        local = tables.read_moment(cells[whole], form.order)
    elif cells[time]:
        local = tables.moment_of(cells[day], cells[time], form.order)
    else:
        return None
    if local.tzinfo is not None:
        return local.astimezone(UTC)
    moment = local.replace(tzinfo=form.zone).astimezone(UTC)  # of an hour that comes twice, the first
    if moment.astimezone(form.zone).replace(tzinfo=None) != local:
        raise BadCell(f"{local:%Y-%m-%d %H:%M} does not exist in {form.zone.key}: clocks were put forward.")
    return moment


def _name_records(booking: Booking, cells: Cells, form: CellForm, namesakes: Container[str]) -> None:
    """Note whose time it is, for which client, and on which project and task. Raises BadCell for a long name."""
    person, email = _person_of(cells), name_of(cells["email"]).casefold() or None
    if person or email:
        is_namesake = email is not None and sort_key(person) in namesakes
        booking.person = NamedRecord("person", person or email or NO_PERSON, detail=email, is_namesake=is_namesake)
    client, project, task = (name_of(cells[field]) for field in ("client", "project", "task"))
    if max(map(len, (person, email or "", client, project, task))) > MAX_NAME:
        raise BadCell(f"Has a name of more than {MAX_NAME} characters.")
    booking.currency = read_currency(cells["currency"]) or form.currency
    if client:
        booking.client = NamedRecord("client", client, detail=booking.currency)
    if not client and not project:
        project = NO_PROJECT
    if project:
        booking.project = NamedRecord("project", project, client or None)
    if project and task:
        booking.task = NamedRecord("task", task, client or None, project)


def _read_rate(cells: Cells, form: CellForm, seconds: int, currency: str | None) -> Decimal | None:
    """Return the rate of an hour; without a column of rates, that of the amount, to the minor unit. 0 says nothing."""
    places = DIGITS.get(currency or "EUR", 2)
    if cells["rate"]:
        return tables.read_decimal(cells["rate"], form.marks["rate"]) or None
    if cells["amount"]:
        units = tables.read_decimal(cells["amount"], form.marks["amount"]).scaleb(places)
        rate = half_up(int(units) * SECONDS_OF_HOUR, seconds)
        return Decimal(rate).scaleb(-places) if rate > 0 else None
    return None


def _identity(source: ImportSource, booking: Booking, cells: Cells, seconds: int, seen: Counter[str]) -> str:
    """Return the id of a row of a program that exports none: of what it says, and which of equal rows it is.

    Files that overlap in time, and another time zone, give the same ids.
    """
    names = [each.label if each else "" for each in (booking.person, booking.client, booking.project, booking.task)]
    times: tuple[str, ...] = ("date", "start_date", "start_time", "start")
    said = [*names, *(cells[field] for field in times), cells["description"], str(seconds)]
    digest = hashlib.sha256("\n".join(said).encode()).hexdigest()[:24]
    seen[digest] += 1
    return f"{source.name}:{digest}#{seen[digest]}"


def _divide(identity: str, start: datetime | None, seconds: int, day: date, zone: ZoneInfo) -> Iterator[BookingPart]:
    """Yield the entries of a row: one, or if it is longer than a day and its start is known, one for each day."""
    if seconds <= A_DAY // A_SECOND or start is None:
        if seconds > A_DAY // A_SECOND:
            raise BadCell("Is longer than a day, and has no start. Divide it into days.")
        yield BookingPart(day.isoformat(), seconds, as_instant(start) if start else None, identity)
        return
    if seconds > 31 * A_DAY // A_SECOND:
        raise BadCell("Is longer than a month. Correct its start or its end.")
    end, number = start + timedelta(seconds=seconds), 0
    while start < end:
        midnight = datetime.combine(day + A_DAY, datetime.min.time(), zone).astimezone(UTC)
        part, number = min(end, midnight) - start, number + 1
        yield BookingPart(day.isoformat(), part // A_SECOND, as_instant(start), f"{identity}.{number}")
        start, day = midnight, day + A_DAY


def _sums(bookings: list[Booking]) -> list[Sum]:
    """Return the time of the bookings that can be imported, by person and month."""
    found: dict[tuple[str, str], list[int]] = {}
    for booking in bookings:
        person = booking.person.label if booking.person else NO_PERSON
        for part in booking.parts:
            sums = found.setdefault((person, part.date[:7]), [0, 0])
            sums[0] += part.seconds
            sums[1] += part.minutes
    require_few(found)
    return [
        {"person": person, "month": month, "seconds_in_file": seconds, "minutes": minutes}
        for (person, month), (seconds, minutes) in sorted(found.items())
    ]
