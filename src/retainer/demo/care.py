"""What the agency looks after: websites with a month of checks, and a year of tickets with their threads."""

import random
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select, update

from retainer import schema
from retainer.crm import clients
from retainer.demo.agencies import ASKED, PLUGINS
from retainer.demo.make import make
from retainer.sites import sites, uptime
from retainer.store.tx import Tx
from retainer.support import ticket_replies, tickets
from retainer.values.exact import as_instant
from retainer.work import time_entries
from retainer.work.time_entry_types import TimeEntry

INTERVAL = 300
WORDPRESS, PHP = ("6.8.3", "6.8.2", "6.7.4"), ("8.3.27", "8.2.29", "8.1.33")
NEWEST = WORDPRESS[0]


class Care:
    """The sites and tickets of one agency."""

    def __init__(self, tx: Tx, rng: random.Random, people: list[int]) -> None:
        self.tx, self.rng, self.people = tx, rng, people
        self.now = datetime.fromisoformat(tx.now)
        self.sites: dict[int, int] = {}

    def host(self, customers: list[clients.Client]) -> None:
        """Create a site for every client, and a staging site for some."""
        self.tx.now = as_instant(self.now - uptime.MONTH)
        staging = 0
        for customer in customers:
            if customer.status == "active":
                self.sites[customer.id] = self._site(customer, "production", str(customer.website))
                if self.rng.random() < 0.3:
                    url = str(customer.website).replace("https://", "https://staging.")
                    staging = self._site(customer, "staging", url)
        self.tx.now = as_instant(self.now)
        self._fail(staging or min(self.sites.values()))

    def support(self, customers: list[clients.Client]) -> None:
        """Open a few tickets for every client that has a site; some of the newest wait for an answer."""
        for place, customer in enumerate(customer for customer in customers if customer.id in self.sites):
            people = self.tx.all(
                select(schema.crm.external_contacts.c.id).where(schema.crm.external_contacts.c.client_id == customer.id)
            )
            for turn in range(6 + place % 4):
                subject, description, kind, priority, answer, thanks = ASKED[(place * 5 + turn) % len(ASKED)]
                fields = {"subject": subject, "description": description, "type": kind, "priority": priority}
                contact = self.rng.choice(people)[0]
                self._ticket({**fields, "contact_id": contact, "site_id": self.sites[customer.id]}, answer, thanks)
        self.tx.now = as_instant(self.now)

    def _site(self, customer: clients.Client, environment: str, url: str) -> int:
        shop = any(tag in customer.name for tag in ("Optik", "Coffee", "Outfitters", "Fjordlys"))
        is_current = self.rng.random() < 0.65
        version = NEWEST if is_current else self.rng.choice(WORDPRESS)
        plugins = [
            {
                "slug": slug,
                "name": name,
                "version": versions[0] if is_current else self.rng.choice(versions),
                "update_version": versions[0],
                "auto_update": self.rng.random() < 0.3,
            }
            for slug, name, versions in PLUGINS
            if self.rng.random() < 0.7 or (shop and slug == "woocommerce")
        ]
        site = make(
            sites.Site,
            url=url,
            client_id=customer.id,
            environment=environment,
            platform="woocommerce" if shop else "wordpress",
            wp_version=version,
            wp_update_version=None if version == NEWEST else NEWEST,
            php_version=self.rng.choice(PHP),
            plugins=plugins,
        )
        site_id = sites.create_site(self.tx, site).id
        self._history(site_id)
        return site_id

    def _history(self, site: int) -> None:
        """Record a month of checks: sums for each hour, and the checks of the last day one by one."""
        account = self.tx.actor.account_id
        each_hour = 3600 // INTERVAL
        down_at = {self.rng.randint(30, 710): self.rng.randint(2, each_hour) for _ in range(self.rng.randint(0, 3))}
        for hours in range(719, 0, -1):
            self.tx.now = as_instant(self.now - timedelta(hours=hours))
            down = down_at.get(hours, 0)
            uptime.add_to_hour(self.tx, account, site, up=each_hour - down, down=down)
        for back in range(int(uptime.DAY.total_seconds()) // INTERVAL - 1, -1, -1):
            self.tx.now = as_instant(self.now - timedelta(seconds=back * INTERVAL + 7))
            uptime.add_check(self.tx, account, site, is_up=True)
        values: dict[str, Any] = {
            "observed": "up",
            "last_checked_at": self.tx.now,
            "last_status_code": 200,
            "response_time_ms": self.rng.randint(80, 900),
            "ssl_expires_at": as_instant(self.now + timedelta(days=self.rng.randint(6, 85))),
            "next_check_at": as_instant(self.now + timedelta(days=365)),  # its host does not exist: no check
        }
        self.tx.run(update(schema.sites.sites).where(schema.sites.sites.c.id == site).values(values))
        uptime.summarise(self.tx, account, site)

    def _fail(self, site: int) -> None:
        """Let a site have been down for most of an hour."""
        down_since = as_instant(self.now - timedelta(minutes=47))
        values: dict[str, Any] = {
            "observed": "down",
            "failures": 9,
            "down_since": down_since,
            "last_status_code": 502,
            "last_error": "Answered 502; 200 to 399 is expected.",
        }
        self.tx.run(update(schema.sites.sites).where(schema.sites.sites.c.id == site).values(values))

    def _ticket(self, fields: dict[str, Any], answer: str, thanks: str | None) -> None:
        """Open a ticket, with the replies, time and resolution that it has by now."""
        opened = self.now - timedelta(days=self.rng.randint(0, 180) ** 2 // 180, minutes=self.rng.randint(5, 900))
        old = self.now - opened > timedelta(days=6)
        self._at(opened)
        fields |= {"assignee_id": self.rng.choice(self.people)}
        ticket = tickets.create_ticket(self.tx, make(tickets.Ticket, **fields)).id
        if not old and self.rng.random() < 0.5:
            return
        answered = self._at(opened + timedelta(minutes=self.rng.randint(12, 600)))
        if answered > self.now:
            return
        self._reply(ticket, body=answer, status="pending")
        if self.rng.random() < 0.3:
            self._reply(ticket, body="Looked at the log: it began with the last update.", is_internal=True)
        self._worked(ticket, answered)
        if thanks and self._at(answered + timedelta(minutes=self.rng.randint(30, 2000))) < self.now:
            self._reply(ticket, body=thanks, author_type="contact")
        if old:
            self._at(min(answered + timedelta(hours=self.rng.randint(20, 90)), self.now))
            self._reply(ticket, body="All done. Write again if anything is left.", status="resolved")

    def _at(self, moment: datetime) -> datetime:
        self.tx.now = as_instant(min(moment, self.now))
        return moment

    def _reply(self, ticket: int, **fields: Any) -> None:
        ticket_replies.create_ticket_reply(self.tx, ticket, make(ticket_replies.TicketReply, **fields))

    def _worked(self, ticket: int, when: datetime) -> None:
        entry = make(
            TimeEntry,
            ticket_id=ticket,
            duration_minutes=self.rng.choice((10, 15, 20, 30, 45)),
            date=when.date().isoformat(),
            user_id=self.rng.choice(self.people),
            description="Support",
        )
        time_entries.record_time(self.tx, entry)
