"""Utilisation: billable and tracked time of what each person can work, with the target."""

from datetime import date, timedelta
from typing import NamedTuple

import msgspec

from retainer.console.charts import Chart, RowChart, Series, Subject, column_chart, row_chart
from retainer.console.reports.controls import Controls, a_year_before
from retainer.console.reports.revenue_by_month import label_of
from retainer.console.reports.tables import Column, Label, Report, ReportTable, Value, decimal, fact, shown
from retainer.reports import periods, utilisation
from retainer.reports.periods import Period
from retainer.reports.utilisation import Utilisation, UtilisationQuery, UtilisationReport, UtilisationTotal
from retainer.store.tx import Tx

MAX_MONTHS = 13
"""Months that are charted: each is a report of its own."""
COLUMNS = [
    Column("Person"),
    Column("Available", "minutes"),
    Column("Tracked", "minutes"),
    Column("Billable", "minutes"),
    Column("Utilisation", "percent"),
    Column("Billable utilisation", "percent"),
    Column("Year before", "percent"),
    Column("Target", "percent"),
    Column("Billable value", "money"),
]


class Pair(NamedTuple):
    """The totals of a month and of the same month a year before."""

    month: str
    now: UtilisationTotal
    before: UtilisationTotal


def build(tx: Tx, controls: Controls) -> Report:
    """Return the report."""
    now, before = (read(tx, controls, period) for period in (controls.period, controls.before))
    total, earlier_total = now.totals[0], before.totals[0]
    earlier = {row.user_id: row.billable_utilisation_percent for row in before.rows}
    subjects = [
        Subject(row.user_name, _note(row), decimal(row.target_percent) if row.available_minutes else None)
        for row in now.rows
    ]
    series = [
        Series("This period", "solid", [decimal(row.billable_utilisation_percent) for row in now.rows]),
        Series("A year before", "outlined", [decimal(earlier.get(row.user_id)) for row in now.rows]),
    ]
    people = row_chart("Billable utilisation by person", "percent", subjects, series, target="Target")
    rows: list[list[Value]] = [
        [Label(row.user_name, f"/people/{row.user_id}"), *_figures(row, earlier.get(row.user_id))] for row in now.rows
    ]
    last: list[Value] = ["Total", *_figures(total, earlier_total.billable_utilisation_percent)]
    charts: list[Chart | RowChart] = [people]
    tables = [ReportTable("utilisation", "Utilisation by person", COLUMNS, rows, last)]
    if len(pairs := read_months(tx, controls)) > 1:
        charts.insert(0, months_chart(pairs))
        tables.append(months_table(pairs))
    names = ("billable_utilisation_percent", "utilisation_percent", "billable_share_percent")
    titles = ("Billable utilisation", "Utilisation", "Billable share of tracked time")
    return Report(
        [
            fact(title, getattr(total, name), getattr(earlier_total, name), "percent")
            for title, name in zip(titles, names, strict=True)
        ]
        + [fact("Billable value", total.billable_value, earlier_total.billable_value, "money")],
        charts,
        tables,
        [other.currency for other in total.other_currencies],
        "Available time is the weekly capacity, spread over the account's working days. Durations are hours:minutes.",
    )


def read(tx: Tx, controls: Controls, period: Period) -> UtilisationReport:
    """Return the API's report about a period."""
    return utilisation.get_report_utilisation(tx, controls.ask(UtilisationQuery, period)).data


def _note(row: Utilisation) -> str:
    percent = row.billable_utilisation_percent
    return f"{shown(percent, 'percent')} of {shown(row.available_minutes, 'minutes')} h" if percent is not None else ""


def _figures(row: Utilisation | UtilisationTotal, earlier: float | None) -> list[Value]:
    return [
        row.available_minutes,
        row.tracked_minutes,
        row.billable_minutes,
        row.utilisation_percent,
        row.billable_utilisation_percent,
        earlier,
        row.target_percent,
        row.billable_value,
    ]


def read_months(tx: Tx, controls: Controls) -> list[Pair]:
    """Return the totals of each month; none for many months, and of one client, whose time has no monthly sums."""
    names = periods.months(controls.period)
    if len(names) > MAX_MONTHS or controls.client_id is not None:
        return []
    pairs = []
    for name in names:
        month = month_of(name, controls.period)
        now, before = (read(tx, controls, period).totals[0] for period in (month, a_year_before(month)))
        pairs.append(Pair(label_of(name), now, before))
    return pairs


def month_of(name: str, period: Period) -> Period:
    """Return the days of a month that a period has."""
    first = date.fromisoformat(f"{name}-01")
    last = (first.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
    days = max(period.first, first.isoformat()), min(period.to, last.isoformat())
    return msgspec.structs.replace(period, from_=days[0], to=days[1])


def months_chart(pairs: list[Pair]) -> Chart:
    """Return the lines of billable utilisation by month, with the target."""
    series = [
        Series("This period", "line", [decimal(pair.now.billable_utilisation_percent) for pair in pairs]),
        Series("A year before", "dashed", [decimal(pair.before.billable_utilisation_percent) for pair in pairs]),
        Series("Target", "target", [decimal(pair.now.target_percent) for pair in pairs]),
    ]
    return column_chart("Billable utilisation by month", "percent", [pair.month for pair in pairs], series)


def months_table(pairs: list[Pair]) -> ReportTable:
    """Return the totals of each month."""
    rows = [[pair.month, *_figures(pair.now, pair.before.billable_utilisation_percent)] for pair in pairs]
    return ReportTable("utilisation-by-month", "Utilisation by month", [Column("Month"), *COLUMNS[1:]], rows)
