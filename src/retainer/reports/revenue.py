"""Revenue: what was invoiced less what was credited, by client and by month.

`invoiced` is the net of invoices issued in the period, `credited` that of its credit notes; void invoices never count.
`tax` is that of the invoices less that of the credit notes. `collected` is what was paid, tax included. `outstanding`
and `overdue` are the balances at the end of the period's last day.
"""

from collections import defaultdict
from typing import Annotated, Any

import msgspec
from sqlalchemy import Table, select

from retainer import schema
from retainer.kernel.resource import Resource, WithMeta
from retainer.reports import periods
from retainer.reports.common import (
    Collected,
    Credited,
    Expenses,
    InvoiceCount,
    Invoiced,
    Outstanding,
    Overdue,
    ReportMeta,
    ReportQuery,
    Revenue,
    RowCurrency,
    Tax,
    begin,
    by_currency,
    default_currency,
    with_meta,
)
from retainer.reports.periods import Period
from retainer.reports.ratios import Ratio, ratio
from retainer.rollups import summaries
from retainer.rollups.summaries import Sums
from retainer.schema.crm import clients
from retainer.store.tx import Tx
from retainer.values.collation import sort_key
from retainer.values.exact import amount_of

SUMS = ("invoice_count", "invoiced", "credited", "invoiced_tax", "credited_tax", "collected")
WITH_EXPENSES = (*SUMS, "expenses")


SharePercent = Annotated[Ratio, "Of the revenue in the currency; null when that is 0 or less."]


class RevenueByClientTotal(msgspec.Struct):
    """Revenue in a currency."""

    currency: RowCurrency
    invoice_count: InvoiceCount
    invoiced: Invoiced
    credited: Credited
    revenue: Revenue
    share_percent: SharePercent
    tax: Tax
    collected: Collected
    outstanding: Outstanding
    overdue: Overdue


class RevenueByClient(msgspec.Struct):
    """Revenue from a client in a currency; its share is that of the currency's revenue."""

    client_id: Annotated[int, "The client whose invoices they are."]
    client_name: Annotated[str, "What the client is called now."]
    currency: RowCurrency
    invoice_count: InvoiceCount
    invoiced: Invoiced
    credited: Credited
    revenue: Revenue
    share_percent: SharePercent
    tax: Tax
    collected: Collected
    outstanding: Outstanding
    overdue: Overdue


class RevenueByClientReport(msgspec.Struct):
    """What clients have brought in."""

    period: Annotated[Period, "The days that it is about."]
    rows: Annotated[
        list[RevenueByClient], "One for each client and currency, the largest revenue first; not split into pages."
    ]
    totals: Annotated[list[RevenueByClientTotal], "One for each currency: the sums of its rows."]


class RevenueByMonthTotal(msgspec.Struct):
    """Revenue and expenses in a currency."""

    currency: RowCurrency
    invoice_count: InvoiceCount
    invoiced: Invoiced
    credited: Credited
    revenue: Revenue
    tax: Tax
    collected: Collected
    expenses: Expenses


class RevenueByMonth(msgspec.Struct):
    """Revenue and expenses of the days of a month that the period has."""

    month: Annotated[str, "Like 2026-03; at the ends only its days in the period."]
    currency: RowCurrency
    invoice_count: InvoiceCount
    invoiced: Invoiced
    credited: Credited
    revenue: Revenue
    tax: Tax
    collected: Collected
    expenses: Expenses


class RevenueByMonthReport(msgspec.Struct):
    """What months have brought in."""

    period: Annotated[Period, "The days that it is about."]
    rows: Annotated[
        list[RevenueByMonth], "One for each month and currency, empty months with zeros; not split into pages."
    ]
    totals: Annotated[list[RevenueByMonthTotal], "One for each currency: the sums of its rows."]


NAMES = select(clients.c.id, clients.c.name)

by_client = Resource("/reports/revenue-by-client", tag="Reports", scope="reports")
by_month = Resource("/reports/revenue-by-month", tag="Reports", scope="reports")


@by_client.get()
def get_report_revenue_by_client(tx: Tx, asked: ReportQuery) -> WithMeta[RevenueByClientReport, ReportMeta]:
    """Read what each client has brought in, the largest revenue first; of this year, unless days are given."""
    period = begin(tx, asked, periods.year_begins)
    found = of_clients(tx, period, asked)
    names = dict(tx.all(NAMES))
    totals = by_currency((currency, its) for (_, currency), its in found.items())
    rows = [
        RevenueByClient(client, names[client], *revenue(currency, its, totals[currency]))
        for (client, currency), its in found.items()
    ]
    rows.sort(key=lambda row: (-row.revenue, sort_key(row.client_name), row.client_id, row.currency))
    sums = [RevenueByClientTotal(*revenue(currency, its, its)) for currency, its in totals.items()]
    return with_meta(tx, RevenueByClientReport(period, rows, sums))


@by_month.get()
def get_report_revenue_by_month(tx: Tx, asked: ReportQuery) -> WithMeta[RevenueByMonthReport, ReportMeta]:
    """Read what each month has brought in, empty ones too; twelve months and this one, unless days are given."""
    period = begin(tx, asked, periods.twelve_months_before)
    found = summaries.read(tx, money_of(asked), period.days, ("month", "currency"), WITH_EXPENSES, **asked.only())
    currencies = sorted({currency for _, currency in found})
    rows = [
        (month, currency)
        for month in periods.months(period)
        for currency in currencies or [default_currency(tx, asked)]
    ]
    nothing = [0] * len(WITH_EXPENSES)
    totals = by_currency((key[1], found.get(key, nothing)) for key in rows)
    each = [RevenueByMonth(month, *spending(its, found.get((month, its), nothing))) for month, its in rows]
    sums = [RevenueByMonthTotal(*spending(currency, its)) for currency, its in totals.items()]
    return with_meta(tx, RevenueByMonthReport(period, each, sums))


def money_of(asked: ReportQuery) -> Table:
    """The summary of the money that is asked for: that of all clients, or of each."""
    return schema.rollups.money_sums if asked.client_id is None else schema.rollups.client_sums


def of_clients(tx: Tx, period: Period, asked: ReportQuery) -> Sums:
    """SUMS, outstanding and overdue of each client and currency, in minor units."""
    found: Sums = defaultdict(lambda: [0] * (len(SUMS) + 2))
    read = summaries.read(tx, schema.rollups.client_sums, period.days, ("client_id", "currency"), SUMS, **asked.only())
    for key, its in read.items():
        found[key][:-2] = its
    due = summaries.outstanding(tx, schema.rollups.client_sums, period.to, ("client_id", "currency"), **asked.only())
    for key, its in due.items():
        found[key][-2:] = its[:2]
    return found


def revenue(currency: str, its: list[int], whole: list[int]) -> tuple[Any, ...]:
    """The members of RevenueByClientTotal."""
    count, invoiced, credited, tax, credited_tax, collected, due, late = its
    net, of = invoiced - credited, whole[1] - whole[2]
    first = (amount_of(units, currency) for units in (invoiced, credited, net))
    rest = (amount_of(units, currency) for units in (tax - credited_tax, collected, due, late))
    return currency, count, *first, ratio(net, of), *rest


def spending(currency: str, its: list[int]) -> tuple[Any, ...]:
    """The members of RevenueByMonthTotal."""
    count, invoiced, credited, tax, credited_tax, collected, spent = its
    sums = (invoiced, credited, invoiced - credited, tax - credited_tax, collected, spent)
    return currency, count, *(amount_of(units, currency) for units in sums)
