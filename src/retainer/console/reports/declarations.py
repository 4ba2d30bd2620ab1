"""The business reports of the console: the facts, charts and tables of each, by the names in `FIGURES`."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec import Struct

from retainer.console.charts import Pattern, Unit
from retainer.console.reports import figures
from retainer.console.reports.controls import Controls, last_year
from retainer.console.reports.figures import DAYS, INVOICES, SECTIONS, ReportFigures
from retainer.reports import common, overview, profitability, revenue, tax, utilisation
from retainer.reports.common import DefaultDay, Period
from retainer.store.tx import Tx


class ReportChart(NamedTuple):
    """A chart of the subjects of a table: columns, or bars below each other for the first `limit` subjects.

    The first series has a second one for the year before, if that has a pattern. `note` and `target` are figures.
    """

    title: str
    subjects: str
    series: Mapping[str, Pattern]
    before: Pattern | None = None
    unit: Unit = "money"
    limit: int = 0
    note: str = ""
    target: str = ""


class ReportTable(NamedTuple):
    """A table of subjects; `compared` figures have a second column for the year before. `link` is a subject's page.

    With fewer subjects than `fewest`, it would say what the first table says.
    """

    title: str
    subjects: str
    figures: tuple[str, ...]
    compared: tuple[str, ...] = ()
    link: str = ""
    note: str = ""
    has_total: bool = True
    fewest: int = 1


class ReportDeclaration(NamedTuple):
    """A report: what reads its figures, its usual period, and the types of the API that describe its figures."""

    title: str
    read: Callable[[Tx, Controls, Period], ReportFigures]
    default_start: DefaultDay
    facts: tuple[str, ...]
    charts: tuple[ReportChart, ...]
    tables: tuple[ReportTable, ...]
    models: tuple[type[Struct], ...]
    default_end: DefaultDay | None = None


BARS: Mapping[str, Pattern] = {"figure": "solid"}
BILLABLE = "billable_utilisation_percent"
TIME = ("available_minutes", "tracked_minutes", "billable_minutes", "utilisation_percent", BILLABLE)
USE = (*TIME, "target_percent", "billable_value")
REPORTS = {
    "overview": ReportDeclaration(
        "Overview",
        figures.read_overview,
        common.month_begins,
        ("revenue", "collected", "outstanding", BILLABLE),
        (
            ReportChart("Revenue and expenses, before tax", "net", BARS, "outlined", limit=2, note="figure"),
            ReportChart("Collected and outstanding, including tax", "gross", BARS, "outlined", limit=3, note="figure"),
        ),
        tuple(
            ReportTable(title, title, ("figure",), () if title == "Right now" else ("figure",), has_total=False)
            for title in SECTIONS
        ),
        (overview.OverviewMoney, overview.OverviewTime),
    ),
    "revenue-by-month": ReportDeclaration(
        "Revenue by month",
        figures.read_months,
        last_year,
        ("revenue", "collected", "outstanding_at_end"),
        (
            ReportChart("Revenue, before tax", "Month", {"revenue": "solid"}, "outlined"),
            ReportChart(
                "Collected, and outstanding at the end, including tax",
                "Month",
                {"collected": "striped", "outstanding": "line"},
            ),
        ),
        (
            ReportTable(
                "Revenue by month",
                "Month",
                ("invoiced", "credited", "revenue", "collected", "outstanding"),
                ("revenue", "collected", "outstanding"),
                f"/records/{INVOICES}",
            ),
        ),
        (revenue.RevenueByMonth, revenue.RevenueByClient),
    ),
    "revenue-by-client": ReportDeclaration(
        "Revenue by client",
        figures.read_clients,
        common.year_begins,
        ("revenue", "clients", "largest_share"),
        (ReportChart("Revenue by client", "Client", {"revenue": "solid"}, "outlined", limit=12, note="revenue"),),
        (
            ReportTable(
                "Revenue by client",
                "Client",
                (
                    *("revenue", "share_percent", "invoice_count", "collected", "outstanding", "overdue"),
                    *("refund_due", "written_off"),
                ),
                ("revenue",),
                "/records/clients/{client_id}",
            ),
        ),
        (revenue.RevenueByClient,),
    ),
    "utilisation": ReportDeclaration(
        "Utilisation",
        figures.read_people,
        last_year,
        (BILLABLE, "utilisation_percent", "billable_share_percent", "billable_value"),
        (
            ReportChart(
                "Billable utilisation by month",
                "Month",
                {BILLABLE: "line", "target_percent": "target"},
                "dashed",
                "percent",
            ),
            ReportChart(
                "Billable utilisation by person",
                "Person",
                {BILLABLE: "solid"},
                "outlined",
                "percent",
                limit=40,
                note=BILLABLE,
                target="target_percent",
            ),
        ),
        (
            ReportTable(
                "Utilisation by person", "Person", USE, (BILLABLE,), f"/records/time-entries?user_id={{user_id}}&{DAYS}"
            ),
            ReportTable("Utilisation by month", "Month", USE, (BILLABLE,), has_total=False, fewest=2),
        ),
        (utilisation.Utilisation,),
    ),
    "profitability": ReportDeclaration(
        "Profitability",
        figures.read_projects,
        common.year_begins,
        ("revenue", "profit", "margin_percent", "billable_value", "to_bill_amount"),
        (
            ReportChart(
                "Revenue and cost by project",
                "Project",
                {"revenue": "solid", "cost": "striped", "billable_value": "outlined"},
                limit=8,
                note="margin_percent",
            ),
        ),
        (
            ReportTable(
                "Profitability by project",
                "Project",
                (
                    *("tracked_minutes", "billable_value", "revenue", "cost", "profit"),
                    *("margin_percent", "budget_used_percent"),
                ),
                ("profit",),
                "/records/projects/{project_id}",
                "Client",
            ),
        ),
        (profitability.ProjectProfitability,),
    ),
    "tax": ReportDeclaration(
        "Tax",
        figures.read_tax,
        common.month_begins,
        ("tax", "paid_tax", "input_tax"),
        (),
        (
            ReportTable(
                "Invoices and credit notes by rate",
                "Rate",
                ("document_count", "credited_count", "credited", "credited_tax", "net", "tax"),
            ),
            ReportTable(
                "Discounts and write-offs by rate",
                "Rate",
                ("discounts", "discounts_tax", "written_off_net", "written_off_tax"),
            ),
            ReportTable(
                "Payments and refunds by rate",
                "Rate of payments",
                ("payment_count", "refund_count", "refunded", "refunded_tax", "paid", "paid_tax"),
            ),
            ReportTable("Input tax by rate", "Rate of expenses", ("expense_count", "expenses", "input_tax")),
        ),
        (tax.TaxByRate, tax.InputTaxByRate),
        common.end_of_last_month,
    ),
}
"""The reports by their names in paths."""
