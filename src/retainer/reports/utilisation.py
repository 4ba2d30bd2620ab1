"""Utilisation: how much of the available time is tracked, and how much of it is billable.

`available_minutes` is the weekly capacity, spread evenly over the account's working days in the period.
`utilisation_percent` is tracked of available time, `billable_utilisation_percent` billable of available time, and
`billable_share_percent` billable of tracked time. `billable_value` is the value of the billable time in `currency`: the
requested currency, or the account's. `other_currencies` has the values in other currencies.
"""

from collections import defaultdict
from collections.abc import Container
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import msgspec
from sqlalchemy import func, select

from retainer.kernel.resource import Resource, WithMeta
from retainer.reports import common, periods
from retainer.reports.periods import Period
from retainer.reports.ratios import average, of_days, ratio
from retainer.reports.utilisation_groups import GroupBy, UtilisationGroup, groups_of_users
from retainer.reports.worked_time import KEYS, BillableValue, OtherCurrencies, SharePercent, shares, worked
from retainer.rollups.summaries import Figures, Sums
from retainer.schema.identity import users
from retainer.schema.work import time_entries
from retainer.store.tx import Tx
from retainer.values.collation import sort_key
from retainer.values.exact import local_day
from retainer.values.kinds import ME, Id, Percent, UserId


class UtilisationQuery(common.ReportQuery):
    """The time to report on."""

    project_id: Annotated[Id | None, "Only time on this project."] = None
    user_id: Annotated[UserId | None, "Only this user; `me` is the key's user."] = None
    group_by: Annotated[GroupBy | None, "Divide the time of each user by this."] = None


class UtilisationTotal(msgspec.Struct):
    """Available, tracked and billable minutes, and their ratios."""

    available_minutes: common.AvailableMinutes
    tracked_minutes: common.TrackedMinutes
    billable_minutes: common.BillableMinutes
    utilisation_percent: common.UtilisationPercent
    billable_utilisation_percent: common.BillableUtilisationPercent
    billable_share_percent: SharePercent
    target_percent: Annotated[
        Percent | None, "The users' targets, weighted by their available minutes; null if no minutes are available."
    ]
    currency: common.RowCurrency
    billable_value: BillableValue
    other_currencies: OtherCurrencies


class Utilisation(msgspec.Struct):
    """The utilisation of a user; if a currency is requested, only of time in it."""

    user_id: Annotated[int, "The user whose utilisation it is."]
    user_name: Annotated[str, "Current name of the user."]
    is_active: Annotated[bool, "False for deactivated users. They are listed if they have time in the period."]
    available_minutes: common.AvailableMinutes
    tracked_minutes: common.TrackedMinutes
    billable_minutes: common.BillableMinutes
    utilisation_percent: common.UtilisationPercent
    billable_utilisation_percent: common.BillableUtilisationPercent
    billable_share_percent: SharePercent
    target_percent: Annotated[Percent | None, "Target for the billable share of the available time."]
    currency: common.RowCurrency
    billable_value: BillableValue
    other_currencies: OtherCurrencies
    groups: Annotated[
        list[UtilisationGroup] | None,
        "The time of the user, divided by `group_by`: days in order, clients and tasks by minutes. Null without it.",
    ]


class UtilisationReport(msgspec.Struct):
    """Utilisation by user."""

    period: Annotated[Period, "The days of the report."]
    rows: Annotated[list[Utilisation], "One for each user, by name; not paginated."]
    totals: Annotated[list[UtilisationTotal], "One, for all listed users."]


USERS = select(*users.c["id", "name", "is_active", "weekly_capacity_minutes", "target_percent"])
ARRIVALS = select(
    *users.c["id", "created_at"],
    select(func.min(time_entries.c.date)).where(time_entries.c.user_id == users.c.id).scalar_subquery(),
)
"""The users with the first day of their time; the subquery reads one row of an index for each."""

api = Resource("/reports/utilisation", tag="Reports", scope="reports")


@api.get()
def get_report_utilisation(tx: Tx, query: UtilisationQuery) -> WithMeta[UtilisationReport, common.ReportMeta]:
    """Read the utilisation of each user, by name. Default period: this month."""
    return common.with_meta(tx, read_report(tx, query, common.begin(tx, query, periods.month_begins)))


def read_report(tx: Tx, query: UtilisationQuery, period: Period, *, since_arrival: bool = False) -> UtilisationReport:
    """Return the utilisation of each user; see `read_team` for `since_arrival`."""
    only_user = tx.actor.user_id if query.user_id == ME else query.user_id
    limits = query.only() | ({} if only_user is None else {"user_id": only_user})
    figures = worked(tx, period, limits)
    currency = common.default_currency(tx, query)
    users_figures = by_user(figures)
    groups = groups_of_users(tx, period, limits, query.group_by, currency) if query.group_by else None
    team = read_team(tx, only_user, since_arrival=since_arrival).present(period, users_figures)
    rows = [
        Utilisation(
            user_id=user.id,
            user_name=user.name,
            is_active=user.is_active,
            groups=None if groups is None else groups.get(user.id, []),
            **use(user.minutes, user.target, currency, users_figures.get(user.id, {})),
        )
        for user in team
    ]
    return UtilisationReport(period, rows, [total_of(team, currency, figures)])


class Capacity(NamedTuple):
    """The available minutes of a user in a period, and the target in percent."""

    id: int
    name: str
    is_active: bool
    minutes: int
    target: Decimal


class Member(NamedTuple):
    """A user with the weekly capacity in minutes, the target in percent, and the first day of the capacity, if any."""

    id: int
    name: str
    is_active: bool
    weekly_minutes: int
    target: Decimal
    arrived: str


class Team(NamedTuple):
    """Users by name, and the account's working days of a week."""

    members: list[Member]
    working: frozenset[int]

    def present(self, period: Period, tracking: Container[int]) -> list[Capacity]:
        """Return the capacities of a period: of active users, and of those that are `tracking` time in it."""
        all_days = periods.working_days(period, self.working)
        capacities = []
        for each in self.members:
            has_arrived = each.arrived <= period.to
            if (each.is_active and has_arrived) or each.id in tracking:
                days = all_days
                if each.arrived > period.first:
                    own = msgspec.structs.replace(period, from_=each.arrived)
                    days = periods.working_days(own, self.working) if has_arrived else 0
                minutes = of_days(each.weekly_minutes, days, len(self.working))
                capacities.append(Capacity(each.id, each.name, each.is_active, minutes, each.target))
        return capacities


def read_team(tx: Tx, only_user: int | None = None, *, since_arrival: bool = False) -> Team:
    """Return all users by name, or one.

    With `since_arrival`, capacity begins on the day on which a user was added or first tracked time, the earlier one.
    The reports of the API count it in any period.
    """
    working = periods.working_weekdays(tx)
    arrivals: dict[int, str] = {}
    if since_arrival:
        for user_id, created_at, first_day in tx.all(ARRIVALS):
            added = local_day(created_at, tx.actor.timezone)
            arrivals[user_id] = min(added, first_day or added)
    members = [
        Member(user_id, name, bool(is_active), weekly_minutes, Decimal(target), arrivals.get(user_id, ""))
        for user_id, name, is_active, weekly_minutes, target in tx.all(USERS)
        if only_user in {None, user_id}
    ]
    return Team(sorted(members, key=lambda each: (sort_key(each.name), each.id)), working)


def total_of(team: list[Capacity], currency: str, figures: Sums) -> UtilisationTotal:
    """Return the total of users from their SUMS by user and currency."""
    available = sum(user.minutes for user in team)
    weighted = sum((user.minutes * user.target for user in team), Decimal(0))
    total_sums = common.by_currency((code, sums) for (_, code), sums in figures.items())
    return UtilisationTotal(**use(available, average(weighted, available), currency, total_sums))


def totals_by_month(tx: Tx, period: Period, query: UtilisationQuery) -> dict[str, UtilisationTotal]:
    """Return the total of the days of each month in a period, in order, with capacity since arrival.

    The query is limited by client and currency only.
    """
    sums_by_month: dict[str, Sums] = defaultdict(dict)
    for (month, *key), sums in worked(tx, period, query.only(), ("month", *KEYS)).items():
        sums_by_month[month][tuple(key)] = sums
    team, currency, totals = read_team(tx, since_arrival=True), common.default_currency(tx, query), {}
    for month in periods.months(period):
        figures = sums_by_month[month]
        present = team.present(periods.month_of(month, period), {user_id for user_id, _ in figures})
        totals[month] = total_of(present, currency, figures)
    return totals


def by_user(figures: Sums) -> dict[int, dict[str, Figures]]:
    grouped: dict[int, dict[str, Figures]] = defaultdict(dict)
    for (user_id, currency), sums in figures.items():
        grouped[user_id][currency] = sums
    return grouped


def use(available: int, target: Decimal | None, currency: str, figures: dict[str, Figures]) -> dict[str, Any]:
    """Return the fields of UtilisationTotal from the SUMS in each currency."""
    row = shares(currency, figures)
    return row | {
        "available_minutes": available,
        "utilisation_percent": ratio(row["tracked_minutes"], available),
        "billable_utilisation_percent": ratio(row["billable_minutes"], available),
        "target_percent": target,
    }
