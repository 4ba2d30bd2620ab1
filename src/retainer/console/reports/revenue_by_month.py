"""Revenue by month: invoiced, collected and outstanding, beside the same months a year before."""

from datetime import date
from decimal import Decimal
from typing import NamedTuple

import msgspec

from retainer.console.charts import Series, column_chart
from retainer.console.reports.controls import Controls
from retainer.console.reports.tables import Column, Report, ReportTable, Value, fact, in_currency
from retainer.reports import revenue
from retainer.reports.common import ReportQuery
from retainer.reports.periods import Period
from retainer.store.tx import Tx
from retainer.values.exact import amount_of

COLUMNS = [
    Column("Month"),
    Column("Invoiced", "money"),
    Column("Invoiced, year before", "money"),
    Column("Collected", "money"),
    Column("Collected, year before", "money"),
    Column("Outstanding", "money"),
    Column("Outstanding, year before", "money"),
]


class Month(NamedTuple):
    """A month in one currency; `outstanding` is the balance at its end."""

    name: str
    invoiced: Decimal
    collected: Decimal
    outstanding: Decimal


class Months(NamedTuple):
    """The months of a period in one currency, and the other currencies that have figures in it."""

    months: list[Month]
    other_currencies: list[str]

    @property
    def invoiced(self) -> Decimal:
        """Return what was invoiced in all months."""
        return sum((month.invoiced for month in self.months), Decimal(0))

    @property
    def collected(self) -> Decimal:
        """Return what was collected in all months."""
        return sum((month.collected for month in self.months), Decimal(0))


def build(tx: Tx, controls: Controls) -> Report:
    """Return the report."""
    now, before = (read_months(tx, controls, period) for period in (controls.period, controls.before))
    labels = [month.name for month in now.months]
    rows: list[list[Value]] = [
        [one.name, one.invoiced, then.invoiced, one.collected, then.collected, one.outstanding, then.outstanding]
        for one, then in zip(now.months, before.months, strict=True)
    ]
    total: list[Value] = ["Total", now.invoiced, before.invoiced, now.collected, before.collected, "", ""]
    facts = [
        fact("Invoiced", now.invoiced, before.invoiced, "money"),
        fact("Collected", now.collected, before.collected, "money"),
        fact("Outstanding at the end", now.months[-1].outstanding, before.months[-1].outstanding, "money"),
    ]
    flow = [
        Series("Invoiced", "solid", [month.invoiced for month in now.months]),
        Series("Collected", "striped", [month.collected for month in now.months]),
        Series("Outstanding at the end of the month", "line", [month.outstanding for month in now.months]),
    ]
    years = [
        Series("This period", "solid", [month.invoiced for month in now.months]),
        Series("A year before", "outlined", [month.invoiced for month in before.months]),
    ]
    return Report(
        facts,
        [
            column_chart("Invoiced, collected and outstanding", "money", labels, flow),
            column_chart("Invoiced, compared with the year before", "money", labels, years),
        ],
        [ReportTable("revenue-by-month", "Revenue by month", COLUMNS, rows, total)],
        now.other_currencies,
        "Invoiced is before tax. Collected and outstanding include tax.",
    )


def read_months(tx: Tx, controls: Controls, period: Period) -> Months:
    """Return the months of a period in the shown currency."""
    query, currency = controls.ask(ReportQuery, period), controls.currency
    report = revenue.get_report_revenue_by_month(tx, query).data
    rows = {row.month: row for row in in_currency(report.rows, currency)}
    zero = amount_of(0, currency)
    balances = revenue.balances_by_month(tx, period, msgspec.structs.replace(query, currency=currency))
    months = []
    for name, balance in balances.items():
        row = rows.get(name)
        invoiced, collected = (row.invoiced, row.collected) if row else (zero, zero)
        months.append(Month(label_of(name), invoiced, collected, amount_of(balance, currency)))
    return Months(months, [each.currency for each in report.totals if each.currency != currency])


def label_of(month: str) -> str:
    """Return a month as people read it: `Mar 2026`."""
    return f"{date.fromisoformat(f'{month}-01'):%b %Y}"
