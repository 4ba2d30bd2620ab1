"""Revenue: what was invoiced less what was credited or discounted, by client and by month.

Void invoices never count. `outstanding`, `overdue` and `refund_due` are the balances at the end of the period's last
day. Of all time, `revenue` and `tax` are `collected`, `outstanding` and `written_off` less `refund_due`.
"""

from typing import Annotated

import msgspec
from sqlalchemy import select

from retainer.kernel.answers import WithMeta
from retainer.kernel.resource import Resource
from retainer.reports import common, money
from retainer.rollups.summaries import Figures
from retainer.schema.crm import clients
from retainer.store.tx import Tx
from retainer.values.collation import sort_key

SUMS = ("invoice_count", *money.REVENUE, "collected")


SharePercent = Annotated[common.Ratio, "Percent of the currency's revenue; null if that is 0 or less."]


class RevenueByClientTotal(msgspec.Struct, kw_only=True):
    """Revenue in a currency."""

    currency: common.RowCurrency
    invoice_count: common.InvoiceCount
    invoiced: common.Invoiced
    credited: common.Credited
    discounts: common.Discounts
    revenue: common.Revenue
    share_percent: SharePercent
    tax: common.Tax
    collected: common.Collected
    outstanding: common.Outstanding
    overdue: common.Overdue
    refund_due: common.RefundDue
    written_off: common.WrittenOff


class RevenueByClient(RevenueByClientTotal):
    """Revenue from a client in a currency."""

    client_id: Annotated[int, "The client that the invoices belong to."]
    client_name: Annotated[str, "Current name of the client."]


class RevenueByClientReport(msgspec.Struct):
    """What each client was invoiced, credited and has paid."""

    period: Annotated[common.Period, "The days of the report."]
    rows: Annotated[
        list[RevenueByClient], "One for each client and currency, the largest revenue first; not paginated."
    ]
    totals: Annotated[list[RevenueByClientTotal], "The sums of the rows, one for each currency."]


class RevenueByMonthTotal(msgspec.Struct, kw_only=True):
    """Revenue and expenses in a currency."""

    currency: common.RowCurrency
    invoice_count: common.InvoiceCount
    invoiced: common.Invoiced
    credited: common.Credited
    discounts: common.Discounts
    revenue: common.Revenue
    tax: common.Tax
    collected: common.Collected
    expenses: common.Expenses


class RevenueByMonth(RevenueByMonthTotal):
    """Revenue and expenses of a month in a currency."""

    month: Annotated[str, "Month like 2026-03. The first and last month cover only their days in the period."]


class RevenueByMonthReport(msgspec.Struct):
    """Revenue and expenses of each month."""

    period: Annotated[common.Period, "The days of the report."]
    rows: Annotated[list[RevenueByMonth], "One for each month and currency, including empty months; not paginated."]
    totals: Annotated[list[RevenueByMonthTotal], "The sums of the rows, one for each currency."]


NAMES = select(clients.c.id, clients.c.name)

by_client = Resource("/reports/revenue-by-client", tag="Reports", scope="reports")
by_month = Resource("/reports/revenue-by-month", tag="Reports", scope="reports")


@by_client.get()
def get_report_revenue_by_client(
    tx: Tx, query: common.ReportQuery
) -> WithMeta[RevenueByClientReport, common.ReportMeta]:
    """Read revenue by client, the largest first. Default period: this year."""
    period = common.begin(tx, query, common.year_begins)
    by = ("client_id", "currency")
    figures = money.read(tx, period, by, SUMS, **query.only())
    for key, balances in money.balances(tx, period, by, **query.only()).items():
        figures.setdefault(key, Figures()).update(balances)
    names: dict[int, str] = dict(tx.all(NAMES))
    total_sums = common.by_currency(figures)
    rows = [
        common.make_row(
            RevenueByClient,
            currency,
            sums,
            client_id=client_id,
            client_name=names[client_id],
            share_percent=common.ratio(sums["revenue"], total_sums[currency]["revenue"]),
        )
        for (client_id, currency), sums in figures.items()
    ]
    rows.sort(key=lambda row: (-row.revenue, sort_key(row.client_name), row.client_id, row.currency))
    totals = [
        common.make_row(
            RevenueByClientTotal, currency, sums, share_percent=common.ratio(sums["revenue"], sums["revenue"])
        )
        for currency, sums in total_sums.items()
    ]
    return WithMeta(RevenueByClientReport(period, rows, totals), common.ReportMeta(tx.now))


@by_month.get()
def get_report_revenue_by_month(tx: Tx, query: common.ReportQuery) -> WithMeta[RevenueByMonthReport, common.ReportMeta]:
    """Read revenue by month, including empty months. Default period: the last twelve months and this one."""
    period = common.begin(tx, query, lambda last: last.replace(year=max(1, last.year - 1), day=1))
    found = money.read(tx, period, ("month", "currency"), (*SUMS, "expenses"), **query.only())
    currencies = sorted({code for _, code in found}) or [query.currency or tx.actor.currency]
    keys = [(month, code) for month in common.months(period) for code in currencies]
    figures = {key: found.get(key, Figures()) for key in keys}
    rows = [common.make_row(RevenueByMonth, code, sums, month=month) for (month, code), sums in figures.items()]
    totals = [common.make_row(RevenueByMonthTotal, code, sums) for code, sums in common.by_currency(figures).items()]
    return WithMeta(RevenueByMonthReport(period, rows, totals), common.ReportMeta(tx.now))


def balances_by_month(tx: Tx, period: common.Period, query: common.ReportQuery) -> dict[str, int]:
    """Return what was outstanding in the currency of the query at the end of each month, in minor units."""
    return {
        month: money.balances(tx, common.month_of(month, period), (), **query.only()).get((), Figures())["outstanding"]
        for month in common.months(period)
    }
