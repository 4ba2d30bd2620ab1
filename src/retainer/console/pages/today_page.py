"""The first page: what needs attention today, each figure with the list that it counts."""

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from operator import attrgetter
from typing import Literal, NamedTuple
from urllib.parse import urlencode

from retainer.console import charts, words
from retainer.console.catalogue import label_of
from retainer.console.page_context import PageContext, Reply
from retainer.console.reports.tables import hours, own_first
from retainer.console.words import money
from retainer.identity import accounts
from retainer.identity.keys import key_list
from retainer.identity.plans import includes_api
from retainer.kernel.roles import may
from retainer.reports import profitability, revenue, utilisation
from retainer.reports.common import ReportQuery
from retainer.reports.profitability import ProfitabilityQuery
from retainer.reports.revenue import RevenueByClientReport
from retainer.reports.utilisation import UtilisationQuery
from retainer.store.tx import Tx
from retainer.support.tickets import Ticket
from retainer.values.exact import day_after, instant_after
from retainer.values.records import Record

SHOWN = 5
READ = 100
"""Records that are read to find the most urgent, where the list has no such order."""
BUDGET_PERCENT = 80
CERTIFICATE = timedelta(days=14)
OPEN_PROJECTS = "planned,active,on_hold"
LAST_WEEKDAY = 6


class Item(NamedTuple):
    """A line of a card: a link, and a note beside it."""

    label: str
    link: str
    note: str = ""


class Figure(NamedTuple):
    """A figure with the link to the list that it counts."""

    text: str
    link: str


class Card(NamedTuple):
    """What needs attention in one respect; `calm` is said if there is nothing."""

    title: str
    state: Literal["bad", "warn", ""]
    figures: list[Figure]
    items: list[Item]
    calm: str


class Found(NamedTuple):
    """The first records of a list, their number, and the link to all."""

    total: int
    records: list[Record]
    link: str


class Today:
    """Reads the cards of an account."""

    def __init__(self, tx: Tx, context: PageContext) -> None:
        self.tx, self.context = tx, context
        weekday = date.fromisoformat(tx.today).weekday()
        self.monday = day_after(tx.today, -weekday)
        self.sunday = day_after(tx.today, LAST_WEEKDAY - weekday)

    def cards(self) -> list[Card]:
        """Return all cards, the most urgent first."""
        return [
            self.overdue(),
            self.refunds(),
            self.due(),
            self.tickets(),
            self.sites(),
            self.hours(),
            self.budgets(),
            self.unbilled(),
            self.drafts(),
        ]

    def find(self, kind: str, filters: dict[str, str], *, size: int = SHOWN, sort: str = "") -> Found:
        """Return the first records of a list, filtered as the link to it is."""
        listed = self.context.catalogue.find(kind).page(self.tx, filters, size=size, sort=sort)
        return Found(listed.meta.total, listed.data, f"/records/{kind}?{urlencode(filters, safe=',')}")

    @cached_property
    def revenue(self) -> RevenueByClientReport:
        """The balances of invoices at the end of today, by client and currency."""
        return revenue.get_report_revenue_by_client(self.tx, ReportQuery(from_=self.tx.today)).data

    def overdue(self) -> Card:
        """Return the overdue invoices, with the amount of each client."""
        return self.balances("Overdue", "overdue", {"status": "overdue"}, "No overdue invoices.")

    def refunds(self) -> Card:
        """Return the invoices that were paid and then credited, with what each client is owed."""
        return self.balances("To refund", "refund_due", {"has_refund_due": "true"}, "No client is owed a refund.")

    def balances(self, title: str, field: str, filters: dict[str, str], calm: str) -> Card:
        """Return a balance of invoices, and the clients with the largest; `field` is its name in the report."""
        found, read = self.find("invoices", filters, size=1), attrgetter(field)
        largest = sorted((row for row in self.revenue.rows if read(row) > 0), key=read, reverse=True)
        totals = [each for each in own_first(self.revenue.totals, self.tx.actor.currency) if read(each)]
        figures = [
            Figure(money(read(each), each.currency), f"{found.link}&currency={each.currency}") for each in totals
        ]
        items = [
            Item(
                row.client_name,
                f"{found.link}&currency={row.currency}&client_id={row.client_id}",
                money(read(row), row.currency),
            )
            for row in own_first(largest, self.tx.actor.currency)[:SHOWN]
        ]
        if found.total:
            figures.append(Figure(words.count(found.total, "invoice"), found.link))
        return Card(title, "bad" if found.total else "", figures, items, calm)

    def due(self) -> Card:
        """Return what is due until the end of the week."""
        until = {"due_date_from": self.tx.today, "due_date_to": self.sunday}
        valid = {"valid_until_from": self.tx.today, "valid_until_to": self.sunday}
        kinds = {
            "invoice": self.find("invoices", {"status": "open", **until}),
            "project": self.find("projects", {"status": OPEN_PROJECTS, **until}),
            "task": self.find("tasks", {"open": "true", **until}, sort="due_date"),
            "quote": self.find("quotes", {"status": "sent", **valid}),
        }
        figures = [Figure(words.count(each.total, name), each.link) for name, each in kinds.items() if each.total]
        dated = [
            (last_day_of(record), Item(f"{name.capitalize()} {label_of(record)}", path_of(f"{name}s", record)))
            for name, each in kinds.items()
            for record in each.records
        ]
        items = [item._replace(note=self.day(day)) for day, item in sorted(dated, key=lambda each: each[0])]
        return Card("Due this week", "", figures, items[:SHOWN], "Nothing is due until Sunday.")

    def day(self, day: str) -> str:
        return "today" if day == self.tx.today else f"{date.fromisoformat(day):%A}"

    def tickets(self) -> Card:
        """Return the tickets that wait for the agency, those that have been waiting longest first."""
        found = self.find("tickets", {"awaiting": "us"}, size=READ, sort="created_at")
        tickets = [record for record in found.records if isinstance(record, Ticket)]
        items = [
            Item(label_of(ticket), path_of("tickets", ticket), self.age(waiting_since(ticket)))
            for ticket in sorted(tickets, key=waiting_since)[:SHOWN]
        ]
        figures = [Figure(words.count(found.total, "ticket"), found.link)] if found.total else []
        return Card(
            "Waiting for us", "warn" if found.total else "", figures, items, "No tickets are waiting for an answer."
        )

    def age(self, instant: str) -> str:
        """Return for how long somebody has been waiting."""
        return words.distance(instant, self.context.now).removesuffix(" ago")

    def sites(self) -> Card:
        """Return the sites that are down, and those whose certificate expires soon."""
        down = self.find("sites", {"status": "down"})
        expiring = self.find("sites", {"ssl_expires_before": instant_after(self.tx.now, CERTIFICATE)})
        figures = [Figure(f"{down.total:,} down", down.link)] if down.total else []
        if expiring.total:
            figures.append(Figure(words.count(expiring.total, "certificate"), expiring.link))
        items = [Item(label_of(site), path_of("sites", site), self.since(site, "down_since")) for site in down.records]
        items += [
            Item(label_of(site), path_of("sites", site), self.since(site, "ssl_expires_at"))
            for site in expiring.records
        ]
        state: Literal["bad", "warn", ""] = "bad" if down.total else "warn" if expiring.total else ""
        return Card(
            "Sites", state, figures, items[:SHOWN], "No sites are down, and no certificates expire within 14 days."
        )

    def since(self, record: Record, field: str) -> str:
        """Return the distance of an instant of a record; of a certificate that has expired, how long ago it did."""
        instant: str | None = getattr(record, field)
        if instant is None:
            return ""
        text = words.distance(instant, self.context.now)
        if field == "down_since":
            return f"down for {text.removesuffix(' ago')}"
        return f"expires {text}" if instant > self.context.now else f"expired {text}"

    def hours(self) -> Card:
        """Return the hours of this week against what everybody can work, by person."""
        query = UtilisationQuery()
        query.from_, query.to = self.monday, self.sunday
        report = utilisation.get_report_utilisation(self.tx, query).data
        total = report.totals[0]
        link = f"/reports/utilisation?{urlencode({'from': self.monday, 'to': self.sunday})}"
        rows = sorted(report.rows, key=lambda row: -row.tracked_minutes)
        week = {"date_from": self.monday, "date_to": self.sunday}
        items = [
            Item(
                row.user_name,
                f"/records/time-entries?{urlencode({'user_id': row.user_id, **week})}",
                f"{hours(row.tracked_minutes)} of {hours(row.available_minutes)}",
            )
            for row in rows[:SHOWN]
        ]
        figures = [Figure(f"{hours(total.tracked_minutes)} of {hours(total.available_minutes)} h", link)]
        return Card("Hours this week", "", figures if report.rows else [], items, "No working hours this week.")

    def budgets(self) -> Card:
        """Return the open projects that have used most of their budget, the fullest first."""
        filters = {"status": OPEN_PROJECTS, "budget_used_percent_min": str(BUDGET_PERCENT)}
        found = self.find("projects", filters, size=READ)
        used = {record.id: Decimal(str(getattr(record, "budget_used_percent", 0))) for record in found.records}
        fullest = sorted(found.records, key=lambda record: -used[record.id])
        items = [
            Item(label_of(record), path_of("projects", record), f"{used[record.id]:.0f}%") for record in fullest[:SHOWN]
        ]
        figures = [Figure(words.count(found.total, "project"), found.link)] if found.total else []
        calm = f"No open project has used {BUDGET_PERCENT}% of its budget."
        return Card(f"Over {BUDGET_PERCENT}% of budget", "warn" if found.total else "", figures, items, calm)

    def unbilled(self) -> Card:
        """Return the work until today that is on no invoice, and the hours that no rate prices."""
        report = profitability.get_report_project_profitability(self.tx, ProfitabilityQuery()).data
        link, unpriced = (
            f"/records/time-entries?billing_status={status}&date_to={self.tx.today}"
            for status in ("unbilled", "unpriced")
        )
        totals = [each for each in own_first(report.totals, self.tx.actor.currency) if each.unbilled_amount]
        figures = [
            Figure(money(each.unbilled_amount, each.currency), f"{link}&currency={each.currency}") for each in totals
        ]
        minutes = sum(each.unpriced_minutes for each in report.totals)
        if minutes:
            figures.append(Figure(f"{hours(minutes)} h without a rate", unpriced))
        expenses = self.find("expenses", {"billing_status": "unbilled"}, size=1)
        if expenses.total:
            figures.append(Figure(words.count(expenses.total, "expense"), expenses.link))
        largest = sorted((row for row in report.rows if row.unbilled_amount), key=lambda row: -row.unbilled_amount)
        items = [
            Item(
                row.project_name or "Without a project",
                f"{link}&currency={row.currency}&project_id={row.project_id or 'none'}",
                money(row.unbilled_amount, row.currency),
            )
            for row in own_first(largest, self.tx.actor.currency)[:SHOWN]
        ]
        return Card("Unbilled work", "", figures, items, "No unbilled work.")

    def drafts(self) -> Card:
        """Return the invoices and quotes that are not sent yet."""
        kinds = {name: self.find(f"{name}s", {"status": "draft"}) for name in ("invoice", "quote")}
        figures = [Figure(words.count(each.total, name), each.link) for name, each in kinds.items() if each.total]
        items = [
            Item(f"{name.capitalize()} {label_of(record)}", path_of(f"{name}s", record), amount_of(record))
            for name, each in kinds.items()
            for record in each.records
        ]
        return Card("Drafts", "", figures, items[:SHOWN], "No drafts.")


def show(tx: Tx, context: PageContext) -> Reply:
    account = accounts.get_account(tx)
    today = Today(tx, context)
    return context.render(
        "today",
        day=words.long_day(tx.today),
        cards=today.cards(),
        first_steps=list(first_steps(tx, today)),
        is_included=includes_api(account["plan"], account["trial_ends_at"], tx.now),
        account=account,
        live=key_list.live_keys(tx),
        requests=charts.hourly_chart(tx).total,
    )


def first_steps(tx: Tx, today: Today) -> Iterator[Item]:
    """Yield what to do first in an account that has no clients or no keys."""
    has_keys = bool(key_list.live_keys(tx).keys)
    if today.find("clients", {}, size=1).total:
        return
    yield Item("Create your first client", "/records/clients/new", "Projects, time and invoices belong to a client.")
    if may(tx.actor, "people"):
        yield Item(
            "Add your team", "/people/new", "The people whose time you track, with their weekly capacity and target."
        )
    if not has_keys and may(tx.actor, "keys"):
        yield Item("Create a key", "/keys/new", "With it, your programs can send records through the API.")


def amount_of(record: Record) -> str:
    """Return the total of an invoice or a quote."""
    total: Decimal | None = getattr(record, "total", None)
    return "" if total is None else money(total, getattr(record, "currency", ""))


def waiting_since(ticket: Ticket) -> str:
    return ticket.last_reply_at or ticket.created_at


def path_of(kind: str, record: Record) -> str:
    return f"/records/{kind}/{record.id}"


def last_day_of(record: Record) -> str:
    """Return the day on which something is due, or until which it is valid."""
    return str(getattr(record, "due_date", None) or getattr(record, "valid_until", ""))
