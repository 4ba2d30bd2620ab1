"""Utilisation: billable and tracked time of what each person can work, with the target."""

from typing import NamedTuple

from retainer.console.charts import Chart, RowChart, Series, Subject, column_chart, row_chart
from retainer.console.reports.controls import Controls
from retainer.console.reports.revenue_by_month import label_of
from retainer.console.reports.tables import Column, Label, Report, ReportTable, Value, decimal, fact, shown
from retainer.reports import utilisation
from retainer.reports.periods import Period
from retainer.reports.utilisation import Utilisation, UtilisationQuery, UtilisationReport, UtilisationTotal
from retainer.store.tx import Tx

MAX_PEOPLE = 40
"""People with bars; the table has all."""
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
    earlier = {row.user_id: billable_percent(row) for row in before.rows}
    path = "/records/time-entries?user_id={}"
    rows: list[list[Value]] = [
        [Label(row.user_name, path.format(row.user_id)), *_figures(row, earlier.get(row.user_id))] for row in now.rows
    ]
    last: list[Value] = ["Total", *_figures(total, billable_percent(earlier_total))]
    charts: list[Chart | RowChart] = [people_chart(now, earlier)]
    tables = [ReportTable("utilisation", "Utilisation by person", COLUMNS, rows, last)]
    if len(pairs := read_months(tx, controls)) > 1:
        charts.insert(0, months_chart(pairs))
        tables.append(months_table(pairs))
    ratios = {
        "Billable utilisation": "billable_utilisation_percent",
        "Utilisation": "utilisation_percent",
        "Billable share of tracked time": "billable_share_percent",
    }
    had_time = earlier_total.tracked_minutes > 0
    facts = [
        fact(title, getattr(total, name), getattr(earlier_total, name) if had_time else None, "percent")
        for title, name in ratios.items()
    ]
    return Report(
        [*facts, fact("Billable value", total.billable_value, earlier_total.billable_value, "money")],
        charts,
        tables,
        [other.currency for other in total.other_currencies],
        "Available time is the weekly capacity, spread over the account's working days. Durations are hours:minutes. "
        "A person or a month without any tracked time a year before has no figure for it.",
    )


def billable_percent(row: Utilisation | UtilisationTotal) -> float | None:
    """Return the billable utilisation of a year before; None without tracked time, as there is nothing to compare."""
    return row.billable_utilisation_percent if row.tracked_minutes else None


def people_chart(report: UtilisationReport, earlier: dict[int, float | None]) -> RowChart:
    """Return the bars of billable utilisation by person, with the targets; people without any capacity have none."""
    rows = [row for row in report.rows if row.available_minutes]
    busiest = {row.user_id for row in sorted(rows, key=lambda row: -row.tracked_minutes)[:MAX_PEOPLE]}
    title = "Billable utilisation by person"
    if len(rows) > MAX_PEOPLE:
        title = f"Billable utilisation of the {MAX_PEOPLE} people with the most hours"
        rows = [row for row in rows if row.user_id in busiest]
    subjects = [
        Subject(row.user_name, shown(row.billable_utilisation_percent, "percent"), decimal(row.target_percent))
        for row in rows
    ]
    series = [
        Series("This period", "solid", [decimal(row.billable_utilisation_percent) for row in rows]),
        Series("A year before", "outlined", [decimal(earlier.get(row.user_id)) for row in rows]),
    ]
    return row_chart(title, "percent", subjects, series, target="Target")


def read(tx: Tx, controls: Controls, period: Period) -> UtilisationReport:
    """Return the API's report about a period."""
    return utilisation.get_report_utilisation(tx, controls.ask(UtilisationQuery, period)).data


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
    """Return each month's totals, paired with the totals of the same days a year earlier."""
    now, before = (
        utilisation.totals_by_month(tx, period, controls.ask(UtilisationQuery, period))
        for period in (controls.period, controls.before)
    )
    names = [label_of(name) for name in now]
    return [Pair(*each) for each in zip(names, now.values(), before.values(), strict=True)]


def months_chart(pairs: list[Pair]) -> Chart:
    """Return the lines of billable utilisation by month, with the target."""
    series = [
        Series("This period", "line", [decimal(pair.now.billable_utilisation_percent) for pair in pairs]),
        Series("A year before", "dashed", [decimal(billable_percent(pair.before)) for pair in pairs]),
        Series("Target", "target", [decimal(pair.now.target_percent) for pair in pairs]),
    ]
    return column_chart("Billable utilisation by month", "percent", [pair.month for pair in pairs], series)


def months_table(pairs: list[Pair]) -> ReportTable:
    """Return the totals of each month."""
    rows = [[pair.month, *_figures(pair.now, billable_percent(pair.before))] for pair in pairs]
    return ReportTable("utilisation-by-month", "Utilisation by month", [Column("Month"), *COLUMNS[1:]], rows)
