"""The first page: what needs attention today, each figure with the list that it counts."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal, NamedTuple
from urllib.parse import parse_qsl

from retainer.billing import unbilled_work
from retainer.console import charts, words
from retainer.console.catalogue import Kind, label_of
from retainer.console.names import Link, Names, tick_path
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.first_steps import list_steps
from retainer.console.pages.message_blocks import failures
from retainer.identity import accounts
from retainer.identity.keys import key_list
from retainer.jobs.jobs import list_troubled
from retainer.reports import revenue, utilisation
from retainer.reports.common import ReportQuery, begin
from retainer.reports.revenue import RevenueByClientReport
from retainer.reports.utilisation import UtilisationQuery
from retainer.schema.crm import clients
from retainer.schema.work import projects
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, day_after, instant_after
from retainer.values.records import Record
from retainer.work.tasks import Task

SHOWN = 5
READ = 100
"""Records that are read to find the most urgent, where the list has no such order."""
SOON = timedelta(days=14)
"""When a certificate or a quote that will expire is shown."""
LAST_WEEKDAY = 6

QUICK = ("clients", "quotes", "invoices", "expenses", "tasks")
"""What is created most often: the page has a button for each."""
State = Literal["bad", "warn", ""]


class TodayList(NamedTuple):
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
    listings: tuple[TodayList, ...]
    order: Callable[[Any], Any] | None = None


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


DUE = "due_date_from={today}&due_date_to={sunday}"
OPEN_PROJECTS = "projects?status=planned,active,on_hold"
BEFORE_HOURS = (
    ListCard(
        "Overdue work",
        "No projects or tasks are overdue.",
        (
            TodayList("projects?overdue=true", lateness, state="warn", sort="due_date"),
            TodayList("tasks?overdue=true", lateness, state="warn", sort="due_date"),
        ),
        lambda record: record.due_date,
    ),
    ListCard(
        "Quotes",
        "No accepted quotes to bill, and none to expire within 14 days.",
        (
            TodayList("quotes?status=accepted&converted=false", amount, "quote to bill", "warn"),
            TodayList(
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
            TodayList(f"invoices?status=open&{DUE}", weekday),
            TodayList(f"{OPEN_PROJECTS}&{DUE}", weekday),
            TodayList(f"tasks?open=true&{DUE}", weekday, sort="due_date"),
        ),
        lambda record: record.due_date,
    ),
    ListCard(
        "Waiting for us",
        "No tickets are waiting for an answer.",
        (
            TodayList(
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
            TodayList(
                "sites?status=down",
                lambda tx, site: f"down for {words.span(site.down_since, tx.now)}" if site.down_since else "",
                "site down",
                "bad",
            ),
            TodayList("sites?ssl_expires_before={instant_soon}", expiry, "certificate", "warn"),
        ),
    ),
)
BUDGETS = ListCard(
    "Over 80% of budget",
    "No open project has used 80% of its budget.",
    (
        TodayList(
            f"{OPEN_PROJECTS}&budget_used_percent_min=80",
            lambda _, project: words.percent(project.budget_used_percent, 0),
            state="warn",
            size=READ,
        ),
    ),
    lambda project: -project.budget_used_percent,
)
DRAFTS = ListCard(
    "Drafts", "No drafts.", (TodayList("invoices?status=draft", amount), TodayList("quotes?status=draft", amount))
)


class Card(NamedTuple):
    """What needs attention in one respect; `calm` is said if there is nothing, `more` leads to all of a cut list."""

    title: str
    state: State
    figures: Sequence[Link]
    items: Sequence[Link]
    calm: str
    more: Sequence[Link] = ()


class FoundList(NamedTuple):
    kind: Kind
    records: list[Record]
    total: int
    figure: Link


class Today:
    def __init__(self, tx: Tx, context: PageContext) -> None:
        self.tx, self.catalogue, self.own = tx, context.catalogue, tx.actor.currency
        self.names, self.placed = Names(tx, context.catalogue), list[tuple[Link, Link]]()
        weekday = date.fromisoformat(tx.today).weekday()
        self.days = {
            "today": tx.today,
            "month": f"{tx.today[:7]}-01",
            "monday": day_after(tx.today, -weekday),
            "sunday": day_after(tx.today, LAST_WEEKDAY - weekday),
            "soon": day_after(tx.today, SOON.days),
            "instant_soon": instant_after(tx.now, SOON),
        }

    def cards(self) -> list[Card]:
        found = [
            self.balances("Overdue", "overdue", "invoices?status=overdue", "No overdue invoices."),
            self.balances("To refund", "refund_due", "invoices?has_refund_due=true", "No client is owed a refund."),
            *(Card(*each) for each in failures(self.tx, self.catalogue)),
            *map(self.listed, BEFORE_HOURS),
            self.hours(),
            self.listed(BUDGETS),
            self.unbilled(),
            self.listed(DRAFTS),
            *self.jobs(),
        ]
        self.names.load()
        for item, place in self.placed:
            item.text += "" if place.text in item.text else f" · {place.text}"
        return found

    def find(self, query: str, *, noun: str = "", sort: str = "", size: int = 1) -> FoundList:
        name, _, filters = query.format_map(self.days).partition("?")
        kind = self.catalogue.find(name)
        page = kind.page(self.tx, dict(parse_qsl(filters)), size=size, sort=sort)
        first, _, rest = (noun or kind.noun).partition(" ")
        text = words.count(page.meta.total, f"{first} {rest}".rstrip(), f"{first}s {rest}".rstrip())
        return FoundList(kind, page.data, page.meta.total, Link(text, f"/records/{name}?{filters}"))

    def listed(self, card: ListCard) -> Card:
        found = [self.find(each.query, noun=each.noun, sort=each.sort, size=each.size) for each in card.listings]
        lines = [(each, lst, record) for each, lst in zip(card.listings, found, strict=True) for record in lst.records]
        if order := card.order:
            lines.sort(key=lambda line: order(line[2]))
        lines, is_mixed = lines[:SHOWN], len({each.kind.name for each in found}) > 1
        items = [self.item(*line, with_noun=is_mixed) for line in lines]
        more = [each.figure for each in found if each.total > sum(lst is each for _, lst, _ in lines)]
        figures = [each.figure for each in found if each.total]
        states = [listing.state for listing, lst in zip(card.listings, found, strict=True) if lst.total]
        return Card(card.title, next(iter(states), ""), figures, items, card.calm, more)

    def item(self, listing: TodayList, found: FoundList, record: Any, *, with_noun: bool) -> Link:
        """Return the line of a record; `cards` adds the project of a task, or the client of other records."""
        label, noun = label_of(record), found.kind.noun.capitalize()
        is_named = label != f"{record.id}"  # a draft may have neither number nor subject
        text = " ".join([noun] * with_noun + [label] * is_named)
        tick = tick_path(self.catalogue, record)
        item = Link(text, found.kind.path_of(record), listing.note(self.tx, record), tick)
        project_id = record.project_id if isinstance(record, Task) else None
        table, place_id = (projects, project_id) if project_id else (clients, record.client_id)
        if place_id is not None:
            self.placed.append((item, self.names.refer(table, place_id)))
        return item

    def amounts(self, rows: Iterable[Any], field: str, link: str) -> list[Link]:
        found = [(getattr(each, field), each.currency) for each in own_first(rows, self.own)]
        return [Link(words.money(*each), f"{link}&currency={each[1]}") for each in found if each[0]]

    def ranked(self, rows: Iterable[Any], field: str, line: Callable[[Any], tuple[str, str]]) -> list[Link]:
        found = sorted((row for row in rows if getattr(row, field)), key=attrgetter(field), reverse=True)
        return [Link(*line(row), words.money(getattr(row, field), row.currency)) for row in own_first(found, self.own)]

    @cached_property
    def revenue(self) -> RevenueByClientReport:
        return revenue.get_report_revenue_by_client(self.tx, ReportQuery(from_=self.days["month"])).data

    def headline(self) -> dict[str, list[Link]]:
        links = {
            ("Collected this month", "collected"): "/records/payments?paid_date_from={month}&paid_date_to={today}",
            ("Outstanding", "outstanding"): "/records/invoices?status=open",
        }
        nothing = words.money(amount_of(0, self.own), self.own)
        return {
            title: self.amounts(self.revenue.totals, field, link.format_map(self.days))
            or [Link(nothing, link.format_map(self.days))]
            for (title, field), link in links.items()
        }

    def balances(self, title: str, field: str, query: str, calm: str) -> Card:
        found = self.find(query)
        link = found.figure.path
        items = self.ranked(
            self.revenue.rows,
            field,
            lambda row: (row.client_name, f"{link}&currency={row.currency}&client_id={row.client_id}"),
        )
        figures = [*self.amounts(self.revenue.totals, field, link), found.figure] if found.total else []
        more = [found.figure] if len(items) > SHOWN else []
        return Card(title, "bad" if found.total else "", figures, items[:SHOWN], calm, more)

    def hours(self) -> Card:
        query = UtilisationQuery(from_=self.days["monday"], to=self.days["sunday"])
        report = utilisation.read_report(self.tx, query, begin(self.tx, query, None), since_arrival=True)
        total, link = report.totals[0], "/reports/utilisation?from={monday}&to={sunday}".format_map(self.days)
        week = "date_from={monday}&date_to={sunday}".format_map(self.days)
        items = [
            Link(
                row.user_name,
                f"/records/time-entries?user_id={row.user_id}&{week}",
                f"{words.hours(row.tracked_minutes)} of {words.hours(row.available_minutes)}",
            )
            for row in sorted(report.rows, key=lambda row: row.tracked_minutes - row.available_minutes)
            if row.tracked_minutes or row.available_minutes
        ]
        figures = [Link(f"{words.hours(total.tracked_minutes)} of {words.hours(total.available_minutes)} h", link)]
        more = [Link(words.count(len(items), "person", "people"), link)] if len(items) > SHOWN else []
        return Card("Hours this week", "", figures if items else [], items[:SHOWN], "No working hours this week.", more)

    def jobs(self) -> list[Card]:
        """Return the card of jobs with refused rows since yesterday, if there are any."""
        found = list_troubled(self.tx, SHOWN)
        items = [
            Link(job.title, f"/jobs/{job.id}", f"{words.number(job.refused)} refused" if job.refused else job.status)
            for job in found
        ]
        return [Card("Jobs with refused rows", "warn", [Link("View jobs", "/jobs")], items, "")] if found else []

    def unbilled(self) -> Card:
        rows, link = unbilled_work.load_work(self.tx, self.tx.today), "/billing-run"
        sums = dict[str, Decimal]()
        for row in rows:
            sums[row.currency] = sums.get(row.currency, Decimal(0)) + row.to_bill
        figures = [
            Link(words.money(sums[currency], currency), link)
            for currency in sorted(sums, key=lambda currency: (currency != self.own, currency))
            if sums[currency]
        ]
        if minutes := sum(part.minutes for row in rows for part in row.left_out if part.reason == "unpriced"):
            path = f"/records/time-entries?billing_status=unpriced&date_to={self.tx.today}"
            figures.append(Link(f"{words.hours(minutes)} h without a rate", path))
        items = self.ranked(rows, "to_bill", lambda row: (row.client_name, f"/records/clients/{row.client_id}/bill"))
        more = [Link("that is to bill", link)] if len(items) > SHOWN else []
        return Card("To bill", "", figures, items[:SHOWN], "Nothing to bill.", more)


def own_first(rows: Iterable[Any], own: str) -> list[Any]:
    return sorted(rows, key=lambda row: (row.currency != own, row.currency))


def show(tx: Tx, context: PageContext) -> Reply:
    account, live = accounts.get_account(tx), key_list.live_keys(tx)
    today, day = Today(tx, context), date.fromisoformat(tx.today)
    steps = list(list_steps(tx, context, account, has_keys=bool(live.keys)))
    return context.render(
        "today",
        day=f"{day:%A}, {day.day} {day:%B %Y}",
        headline={} if steps else today.headline(),
        quick=QUICK,
        cards=[card for card in today.cards() if card.figures or not steps],
        first_steps=steps,
        account=account,
        live=live,
        requests=charts.hourly_chart(tx).total,
    )
