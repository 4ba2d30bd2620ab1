"""Websites with 90 days of checks, and tickets with their threads."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from retainer.crm.clients import Client
from retainer.demo.make import CONTENT, Scene, create
from retainer.schema.crm import external_contacts
from retainer.schema.sites import site_checks, site_hours, site_incidents
from retainer.schema.sites import sites as sites_table
from retainer.sites import sites, uptime
from retainer.support import ticket_replies, tickets
from retainer.values.exact import as_instant, utcnow
from retainer.work import time_entries

INTERVAL = timedelta(minutes=5)
CHECKS_AN_HOUR, HOURS = 12, 24 * 90
BUSY_HOURS, DAYTIME_MS = range(8, 18), 60
FAILURE = "The site answered 502."
DOWN = timedelta(minutes=47)
NEWEST, OLDER = "6.8.3", "6.7.4"


def care(scene: Scene) -> None:
    """Give each active client a site, of which the last is down, and a few tickets."""
    scene.tx.now = utcnow()  # the monitor has checked the sites until this moment
    now, questions = datetime.fromisoformat(scene.tx.now), CONTENT["questions"]
    active = [client for client in scene.clients if client.status == "active"]
    site_ids = [_site(scene, client, now) for client in active]
    for index, (client, site_id) in enumerate(zip(active, site_ids, strict=True)):
        _check(scene, site_id, now, is_down=site_id == site_ids[-1])
        contact_id = scene.tx.value(select(external_contacts.c.id).where(external_contacts.c.client_id == client.id))
        for turn in range(6):
            _ticket(scene, questions[(index * 3 + turn) % len(questions)], contact_id, site_id, now)
    scene.tx.now = as_instant(now)


def _site(scene: Scene, client: Client, now: datetime) -> int:
    is_current = scene.rng.random() < 0.65
    plugins = [{**each, "version": each["update_version" if is_current else "version"]} for each in CONTENT["plugins"]]
    scene.tx.now = as_instant(now - uptime.QUARTER)
    return create(
        sites.create_site,
        scene.tx,
        url=str(client.website),
        client_id=client.id,
        platform="wordpress",
        wp_version=NEWEST if is_current else OLDER,
        wp_update_version=None if is_current else NEWEST,
        php_version=scene.rng.choice(("8.3.27", "8.2.29")),
        plugins=plugins,
    ).id


def _check(scene: Scene, site_id: int, now: datetime, *, is_down: bool) -> None:
    tx, rng = scene.tx, scene.rng
    tx.now, key = as_instant(now), (tx.actor.account_id, site_id)
    outages = {rng.randint(30, HOURS - 10): rng.randint(2, CHECKS_AN_HOUR) for _ in range(rng.randint(0, 5))}
    last_hour, usual = now.replace(minute=0, second=0, microsecond=0), rng.randint(120, 480)
    for ago in range(HOURS - 1, 0, -1):
        began, down = last_hour - timedelta(hours=ago), outages.get(ago, 0)
        up = CHECKS_AN_HOUR - down
        usual = max(80, min(900, usual + rng.randint(-9, 9)))
        response_ms = up * (usual + (DAYTIME_MS if began.hour in BUSY_HOURS else 0))
        tx.insert_rows(site_hours, [(*key, as_instant(began)[:13], up, down, up, response_ms)])
        if down:
            ended = as_instant(began + INTERVAL * down)
            tx.insert_rows(site_incidents, [(*key, as_instant(began), ended, FAILURE)])
    checked = [as_instant(now - INTERVAL * n - timedelta(seconds=7)) for n in range(uptime.DAY // INTERVAL)]
    since = as_instant(now - DOWN)
    tx.insert_rows(site_checks, [(*key, moment, not is_down or moment < since) for moment in checked])
    values: dict[str, Any] = {"observed": "up", "last_checked_at": checked[0], "last_status_code": 200}
    values |= {"response_time_ms": usual, "ssl_expires_at": as_instant(now + timedelta(days=rng.randint(6, 85)))}
    if is_down:
        failures = DOWN // INTERVAL
        values |= {"observed": "down", "failures": failures, "last_status_code": 502, "last_error": FAILURE}
        values |= {"down_since": since, "response_time_ms": None}
        tx.insert_rows(site_incidents, [(*key, since, None, FAILURE)])
        tx.insert_rows(site_hours, [(*key, tx.now[:13], 0, failures, 0, 0)])
    tx.update_columns(sites_table, site_id, values | {"next_check_at": None})  # its host does not exist: no check
    uptime.summarise(tx, site_id)


def _ticket(scene: Scene, question: dict[str, str], contact_id: int, site_id: int, now: datetime) -> None:
    """Open a ticket; the agency answers it, and resolves it unless it is of the last days."""
    tx, rng, asked = scene.tx, scene.rng, {**question}
    answer = asked.pop("answer")
    opened = now - timedelta(days=rng.randint(0, 180) ** 2 // 180, minutes=rng.randint(5, 900))
    is_old = now - opened > timedelta(days=6)
    tx.now = as_instant(opened)
    people = {"contact_id": contact_id, "assignee_id": rng.choice(scene.people)}
    ticket_id = create(tickets.create_ticket, tx, site_id=site_id, **people, **asked).id
    answered = opened + timedelta(minutes=rng.randint(12, 600))
    if answered > now or (not is_old and rng.random() < 0.5):
        return
    tx.now = as_instant(answered)
    create(ticket_replies.create_ticket_reply, tx, ticket_id, body=answer, status="pending")
    minutes, user_id = rng.choice((10, 15, 20, 30, 45)), rng.choice(scene.people)
    entry = {"duration_minutes": minutes, "user_id": user_id, "date": str(answered.date()), "description": "Support"}
    create(time_entries.record_time, tx, ticket_id=ticket_id, **entry)
    if is_old:
        tx.now = as_instant(min(now, answered + timedelta(hours=rng.randint(20, 90))))
        for reply in CONTENT["end_of_tickets"]:
            create(ticket_replies.create_ticket_reply, tx, ticket_id, **reply)
