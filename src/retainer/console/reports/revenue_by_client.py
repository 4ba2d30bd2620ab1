"""Revenue by client: the largest first, with its share, beside the same days a year before."""

from decimal import Decimal

from retainer.console.charts import Series, Subject, row_chart
from retainer.console.reports.controls import Controls
from retainer.console.reports.tables import Column, Label, Report, ReportTable, Value, fact, in_currency, shown
from retainer.reports import revenue
from retainer.reports.common import ReportQuery
from retainer.reports.revenue import RevenueByClient
from retainer.store.tx import Tx
from retainer.values.exact import amount_of

SHOWN = 12
"""Clients with a bar; the table has all."""
COLUMNS = [
    Column("Client"),
    Column("Revenue", "money"),
    Column("Year before", "money"),
    Column("Share", "percent"),
    Column("Invoices", "count"),
    Column("Collected", "money"),
    Column("Outstanding", "money"),
    Column("Overdue", "money"),
    Column("To refund", "money"),
]


def build(tx: Tx, controls: Controls) -> Report:
    """Return the report."""
    now, before = (
        revenue.get_report_revenue_by_client(tx, controls.ask(ReportQuery, period)).data
        for period in (controls.period, controls.before)
    )
    rows, earlier_rows = (in_currency(report.rows, controls.currency) for report in (now, before))
    earlier = {row.client_id: row.revenue for row in earlier_rows}
    gone = [row for row in earlier_rows if row.revenue and row.client_id not in {each.client_id for each in rows}]
    zero = amount_of(0, controls.currency)
    cells = [row_of(row, earlier.get(row.client_id, zero)) for row in rows]
    cells += [[link_of(row), zero, row.revenue, None, 0, zero, zero, zero, zero] for row in gone]
    sums = [sum((row.revenue for row in each), Decimal(0)) for each in (rows, earlier_rows)]
    active = [sum(row.revenue > 0 for row in each) for each in (rows, earlier_rows)]
    largest = [each[0].share_percent if each else None for each in (rows, earlier_rows)]
    charted = [row for row in rows if row.revenue][:SHOWN]
    rest = len(rows) - len(charted)
    total: list[Value] = []
    for each in in_currency(now.totals, controls.currency):
        total = ["Total", each.revenue, sums[1], None, each.invoice_count]
        total += [each.collected, each.outstanding, each.overdue, each.refund_due]
    series = [
        Series("This period", "solid", [row.revenue for row in charted]),
        Series("A year before", "outlined", [earlier.get(row.client_id) for row in charted]),
    ]
    subjects = [Subject(row.client_name, shown(row.revenue, "money")) for row in charted]
    title = (
        f"Revenue of the {len(charted)} largest clients" if rest > 0 and len(charted) == SHOWN else "Revenue by client"
    )
    return Report(
        [
            fact("Revenue", sums[0], sums[1], "money"),
            fact("Clients with revenue", active[0], active[1], "count"),
            fact("Share of the largest client", largest[0], largest[1], "percent"),
        ],
        [row_chart(title, "money", subjects, series)],
        [ReportTable("revenue-by-client", "Revenue by client", COLUMNS, cells, total)],
        [each.currency for each in now.totals if each.currency != controls.currency],
        "Revenue is invoiced less credited, before tax. The other amounts include tax.",
    )


def row_of(row: RevenueByClient, earlier: Decimal) -> list[Value]:
    """Return the cells of a client."""
    share = row.share_percent if row.revenue else None
    figures = [row.revenue, earlier, share, row.invoice_count, row.collected, row.outstanding, row.overdue]
    figures.append(row.refund_due)
    return [link_of(row), *figures]


def link_of(row: RevenueByClient) -> Label:
    """Return the name of a client with the link to its page."""
    return Label(row.client_name, f"/records/clients/{row.client_id}")
