"""Readers of the API's reports: the fields of each subject and of the total, in one currency."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from msgspec.structs import asdict, replace

from retainer.console.reports.controls import Controls
from retainer.console.reports.figures import FIGURES, SECTIONS
from retainer.console.words import hours
from retainer.reports import overview, periods, profitability, revenue, utilisation
from retainer.reports.common import ReportQuery
from retainer.reports.periods import Period
from retainer.store.tx import Tx
from retainer.values.exact import amount_of

Fields = Mapping[str, Any]
BALANCES = ("outstanding", "overdue", "refund_due")
"""Figures of the end of a period: their lists have those of today."""
UNBILLED = ("unbilled_time", "unbilled_expenses")
"""What is still unbilled of a year before was nearly all billed since, so it is no figure of that time."""
LOWEST_MARGIN = -100
"""Percent. A margin below it says only that there was hardly any revenue."""
CHARTED = {"net": ("revenue", "expenses"), "gross": ("collected", "outstanding", "overdue")}
"""The figures of the overview with bars: net and gross amounts never share an axis."""


class Figures(NamedTuple):
    """What a report says about a period in one currency: the fields of its subjects by table and key, and the total.

    A subject has a `label`, perhaps a `note`, and a `format` if its `figure` has its own.
    """

    rows: Mapping[str, Mapping[object, Fields]]
    total: Fields
    currencies: Sequence[str]
    """All currencies with figures in the period."""
    notes: Sequence[str] = ()


def in_currency(rows: Iterable[Any], currency: str, key: str, label: str = "") -> dict[object, Fields]:
    found = [asdict(row) for row in rows if row.currency == currency]
    return {fields[key]: {**fields, "label": fields.get(label)} for fields in found}


def total_of(totals: Iterable[Any], currency: str) -> dict[str, Any]:
    return {**in_currency(totals, currency, "currency").get(currency, {}), "label": "Total"}


def month_label(month: str) -> str:
    return f"{date.fromisoformat(f'{month}-01'):%b %Y}"


def read_overview(tx: Tx, controls: Controls, period: Period) -> Figures:
    report = overview.read_overview(tx, controls.ask(ReportQuery, period), period, since_arrival=True)
    total = total_of(report.money, controls.currency) | asdict(report.time)
    for part in ("clients", "projects", "tasks", "quotes", "tickets", "sites"):
        total |= {f"{part}.{name}": value for name, value in asdict(getattr(report, part)).items()}
    if period == controls.before:
        total |= dict.fromkeys(UNBILLED)
    rows: dict[str, dict[object, Fields]] = {}
    for title, names in {**SECTIONS, **CHARTED}.items():
        for name in names:
            shown, zero = FIGURES[name], amount_of(0, controls.currency)
            link = "" if name in BALANCES and controls.period.to < tx.today else shown.link
            fields = {"label": shown.title, "figure": total.get(name, zero), "format": shown.format, "link": link}
            rows.setdefault(title, {})[name] = fields
    return Figures(rows, total, [each.currency for each in report.money])


def read_months(tx: Tx, controls: Controls, period: Period) -> Figures:
    """Return the months of a period, with what was outstanding at the end of each; months match by their position."""
    query, currency = controls.ask(ReportQuery, period), controls.currency
    report = revenue.get_report_revenue_by_month(tx, query).data
    found, rows = in_currency(report.rows, currency, "month"), dict[object, Fields]()
    balances = revenue.balances_by_month(tx, period, replace(query, currency=currency))
    for position, (month, balance) in enumerate(balances.items()):
        days, outstanding = periods.month_of(month, period), amount_of(balance, currency)
        own = {"label": month_label(month), "first": days.first, "to": days.to, "outstanding": outstanding}
        rows[position] = {**found.get(month, {}), **own}
    total = total_of(report.totals, currency) | {"outstanding": None, "outstanding_at_end": outstanding}
    return Figures({"Month": rows}, total, [each.currency for each in report.totals])


def read_clients(tx: Tx, controls: Controls, period: Period) -> Figures:
    report = revenue.get_report_revenue_by_client(tx, controls.ask(ReportQuery, period)).data
    rows = in_currency(report.rows, controls.currency, "client_id", "client_name")
    total = total_of(report.totals, controls.currency)
    total["clients"] = sum(row["revenue"] > 0 for row in rows.values())
    total["largest_share"] = next((row["share_percent"] for row in rows.values()), None)
    return Figures({"Client": rows}, total, [each.currency for each in report.totals])


def read_people(tx: Tx, controls: Controls, period: Period) -> Figures:
    """Return people and months; capacity counts since somebody was added or first tracked time."""
    query = controls.ask(utilisation.UtilisationQuery, period)
    report = utilisation.read_report(tx, query, period, since_arrival=True)
    people: dict[object, Fields] = {row.user_id: {**asdict(row), "label": row.user_name} for row in report.rows}
    totals = enumerate(utilisation.totals_by_month(tx, period, query).items())
    months: dict[object, Fields] = {
        position: {**asdict(total), "label": month_label(month)} for position, (month, total) in totals
    }
    (total,) = report.totals
    rows = {"Person": people, "Month": months}
    return Figures(rows, {**asdict(total), "label": "Total"}, [each.currency for each in total.other_currencies])


def read_projects(tx: Tx, controls: Controls, period: Period) -> Figures:
    query = controls.ask(profitability.ProfitabilityQuery, period)
    report = profitability.get_report_project_profitability(tx, query).data
    found = in_currency(report.rows, controls.currency, "project_id", "project_name")
    total = with_cost(total_of(report.totals, controls.currency))
    notes = [] if total["cost"] is not None else ["Labour cost is known only in the account's currency."]
    if minutes := total.get("missing_cost_rate_minutes"):
        notes.append(f"{hours(minutes)} hours have no cost rate, so profit is too high by their cost.")
    if minutes := total.get("unpriced_minutes"):
        notes.append(f"{hours(minutes)} billable hours have no rate, so they are in no amount.")
    rows = {key: with_cost(row) for key, row in found.items()}
    return Figures({"Project": rows}, total, [each.currency for each in report.totals], notes)


def with_cost(row: Fields) -> dict[str, Any]:
    """Return a row with its cost, None if the labour cost is unknown, and without a margin that says nothing."""
    labour, margin = row.get("labour_cost", 0), row.get("margin_percent")
    return {
        **row,
        "label": row["label"] or "Without a project",
        "note": row.get("client_name"),
        "cost": None if labour is None else labour + row.get("expense_cost", 0),
        "margin_percent": None if margin is None or margin < LOWEST_MARGIN else margin,
    }
