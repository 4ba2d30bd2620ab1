"""The cards of the first page that show records: their lists, what is said about each record, and their order."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from retainer.console import words
from retainer.store.tx import Tx
from retainer.values.exact import day_after, instant_after
from retainer.values.records import Record

SHOWN = 5
READ = 100
"""Records that are read to find the most urgent, where the list has no such order."""
SOON = timedelta(days=14)
"""When a certificate or a quote that will expire is shown."""
LAST_WEEKDAY = 6

State = Literal["bad", "warn", ""]


class Listing(NamedTuple):
    """A list with its filters, in which days stand in braces; a note on each record, and the noun for the number."""

    query: str
    note: Callable[[Tx, Record], str]
    noun: str = ""
    state: State = ""
    sort: str = ""
    size: int = SHOWN


class ListCard(NamedTuple):
    """The card of some lists. `calm` is said if they are empty; without `order`, records stand in that of the lists."""

    listings: tuple[Listing, ...]
    calm: str
    order: Callable[[Record], Any] | None = None


def days_of(tx: Tx) -> dict[str, str]:
    """Return the days that the filters of lists name."""
    weekday = date.fromisoformat(tx.today).weekday()
    return {
        "today": tx.today,
        "month": f"{tx.today[:7]}-01",
        "monday": day_after(tx.today, -weekday),
        "sunday": day_after(tx.today, LAST_WEEKDAY - weekday),
        "soon": day_after(tx.today, SOON.days),
        "instant_soon": instant_after(tx.now, SOON),
    }


def last_day_of(record: Record) -> str:
    """Return the day on which something is due, or until which it is valid."""
    return str(getattr(record, "due_date", None) or getattr(record, "valid_until", ""))


def weekday(tx: Tx, record: Record) -> str:
    day = last_day_of(record)
    return "today" if day == tx.today else f"{date.fromisoformat(day):%A}"


def lateness(tx: Tx, record: Record) -> str:
    late = date.fromisoformat(tx.today) - date.fromisoformat(last_day_of(record))
    return f"{words.count(late.days, 'day')} late"


def validity(_tx: Tx, record: Record) -> str:
    return f"until {words.short_day(last_day_of(record))}"


def waiting_since(ticket: Record) -> str:
    return str(getattr(ticket, "last_reply_at", None) or getattr(ticket, "created_at", ""))


def waiting(tx: Tx, ticket: Record) -> str:
    return words.distance(waiting_since(ticket), tx.now).removesuffix(" ago")


def down_for(tx: Tx, site: Record) -> str:
    since: str | None = getattr(site, "down_since", None)
    return f"down for {words.distance(since, tx.now).removesuffix(' ago')}" if since else ""


def expiry(tx: Tx, site: Record) -> str:
    at = str(getattr(site, "ssl_expires_at", ""))
    return f"{'expires' if at > tx.now else 'expired'} {words.distance(at, tx.now)}"


def total_amount(_tx: Tx, document: Record) -> str:
    total: Decimal | None = getattr(document, "total", None)
    return "" if total is None else words.money(total, getattr(document, "currency", ""))


def used_percent(project: Record) -> Decimal:
    return Decimal(str(getattr(project, "budget_used_percent", 0)))


def budget_use(_tx: Tx, project: Record) -> str:
    return f"{used_percent(project):.0f}%"


DUE = "due_date_from={today}&due_date_to={sunday}"
OPEN_PROJECTS = "projects?status=planned,active,on_hold"
LATE_WORK = ListCard(
    (
        Listing("projects?overdue=true", lateness, state="warn", sort="due_date"),
        Listing("tasks?overdue=true", lateness, state="warn", sort="due_date"),
    ),
    "No projects or tasks are overdue.",
    last_day_of,
)
QUOTES = ListCard(
    (
        Listing("quotes?status=accepted&converted=false", total_amount, "quote to bill", "warn"),
        Listing(
            "quotes?status=sent&valid_until_from={today}&valid_until_to={soon}", validity, "quote to expire", "warn"
        ),
    ),
    "No accepted quotes to bill, and none to expire within 14 days.",
)
DUE_THIS_WEEK = ListCard(
    (
        Listing(f"invoices?status=open&{DUE}", weekday),
        Listing(f"{OPEN_PROJECTS}&{DUE}", weekday),
        Listing(f"tasks?open=true&{DUE}", weekday, sort="due_date"),
    ),
    "Nothing due this week.",
    order=last_day_of,
)
TICKETS = ListCard(
    (Listing("tickets?awaiting=us", waiting, state="warn", sort="created_at", size=READ),),
    "No tickets are waiting for an answer.",
    waiting_since,
)
SITES = ListCard(
    (
        Listing("sites?status=down", down_for, "site down", "bad"),
        Listing("sites?ssl_expires_before={instant_soon}", expiry, "certificate", "warn"),
    ),
    "No sites are down, and no certificates expire within 14 days.",
)
BUDGETS = ListCard(
    (Listing(f"{OPEN_PROJECTS}&budget_used_percent_min=80", budget_use, state="warn", size=READ),),
    "No open project has used 80% of its budget.",
    lambda project: -used_percent(project),
)
DRAFTS = ListCard(
    (Listing("invoices?status=draft", total_amount), Listing("quotes?status=draft", total_amount)), "No drafts."
)
