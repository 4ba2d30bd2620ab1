"""The figures of the business reports: titles, formats and lists of each, and how the reports of the API are read."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from msgspec.structs import asdict, replace

from retainer.billing import to_bill
from retainer.console.reports.controls import Controls
from retainer.console.values import Fact, Value
from retainer.console.words import MINUS, hours, number, percent
from retainer.reports import common, overview, profitability, revenue, tax, utilisation
from retainer.reports.common import Period, ReportQuery
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, half_up

Fields = Mapping[str, Any]
BALANCES = ("outstanding", "overdue", "refund_due")
"""Figures of the end of a period: their lists have those of today."""
LOWEST_MARGIN = -100
"""Percent. A margin below it says only that there was hardly any revenue."""
CHARTED = {"net": ("revenue", "expenses"), "gross": ("collected", "outstanding", "overdue")}
"""The figures of the overview with bars: net and gross amounts never share an axis."""
Format = Literal["text", "money", "minutes", "percent", "count"]
DASH = "\u2013"
"""What stands for a figure that does not exist; a sum of nothing is 0."""
MAX_GROWTH = 10
"""Growth above this is not given in percent."""
DAYS = "date_from={first}&date_to={to}"
DAYS_ISSUED = "issue_date_from={first}&issue_date_to={to}"
IN_CURRENCY = "&currency={currency}"
INVOICES = f"invoices?status=sent,partially_paid,paid,written_off&{DAYS_ISSUED}{IN_CURRENCY}"
UNBILLED = f"?billing_status=unbilled&date_to={{to}}{IN_CURRENCY}"


class Figure(NamedTuple):
    """A figure of a report; `link` is the list that it counts, with the controls of the report in braces."""

    title: str
    format: Format
    link: str = ""


SECTIONS = {
    "Money before tax": {
        "invoiced": Figure("Invoiced", "money", INVOICES),
        "credited": Figure("Credited", "money", f"credit-notes?{DAYS_ISSUED}"),
        "discounts": Figure("Early-payment discounts, part of credited", "money"),
        "revenue": Figure("Revenue", "money"),
        "expenses": Figure("Expenses", "money", f"expenses?{DAYS}{IN_CURRENCY}"),
        "to_bill": Figure("To bill", "money"),
        "unbilled_time": Figure("Unbilled time", "money", f"time-entries{UNBILLED}"),
        "unbilled_expenses": Figure("Unbilled expenses", "money", f"expenses{UNBILLED}"),
        "unbilled_milestones": Figure("Completed milestones to bill", "money"),
        "unbilled_fees": Figure("Monthly fees to bill", "money"),
        "unbilled_fixed_fees": Figure("Fixed fees to bill", "money"),
    },
    "Money including tax": {
        "tax": Figure("Tax", "money"),
        "collected": Figure(
            "Collected", "money", f"payments?paid_date_from={{first}}&paid_date_to={{to}}{IN_CURRENCY}"
        ),
        "outstanding": Figure("Outstanding", "money", f"invoices?status=open{IN_CURRENCY}"),
        "overdue": Figure("Overdue", "money", f"invoices?status=overdue{IN_CURRENCY}"),
        "refund_due": Figure("To refund", "money", f"invoices?has_refund_due=true{IN_CURRENCY}"),
        "written_off": Figure("Written off", "money"),
    },
    "Time": {
        "tracked_minutes": Figure("Tracked time", "minutes", f"time-entries?{DAYS}"),
        "billable_minutes": Figure("Billable time", "minutes", f"time-entries?billable=true&{DAYS}"),
        "available_minutes": Figure("Available time", "minutes"),
        "utilisation_percent": Figure("Utilisation", "percent"),
        "billable_utilisation_percent": Figure("Billable utilisation", "percent"),
        "unpriced_minutes": Figure("Time without a rate", "minutes", f"time-entries?billing_status=unpriced&{DAYS}"),
    },
    "Work and sales": {
        "clients.new": Figure("New clients", "count"),
        "tasks.completed": Figure("Tasks completed", "count"),
        "quotes.sent": Figure("Quotes sent", "count"),
        "quotes.accepted": Figure("Quotes accepted", "count"),
        "quotes.declined": Figure("Quotes declined", "count"),
        "quotes.win_rate_percent": Figure("Win rate of quotes", "percent"),
        "tickets.opened": Figure("Tickets opened", "count"),
        "tickets.resolved": Figure("Tickets resolved", "count"),
        "tickets.median_first_response_minutes": Figure("Median time to the first response", "minutes"),
    },
    "Right now": {
        "clients.active": Figure("Active clients", "count", "clients?status=active"),
        "projects.active": Figure("Active projects", "count", "projects?status=active"),
        "projects.over_budget": Figure(
            "Projects over budget", "count", "projects?status=planned,active,on_hold&over_budget=true"
        ),
        "projects.overdue": Figure("Projects overdue", "count", "projects?overdue=true"),
        "tasks.open": Figure("Open tasks", "count", "tasks?open=true"),
        "tasks.overdue": Figure("Tasks overdue", "count", "tasks?overdue=true"),
        "tickets.open_now": Figure("Unresolved tickets", "count", "tickets?status=unresolved"),
        "tickets.unanswered_now": Figure("Tickets without an answer", "count", "tickets?unanswered=true"),
        "sites.total": Figure("Sites", "count", "sites?"),
        "sites.down": Figure("Sites down", "count", "sites?status=down"),
        "sites.with_updates": Figure("Sites with updates", "count", "sites?has_updates=true"),
    },
}
"""The figures of the overview, by path."""
FIGURES = {name: figure for section in SECTIONS.values() for name, figure in section.items()} | {
    "figure": Figure("This period", "text"),
    "outstanding_at_end": Figure("Outstanding at the end", "money"),
    "invoice_count": Figure("Invoices", "count"),
    "clients": Figure("Clients with revenue", "count"),
    "share_percent": Figure("Share", "percent"),
    "largest_share": Figure("Share of the largest client", "percent"),
    "billable_share_percent": Figure("Billable share of tracked time", "percent"),
    "target_percent": Figure("Target", "percent"),
    "billable_value": Figure("Time at billing rates", "money"),
    "to_bill_amount": Figure("To bill", "money"),
    "cost": Figure("Cost", "money"),
    "profit": Figure("Profit", "money"),
    "margin_percent": Figure("Margin", "percent"),
    "budget_used_percent": Figure("Budget used", "percent"),
    "document_count": Figure("Invoices", "count"),
    "credited_count": Figure("Credit notes, discounts", "count"),
    "credited_tax": Figure("Tax credited", "money"),
    "discounts_tax": Figure("Tax of discounts", "money"),
    "written_off_net": Figure("Written off, net", "money"),
    "written_off_tax": Figure("Tax written off", "money"),
    "net": Figure("Net", "money"),
    "payment_count": Figure("Payments", "count"),
    "refund_count": Figure("Refunds", "count"),
    "refunded": Figure("Refunded, net", "money"),
    "refunded_tax": Figure("Tax refunded", "money"),
    "paid": Figure("Paid, net", "money"),
    "paid_tax": Figure("Tax paid by clients", "money"),
    "expense_count": Figure("Number of expenses", "count"),
    "input_tax": Figure("Input tax", "money"),
}
BY_PAYMENT = {
    "payment_count": "document_count",
    "refund_count": "credited_count",
    "refunded": "credited",
    "refunded_tax": "credited_tax",
    "paid": "net",
    "paid_tax": "tax",
}
"""Figures of payments by the names that the API has for those of documents and of payments."""
LOSSES = {name: name for name in ("discounts", "discounts_tax", "written_off_tax")}
BY_ISSUE = {name: name for name in BY_PAYMENT.values()} | LOSSES | {"written_off_net": "written_off"}
OF_EXPENSES = {"expense_count": "expense_count", "expenses": "net", "input_tax": "tax"}
TAX_WORDS = {"AE": "Reverse charge", "G": "Export", "O": "Not subject to tax", "E": "Exempt"}
"""The categories without tax, of which each has one row in a currency."""
BY_PAYMENT_NOTE = (
    "A payment counts with its share of the net and the tax at each rate of its invoice. Net and tax are less refunds."
)


def unit_of(form: Format, currency: str) -> str:
    """Return the unit of a format, as it follows the heading of a CSV file: ` (minutes)`."""
    return {"minutes": " (minutes)", "percent": " (%)", "money": f" ({currency})"}.get(form, "")


def value_of(figure: Any, form: Format) -> Value:
    """Return a figure as people read it; a loss is red."""
    if figure is None or isinstance(figure, str):
        return Value("number", figure or DASH)
    if form == "minutes":
        return Value("number", hours(figure))
    text = percent(figure, 1) if form == "percent" else number(figure)
    is_loss = form in {"money", "percent"} and figure < 0
    return Value("number", text, tone="bad" if is_loss else "")


def fact(name: str, now: Any, before: Any, form: Format) -> Fact:
    """Return a figure, what it was a year before, and how it has changed."""
    if before is None:
        return Fact(name, value_of(now, form), note="No data a year ago")
    change = "" if now is None else change_of(Decimal(str(now)), Decimal(str(before)), form)
    notes = (f"{value_of(before, form).text} a year ago", change.replace("-", MINUS))
    return Fact(name, value_of(now, form), note=" · ".join(note for note in notes if note))


def change_of(now: Decimal, before: Decimal, form: Format) -> str:
    """Return a change: of percentages in points, of others in percent of what was, if that says something.

    A percentage of a negative figure has no meaning, and one of almost nothing would be a number of many digits.
    """
    if form == "percent":
        points = number((now - before).quantize(Decimal("0.1")))
        return "unchanged" if now == before else f"{'+' * (now > before)}{points} points"
    if before <= 0 or abs(now) > MAX_GROWTH * before:
        return ""
    (change, whole), base = (now - before).as_integer_ratio(), before.as_integer_ratio()
    return "unchanged" if now == before else f"{half_up(100 * change * base[1], whole * base[0]):+}%"


class ReportFigures(NamedTuple):
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


def read_overview(tx: Tx, controls: Controls, period: Period) -> ReportFigures:
    report = overview.read_overview(tx, controls.query_of(ReportQuery, period), period, since_arrival=True)
    total = total_of(report.money, controls.currency) | asdict(report.time)
    for part in ("clients", "projects", "tasks", "quotes", "tickets", "sites"):
        total |= {f"{part}.{name}": value for name, value in asdict(getattr(report, part)).items()}
    if period == controls.before:  # nearly all that was unbilled then has been billed since
        total |= dict.fromkeys((*to_bill.PARTS, "to_bill"))
    rows: dict[str, dict[object, Fields]] = {}
    for title, names in {**SECTIONS, **CHARTED}.items():
        for name in names:
            shown, zero = FIGURES[name], amount_of(0, controls.currency)
            link = "" if name in BALANCES and controls.period.to < tx.today else shown.link
            fields = {"label": shown.title, "figure": total.get(name, zero), "format": shown.format, "link": link}
            rows.setdefault(title, {})[name] = fields
    return ReportFigures(rows, total, [each.currency for each in report.money])


def read_months(tx: Tx, controls: Controls, period: Period) -> ReportFigures:
    """Return the months of a period, with what was outstanding at the end of each; months match by their position."""
    query, currency = controls.query_of(ReportQuery, period), controls.currency
    report = revenue.get_report_revenue_by_month(tx, query).data
    found, rows = in_currency(report.rows, currency, "month"), dict[object, Fields]()
    balances = revenue.balances_by_month(tx, period, replace(query, currency=currency))
    for position, (month, balance) in enumerate(balances.items()):
        days, outstanding = common.month_of(month, period), amount_of(balance, currency)
        own = {"label": month_label(month), "first": days.first, "to": days.to, "outstanding": outstanding}
        rows[position] = {**found.get(month, {}), **own}
    total = total_of(report.totals, currency) | {"outstanding": None, "outstanding_at_end": outstanding}
    return ReportFigures({"Month": rows}, total, [each.currency for each in report.totals])


def read_clients(tx: Tx, controls: Controls, period: Period) -> ReportFigures:
    report = revenue.get_report_revenue_by_client(tx, controls.query_of(ReportQuery, period)).data
    rows = in_currency(report.rows, controls.currency, "client_id", "client_name")
    total = total_of(report.totals, controls.currency)
    total["clients"] = sum(row["revenue"] > 0 for row in rows.values())
    total["largest_share"] = next((row["share_percent"] for row in rows.values()), None)
    return ReportFigures({"Client": rows}, total, [each.currency for each in report.totals])


def read_people(tx: Tx, controls: Controls, period: Period) -> ReportFigures:
    """Return people and months; capacity counts from the day that a person was added or first tracked time."""
    query = controls.query_of(utilisation.UtilisationQuery, period)
    report = utilisation.read_report(tx, query, period, since_arrival=True)
    people: dict[object, Fields] = {row.user_id: {**asdict(row), "label": row.user_name} for row in report.rows}
    totals = enumerate(utilisation.totals_by_month(tx, period, query).items())
    months: dict[object, Fields] = {
        position: {**asdict(total), "label": month_label(month)} for position, (month, total) in totals
    }
    (total,) = report.totals
    notes = [
        f"{hours(each.billable_minutes)} of the billable hours are in {each.currency}, and in no amount of this report."
        for each in total.other_currencies
        if each.billable_minutes
    ]
    rows = {"Person": people, "Month": months}
    return ReportFigures(
        rows, {**asdict(total), "label": "Total"}, [each.currency for each in total.other_currencies], notes
    )


def read_projects(tx: Tx, controls: Controls, period: Period) -> ReportFigures:
    query = controls.query_of(profitability.ProfitabilityQuery, period)
    report = profitability.read_report(tx, query)
    found = in_currency(report.rows, controls.currency, "project_id", "project_name")
    total = with_cost(total_of(report.totals, controls.currency))
    notes = [] if total["cost"] is not None else ["Labour cost is known only in the account's currency."]
    if minutes := total.get("missing_cost_rate_minutes"):
        notes.append(f"{hours(minutes)} hours have no cost rate, so profit is too high by their cost.")
    if minutes := total.get("unpriced_minutes"):
        notes.append(f"{hours(minutes)} billable hours have no rate, so they are in no amount.")
    notes += [
        f"{hours(each.tracked_minutes)} hours are on projects in {each.currency}, and are not in this report."
        for each in report.totals
        if each.currency != controls.currency and each.tracked_minutes
    ]
    rows = {key: with_cost(row) for key, row in found.items()}
    return ReportFigures({"Project": rows}, total, [each.currency for each in report.totals], notes)


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


def read_tax(tx: Tx, controls: Controls, period: Period) -> ReportFigures:
    """Return the rates of documents, of payments and of expenses; each has figures with names of their own."""
    query = controls.query_of(tax.TaxQuery, period)
    issued = tax.read_report(tx, query, period)
    paid = tax.read_report(tx, replace(query, by="payment"), period)
    parts: dict[str, tuple[Sequence[Any], Sequence[Any], Mapping[str, str]]] = {
        "Rate": (issued.rows, issued.totals, BY_ISSUE),
        "Rate of payments": (paid.rows, paid.totals, BY_PAYMENT),
        "Rate of expenses": (issued.input_rows, issued.input_totals, OF_EXPENSES),
    }
    rows, total = dict[str, dict[object, Fields]](), dict[str, Any](label="Total")
    for title, (found, totals, names) in parts.items():
        own = (row for row in found if row.currency == controls.currency)
        rows[title] = {rate_label(row): {**renamed(row, names), "label": rate_label(row)} for row in own}
        for each in totals:
            total |= renamed(each, names) if each.currency == controls.currency else {}
    currencies = {each.currency for _, totals, _ in parts.values() for each in totals}
    return ReportFigures(rows, total, sorted(currencies), [BY_PAYMENT_NOTE])


def rate_label(row: tax.TaxByRate | tax.InputTaxByRate) -> str:
    if isinstance(row, tax.TaxByRate) and row.tax_category != "S":
        return TAX_WORDS[row.tax_category]
    return f"{row.tax_rate}%"


def renamed(row: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return figures by their names in the console; those that a total does not have are None."""
    return {own: getattr(row, name, None) for own, name in names.items()}
