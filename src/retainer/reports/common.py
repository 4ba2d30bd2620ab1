"""Shared parts of the reports: query parameters, field types, the period and the metadata."""

from collections.abc import Callable, Iterable
from datetime import date
from functools import cache
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec
from sqlalchemy import Select, Text, bindparam, cast, func

from retainer.kernel.query import Query
from retainer.reports import periods
from retainer.reports.periods import Period
from retainer.rollups.summaries import MONTH, Figures, Sums, keyed
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, half_up, percent
from retainer.values.kinds import Currency, Day, Id, Instant, SignedMoney

S = TypeVar("S", bound=msgspec.Struct)
FILTERS = ("client_id", "project_id", "user_id", "currency")
Ratio = float | None
"""A JSON number with two decimal places; null if the divisor is 0 or less."""
RowCurrency = Annotated[
    Currency, "The currency of the amounts in the row. Amounts in different currencies are never added."
]
InvoiceCount = Annotated[int, "Invoices issued in the period, except void ones."]
Invoiced = Annotated[SignedMoney, "Net amount of the invoices issued in the period, except void ones."]
Credited = Annotated[SignedMoney, "Net amount of the credit notes dated in the period."]
Revenue = Annotated[SignedMoney, "`invoiced` less `credited`."]
Tax = Annotated[SignedMoney, "Tax on the invoices less tax on the credit notes."]
Collected = Annotated[SignedMoney, "Payments less refunds dated in the period, including tax."]
Outstanding = Annotated[SignedMoney, "Unpaid amount at the end of the last day, including tax."]
RefundDue = Annotated[SignedMoney, "Paid and then credited amount, not yet refunded at the end of the last day."]
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
        """Return the filters of the rows to sum by name, without the days."""
        return {name: value for name in FILTERS if (value := getattr(self, name, None)) is not None}


class ReportMeta(msgspec.Struct):
    """The time of a report."""

    generated_at: Annotated[Instant, "Time of the snapshot of the data."]


def begin(tx: Tx, query: ReportQuery, default_start: Callable[[date], date] | None) -> Period:
    """Start a snapshot, so that a report reads one state of the database, and return its period.

    `default_start` returns the first day for a last day if no `from` was sent. Raises `validation_failed`.
    """
    tx.snapshot()
    return periods.resolve_period(tx, query.from_, query.to, default_start)


def total(rows: Iterable[Figures]) -> Figures:
    sums = Figures()
    for figures in rows:
        for name, figure in figures.items():
            sums[name] += figure
    return sums


def by_currency(figures: Sums) -> dict[str, Figures]:
    """Add up figures by currency, which comes last in their keys, in the order of the currency codes."""
    codes = sorted({key[-1] for key in figures})
    return {code: total(sums for key, sums in figures.items() if key[-1] == code) for code in codes}


def make_row(row: type[S], currency: str, sums: Figures, **others: object) -> S:
    """Return a row of a report: the sums by the names of its fields, money as amounts, and the `others` as they are."""
    sums = Figures(sums, revenue=sums["invoiced"] - sums["credited"], tax=sums["invoiced_tax"] - sums["credited_tax"])
    values = {
        name: amount_of(sums[name], currency) if is_money else sums[name]
        for name, is_money in _figures(row)
        if name not in others
    }
    return row(**values, **others, currency=currency)


@cache
def _figures(row: type[msgspec.Struct]) -> list[tuple[str, bool]]:
    hints = get_type_hints(row)
    return [(name, hints[name] is not int) for name in row.__struct_fields__ if name != "currency"]


@cache
def sums_of(rows: Select[Any], by: tuple[str, ...], figures: tuple[str, ...], limits: tuple[str, ...]) -> Select[int]:
    """Select sums of rows with a `day` from `first` to `last`, by columns or `month`; `limits` are bound columns."""
    columns = rows.selected_columns
    month = func.substr(cast(columns.day, Text), 1, MONTH)
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
