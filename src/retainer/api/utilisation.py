"""Utilisation: how much of what users can work is tracked, and how much of it is billable.

`available_minutes` is the weekly capacity, spread evenly over the account's working days, for those of the period.
`utilisation_percent` is tracked of available, `billable_utilisation_percent` billable of available,
`billable_share_percent` billable of tracked time. `billable_value` is what the billable time is worth in `currency`,
which is the one that is asked for or the account's; time in other currencies stands in `other_currencies`.
"""

from collections import defaultdict
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Select, bindparam, case, func, select

from retainer.api.reports import Generated, ReportQuery, begin, by_currency, told, usual
from retainer.api.time_entries import time_entries
from retainer.collation import sort_key
from retainer.domain import periods, sources, summaries
from retainer.domain.periods import Period
from retainer.domain.ratios import average, of_days, ratio
from retainer.domain.summaries import Sums
from retainer.domain.users import users
from retainer.domain.values import ME, Currency, Id, Money, Percent, UserId
from retainer.exact import amount_of
from retainer.kernel.resource import Resource, Told
from retainer.store.tx import Tx

SUMS = ("tracked_minutes", "billable_minutes", "billable_value", "billed_value")


class UtilisationQuery(ReportQuery):
    """Which time, and whose."""

    project_id: Id | None = None
    user_id: UserId | None = None


class Value(msgspec.Struct):
    """What time is worth in a currency."""

    currency: Currency
    billable_value: Money


class UtilisationTotal(msgspec.Struct):
    """Available, tracked and billable minutes, and their ratios."""

    available_minutes: int
    tracked_minutes: int
    billable_minutes: int
    utilisation_percent: float | None
    billable_utilisation_percent: float | None
    billable_share_percent: float | None
    target_percent: Percent | None
    currency: Currency
    billable_value: Money
    other_currencies: list[Value]


class Utilisation(msgspec.Struct):
    """How much of a user's time was tracked; of time in a currency, when one is asked for."""

    user_id: int
    user_name: str
    is_active: bool
    available_minutes: int
    tracked_minutes: int
    billable_minutes: int
    utilisation_percent: float | None
    billable_utilisation_percent: float | None
    billable_share_percent: float | None
    target_percent: Percent | None
    currency: Currency
    billable_value: Money
    other_currencies: list[Value]


class UtilisationReport(msgspec.Struct):
    """How much of users' capacity was used."""

    period: Period
    rows: list[Utilisation]
    totals: list[UtilisationTotal]


USERS = select(*users.c["id", "name", "is_active", "weekly_capacity_minutes", "target_percent"])

api = Resource("/reports/utilisation", tag="Reports", scope="reports")


@api.get()
def get_report_utilisation(tx: Tx, asked: UtilisationQuery) -> Told[UtilisationReport, Generated]:
    """Read how much of each user's capacity was used, by name; of this month, unless days are given."""
    period = begin(tx, asked, periods.month_begins)
    user = tx.actor.user_id if asked.user_id == ME else asked.user_id
    found = worked(tx, period, asked.only() | ({} if user is None else {"user_id": user}))
    currency = usual(tx, asked)
    of_user = by_user(found)
    rows, weight, available = [], Decimal(0), 0
    for own, name, is_active, room, its_target in capacities(tx, period, user):
        if is_active or own in of_user:
            rows.append(Utilisation(own, name, is_active, *use(room, its_target, currency, of_user.get(own, {}))))
            weight, available = weight + room * its_target, available + room
    sums = by_currency((its_currency, its) for (_, its_currency), its in found.items())
    total = UtilisationTotal(*use(available, average(weight, available), currency, sums))
    return told(tx, UtilisationReport(period, rows, [total]))


def capacities(tx: Tx, period: Period, user: int | None) -> list[tuple[int, str, bool, int, Decimal]]:
    """The users by name, or one of them, with the minutes that each is available in a period, and the target."""
    days, of_week = periods.working_days(tx, period)
    by_name = sorted(tx.all(USERS), key=lambda user: (sort_key(user[1]), user[0]))
    return [
        (own, name, bool(is_active), of_days(weekly, days, of_week), Decimal(target))
        for own, name, is_active, weekly, target in by_name
        if user in {None, own}
    ]


def worked(tx: Tx, period: Period, limits: dict[str, Any]) -> Sums:
    """SUMS of the time entries of a period, by user and currency.

    Those of a client or a project are added up from their own entries.
    """
    if "client_id" in limits or "project_id" in limits:
        rows = tx.all(_worked(tuple(limits)), **limits, first=period.first, last=period.to)
        return {(user, currency): list(sums) for user, currency, *sums in rows}
    return summaries.read(tx, sources.user_sums, period, ("user_id", "currency"), SUMS, **limits)


def by_user(found: Sums) -> dict[int, dict[str, list[int]]]:
    """The sums of each user, by currency."""
    of_user: dict[int, dict[str, list[int]]] = defaultdict(dict)
    for (user, currency), sums in found.items():
        of_user[user][currency] = sums
    return of_user


@cache
def _worked(limits: tuple[str, ...]) -> Select[Any]:
    its = time_entries.c
    sums: tuple[Any, ...] = (
        func.sum(its.duration_minutes),
        func.sum(case((its.billable, its.duration_minutes), else_=0)),
        func.sum(its.amount),
        func.sum(case((its.invoice_line_id.is_not(None), its.amount), else_=0)),
    )
    only = [its[name] == bindparam(name) for name in limits]
    within = its.date.between(bindparam("first"), bindparam("last"))
    return select(its.user_id, its.currency, *sums).where(within, *only).group_by(its.user_id, its.currency)


def use(available: int, target: Decimal | None, currency: str, its: dict[str, list[int]]) -> tuple[Any, ...]:
    """The members of UtilisationTotal."""
    tracked, billable = (sum(sums[place] for sums in its.values()) for place in (0, 1))
    value = {name: amount_of(sums[2], name) for name, sums in sorted(its.items())}
    others = [Value(name, amount) for name, amount in value.items() if name != currency]
    ratios = (ratio(tracked, available), ratio(billable, available), ratio(billable, tracked))
    own = value.get(currency, amount_of(0, currency))
    return available, tracked, billable, *ratios, target, currency, own, others
