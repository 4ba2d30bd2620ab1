"""Websites with 90 days of checks, and tickets with their threads."""

import random
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from retainer.crm import clients
from retainer.demo.agency import CONTENT
from retainer.demo.make import create
from retainer.schema.crm import external_contacts
from retainer.schema.sites import site_checks, site_hours, site_incidents
from retainer.schema.sites import sites as sites_table
from retainer.sites import sites, uptime
from retainer.store.tx import Tx
from retainer.support import ticket_replies, tickets
from retainer.values.exact import as_instant
from retainer.work import time_entries

INTERVAL = timedelta(minutes=5)
CHECKS_AN_HOUR, HOURS = 12, 24 * 90
BUSY_HOURS, DAYTIME_MS = range(8, 18), 60
FAILURE = "The site answered 502."
FAILED = 9
"""The checks of the last 47 minutes, all of which failed at the site that is down."""
NEWEST, OLDER = "6.8.3", "6.7.4"


class Care:
    """The sites and tickets of an agency."""

    def __init__(self, tx: Tx, rng: random.Random, people: list[int]) -> None:
        self.tx, self.rng, self.people = tx, rng, people
        self.now = datetime.fromisoformat(tx.now)
        self.sites: dict[int, int] = {}
        """The site of each client."""

    def host(self, customers: list[clients.Client]) -> None:
        for customer in customers:
            if customer.status == "active":
                self.sites[customer.id] = self._site(customer)
                self._check(self.sites[customer.id])
        account_id, site_id = self.tx.actor.account_id, max(self.sites.values())
        since = as_instant(self.now - timedelta(minutes=47))
        failure = {"observed": "down", "failures": FAILED, "last_status_code": 502, "last_error": FAILURE}
        self.tx.update_columns(sites_table, site_id, failure | {"down_since": since})
        self.tx.insert_rows(site_incidents, [(account_id, site_id, since, None, FAILURE)])
        self.tx.insert_rows(site_hours, [(account_id, site_id, as_instant(self.now)[:13], 0, FAILED, 0, 0)])
        uptime.summarise(self.tx, account_id, site_id)

    def support(self) -> None:
        """Open a few tickets for every client that has a site; some of the newest wait for an answer."""
        for index, (client_id, site_id) in enumerate(self.sites.items()):
            contact_of_client = select(external_contacts.c.id).where(external_contacts.c.client_id == client_id)
            contact_id = self.tx.value(contact_of_client)
            for turn in range(6):
                self._ticket(CONTENT.questions[(index * 3 + turn) % len(CONTENT.questions)], contact_id, site_id)
        self._at(self.now)

    def _site(self, customer: clients.Client) -> int:
        is_current = self.rng.random() < 0.65
        plugins = [
            {
                **{name: plugin[name] for name in ("slug", "name")},
                "version": plugin["newest" if is_current else "older"],
                "update_version": plugin["newest"],
            }
            for plugin in CONTENT.plugins
        ]
        self._at(self.now - uptime.QUARTER)
        return create(
            sites.create_site,
            self.tx,
            url=str(customer.website),
            client_id=customer.id,
            platform="wordpress",
            wp_version=NEWEST if is_current else OLDER,
            wp_update_version=None if is_current else NEWEST,
            php_version=self.rng.choice(("8.3.27", "8.2.29")),
            plugins=plugins,
        ).id

    def _check(self, site_id: int) -> None:
        self._at(self.now)
        account_id, rng = self.tx.actor.account_id, self.rng
        last_hour = self.now.replace(minute=0, second=0, microsecond=0)
        outages = {rng.randint(30, HOURS - 10): rng.randint(2, CHECKS_AN_HOUR) for _ in range(rng.randint(0, 5))}
        usual, hours, incidents = rng.randint(120, 480), [], []
        for ago in range(HOURS - 1, 0, -1):
            began, down = last_hour - timedelta(hours=ago), outages.get(ago, 0)
            up = CHECKS_AN_HOUR - down
            usual = max(80, min(900, usual + rng.randint(-9, 9)))
            response_ms = up * (usual + (DAYTIME_MS if began.hour in BUSY_HOURS else 0))
            hours.append((account_id, site_id, as_instant(began)[:13], up, down, up, response_ms))
            if down:
                incidents.append((account_id, site_id, as_instant(began), as_instant(began + INTERVAL * down), FAILURE))
        self.tx.insert_rows(site_hours, hours)
        self.tx.insert_rows(site_incidents, incidents)
        checked = [as_instant(self.now - INTERVAL * n - timedelta(seconds=7)) for n in range(uptime.DAY // INTERVAL)]
        self.tx.insert_rows(site_checks, [(account_id, site_id, moment, True) for moment in checked])
        values: dict[str, Any] = {
            "observed": "up",
            "last_checked_at": checked[0],
            "last_status_code": 200,
            "response_time_ms": usual,
            "ssl_expires_at": as_instant(self.now + timedelta(days=rng.randint(6, 85))),
            "next_check_at": None,  # its host does not exist: no check
        }
        self.tx.update_columns(sites_table, site_id, values)
        uptime.summarise(self.tx, account_id, site_id)

    def _ticket(self, question: dict[str, str], contact_id: int, site_id: int) -> None:
        rng, asked = self.rng, {**question}
        answer = asked.pop("answer")
        opened = self.now - timedelta(days=rng.randint(0, 180) ** 2 // 180, minutes=rng.randint(5, 900))
        is_old = self.now - opened > timedelta(days=6)
        self._at(opened)
        people = {"contact_id": contact_id, "assignee_id": rng.choice(self.people)}
        ticket_id = create(tickets.create_ticket, self.tx, site_id=site_id, **people, **asked).id
        answered = opened + timedelta(minutes=rng.randint(12, 600))
        if answered > self.now or (not is_old and rng.random() < 0.5):
            return
        self._at(answered)
        self._reply(ticket_id, body=answer, status="pending")
        work = {"duration_minutes": rng.choice((10, 15, 20, 30, 45)), "date": answered.date().isoformat()}
        work |= {"user_id": rng.choice(self.people), "description": "Support"}
        create(time_entries.record_time, self.tx, ticket_id=ticket_id, **work)
        if is_old:
            self._at(answered + timedelta(hours=rng.randint(20, 90)))
            self._reply(ticket_id, body="Much better, thank you!", author_type="contact")
            self._reply(ticket_id, body="All done. Just reply if anything is missing.", status="resolved")

    def _at(self, moment: datetime) -> None:
        self.tx.now = as_instant(min(moment, self.now))

    def _reply(self, ticket_id: int, **fields: Any) -> None:
        create(ticket_replies.create_ticket_reply, self.tx, ticket_id, **fields)
