"""Reports sum up a period of days in the account's time zone, inclusive, from one snapshot of the data.

Amounts in different currencies are never added: there is a row for each subject and currency, and a total for each
currency. Ratios are null if the divisor is 0 or less. A period has at most 1096 days. Reports are not paginated.

Overview: the key figures of the agency, for a period or as of now. Money has a row for each currency. `to_bill` and its
parts count all that is unbilled until the last day, whenever it was done; `unbilled_time` excludes hours that a fee
covers. `over_budget` and `overdue` exclude completed and archived projects. Templates and
their tasks never count.
"""

from functools import cache
from typing import Annotated, Any

import msgspec
from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, case, func, select, true

from retainer import schema
from retainer.billing import to_bill
from retainer.kernel.answers import WithMeta
from retainer.kernel.resource import Resource
from retainer.reports import common, money
from retainer.reports.utilisation import read_team, worked
from retainer.rollups import summaries
from retainer.rollups.summaries import Figures
from retainer.schema import expressions
from retainer.schema.billing import quotes
from retainer.schema.columns import in_literals
from retainer.schema.crm import clients
from retainer.schema.sites import sites
from retainer.sites import uptime
from retainer.sites.sites import awaits_updates
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Tx
from retainer.support import tickets
from retainer.values.exact import half_up
from retainer.values.kinds import SignedMoney
from retainer.work import projects, tasks

COVERED_SUMS = ("unpriced_minutes",)
SUMS = (*money.REVENUE, "collected", "expenses")


class OverviewMoney(msgspec.Struct):
    """Money in a currency."""

    currency: common.RowCurrency
    invoiced: common.Invoiced
    credited: common.Credited
    discounts: common.Discounts
    revenue: common.Revenue
    tax: common.Tax
    collected: common.Collected
    outstanding: common.Outstanding
    overdue: common.Overdue
    overdue_count: Annotated[int, "Number of overdue invoices."]
    refund_due: common.RefundDue
    written_off: common.WrittenOff
    expenses: common.Expenses
    unbilled_time: Annotated[SignedMoney, "Billable time until the last day that is on no invoice now."]
    unbilled_expenses: Annotated[SignedMoney, "Billable expenses until the last day that are on no invoice now."]
    unbilled_milestones: Annotated[SignedMoney, "Milestones completed by then that are on no invoice now."]
    unbilled_fees: Annotated[SignedMoney, "Months of retainers begun by then that are on no invoice now."]
    unbilled_fixed_fees: Annotated[
        SignedMoney, "What no invoice bills now of the fixed fees of projects completed by then."
    ]
    to_bill: Annotated[SignedMoney, "Sum of the five unbilled amounts: what the next invoices would bill, before tax."]


class OverviewTime(msgspec.Struct):
    """Time of all users."""

    tracked_minutes: common.TrackedMinutes
    billable_minutes: common.BillableMinutes
    available_minutes: common.AvailableMinutes
    utilisation_percent: common.UtilisationPercent
    billable_utilisation_percent: common.BillableUtilisationPercent
    unpriced_minutes: Annotated[int, "Billable time without a rate, which cannot be billed and which no fee covers."]


class OverviewClients(msgspec.Struct):
    """Numbers of clients."""

    active: Annotated[int, "With the status `active` now."]
    new: Annotated[int, "Created in the period, with any status."]


class OverviewProjects(msgspec.Struct):
    """Numbers of projects, except templates."""

    active: Annotated[int, "With the status `active` now."]
    over_budget: Annotated[int, "Open now and over budget."]
    overdue: Annotated[int, "Open now and past their `due_date`."]


class OverviewTasks(msgspec.Struct):
    """Numbers of tasks."""

    open: Annotated[int, "Neither done nor cancelled now."]
    overdue: Annotated[int, "Open tasks that are past their due date."]
    completed: Annotated[int, "Done in the period."]


class OverviewQuotes(msgspec.Struct):
    """Numbers of quotes."""

    sent: Annotated[int, "Became `sent` in the period."]
    accepted: Annotated[int, "Became `accepted` in the period."]
    declined: Annotated[int, "Became `declined` in the period."]
    win_rate_percent: Annotated[common.Ratio, "`accepted` in percent of `accepted` and `declined`; null if both are 0."]


class OverviewTickets(msgspec.Struct):
    """Numbers of tickets."""

    opened: Annotated[int, "Created in the period."]
    resolved: Annotated[int, "Resolved or closed in the period."]
    open_now: Annotated[int, "Neither resolved nor closed now."]
    unanswered_now: Annotated[int, "Open tickets without a public reply by a user."]
    median_first_response_minutes: Annotated[
        int | None, "Median for the answered tickets that were opened in the period; null if there are none."
    ]


class OverviewSites(msgspec.Struct):
    """Numbers of sites; paused sites and those in maintenance are only in `total`."""

    total: Annotated[int, "All sites, with any status."]
    up: Annotated[int, "With the status `up` now."]
    down: Annotated[int, "With the status `down` now."]
    unknown: Annotated[int, "With the status `unknown` now."]
    with_updates: Annotated[int, "With an update for a plugin or for WordPress."]


class Overview(msgspec.Struct):
    """Key figures of the agency."""

    period: Annotated[common.Period, "The days of the report."]
    money: Annotated[list[OverviewMoney], "One entry for each currency."]
    time: Annotated[OverviewTime, "Time in the period."]
    clients: Annotated[OverviewClients, "Clients now and new in the period."]
    projects: Annotated[OverviewProjects, "Projects as of now."]
    tasks: Annotated[OverviewTasks, "Tasks now and completed in the period."]
    quotes: Annotated[OverviewQuotes, "Quotes sent, accepted and declined in the period."]
    tickets: Annotated[OverviewTickets, "Tickets of the period, and open now."]
    sites: Annotated[OverviewSites, "Sites as of now."]


api = Resource("/reports/overview", tag="Reports", scope="reports")


@api.get()
def get_report_overview(tx: Tx, query: common.ReportQuery) -> WithMeta[Overview, common.ReportMeta]:
    """Read the key figures of the agency. Default period: this month."""
    return WithMeta(read_overview(tx, query, common.begin(tx, query, common.month_begins)), common.ReportMeta(tx.now))


def read_overview(tx: Tx, query: common.ReportQuery, period: common.Period, *, since_arrival: bool = False) -> Overview:
    time_sums = worked(tx, period, query.only())
    project_sums, by_fee = schema.rollups.project_sums, expressions.COVERED_PROJECTS
    covered_sums = summaries.read(tx, project_sums, period.days, ("currency",), COVERED_SUMS, by_fee, **query.only())
    tracking = {user_id for user_id, _ in time_sums}  # inactive users count as available if they have time
    available = sum(user.minutes for user in read_team(tx, since_arrival=since_arrival).present(period, tracking))
    total, covered = common.total(time_sums.values()), common.total(covered_sums.values())
    tracked, billable = total["tracked_minutes"], total["billable_minutes"]
    is_limited = query.client_id is not None
    values = period.moments() | ({"client_id": query.client_id} if is_limited else {})
    counts = {
        name: Figures(zip(statement.selected_columns.keys(), tx.one(statement, **values) or (), strict=True))
        for name, statement in _counts(is_limited=is_limited).items()
    }
    accepted, declined = counts["quotes"]["accepted"], counts["quotes"]["declined"]
    responses = [minutes for (minutes,) in tx.all(_answered(is_limited=is_limited), **values)]
    middle = [responses[(len(responses) - 1) // 2], responses[len(responses) // 2]] if responses else []
    median = half_up(sum(middle), 2) if middle else None
    return Overview(
        period,
        read_money(tx, period, query),
        OverviewTime(
            tracked_minutes=tracked,
            billable_minutes=billable,
            available_minutes=available,
            utilisation_percent=common.ratio(tracked, available),
            billable_utilisation_percent=common.ratio(billable, available),
            unpriced_minutes=total["unpriced_minutes"] - covered["unpriced_minutes"],
        ),
        OverviewClients(**counts["clients"]),
        OverviewProjects(**counts["projects"]),
        OverviewTasks(**counts["open_tasks"], **counts["done_tasks"]),
        OverviewQuotes(**counts["quotes"], win_rate_percent=common.ratio(accepted, accepted + declined)),
        OverviewTickets(**counts["tickets"], **counts["open_tickets"], median_first_response_minutes=median),
        OverviewSites(**counts["sites"]),
    )


def read_money(tx: Tx, period: common.Period, query: common.ReportQuery) -> list[OverviewMoney]:
    """Return the money of a period: a row for each currency, or one of zeros."""
    by, only = ("currency",), query.only()
    sums = money.read(tx, period, by, SUMS, **only)
    days = {"last": period.to, "until": period.moments()["until"]}
    for found in (money.balances(tx, period, by, **only), to_bill.read(tx, by, days, **only)):
        for key, figures in found.items():
            sums.setdefault(key, Figures()).update(figures)
    currencies = sorted(currency for (currency,) in sums) or [query.currency or tx.actor.currency]
    return [common.make_row(OverviewMoney, currency, sums.get((currency,), Figures())) for currency in currencies]


SINCE, UNTIL = bindparam("since", type_=INSTANT), bindparam("until", type_=INSTANT)


def during(moment: ColumnElement[Any]) -> ColumnElement[bool]:
    return and_(moment >= SINCE, moment < UNTIL)


@cache
def _counts(*, is_limited: bool) -> dict[str, Select[Any]]:
    """Return statements that select one row of counts for each resource, of one client if it is limited."""
    project, task, ticket = schema.work.projects, schema.work.tasks, schema.support.tickets

    def count(table: Table, *conditions: ColumnElement[bool], **counted: ColumnElement[bool]) -> Select[Any]:
        """Select a count for each name: of the rows that meet all conditions and its own."""
        sums = (func.coalesce(func.sum(case((own, 1), else_=0)), 0).label(name) for name, own in counted.items())
        return select(*sums).select_from(table).where(*conditions, *_of(table, is_limited=is_limited))

    is_open, live = in_literals(project.c.status, projects.OPEN), tasks.in_template(task).is_not(True)
    opened = count(ticket, during(ticket.c.created_at), opened=true())
    resolved = count(ticket, during(ticket.c.resolved_at), resolved=true())
    changes = {"sent": quotes.c.sent_at, "accepted": quotes.c.accepted_at, "declined": quotes.c.declined_at}
    observed = {status: uptime.effective_status(sites) == status for status in ("up", "down", "unknown")}
    return {
        "clients": count(clients, active=clients.c.status == "active", new=during(clients.c.created_at)),
        "projects": count(
            project,
            project.c.is_template.is_(False),
            active=project.c.status == "active",
            over_budget=and_(is_open, projects.is_over_budget(project)),
            overdue=and_(is_open, expressions.overdue(*projects.OPEN)(project)),
        ),
        "open_tasks": count(
            task, in_literals(task.c.status, tasks.OPEN), live, open=true(), overdue=expressions.is_past_due(task)
        ),
        "done_tasks": count(task, during(task.c.completed_at), task.c.status == "done", live, completed=true()),
        "quotes": count(quotes, **{name: during(moment) for name, moment in changes.items()}),
        "tickets": select(opened.scalar_subquery().label("opened"), resolved.scalar_subquery().label("resolved")),
        "open_tickets": count(
            ticket, tickets.is_unresolved(ticket), open_now=true(), unanswered_now=tickets.is_unanswered(ticket)
        ),
        "sites": count(sites, total=true(), **observed, with_updates=awaits_updates(sites)),
    }


@cache
def _answered(*, is_limited: bool) -> Select[Any]:
    ticket = schema.support.tickets
    minutes = ticket.c.first_response_minutes
    answered = select(minutes).where(
        during(ticket.c.created_at), minutes.is_not(None), *_of(ticket, is_limited=is_limited)
    )
    return answered.order_by(minutes)


def _of(table: Table, *, is_limited: bool) -> list[ColumnElement[bool]]:
    own = "id" if table is clients else "client_id"
    return [table.c[own] == bindparam("client_id")] if is_limited else []
