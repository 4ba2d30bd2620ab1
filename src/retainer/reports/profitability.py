"""Project profitability: the revenue and the cost of projects.

A line without a project counts for its invoice's project, or for the row whose `project_id` is null, so that the rows
add up to the revenue of the clients. Cost rates are in the account's currency: in rows with another currency,
`labour_cost` and `profit` are null, as they are for the key of a member, which shows no cost of colleagues. Time
without a cost rate costs nothing and is counted in `missing_cost_rate_minutes`. Billable time without a rate is counted
in `unpriced_minutes` and in no amount. A project without figures in the period has no row.
"""

from typing import Annotated, Any, TypeVar

import msgspec
from sqlalchemy import select

from retainer import schema
from retainer.billing import to_bill
from retainer.kernel.answers import WithMeta
from retainer.kernel.resource import Resource
from retainer.kernel.roles import may
from retainer.reports import common, money
from retainer.reports.common import Period, Ratio, ratio
from retainer.rollups import summaries
from retainer.rollups.summaries import Figures
from retainer.schema import expressions
from retainer.schema.crm import clients
from retainer.schema.work import projects
from retainer.store.tx import Tx
from retainer.values.collation import sort_key
from retainer.values.exact import half_up, percent
from retainer.values.kinds import Id, SignedMoney
from retainer.work.project_types import BillingType, Status, budget_used

TIME_SUMS = (
    *("tracked_minutes", "billable_minutes", "billable_value", "billed_value", "unpriced_minutes"),
    *("labour_cost", "missing_cost_rate_minutes"),
)
MONEY_SUMS = ("invoiced", "credited", "discounts", "expenses")


class ProfitabilityQuery(common.ReportQuery):
    """The projects to report on."""

    project_id: Annotated[Id | None, "Only the rows of this project."] = None


class ProjectProfitabilityTotal(msgspec.Struct, kw_only=True):
    """Time, revenue and cost in a currency."""

    currency: common.RowCurrency
    tracked_minutes: common.TrackedMinutes
    billable_minutes: common.BillableMinutes
    billable_value: Annotated[SignedMoney, "Value of the billable time, billed or not, before tax."]
    revenue: Annotated[
        SignedMoney,
        "Net amount of invoice lines less credits and discounts; a line without a project counts for the invoice's.",
    ]
    unbilled_amount: Annotated[
        SignedMoney, "The part of `billable_value` that is on no invoice now; 0 if a fee covers it."
    ]
    to_bill_amount: Annotated[
        SignedMoney, "What the next invoice would bill until the last day, whenever the work was done, before tax."
    ]
    labour_cost: Annotated[
        SignedMoney | None,
        "All tracked time at its users' cost rates; null in another currency than the account's, and for members.",
    ]
    expense_cost: Annotated[SignedMoney, "Net amount of the expenses, billable or not."]
    profit: Annotated[
        SignedMoney | None, "`revenue` less `labour_cost` and `expense_cost`; null if the labour cost is null."
    ]
    margin_percent: Annotated[
        Ratio, "`profit` in percent of `revenue`; null if that is 0 or less, or if `profit` is null."
    ]
    missing_cost_rate_minutes: Annotated[int, "Time without a cost rate: `profit` is too high by its cost."]
    unpriced_minutes: Annotated[int, "Billable time without a rate, which cannot be billed; 0 if a fee covers it."]


class ProjectProfitability(ProjectProfitabilityTotal):
    """Time, revenue and cost of a project in a currency."""

    project_id: Annotated[int | None, "Null for amounts without a project."]
    project_name: Annotated[str | None, "Current name of the project; null without one."]
    client_id: Annotated[int | None, "The project's client; null for internal work."]
    client_name: Annotated[str | None, "Current name of the client; null without one."]
    status: Annotated[Status | None, "The project's current value; null without one."]
    billing_type: Annotated[BillingType | None, "The project's current value; null without one."]
    budget_used_percent: Annotated[Ratio, "Share of the project's budget used by all its time; null without a budget."]


class ProjectProfitabilityReport(msgspec.Struct):
    """Revenue, cost and profit of each project."""

    period: Annotated[Period, "The days of the report."]
    rows: Annotated[
        list[ProjectProfitability], "One for each project and currency, the largest revenue first; not paginated."
    ]
    totals: Annotated[list[ProjectProfitabilityTotal], "The sums of the rows, one for each currency."]


Row = TypeVar("Row", bound=ProjectProfitabilityTotal)
PROJECT_FIELDS: dict[str, Any] = {
    "project_id": projects.c.id,
    "project_name": projects.c.name,
    "client_id": projects.c.client_id,
    "client_name": clients.c.name,
    "status": projects.c.status,
    "billing_type": projects.c.billing_type,
    "budget_used_percent": budget_used(projects),
}
PROJECTS = select(*PROJECT_FIELDS.values()).select_from(
    projects.outerjoin(clients, clients.c.id == projects.c.client_id)
)
NO_PROJECT: dict[str, Any] = dict.fromkeys(PROJECT_FIELDS)

api = Resource("/reports/project-profitability", tag="Reports", scope="reports")


@api.get()
def get_report_project_profitability(
    tx: Tx, query: ProfitabilityQuery
) -> WithMeta[ProjectProfitabilityReport, common.ReportMeta]:
    """Read the revenue and cost of each project, the largest revenue first. Default period: all time."""
    return WithMeta(read_report(tx, query), common.ReportMeta(tx.now))


def read_report(tx: Tx, query: ProfitabilityQuery) -> ProjectProfitabilityReport:
    period = common.begin(tx, query, None)
    by = ("project_id", "currency")
    summed = summaries.read(tx, schema.rollups.project_sums, period.days, by, TIME_SUMS, **query.only())
    for (project_id, currency), sums in money.read(tx, period, by, MONEY_SUMS, **query.only()).items():
        summed.setdefault((project_id or 0, currency), Figures()).update(sums)
    days = {"last": period.to, "until": period.moments()["until"]}
    for (project_id, currency), sums in to_bill.read(tx, by, days, **query.only()).items():
        summed.setdefault((project_id or 0, currency), Figures())["to_bill_amount"] = sums["to_bill"]
    by_id = {
        id_: dict(zip(PROJECT_FIELDS, (id_, *fields, percent(used)), strict=True))
        for id_, *fields, used in tx.all(PROJECTS)
    }
    for (project_id, _), sums in summed.items():
        settle(sums, by_id.get(project_id, NO_PROJECT)["billing_type"])
    cost_currency = tx.actor.currency if may(tx.actor, "costs") else None
    rows = [
        row_of(ProjectProfitability, currency, sums, cost_currency, by_id.get(project_id, NO_PROJECT))
        for (project_id, currency), sums in summed.items()
    ]
    rows.sort(key=lambda row: (-row.revenue, sort_key(row.project_name or ""), row.project_id or 0, row.currency))
    totals = [
        row_of(ProjectProfitabilityTotal, currency, sums, cost_currency, {})
        for currency, sums in common.by_currency(summed).items()
    ]
    return ProjectProfitabilityReport(period, rows, totals)


def settle(sums: Figures, billing_type: str | None) -> None:
    """Add what follows from sums, in minor units; if a fee covers the hours, all count as billed."""
    if billing_type in expressions.COVERED:
        sums["billed_value"], sums["unpriced_minutes"] = sums["billable_value"], 0
    sums["unbilled_amount"] = sums["billable_value"] - sums["billed_value"]
    sums["labour_cost"] = half_up(sums["labour_cost"], 60)  # a sum of minutes x hourly rate
    sums["expense_cost"] = sums["expenses"]
    sums["profit"] = sums["revenue"] - sums["labour_cost"] - sums["expenses"]


def row_of(row: type[Row], currency: str, sums: Figures, cost_currency: str | None, others: dict[str, Any]) -> Row:
    if currency == cost_currency:
        margin = ratio(sums["profit"], sums["revenue"])
        return common.make_row(row, currency, sums, margin_percent=margin, **others)
    return common.make_row(row, currency, sums, labour_cost=None, profit=None, margin_percent=None, **others)
