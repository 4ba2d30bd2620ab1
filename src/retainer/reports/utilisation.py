"""Utilisation: how much of the available time is tracked, and how much of it is billable.

`available_minutes` is the weekly capacity, spread evenly over the account's working days in the period.
`utilisation_percent` is tracked of available time, `billable_utilisation_percent` billable of available time, and
`billable_share_percent` billable of tracked time. `billable_value` is the value of the billable time in `currency`: the
requested currency, or the account's. The minutes are those of all currencies, unless one is requested:
`other_currencies` has the minutes and the values in others.
"""

import json
from collections import defaultdict
from collections.abc import Container, Mapping
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta
from sqlalchemy import Select, Table, bindparam, case, func, select

from retainer import schema
from retainer.errors import invalid
from retainer.kernel.answers import WithMeta
from retainer.kernel.resource import Resource
from retainer.reports import common
from retainer.reports.common import Period, Ratio, ratio
from retainer.rollups import summaries
from retainer.rollups.sources import TIME, VALUE
from retainer.rollups.summaries import Figures, Sums
from retainer.schema.crm import clients
from retainer.schema.expressions import is_billed
from retainer.schema.identity import users
from retainer.schema.work import tasks, time_entries
from retainer.store.engines.sql import INTEGER, is_listed
from retainer.store.tx import Tx
from retainer.values.collation import sort_key
from retainer.values.exact import amount_of, decimal_text, half_up, local_day
from retainer.values.kinds import ME, Currency, Id, Money, Percent, UserId

KEYS = ("user_id", "currency")
SUMS = ("tracked_minutes", "billable_minutes", "billable_value", "billed_value", "unpriced_minutes")
WORKED = TIME.rows.with_only_columns(
    *(column for column in TIME.rows.selected_columns if column.key != "billed_value"),
    case((is_billed(time_entries), VALUE), else_=0).label("billed_value"),
)
MAX_GROUPS = 10_000
GroupBy = Annotated[Literal["client", "task", "day"], Meta(title="UtilisationGrouping")]
GROUP_COLUMNS: dict[GroupBy, str] = {"client": "client_id", "task": "task_id", "day": "day"}


class UtilisationQuery(common.ReportQuery):
    """The time to report on."""

    project_id: Annotated[Id | None, "Only time on this project."] = None
    user_id: Annotated[UserId | None, "Only this user; `me` is the key's user."] = None
    group_by: Annotated[GroupBy | None, "Divide the time of each user by this."] = None


class OtherCurrency(msgspec.Struct):
    """Time in another currency: the minutes of the row include it, and its `billable_value` does not."""

    currency: Annotated[Currency, "A currency other than that of the row."]
    billable_value: Annotated[Money, "Value of the billable time in this currency, billed or not, before tax."]
    tracked_minutes: common.TrackedMinutes
    billable_minutes: common.BillableMinutes


SharePercent = Annotated[Ratio, "`billable_minutes` in percent of `tracked_minutes`; null if that is 0."]
BillableValue = Annotated[Money, "Value of the billable time in `currency`, billed or not, before tax."]
OtherCurrencies = Annotated[
    list[OtherCurrency], "The part of the time that is in other currencies, one entry for each."
]


class UtilisationGroup(msgspec.Struct):
    """A part of the time of a user."""

    id: Annotated[Id | None, "The client or the task. Null for days, and for time without a client or a task."]
    name: Annotated[str | None, "Current name of the client, title of the task, or the day. Null if there is none."]
    tracked_minutes: common.TrackedMinutes
    billable_minutes: common.BillableMinutes
    billable_share_percent: SharePercent
    currency: common.RowCurrency
    billable_value: BillableValue
    other_currencies: OtherCurrencies


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


def _select_names(table: Table, name: str) -> Select[tuple[int, str]]:
    return select(table.c.id, table.c[name]).where(is_listed(table.c.id, "ids"))


NAMES = {"client": _select_names(clients, "name"), "task": _select_names(tasks, "title")}

api = Resource("/reports/utilisation", tag="Reports", scope="reports")


@api.get()
def get_report_utilisation(tx: Tx, query: UtilisationQuery) -> WithMeta[UtilisationReport, common.ReportMeta]:
    """Read the utilisation of each user, by name. Default period: this month."""
    return WithMeta(read_report(tx, query, common.begin(tx, query, common.month_begins)), common.ReportMeta(tx.now))


def read_report(tx: Tx, query: UtilisationQuery, period: Period, *, since_arrival: bool = False) -> UtilisationReport:
    only_user = tx.actor.user_id if query.user_id == ME else query.user_id
    limits = query.only() | ({} if only_user is None else {"user_id": only_user})
    figures = worked(tx, period, limits)
    currency = query.currency or tx.actor.currency
    users_figures: dict[int, dict[str, Figures]] = defaultdict(dict)
    for (user_id, code), sums in figures.items():
        users_figures[user_id][code] = sums
    groups = read_groups(tx, period, limits, query.group_by, currency) if query.group_by else None
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


@cache
def _select_groups(limits: tuple[str, ...], by: tuple[str, ...]) -> Select[int]:
    return common.sums_of(WORKED, by, SUMS, limits).limit(bindparam("limit", type_=INTEGER))


def read_groups(
    tx: Tx, period: Period, limits: Mapping[str, object], group_by: GroupBy, currency: str
) -> dict[int, list[UtilisationGroup]]:
    """Return the groups of each user: days in order, others by minutes. Raises `validation_failed` for too many."""
    bounds = {"first": period.first, "last": period.to, "limit": MAX_GROUPS + 1}
    rows = tx.all(_select_groups(tuple(limits), (*KEYS, GROUP_COLUMNS[group_by])), **limits, **bounds)
    if len(rows) > MAX_GROUPS:
        message = f"Gives more than {MAX_GROUPS} groups. Shorten the period, or limit the report to a client or a user."
        raise invalid({"group_by": [message]})
    figures: dict[int, dict[Any, dict[str, Figures]]] = defaultdict(lambda: defaultdict(dict))
    for user_id, code, key, *sums in rows:
        figures[user_id][key][code] = Figures(zip(SUMS, sums, strict=True))
    names: dict[int, str] = {}
    if group_by != "day":
        ids = sorted({key for keys in figures.values() for key in keys if key is not None})
        names = dict(tx.all(NAMES[group_by], ids=json.dumps(ids)))
    groups: dict[int, list[UtilisationGroup]] = {}
    for user_id, keys in figures.items():
        if group_by == "day":
            groups[user_id] = [UtilisationGroup(None, day, **shares(currency, keys[day])) for day in sorted(keys)]
        else:
            found = [UtilisationGroup(key, names.get(key), **shares(currency, each)) for key, each in keys.items()]
            groups[user_id] = sorted(found, key=lambda group: (-group.tracked_minutes, group.id or 0))
    return groups


class Capacity(NamedTuple):
    """The available minutes of a user in a week or a period, the target in percent, and the day of arrival, if any."""

    id: int
    name: str
    is_active: bool
    minutes: int
    target: Decimal
    arrived: str


class Team(NamedTuple):
    """The users by name, with the capacity of a week, and the account's working days of a week."""

    members: list[Capacity]
    working: frozenset[int]

    def present(self, period: Period, tracking: Container[int]) -> list[Capacity]:
        """Return the capacities of a period: of active users, and of those that are `tracking` time in it."""
        found = []
        for each in self.members:
            has_arrived = each.arrived <= period.to
            if (each.is_active and has_arrived) or each.id in tracking:
                own = msgspec.structs.replace(period, from_=max(each.arrived, period.first))
                days = common.working_days(own, self.working) if has_arrived else 0
                minutes = half_up(each.minutes * days, len(self.working)) if self.working else 0
                found.append(each._replace(minutes=minutes))
        return found


def read_team(tx: Tx, only_user: int | None = None, *, since_arrival: bool = False) -> Team:
    """Return all users by name, or one.

    With `since_arrival`, capacity begins on the day on which a user was added or first tracked time, the earlier one.
    The reports of the API count it in any period.
    """
    working = common.working_weekdays(tx)
    arrivals: dict[int, str] = {}
    if since_arrival:
        for user_id, created_at, first_day in tx.all(ARRIVALS):
            added = local_day(created_at, tx.actor.timezone)
            arrivals[user_id] = min(added, first_day or added)
    members = [
        Capacity(user_id, name, bool(is_active), weekly_minutes, Decimal(target), arrivals.get(user_id, ""))
        for user_id, name, is_active, weekly_minutes, target in tx.all(USERS)
        if only_user in {None, user_id}
    ]
    return Team(sorted(members, key=lambda each: (sort_key(each.name), each.id)), working)


def total_of(team: list[Capacity], currency: str, figures: Sums) -> UtilisationTotal:
    available = sum(user.minutes for user in team)
    weighted = sum((user.minutes * user.target for user in team), Decimal(0))
    thousandths = half_up(int(weighted * 1000), available) if available else None
    target = None if thousandths is None else Decimal(decimal_text(Decimal(thousandths).scaleb(-3)))
    return UtilisationTotal(**use(available, target, currency, common.by_currency(figures)))


def totals_by_month(tx: Tx, period: Period, query: UtilisationQuery) -> dict[str, UtilisationTotal]:
    """Return the total of each month, with capacity since arrival; the query has only a client or a currency."""
    sums_by_month: dict[str, Sums] = defaultdict(dict)
    for (month, *key), sums in worked(tx, period, query.only(), ("month", *KEYS)).items():
        sums_by_month[month][tuple(key)] = sums
    team, currency, totals = read_team(tx, since_arrival=True), query.currency or tx.actor.currency, {}
    for month in common.months(period):
        figures = sums_by_month[month]
        present = team.present(common.month_of(month, period), {user_id for user_id, _ in figures})
        totals[month] = total_of(present, currency, figures)
    return totals


def worked(tx: Tx, period: Period, limits: dict[str, Any], by: tuple[str, ...] = KEYS) -> Sums:
    """Return SUMS by KEYS and perhaps month, from a summary; none has both keys if a client or a project is a limit."""
    if "client_id" in limits or "project_id" in limits:
        return common.read_sums(tx, WORKED, period, by, SUMS, limits)
    return summaries.read(tx, schema.rollups.user_sums, period.days, by, SUMS, **limits)


def shares(currency: str, figures: dict[str, Figures]) -> dict[str, Any]:
    """Return the minutes and values of a row, and their share, from the SUMS in each currency."""
    sums = common.total(figures.values())
    values = {code: amount_of(each["billable_value"], code) for code, each in sorted(figures.items())}
    return {
        "tracked_minutes": sums["tracked_minutes"],
        "billable_minutes": sums["billable_minutes"],
        "billable_share_percent": ratio(sums["billable_minutes"], sums["tracked_minutes"]),
        "currency": currency,
        "billable_value": values.get(currency, amount_of(0, currency)),
        "other_currencies": [
            OtherCurrency(code, values[code], each["tracked_minutes"], each["billable_minutes"])
            for code, each in sorted(figures.items())
            if code != currency and each["tracked_minutes"]
        ],
    }


def use(available: int, target: Decimal | None, currency: str, figures: dict[str, Figures]) -> dict[str, Any]:
    row = shares(currency, figures)
    return row | {
        "available_minutes": available,
        "utilisation_percent": ratio(row["tracked_minutes"], available),
        "billable_utilisation_percent": ratio(row["billable_minutes"], available),
        "target_percent": target,
    }
