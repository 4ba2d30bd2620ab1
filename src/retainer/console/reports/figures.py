"""The figures of the business reports: their titles, formats and the lists that they count, one entry for each."""

from decimal import Decimal
from typing import Any, Literal, NamedTuple

from retainer.console.values import Fact, Value
from retainer.console.words import MINUS, hours
from retainer.values.exact import half_up

Format = Literal["text", "money", "minutes", "percent", "count"]
DASH = "\u2013"
"""What stands for a figure that does not exist; a sum of nothing is 0."""
MAX_GROWTH = 10
"""Growth above this is not given in percent."""
DAYS = "date_from={first}&date_to={to}"
DAYS_ISSUED = "issue_date_from={first}&issue_date_to={to}"
IN_CURRENCY = "&currency={currency}"
INVOICES = f"invoices?status=sent,partially_paid,paid,written_off&{DAYS_ISSUED}{IN_CURRENCY}"
UNBILLED = f"?billing_status=unbilled&{DAYS}{IN_CURRENCY}"


class Figure(NamedTuple):
    """A figure of a report; `link` is the list that it counts, with the controls of the report in braces."""

    title: str
    format: Format
    link: str = ""


SECTIONS = {
    "Money before tax": {
        "invoiced": Figure("Invoiced", "money", INVOICES),
        "credited": Figure("Credited", "money", f"credit-notes?{DAYS_ISSUED}"),
        "revenue": Figure("Revenue", "money"),
        "expenses": Figure("Expenses", "money", f"expenses?{DAYS}{IN_CURRENCY}"),
        "unbilled_time": Figure("Unbilled time of this period", "money", f"time-entries{UNBILLED}"),
        "unbilled_expenses": Figure("Unbilled expenses of this period", "money", f"expenses{UNBILLED}"),
    },
    "Money including tax": {
        "tax": Figure("Tax", "money"),
        "collected": Figure(
            "Collected", "money", f"payments?paid_date_from={{first}}&paid_date_to={{to}}{IN_CURRENCY}"
        ),
        "outstanding": Figure("Outstanding", "money", f"invoices?status=open{IN_CURRENCY}"),
        "overdue": Figure("Overdue", "money", f"invoices?status=overdue{IN_CURRENCY}"),
        "refund_due": Figure("To refund", "money", f"invoices?has_refund_due=true{IN_CURRENCY}"),
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
    "unbilled_amount": Figure("Unbilled time of this period", "money"),
    "cost": Figure("Cost", "money"),
    "profit": Figure("Profit", "money"),
    "margin_percent": Figure("Margin", "percent"),
    "budget_used_percent": Figure("Budget used", "percent"),
}


def unit_of(form: Format, currency: str) -> str:
    """Return the unit of a format, as it follows the heading of a CSV file: ` (minutes)`."""
    return {"minutes": " (minutes)", "percent": " (%)", "money": f" ({currency})"}.get(form, "")


def shown(figure: Any, form: Format) -> Value:
    """Return a figure as people read it; a loss is red."""
    if figure is None or isinstance(figure, str):
        return Value("number", figure or DASH)
    if form == "minutes":
        return Value("number", hours(figure))
    text = f"{decimal(figure).quantize(Decimal('0.1')):,f}%" if form == "percent" else f"{figure:,}"
    is_loss = form in {"money", "percent"} and figure < 0
    return Value("number", text.replace("-", MINUS), tone="bad" if is_loss else "")


def decimal(figure: Any) -> Decimal:
    """Return a percentage as the API rounds it."""
    return Decimal(str(figure))


def fact(name: str, now: Any, before: Any, form: Format) -> Fact:
    """Return a figure, what it was a year before, and how it has changed."""
    if before is None or (form != "percent" and not before):
        return Fact(name, shown(now, form), note="No data a year ago")
    change = "" if now is None else change_of(decimal(now), decimal(before), form)
    notes = (f"{shown(before, form).text} a year ago", change.replace("-", MINUS))
    return Fact(name, shown(now, form), note=" · ".join(note for note in notes if note))


def change_of(now: Decimal, before: Decimal, form: Format) -> str:
    """Return a change: of percentages in points, of others in percent of what was, if that says something.

    A percentage of a negative figure has no meaning, and one of almost nothing would be a number of many digits.
    """
    if form == "percent":
        return "unchanged" if now == before else f"{(now - before).quantize(Decimal('0.1')):+f} points"
    if before <= 0:
        return ""
    if now > MAX_GROWTH * before:
        return f"more than {MAX_GROWTH} times as much"
    (change, whole), base = (now - before).as_integer_ratio(), before.as_integer_ratio()
    return "unchanged" if now == before else f"{half_up(100 * change * base[1], whole * base[0]):+}%"
