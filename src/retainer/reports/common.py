"""Shared parts of the reports: query parameters, field types, the period and the metadata."""

from calendar import monthrange
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Annotated, Any, TypeVar, get_type_hints
from zoneinfo import ZoneInfo

import msgspec
from sqlalchemy import Select, bindparam, func

from retainer.errors import part
from retainer.kernel.query import Query
from retainer.rollups.summaries import Figures, Sums, keyed
from retainer.schema.identity import accounts
from retainer.store.engines.sql import month_name
from retainer.store.tx import Tx
from retainer.values.decoding import decoder
from retainer.values.exact import FIRST_DAY, UNITS, as_instant, half_up, percent
from retainer.values.kinds import Currency, Day, Id, Instant, SignedMoney, Timezone

S = TypeVar("S", bound=msgspec.Struct)
MAX_DAYS = 1096  # days: three years, one of them a leap year
read_names = decoder(list[str])
WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
FILTERS = ("client_id", "project_id", "user_id", "currency")
Ratio = float | None  # a JSON number with two decimal places; null if the divisor is 0 or less
RowCurrency = Annotated[
    Currency, "The currency of the amounts in the row. Amounts in different currencies are never added."
]
InvoiceCount = Annotated[int, "Invoices issued in the period, except void ones."]
Invoiced = Annotated[SignedMoney, "Net amount of the invoices issued in the period, except void ones."]
Credited = Annotated[SignedMoney, "Net amount of the credit notes and early-payment discounts dated in the period."]
Discounts = Annotated[SignedMoney, "The part of `credited` that is early-payment discounts."]
Revenue = Annotated[SignedMoney, "`invoiced` less `credited`."]
Tax = Annotated[SignedMoney, "Tax on the invoices less tax on the credit notes and the discounts."]
Collected = Annotated[SignedMoney, "Payments less refunds dated in the period, including tax."]
Outstanding = Annotated[SignedMoney, "Unpaid amount at the end of the last day, including tax."]
RefundDue = Annotated[SignedMoney, "Paid and then credited amount, not yet refunded at the end of the last day."]
WrittenOff = Annotated[SignedMoney, "Unpaid amount of the invoices written off in the period, including tax."]
Overdue = Annotated[SignedMoney, "The part of `outstanding` that was past due."]
Expenses = Annotated[SignedMoney, "Net amount of the expenses dated in the period, billable or not."]
TrackedMinutes = Annotated[int, "Minutes of the time entries dated in the period, billable or not."]
BillableMinutes = Annotated[int, "The billable part of `tracked_minutes`, billed or not."]
AvailableMinutes = Annotated[int, "Weekly capacity, spread evenly over the working days of the period."]
UtilisationPercent = Annotated[Ratio, "`tracked_minutes` in percent of `available_minutes`; null if that is 0."]
BillableUtilisationPercent = Annotated[
    Ratio, "`billable_minutes` in percent of `available_minutes`; null if that is 0."
]


class ReportQuery(Query):
    """The query parameters of every report."""

    from_: Annotated[
        Day | None, "First day, inclusive. The operation describes its default. A report spans at most 1096 days."
    ] = msgspec.field(default=None, name="from")
    to: Annotated[Day | None, "Last day, inclusive. Default: today."] = None
    currency: Annotated[Currency | None, "Only amounts in this currency."] = None
    client_id: Annotated[Id | None, "Only figures that belong to this client."] = None

    def only(self) -> dict[str, Any]:
        return {name: value for name in FILTERS if (value := getattr(self, name, None)) is not None}


class ReportMeta(msgspec.Struct):
    """The time of a report."""

    generated_at: Annotated[Instant, "Time of the snapshot of the data."]


class Period(msgspec.Struct):
    """The days of a report, inclusive, in the account's time zone; without a first day, all until the last."""

    from_: Annotated[Day | None, "First day, inclusive; null means everything up to `to`."] = msgspec.field(name="from")
    to: Annotated[Day, "Last day, inclusive."]
    timezone: Annotated[Timezone, "The account's time zone, in which days begin and end."]

    @property
    def first(self) -> str:
        return self.from_ or FIRST_DAY

    @property
    def days(self) -> tuple[str | None, str]:
        return self.from_, self.to

    def moments(self) -> dict[str, str]:
        """Return the instants at which the period begins (`since`) and before which it ends (`until`)."""
        return {"since": _midnight(self.first, self.timezone, 0), "until": _midnight(self.to, self.timezone, 1)}


def _midnight(day: str, timezone: str, days: int) -> str:
    try:
        start = datetime.combine(date.fromisoformat(day) + timedelta(days=days), time(), ZoneInfo(timezone))
        return as_instant(start)
    except OverflowError:  # the ends of the calendar
        return as_instant(datetime.combine(date.max if days else date.min, time.max if days else time.min, UTC))


def days_from(first: str, last: str) -> int:
    return (date.fromisoformat(last) - date.fromisoformat(first)).days + 1


def month_begins(day: date) -> date:
    return day.replace(day=1)


def year_begins(day: date) -> date:
    return day.replace(month=1, day=1)


def months(period: Period) -> list[str]:
    first, last = (12 * int(day[:4]) + int(day[5:7]) - 1 for day in (period.first, period.to))
    return [f"{number // 12:04}-{number % 12 + 1:02}" for number in range(first, last + 1)]


def month_of(name: str, period: Period) -> Period:
    """Return the days of a month, by its name, that a period has."""
    first = date.fromisoformat(f"{name}-01")
    last = first.replace(day=monthrange(first.year, first.month)[1])
    days = max(period.first, first.isoformat()), min(period.to, last.isoformat())
    return msgspec.structs.replace(period, from_=days[0], to=days[1])


def working_weekdays(tx: Tx) -> frozenset[int]:
    """Return the account's working days of a week; Monday is 0."""
    return frozenset(map(WEEK.index, read_names(tx.field(accounts.c.working_weekdays, tx.account_id))))


def working_days(period: Period, working: frozenset[int]) -> int:
    weeks, rest = divmod(days_from(period.first, period.to), len(WEEK))
    start = date.fromisoformat(period.first).weekday()
    return weeks * len(working) + sum((start + day) % len(WEEK) in working for day in range(rest))


def end_of_last_month(today: date) -> date:
    return month_begins(today) - timedelta(days=1)


DefaultDay = Callable[[date], date]


def begin(
    tx: Tx, query: ReportQuery, default_start: DefaultDay | None, default_end: DefaultDay | None = None
) -> Period:
    """Start a snapshot, so that a report reads one state of the database, and return its period.

    By default, it lasts until today, and since `default_start` of the last day, if any; without any day, until
    `default_end` of today, if any. Raises `validation_failed` if it ends before it begins, or is too long.
    """
    tx.snapshot()
    since, last = query.from_, query.to or tx.today
    if default_end is not None and query.from_ is None and query.to is None:
        last = default_end(date.fromisoformat(tx.today)).isoformat()
    if since is None and default_start is not None:
        since = default_start(date.fromisoformat(last)).isoformat()
    if since is not None and since > last:
        hint = "" if query.to else " That is today, unless you send another."
        tx.error("from", f"Must not be after the last day of the period, {part(last)}.{hint}")
    elif since is not None and days_from(since, last) > MAX_DAYS:
        days = days_from(since, last)
        tx.error("from", f"The period has {days} days. At most {MAX_DAYS} are possible: choose a later day.")
    tx.raise_errors()
    return Period(since, last, tx.actor.timezone)


def total(rows: Iterable[Figures]) -> Figures:
    added = list(rows)
    return Figures({name: sum([figures.get(name, 0) for figures in added]) for name in set().union(*added)})


def by_currency(figures: Sums) -> dict[str, Figures]:
    """Add up figures by currency, which comes last in their keys, in the order of the currency codes."""
    codes = sorted({key[-1] for key in figures})
    return {code: total(sums for key, sums in figures.items() if key[-1] == code) for code in codes}


def make_row(row: type[S], currency: str, sums: Figures, **others: object) -> S:
    """Return a row of a report: the sums by the names of its fields, money as amounts, and the `others` as they are."""
    unit = UNITS[currency]
    values = {name: sums[name] * unit if is_money else sums[name] for name, is_money in _figures(row, tuple(others))}
    return row(**values, **others, currency=currency)


@cache
def _figures(row: type[msgspec.Struct], others: tuple[str, ...]) -> list[tuple[str, bool]]:
    hints = get_type_hints(row)
    return [(name, hints[name] is not int) for name in row.__struct_fields__ if name not in {"currency", *others}]


@cache
def sums_of(rows: Select[Any], by: tuple[str, ...], figures: tuple[str, ...], limits: tuple[str, ...]) -> Select[int]:
    """Select sums of rows with a `day` from `first` to `last`, by columns or `month`; `limits` are bound columns."""
    columns = rows.selected_columns
    month = month_name(columns.day)
    keys = [month.label(name) if name == "month" else columns[name] for name in by]
    sums = [func.sum(columns[name]) for name in figures]
    conditions = [columns[name] == bindparam(name) for name in limits]
    in_period = columns.day.between(bindparam("first"), bindparam("last"))
    return rows.with_only_columns(*keys, *sums).where(in_period, *conditions).group_by(*keys)


def read_sums(
    tx: Tx, rows: Select[Any], period: Period, by: tuple[str, ...], figures: tuple[str, ...], only: dict[str, Any]
) -> Sums:
    """Return the sums of figures in a period by some columns of the rows; groups of zeros are omitted."""
    found = tx.all(sums_of(rows, by, figures, tuple(only)), first=period.first, last=period.to, **only)
    return keyed(found, len(by), figures)


def ratio(part: int, whole: int) -> Ratio:
    """Return a part in percent of a whole, with two decimal places; None when the whole is 0 or less."""
    return percent(half_up(10_000 * part, whole)) if whole > 0 else None
