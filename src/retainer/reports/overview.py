"""Reports are about days in the account's zone, both ends included, and are answered whole, from one state of the data.

Amounts of different currencies are never added: there is a row for each subject and currency, and a total for each
currency. Ratios are null when there is nothing, or less, to divide by. At most 1096 days can be asked for.

Overview: one look at everything, of a period or, where it says so, as of now. Money has a row for each currency; see
the other reports for what its members mean. `unbilled_time` and `unbilled_expenses` are the billable time and expenses
of the period that are on no invoice now, without the hours that a fee covers; `unpriced_minutes` are billable without a
rate, and so in no amount. Of clients, `active` is as of now, `new`
those created in the period; projects are as of now, `over_budget` and `overdue` those that are neither completed nor
archived; tasks are `open` and `overdue` now, `completed` in the period; templates and their tasks count nowhere. In the
period, quotes were `sent`, `accepted` and `declined`; `win_rate_percent` is accepted of accepted and declined. Tickets
were `opened` and `resolved` in the period; the median is that of the tickets opened in it which have been answered.
Sites are as of now.
"""

from functools import cache
from typing import Annotated, Any

import msgspec
from sqlalchemy import ColumnElement, Select, and_, bindparam, case, func, select

from retainer import schema
from retainer.kernel.resource import Resource, WithMeta
from retainer.reports import periods
from retainer.reports.common import (
    AvailableMinutes,
    BillableMinutes,
    BillableUtilisationPercent,
    Collected,
    Credited,
    Expenses,
    Invoiced,
    Outstanding,
    Overdue,
    ReportMeta,
    ReportQuery,
    Revenue,
    RowCurrency,
    Tax,
    TrackedMinutes,
    UtilisationPercent,
    begin,
    by_currency,
    default_currency,
    with_meta,
)
from retainer.reports.periods import Period
from retainer.reports.ratios import Ratio, median, ratio
from retainer.reports.revenue import money_of
from retainer.reports.utilisation import capacities, worked
from retainer.rollups import summaries
from retainer.rollups.summaries import Sums
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
from retainer.values.exact import amount_of
from retainer.values.kinds import SignedMoney
from retainer.work import progress, projects, tasks

INVOICED = ("invoiced", "credited", "invoiced_tax", "credited_tax", "collected")
COVERED_SUMS = ("billable_value", "billed_value", "unpriced_minutes")
SUMS = (*INVOICED, "expenses", "billable_expenses", "billed_expenses")


class OverviewMoney(msgspec.Struct):
    """Money in a currency."""

    currency: RowCurrency
    invoiced: Invoiced
    credited: Credited
    revenue: Revenue
    tax: Tax
    collected: Collected
    outstanding: Outstanding
    overdue: Overdue
    overdue_count: Annotated[int, "How many invoices `overdue` is the sum of."]
    expenses: Expenses
    unbilled_time: Annotated[SignedMoney, "Value of the period's billable time that is on no invoice now."]
    unbilled_expenses: Annotated[SignedMoney, "Value of the period's billable expenses that are on no invoice now."]


class OverviewTime(msgspec.Struct):
    """The time of all users."""

    tracked_minutes: TrackedMinutes
    billable_minutes: BillableMinutes
    available_minutes: AvailableMinutes
    utilisation_percent: UtilisationPercent
    billable_utilisation_percent: BillableUtilisationPercent
    unpriced_minutes: Annotated[int, "Billable time without a rate, which nobody can bill, that no fee covers."]


class OverviewClients(msgspec.Struct):
    """How many clients."""

    active: Annotated[int, "With the status `active` now."]
    new: Annotated[int, "Created in the period, whatever their status."]


class OverviewProjects(msgspec.Struct):
    """How many projects, templates left out."""

    active: Annotated[int, "With the status `active` now."]
    over_budget: Annotated[int, "Open now, and beyond their budget."]
    overdue: Annotated[int, "Open now, and their `due_date` has passed."]


class OverviewTasks(msgspec.Struct):
    """How many tasks."""

    open: Annotated[int, "Neither done nor cancelled now."]
    overdue: Annotated[int, "What of `open` should be done by now."]
    completed: Annotated[int, "Done in the period."]


class OverviewQuotes(msgspec.Struct):
    """How many quotes."""

    sent: Annotated[int, "Became `sent` in the period."]
    accepted: Annotated[int, "Became `accepted` in the period."]
    declined: Annotated[int, "Became `declined` in the period."]
    win_rate_percent: Annotated[Ratio, "`accepted` of `accepted` and `declined`; null without any."]


class OverviewTickets(msgspec.Struct):
    """How many tickets."""

    opened: Annotated[int, "Created in the period."]
    resolved: Annotated[int, "Resolved or closed in the period."]
    open_now: Annotated[int, "Neither resolved nor closed now."]
    unanswered_now: Annotated[int, "What of `open_now` no user has answered in public."]
    median_first_response_minutes: Annotated[
        int | None, "Median of the tickets opened in the period that were answered; null without any."
    ]


class OverviewSites(msgspec.Struct):
    """How many sites; those that are paused or in maintenance are neither up nor down nor unknown."""

    total: Annotated[int, "All sites, whatever their status."]
    up: Annotated[int, "With the status `up` now."]
    down: Annotated[int, "With the status `down` now."]
    unknown: Annotated[int, "With the status `unknown` now."]
    with_updates: Annotated[int, "With an update for a plugin or the core."]


class Overview(msgspec.Struct):
    """How the agency is doing."""

    period: Annotated[Period, "The days that it is about."]
    money: Annotated[list[OverviewMoney], "One entry for each currency."]
    time: Annotated[OverviewTime, "Time of the period."]
    clients: Annotated[OverviewClients, "Clients now, and new in the period."]
    projects: Annotated[OverviewProjects, "Projects as they are now."]
    tasks: Annotated[OverviewTasks, "Tasks now, and done in the period."]
    quotes: Annotated[OverviewQuotes, "What became of quotes in the period."]
    tickets: Annotated[OverviewTickets, "Tickets of the period, and those open now."]
    sites: Annotated[OverviewSites, "Sites as they are now."]


api = Resource("/reports/overview", tag="Reports", scope="reports")


@api.get()
def get_report_overview(tx: Tx, query: ReportQuery) -> WithMeta[Overview, ReportMeta]:
    """Read how the agency is doing: its money, time, work and care; of this month, unless days are given."""
    period = begin(tx, query, periods.month_begins)
    time_sums, covered_sums = worked(tx, period, query.only()), covered(tx, period, query)
    limits = () if query.client_id is None else ("client_id",)
    values = period.moments() | ({"client_id": query.client_id} if limits else {})
    counts: dict[str, Any] = {name: tx.one(statement, **values) or () for name, statement in _counts(limits).items()}
    sent, accepted, declined = counts["quotes"]
    responses = [minutes for (minutes,) in tx.all(_answered(limits), **values)]
    ticket_figures: Any = (*counts["tickets"], *counts["open_tickets"], median(responses))
    overview = Overview(
        period,
        money(tx, period, query, time_sums, covered_sums),
        time(tx, period, time_sums, covered_sums),
        OverviewClients(*counts["clients"]),
        OverviewProjects(*counts["projects"]),
        OverviewTasks(*counts["open_tasks"], *counts["done_tasks"]),
        OverviewQuotes(sent, accepted, declined, ratio(accepted, accepted + declined)),
        OverviewTickets(*ticket_figures),
        OverviewSites(*counts["sites"]),
    )
    return with_meta(tx, overview)


def covered(tx: Tx, period: Period, query: ReportQuery) -> Sums:
    """Return COVERED_SUMS of the hours of a period that a fee covers, by currency."""
    table, by_fee = schema.rollups.project_sums, expressions.COVERED_PROJECTS
    return summaries.read(tx, table, period.days, ("currency",), COVERED_SUMS, by_fee, **query.only())


def money(tx: Tx, period: Period, query: ReportQuery, time_sums: Sums, covered_sums: Sums) -> list[OverviewMoney]:
    """Return the money of a period: a row for each currency, or one of zeros when there is none."""
    figures = summaries.read(tx, money_of(query), period.days, ("currency",), SUMS, **query.only())
    balances = summaries.outstanding(tx, money_of(query), period.to, ("currency",), **query.only())
    time_totals = by_currency((currency, sums) for (_, currency), sums in time_sums.items())
    currencies = {currency for (currency,) in (*balances, *figures)}
    currencies |= {currency for currency, sums in time_totals.items() if sums[2]}
    rows = []
    for currency in sorted(currencies) or [default_currency(tx, query)]:
        invoiced, credited, tax, credited_tax, collected, *expenses = figures.get((currency,), [0] * len(SUMS))
        outstanding, overdue, count = balances.get((currency,), [0, 0, 0])
        _, _, billable, billed, _ = time_totals.get(currency, [0] * 5)
        covered_billable, covered_billed, _ = covered_sums.get((currency,), [0] * 3)
        unbilled = billable - billed - (covered_billable - covered_billed)
        first = (invoiced, credited, invoiced - credited, tax - credited_tax, collected, outstanding, overdue)
        rest = (expenses[0], unbilled, expenses[1] - expenses[2])
        before, after = ([amount_of(units, currency) for units in group] for group in (first, rest))
        fields: Any = (currency, *before, count, *after)
        rows.append(OverviewMoney(*fields))
    return rows


def time(tx: Tx, period: Period, time_sums: Sums, covered_sums: Sums) -> OverviewTime:
    """Return the time of a period; available is that of active users, and of others who have tracked time in it."""
    tracking = {user_id for user_id, _ in time_sums}
    users = capacities(tx, period, None)
    available = sum(minutes for user_id, _, is_active, minutes, _ in users if is_active or user_id in tracking)
    tracked, billable = (sum(sums[place] for sums in time_sums.values()) for place in (0, 1))
    unpriced = sum(sums[4] for sums in time_sums.values()) - sum(sums[2] for sums in covered_sums.values())
    ratios = (ratio(tracked, available), ratio(billable, available))
    return OverviewTime(tracked, billable, available, *ratios, unpriced)


SINCE, UNTIL = bindparam("since", type_=INSTANT), bindparam("until", type_=INSTANT)


def during(moment: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether something happened in the period."""
    return and_(moment >= SINCE, moment < UNTIL)


def counted(*conditions: ColumnElement[bool]) -> list[ColumnElement[Any]]:
    """Return a count for each condition: of the rows for which it is true."""
    return [func.coalesce(func.sum(case((condition, 1), else_=0)), 0) for condition in conditions]


@cache
def _counts(limits: tuple[str, ...]) -> dict[str, Select[Any]]:
    """Return statements that select one row of counts for each resource, filtered by the columns in `limits`."""
    client = [clients.c.id == bindparam("client_id")] if limits else []
    active = counted(clients.c.status == "active", during(clients.c.created_at))
    project, task, quote, ticket, site = (
        schema.work.projects,
        schema.work.tasks,
        quotes.c,
        schema.support.tickets,
        sites.c,
    )
    is_open = in_literals(project.c.status, projects.OPEN)
    states = counted(
        project.c.status == "active",
        and_(is_open, progress.over_budget(project)),
        and_(is_open, expressions.overdue(*projects.OPEN)(project)),
    )
    live = tasks.in_template(task).is_not(True)
    open_tasks = select(func.count(), *counted(expressions.is_past_due(task))).select_from(task)
    moments = (quote.sent_at, quote.accepted_at, quote.declined_at)
    observed = [counted(uptime.effective_status(sites) == word)[0] for word in ("up", "down", "unknown")]
    open_tickets = select(func.count(), *counted(tickets.is_unanswered(ticket))).select_from(ticket)
    opened, resolved = (
        select(func.count()).select_from(ticket).where(during(moment), *_of(ticket.c, limits))
        for moment in (ticket.c.created_at, ticket.c.resolved_at)
    )
    return {
        "clients": select(*active).select_from(clients).where(*client),
        "projects": select(*states).where(project.c.is_template.is_(False), *_of(project.c, limits)),
        "open_tasks": open_tasks.where(in_literals(task.c.status, tasks.OPEN), live, *_of(task.c, limits)),
        "done_tasks": select(func.count())
        .select_from(task)
        .where(during(task.c.completed_at), task.c.status == "done", live, *_of(task.c, limits)),
        "quotes": select(*counted(*map(during, moments))).where(*_of(quote, limits)),
        "tickets": select(opened.scalar_subquery(), resolved.scalar_subquery()),
        "open_tickets": open_tickets.where(tickets.is_unresolved(ticket), *_of(ticket.c, limits)),
        "sites": select(func.count(), *observed, *counted(awaits_updates(sites)))
        .select_from(sites)
        .where(*_of(site, limits)),
    }


@cache
def _answered(limits: tuple[str, ...]) -> Select[Any]:
    """Select the minutes until the first response of tickets opened in the period, the shortest first."""
    ticket = schema.support.tickets.c
    minutes = ticket.first_response_minutes
    answered = select(minutes).where(during(ticket.created_at), minutes.is_not(None), *_of(ticket, limits))
    return answered.order_by(minutes)


def _of(columns: Any, limits: tuple[str, ...]) -> list[ColumnElement[bool]]:
    return [columns[name] == bindparam(name) for name in limits]
