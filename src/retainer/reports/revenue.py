"""Revenue: what was invoiced less what was credited, by client and by month.

`invoiced` is the net of invoices issued in the period, `credited` that of its credit notes; void invoices never count.
`tax` is that of the invoices less that of the credit notes. `collected` is what was paid, tax included. `outstanding`
and `overdue` are the balances at the end of the period's last day.
"""

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
    amounts,
    begin,
    by_currency,
    default_currency,
    earnings,
    with_meta,
)
from retainer.reports.periods import Period
from retainer.reports.ratios import Ratio, ratio
from retainer.rollups import summaries
from retainer.rollups.summaries import Figures, Sums
from retainer.schema.crm import clients
from retainer.store.tx import Tx
from retainer.values.collation import sort_key

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
def get_report_revenue_by_client(tx: Tx, query: ReportQuery) -> WithMeta[RevenueByClientReport, ReportMeta]:
    """Read what each client has brought in, the largest revenue first; of this year, unless days are given."""
    period = begin(tx, query, periods.year_begins)
    figures = of_clients(tx, period, query)
    names: dict[int, str] = dict(tx.all(NAMES))
    total_sums = by_currency((currency, sums) for (_, currency), sums in figures.items())
    rows = [
        RevenueByClient(
            client_id=client_id, client_name=names[client_id], **revenue(currency, sums, total_sums[currency])
        )
        for (client_id, currency), sums in figures.items()
    ]
    rows.sort(key=lambda row: (-row.revenue, sort_key(row.client_name), row.client_id, row.currency))
    totals = [RevenueByClientTotal(**revenue(currency, sums, sums)) for currency, sums in total_sums.items()]
    return with_meta(tx, RevenueByClientReport(period, rows, totals))


@by_month.get()
def get_report_revenue_by_month(tx: Tx, query: ReportQuery) -> WithMeta[RevenueByMonthReport, ReportMeta]:
    """Read what each month has brought in, empty ones too; twelve months and this one, unless days are given."""
    period = begin(tx, query, periods.twelve_months_before)
    figures = summaries.read(tx, money_of(query), period.days, ("month", "currency"), WITH_EXPENSES, **query.only())
    currencies = sorted({currency for _, currency in figures})
    keys = [(month, code) for month in periods.months(period) for code in currencies or [default_currency(tx, query)]]
    total_sums = by_currency((key[1], figures.get(key, Figures())) for key in keys)
    rows = [
        RevenueByMonth(month=month, **spending(code, figures.get((month, code), Figures()))) for month, code in keys
    ]
    totals = [RevenueByMonthTotal(**spending(currency, sums)) for currency, sums in total_sums.items()]
    return with_meta(tx, RevenueByMonthReport(period, rows, totals))


def money_of(query: ReportQuery) -> Table:
    """Return the summary of the requested money: that of all clients, or that of each client."""
    return schema.rollups.money_sums if query.client_id is None else schema.rollups.client_sums


def of_clients(tx: Tx, period: Period, query: ReportQuery) -> Sums:
    """Return SUMS, outstanding and overdue by client and currency, in minor units."""
    table, by = schema.rollups.client_sums, ("client_id", "currency")
    figures = summaries.read(tx, table, period.days, by, SUMS, **query.only())
    for key, balances in summaries.outstanding(tx, table, period.to, by, **query.only()).items():
        figures.setdefault(key, Figures()).update(balances)
    return figures


def revenue(currency: str, sums: Figures, total_sums: Figures) -> dict[str, Any]:
    """Return the fields of RevenueByClientTotal; its share is that of the revenue in `total_sums`."""
    net, total_net = (each["invoiced"] - each["credited"] for each in (sums, total_sums))
    return {
        "currency": currency,
        "invoice_count": sums["invoice_count"],
        "share_percent": ratio(net, total_net),
        **amounts(currency, **earnings(sums), outstanding=sums["outstanding"], overdue=sums["overdue"]),
    }


def spending(currency: str, sums: Figures) -> dict[str, Any]:
    """Return the fields of RevenueByMonthTotal."""
    return {
        "currency": currency,
        "invoice_count": sums["invoice_count"],
        **amounts(currency, **earnings(sums), expenses=sums["expenses"]),
    }
