"""Utilisation: how much of the available time is tracked, and how much of it is billable.

`available_minutes` is the weekly capacity, spread evenly over the account's working days in the period.
`utilisation_percent` is tracked of available time, `billable_utilisation_percent` billable of available time, and
`billable_share_percent` billable of tracked time. `billable_value` is the value of the billable time in `currency`: the
requested currency, or the account's. `other_currencies` has the values in other currencies.
"""

from collections import defaultdict
from collections.abc import Container
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, NamedTuple

import msgspec
from sqlalchemy import Select, Text, bindparam, case, cast, func, select

from retainer import schema
from retainer.kernel.resource import Resource, WithMeta
from retainer.reports import periods
from retainer.reports.common import (
    AvailableMinutes,
    BillableMinutes,
    BillableUtilisationPercent,
    ReportMeta,
    ReportQuery,
    RowCurrency,
    TrackedMinutes,
    UtilisationPercent,
    begin,
    by_currency,
    default_currency,
    total,
    with_meta,
)
from retainer.reports.periods import Period
from retainer.reports.ratios import Ratio, average, of_days, ratio
from retainer.rollups import summaries
from retainer.rollups.buckets import MONTH
from retainer.rollups.summaries import Figures, Sums
from retainer.schema.expressions import is_unpriced
from retainer.schema.identity import users
from retainer.schema.work import time_entries
from retainer.store.tx import Tx
from retainer.values.collation import sort_key
from retainer.values.exact import amount_of
from retainer.values.kinds import ME, Currency, Id, Money, Percent, UserId

KEYS = ("user_id", "currency")
SUMS = ("tracked_minutes", "billable_minutes", "billable_value", "billed_value", "unpriced_minutes")


class UtilisationQuery(ReportQuery):
    """The time to report on."""

    project_id: Annotated[Id | None, "Only time on this project."] = None
    user_id: Annotated[UserId | None, "Only this user; `me` is the key's user."] = None


class OtherCurrency(msgspec.Struct):
    """The value of billable time in a currency."""

    currency: Annotated[Currency, "A currency other than that of the row."]
    billable_value: Annotated[Money, "Value of the billable time in this currency, billed or not, before tax."]


SharePercent = Annotated[Ratio, "`billable_minutes` in percent of `tracked_minutes`; null if that is 0."]
BillableValue = Annotated[Money, "Value of the billable time in `currency`, billed or not, before tax."]
OtherCurrencies = Annotated[list[OtherCurrency], "Value of billable time in other currencies, one entry for each."]


class UtilisationTotal(msgspec.Struct):
    """Available, tracked and billable minutes, and their ratios."""

    available_minutes: AvailableMinutes
    tracked_minutes: TrackedMinutes
    billable_minutes: BillableMinutes
    utilisation_percent: UtilisationPercent
    billable_utilisation_percent: BillableUtilisationPercent
    billable_share_percent: SharePercent
    target_percent: Annotated[
        Percent | None, "The users' targets, weighted by their available minutes; null if no minutes are available."
    ]
    currency: RowCurrency
    billable_value: BillableValue
    other_currencies: OtherCurrencies


class Utilisation(msgspec.Struct):
    """The utilisation of a user; if a currency is requested, only of time in it."""

    user_id: Annotated[int, "The user whose utilisation it is."]
    user_name: Annotated[str, "Current name of the user."]
    is_active: Annotated[bool, "False for deactivated users. They are listed if they have time in the period."]
    available_minutes: AvailableMinutes
    tracked_minutes: TrackedMinutes
    billable_minutes: BillableMinutes
    utilisation_percent: UtilisationPercent
    billable_utilisation_percent: BillableUtilisationPercent
    billable_share_percent: SharePercent
    target_percent: Annotated[Percent | None, "Target for the billable share of the available time."]
    currency: RowCurrency
    billable_value: BillableValue
    other_currencies: OtherCurrencies


class UtilisationReport(msgspec.Struct):
    """Utilisation by user."""

    period: Annotated[Period, "The days of the report."]
    rows: Annotated[list[Utilisation], "One for each user, by name; not paginated."]
    totals: Annotated[list[UtilisationTotal], "One, for all listed users."]


USERS = select(*users.c["id", "name", "is_active", "weekly_capacity_minutes", "target_percent"])

api = Resource("/reports/utilisation", tag="Reports", scope="reports")


@api.get()
def get_report_utilisation(tx: Tx, query: UtilisationQuery) -> WithMeta[UtilisationReport, ReportMeta]:
    """Read the utilisation of each user, by name. Default period: this month."""
    period = begin(tx, query, periods.month_begins)
    only_user = tx.actor.user_id if query.user_id == ME else query.user_id
    figures = worked(tx, period, query.only() | ({} if only_user is None else {"user_id": only_user}))
    currency = default_currency(tx, query)
    users_figures = by_user(figures)
    team = read_team(tx, only_user).present(period, users_figures)
    rows = [
        Utilisation(
            user_id=user.id,
            user_name=user.name,
            is_active=user.is_active,
            **use(user.minutes, user.target, currency, users_figures.get(user.id, {})),
        )
        for user in team
    ]
    return with_meta(tx, UtilisationReport(period, rows, [total_of(team, currency, figures)]))


class Capacity(NamedTuple):
    """The available minutes of a user in a period, and the target in percent."""

    id: int
    name: str
    is_active: bool
    minutes: int
    target: Decimal


class Member(NamedTuple):
    """A user with the weekly capacity in minutes, and the target in percent."""

    id: int
    name: str
    is_active: bool
    weekly_minutes: int
    target: Decimal


class Team(NamedTuple):
    """Users by name, and the account's working days of a week."""

    members: list[Member]
    working: frozenset[int]

    def present(self, period: Period, tracking: Container[int]) -> list[Capacity]:
        """Return the capacities of a period: of active users, and of those that are `tracking` time in it."""
        days, per_week = periods.working_days(period, self.working), len(self.working)
        return [
            Capacity(each.id, each.name, each.is_active, of_days(each.weekly_minutes, days, per_week), each.target)
            for each in self.members
            if each.is_active or each.id in tracking
        ]


def read_team(tx: Tx, only_user: int | None = None) -> Team:
    """Return all users by name, or one."""
    working = periods.working_weekdays(tx)
    members = [
        Member(user_id, name, bool(is_active), weekly_minutes, Decimal(target))
        for user_id, name, is_active, weekly_minutes, target in tx.all(USERS)
        if only_user in {None, user_id}
    ]
    return Team(sorted(members, key=lambda each: (sort_key(each.name), each.id)), working)


def total_of(team: list[Capacity], currency: str, figures: Sums) -> UtilisationTotal:
    """Return the total of users from their SUMS by user and currency."""
    available = sum(user.minutes for user in team)
    weighted = sum((user.minutes * user.target for user in team), Decimal(0))
    total_sums = by_currency((code, sums) for (_, code), sums in figures.items())
    return UtilisationTotal(**use(available, average(weighted, available), currency, total_sums))


def totals_by_month(tx: Tx, period: Period, query: UtilisationQuery) -> dict[str, UtilisationTotal]:
    """Return the total of the days of each month in a period: that of the report about these days, in order.

    The query is limited by client and currency only.
    """
    sums_by_month: dict[str, Sums] = defaultdict(dict)
    for (month, *key), sums in worked(tx, period, query.only(), ("month", *KEYS)).items():
        sums_by_month[month][tuple(key)] = sums
    team, currency, totals = read_team(tx), default_currency(tx, query), {}
    for month in periods.months(period):
        figures = sums_by_month[month]
        present = team.present(periods.month_of(month, period), {user_id for user_id, _ in figures})
        totals[month] = total_of(present, currency, figures)
    return totals


def worked(tx: Tx, period: Period, limits: dict[str, Any], by: tuple[str, ...] = KEYS) -> Sums:
    """Return SUMS of the time entries of a period by KEYS, or by month and KEYS.

    With a client or a project in the limits, it sums time entries, because no summary has both keys.
    """
    if "client_id" in limits or "project_id" in limits:
        rows = tx.all(_worked(tuple(limits), by), **limits, first=period.first, last=period.to)
        return {tuple(row[: len(by)]): Figures(zip(SUMS, row[len(by) :], strict=True)) for row in rows}
    return summaries.read(tx, schema.rollups.user_sums, period.days, by, SUMS, **limits)


def by_user(figures: Sums) -> dict[int, dict[str, Figures]]:
    """Group sums by user, those of each user by currency."""
    grouped: dict[int, dict[str, Figures]] = defaultdict(dict)
    for (user_id, currency), sums in figures.items():
        grouped[user_id][currency] = sums
    return grouped


@cache
def _worked(limits: tuple[str, ...], by: tuple[str, ...]) -> Select[Any]:
    entry = time_entries.c
    sums: dict[str, Any] = {
        "tracked_minutes": func.sum(entry.duration_minutes),
        "billable_minutes": func.sum(case((entry.billable, entry.duration_minutes), else_=0)),
        "billable_value": func.coalesce(func.sum(entry.amount), 0),
        "billed_value": func.sum(case((entry.invoice_line_id.is_not(None), entry.amount), else_=0)),
        "unpriced_minutes": func.sum(case((is_unpriced(time_entries), entry.duration_minutes), else_=0)),
    }
    conditions = [entry[name] == bindparam(name) for name in limits]
    in_period = entry.date.between(bindparam("first"), bindparam("last"))
    keys = [
        func.substr(cast(entry.date, Text), 1, MONTH).label(name) if name == "month" else entry[name] for name in by
    ]
    return select(*keys, *(sums[name] for name in SUMS)).where(in_period, *conditions).group_by(*keys)


def use(available: int, target: Decimal | None, currency: str, figures: dict[str, Figures]) -> dict[str, Any]:
    """Return the fields of UtilisationTotal from the SUMS in each currency."""
    sums = total(figures.values())
    tracked, billable = sums["tracked_minutes"], sums["billable_minutes"]
    values = {code: amount_of(each["billable_value"], code) for code, each in sorted(figures.items())}
    return {
        "available_minutes": available,
        "tracked_minutes": tracked,
        "billable_minutes": billable,
        "utilisation_percent": ratio(tracked, available),
        "billable_utilisation_percent": ratio(billable, available),
        "billable_share_percent": ratio(billable, tracked),
        "target_percent": target,
        "currency": currency,
        "billable_value": values.get(currency, amount_of(0, currency)),
        "other_currencies": [
            OtherCurrency(code, value) for code, value in values.items() if value and code != currency
        ],
    }
