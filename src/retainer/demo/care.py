"""Websites with 90 days of checks, and tickets with their threads."""

import random
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from retainer.crm import clients
from retainer.demo.agencies import PLUGINS, QUESTIONS, Question
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
CAUSES = (
    "The site answered 502.",
    "The site answered 503.",
    "The site did not answer within 15 seconds.",
    "The site cannot be reached.",
)
WORDPRESS, PHP = ("6.8.3", "6.8.2", "6.7.4"), ("8.3.27", "8.2.29", "8.1.33")
NEWEST = WORDPRESS[0]
FAILED = 9
"""The checks of the last 47 minutes, all of which failed at the site that is down."""


class Care:
    """The sites and tickets of an agency."""

    def __init__(self, tx: Tx, rng: random.Random, people: list[int], tag_ids: dict[str, int]) -> None:
        self.tx, self.rng, self.people, self.tag_ids = tx, rng, people, tag_ids
        self.now = datetime.fromisoformat(tx.now)
        self.sites: dict[int, int] = {}

    def host(self, customers: list[clients.Client]) -> None:
        """Create a site for every active client, and a staging site for some; one site is down."""
        staging = 0
        for customer in customers:
            if customer.status == "active":
                url = str(customer.website)
                self.sites[customer.id] = self._site(customer, "production", url)
                if self.rng.random() < 0.3:
                    staging = self._site(customer, "staging", url.replace("https://", "https://staging."))
        failure = {"observed": "down", "failures": FAILED, "last_status_code": 502}
        failure |= {"last_error": "The site answered 502."}
        failure |= {"down_since": as_instant(self.now - timedelta(minutes=47))}
        site_id = staging or min(self.sites.values())
        self.tx.update_columns(sites_table, site_id, failure)
        incident = (self.tx.actor.account_id, site_id, failure["down_since"], None, failure["last_error"])
        self.tx.insert_rows(site_incidents, [incident])
        checks = (self.tx.actor.account_id, site_id, as_instant(self.now)[:13], 0, FAILED, 0, 0)
        self.tx.insert_rows(site_hours, [checks])
        uptime.summarise(self.tx, self.tx.actor.account_id, site_id)

    def support(self, customers: list[clients.Client]) -> None:
        """Open a few tickets for every client that has a site; some of the newest wait for an answer."""
        hosted = [customer for customer in customers if customer.id in self.sites]
        for index, customer in enumerate(hosted):
            people = self.tx.all(select(external_contacts.c.id).where(external_contacts.c.client_id == customer.id))
            for turn in range(6 + index % 4):
                (contact_id,) = self.rng.choice(people)
                self._ticket(QUESTIONS[(index * 5 + turn) % len(QUESTIONS)], contact_id, self.sites[customer.id])
        self._at(self.now)

    def _site(self, customer: clients.Client, environment: str, url: str) -> int:
        is_shop = self.tag_ids["E-commerce"] in customer.tag_ids
        is_current = self.rng.random() < 0.65
        version = NEWEST if is_current else self.rng.choice(WORDPRESS)
        plugins = [
            {
                "slug": plugin.slug,
                "name": plugin.name,
                "version": plugin.versions[0] if is_current else self.rng.choice(plugin.versions),
                "update_version": plugin.versions[0],
                "auto_update": self.rng.random() < 0.3,
            }
            for plugin in PLUGINS
            if self.rng.random() < 0.7 or (is_shop and plugin.slug == "woocommerce")
        ]
        self._at(self.now - uptime.QUARTER)
        site_id = create(
            sites.create_site,
            self.tx,
            url=url,
            client_id=customer.id,
            environment=environment,
            platform="woocommerce" if is_shop else "wordpress",
            wp_version=version,
            wp_update_version=None if version == NEWEST else NEWEST,
            php_version=self.rng.choice(PHP),
            plugins=plugins,
        ).id
        self._at(self.now)
        self._check(site_id)
        return site_id

    def _check(self, site_id: int) -> None:
        """Record a quarter of checks: sums for each hour, and the checks of the last day one by one."""
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
                ended = as_instant(began + INTERVAL * down)
                incidents.append((account_id, site_id, as_instant(began), ended, rng.choice(CAUSES)))
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

    def _ticket(self, question: Question, contact_id: int, site_id: int) -> None:
        """Open a ticket with the replies, time and resolution that it has by now."""
        rng = self.rng
        opened = self.now - timedelta(days=rng.randint(0, 180) ** 2 // 180, minutes=rng.randint(5, 900))
        is_old = self.now - opened > timedelta(days=6)
        self._at(opened)
        ticket_id = create(
            tickets.create_ticket,
            self.tx,
            subject=question.subject,
            description=question.description,
            type=question.type,
            priority=question.priority,
            contact_id=contact_id,
            site_id=site_id,
            assignee_id=rng.choice(self.people),
        ).id
        answered = opened + timedelta(minutes=rng.randint(12, 600))
        if answered > self.now or (not is_old and rng.random() < 0.5):
            return
        self._at(answered)
        self._reply(ticket_id, body=question.answer, status="pending")
        if rng.random() < 0.3:
            self._reply(ticket_id, body="The log shows that it began with the last update.", is_internal=True)
        work = {"duration_minutes": rng.choice((10, 15, 20, 30, 45)), "date": answered.date().isoformat()}
        work |= {"user_id": rng.choice(self.people), "description": "Support"}
        create(time_entries.record_time, self.tx, ticket_id=ticket_id, **work)
        thanked = answered + timedelta(minutes=rng.randint(30, 2000))
        if question.thanks and thanked < self.now:
            self._at(thanked)
            self._reply(ticket_id, body=question.thanks, author_type="contact")
        if is_old:
            self._at(answered + timedelta(hours=rng.randint(20, 90)))
            self._reply(ticket_id, body="All done. Just reply if anything is missing.", status="resolved")

    def _at(self, moment: datetime) -> None:
        self.tx.now = as_instant(min(moment, self.now))

    def _reply(self, ticket_id: int, **fields: Any) -> None:
        create(ticket_replies.create_ticket_reply, self.tx, ticket_id, **fields)
