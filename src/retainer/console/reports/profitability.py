"""Profitability: the value, cost, profit, margin and budget of each project, beside the same days a year before."""

from decimal import Decimal

from retainer.console.charts import Series, Subject, row_chart
from retainer.console.reports.controls import Controls
from retainer.console.reports.tables import Column, Label, Report, ReportTable, Value, fact, hours, in_currency, shown
from retainer.reports import profitability
from retainer.reports.profitability import ProfitabilityQuery, ProjectProfitability, ProjectProfitabilityTotal
from retainer.store.tx import Tx

SHOWN = 8
"""Projects with bars; the table has all."""
COLUMNS = [
    Column("Project"),
    Column("Client", "note"),
    Column("Tracked", "minutes"),
    Column("Value of the time", "money"),
    Column("Revenue", "money"),
    Column("Cost", "money"),
    Column("Profit", "money"),
    Column("Margin", "percent"),
    Column("Profit, year before", "money"),
    Column("Budget used", "percent"),
]


def build(tx: Tx, controls: Controls) -> Report:
    """Return the report."""
    now, before = (
        profitability.get_report_project_profitability(tx, controls.ask(ProfitabilityQuery, period)).data
        for period in (controls.period, controls.before)
    )
    rows, earlier_rows = (in_currency(report.rows, controls.currency) for report in (now, before))
    earlier = {row.project_id: row.profit for row in earlier_rows}
    total, earlier_total = (next(iter(in_currency(report.totals, controls.currency)), None) for report in (now, before))
    charted = [row for row in rows if row.revenue or cost_of(row)][:SHOWN]
    subjects = [Subject(name_of(row), f"margin {shown(row.margin_percent, 'percent')}") for row in charted]
    series = [
        Series("Revenue", "solid", [row.revenue for row in charted]),
        Series("Cost", "striped", [cost_of(row) for row in charted]),
        Series("Value of the time", "outlined", [row.billable_value for row in charted]),
    ]
    names = {
        "Revenue": "revenue",
        "Profit": "profit",
        "Value of the time": "billable_value",
        "Unbilled": "unbilled_amount",
    }
    facts = [fact(title, *figures_of(name, total, earlier_total), "money") for title, name in names.items()]
    facts.insert(2, fact("Margin", *figures_of("margin_percent", total, earlier_total), "percent"))
    last: list[Value] = []
    if total:
        last = ["Total", "", *_figures(total, earlier_total.profit if earlier_total else None), None]
    is_cut = sum(1 for row in rows if row.revenue or cost_of(row)) > SHOWN
    title = f"The {SHOWN} projects with the largest revenue" if is_cut else "Revenue, cost and value by project"
    return Report(
        facts,
        [row_chart(title, "money", subjects, series)],
        [
            ReportTable(
                "profitability",
                "Profitability by project",
                COLUMNS,
                [
                    [
                        link_of(row),
                        row.client_name,
                        *_figures(row, earlier.get(row.project_id)),
                        row.budget_used_percent,
                    ]
                    for row in rows
                ],
                last,
            )
        ],
        [each.currency for each in now.totals if each.currency != controls.currency],
        note_of(total),
    )


def cost_of(row: ProjectProfitability | ProjectProfitabilityTotal) -> Decimal | None:
    """Return the labour and expense cost; None if the labour cost is in another currency."""
    return None if row.labour_cost is None else row.labour_cost + row.expense_cost


def _figures(row: ProjectProfitability | ProjectProfitabilityTotal, earlier: Decimal | None) -> list[Value]:
    return [row.tracked_minutes, row.billable_value, row.revenue, cost_of(row), row.profit, row.margin_percent, earlier]


def figures_of(
    name: str, now: ProjectProfitabilityTotal | None, before: ProjectProfitabilityTotal | None
) -> tuple[Value, Value]:
    """Return a figure and that of a year before."""
    return getattr(now, name, None), getattr(before, name, None)


def name_of(row: ProjectProfitability) -> str:
    """Return the name of a project."""
    return row.project_name or "Without a project"


def link_of(row: ProjectProfitability) -> Value:
    """Return the name of a project with the link to its page."""
    return Label(name_of(row), f"/records/projects/{row.project_id}") if row.project_id else name_of(row)


def note_of(total: ProjectProfitabilityTotal | None) -> str:
    """Return what the figures include and what they lack."""
    note = "Cost is labour at cost rates and expenses. Budget used is that of the whole project."
    if total is None:
        return note
    if total.labour_cost is None:
        return f"{note} Labour cost is known only in the account's currency, so there is no profit in {total.currency}."
    if total.missing_cost_rate_minutes:
        note += (
            f" {hours(total.missing_cost_rate_minutes)} hours have no cost rate, so profit is too high by their cost."
        )
    if total.unpriced_minutes:
        note += f" {hours(total.unpriced_minutes)} billable hours have no rate, so they are in no amount."
    return note
