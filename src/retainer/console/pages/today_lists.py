"""The cards of the first page that show records: their lists, what is said about each record, and their order."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from retainer.console import words
from retainer.store.tx import Tx
from retainer.values.exact import day_after, instant_after

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
    note: Callable[[Tx, Any], str]
    noun: str = ""
    state: State = ""
    sort: str = ""
    size: int = SHOWN


class ListCard(NamedTuple):
    """The card of some lists. `calm` is said if they are empty; without `order`, records stand in that of the lists."""

    title: str
    calm: str
    listings: tuple[Listing, ...]
    order: Callable[[Any], Any] | None = None


def days_of(tx: Tx) -> dict[str, str]:
    weekday = date.fromisoformat(tx.today).weekday()
    return {
        "today": tx.today,
        "month": f"{tx.today[:7]}-01",
        "monday": day_after(tx.today, -weekday),
        "sunday": day_after(tx.today, LAST_WEEKDAY - weekday),
        "soon": day_after(tx.today, SOON.days),
        "instant_soon": instant_after(tx.now, SOON),
    }


def weekday(tx: Tx, record: Any) -> str:
    return "today" if record.due_date == tx.today else f"{date.fromisoformat(record.due_date):%A}"


def lateness(tx: Tx, record: Any) -> str:
    late = date.fromisoformat(tx.today) - date.fromisoformat(record.due_date)
    return f"{words.count(late.days, 'day')} late"


def waiting_since(ticket: Any) -> str:
    return str(ticket.last_reply_at or ticket.created_at)


def expiry(tx: Tx, site: Any) -> str:
    return f"{'expires' if site.ssl_expires_at > tx.now else 'expired'} {words.distance(site.ssl_expires_at, tx.now)}"


def amount(_: Tx, document: Any) -> str:
    return words.money(document.total, document.currency)


def used_percent(project: Any) -> Decimal:
    return Decimal(str(project.budget_used_percent))


DUE = "due_date_from={today}&due_date_to={sunday}"
OPEN_PROJECTS = "projects?status=planned,active,on_hold"
BEFORE_HOURS = (
    ListCard(
        "Overdue work",
        "No projects or tasks are overdue.",
        (
            Listing("projects?overdue=true", lateness, state="warn", sort="due_date"),
            Listing("tasks?overdue=true", lateness, state="warn", sort="due_date"),
        ),
        lambda record: record.due_date,
    ),
    ListCard(
        "Quotes",
        "No accepted quotes to bill, and none to expire within 14 days.",
        (
            Listing("quotes?status=accepted&converted=false", amount, "quote to bill", "warn"),
            Listing(
                "quotes?status=sent&valid_until_from={today}&valid_until_to={soon}",
                lambda _, quote: f"until {words.short_day(quote.valid_until)}",
                "quote to expire",
                "warn",
            ),
        ),
    ),
    ListCard(
        "Due this week",
        "Nothing due this week.",
        (
            Listing(f"invoices?status=open&{DUE}", weekday),
            Listing(f"{OPEN_PROJECTS}&{DUE}", weekday),
            Listing(f"tasks?open=true&{DUE}", weekday, sort="due_date"),
        ),
        lambda record: record.due_date,
    ),
    ListCard(
        "Waiting for us",
        "No tickets are waiting for an answer.",
        (
            Listing(
                "tickets?awaiting=us",
                lambda tx, ticket: words.distance(waiting_since(ticket), tx.now).removesuffix(" ago"),
                state="warn",
                sort="created_at",
                size=READ,
            ),
        ),
        waiting_since,
    ),
    ListCard(
        "Sites",
        "No sites are down, and no certificates expire within 14 days.",
        (
            Listing(
                "sites?status=down",
                lambda tx, site: f"down for {words.span(site.down_since, tx.now)}" if site.down_since else "",
                "site down",
                "bad",
            ),
            Listing("sites?ssl_expires_before={instant_soon}", expiry, "certificate", "warn"),
        ),
    ),
)
BUDGETS = ListCard(
    "Over 80% of budget",
    "No open project has used 80% of its budget.",
    (
        Listing(
            f"{OPEN_PROJECTS}&budget_used_percent_min=80",
            lambda _, project: f"{used_percent(project):.0f}%",
            state="warn",
            size=READ,
        ),
    ),
    lambda project: -used_percent(project),
)
DRAFTS = ListCard(
    "Drafts", "No drafts.", (Listing("invoices?status=draft", amount), Listing("quotes?status=draft", amount))
)
