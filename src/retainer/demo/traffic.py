"""What webhooks sent, and what keys asked for in a month, with a burst over the rate limit and an outage at night."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import bindparam, select

from retainer.api import ROUTES
from retainer.events.sender.batch import SendOutcome, load_batch
from retainer.events.sender.loop import Sender
from retainer.events.sender.results import save_results
from retainer.identity.keys import key_list
from retainer.identity.keys.key_list import Key
from retainer.kernel.resource import Operation
from retainer.outbound.leases import Places
from retainer.schema.identity import api_keys
from retainer.schema.webhooks import webhook_deliveries, webhooks
from retainer.store.tables import events
from retainer.store.tx import Actor, Store
from retainer.traffic.answered import RECORD, Reason, RequestLine
from retainer.traffic.recorder import RequestRecorder
from retainer.values.exact import as_instant, instant_after

ACCEPTED = SendOutcome(200, '{"received": true}', 87)
DELAY = timedelta(seconds=1)
"""Time from an event to its delivery."""
SENT = select(webhook_deliveries.c.id, events.c.at).where(
    webhook_deliveries.c.webhook_id == bindparam("webhook"), events.c.id == webhook_deliveries.c.event_id
)

DAYS = 30
PER_DAY = 70
"""Requests on a working day by the key that is used most; each other sends half as many as the one before."""
BURST, LIMIT = 640, 600
BURST_DAYS_AGO, OUTAGE_DAYS_AGO = 6, 1
CODES = {404: "not_found", 422: "validation_failed", 429: "rate_limited", 503: "unavailable"}
CREATED = {"POST": 201}
OPERATIONS = sorted(
    (each for each in ROUTES.operations if len(each.parameters) <= 1 and each.method != "DELETE"),
    key=lambda each: (each.writes, len(each.parameters)),
)
"""Those that need no more than one id; lists first, as they are called most."""


def deliver(store: Store, actor: Actor) -> None:
    for leased in Sender.leases.claim(store, Places(Sender.places, ()), Sender.lease):
        if batch := load_batch(store, leased, ""):
            for attempt in (attempt for group in batch.due for attempt in group):
                attempt.outcome = ACCEPTED
            save_results(store, leased, batch)
        with store.begin(actor, write=True) as tx:
            times = {row_id: instant_after(at, DELAY) for row_id, at in tx.all(SENT, webhook=leased.id)}
            for row_id, moment in times.items():
                tx.now = moment
                tx.update_columns(webhook_deliveries, row_id, {"created_at": moment, "attempted_at": moment})
            tx.update_columns(webhooks, leased.id, {"last_delivered_at": max(times.values(), default=None)})


def request(store: Store, actor: Actor, rng: random.Random) -> None:
    recorder, per_day, now = RequestRecorder(), PER_DAY, datetime.now(UTC)
    with store.begin(actor, write=False) as tx:
        keys = key_list.list_keys(tx)
    for key in keys:
        operations = [operation for operation in OPERATIONS if operation.scope in key.scopes]
        if not operations or key.revoked_at:
            continue
        since = datetime.fromisoformat(key.created_at)
        calls = [(each, rng.choice(operations), 0) for each in _everyday(actor, rng, per_day, now) if each >= since]
        if per_day == PER_DAY:
            calls += [(moment, operations[0], status) for moment, status in _mishaps(now)]
        per_day //= 2
        answers = [_answer(actor, rng, key, *call) for call in sorted(calls, key=lambda call: call[0])]
        recorder.add(answers)
        recorder.write(store)
        if answers:
            with store.begin(actor, write=True) as tx:
                used = {"last_used_at": answers[-1].time, "last_used_address": answers[-1].address}
                tx.update_columns(api_keys, key.id, used)


def _everyday(actor: Actor, rng: random.Random, per_day: int, now: datetime) -> Iterator[datetime]:
    zone = ZoneInfo(actor.timezone)
    for ago in range(DAYS):
        day = (now.astimezone(zone) - timedelta(days=ago)).date()
        for _ in range(rng.randint(per_day * 7 // 10, per_day * 13 // 10) // (1 if day.weekday() < 5 else 6)):
            moment = datetime.combine(day, time(7), zone) + timedelta(minutes=rng.randint(0, 360) + rng.randint(0, 360))
            if moment < now:
                yield moment.astimezone(UTC)


def _mishaps(now: datetime) -> Iterator[tuple[datetime, int]]:
    """Yield the requests of an import that exceeded the rate limit, and of a minute without the database."""
    start = (now - timedelta(days=BURST_DAYS_AGO)).replace(hour=9, minute=20, second=0, microsecond=0)
    for n in range(BURST):
        yield start + timedelta(microseconds=n * 59_000_000 // BURST), 200 if n < LIMIT else 429
    start = (now - timedelta(days=OUTAGE_DAYS_AGO)).replace(hour=2, minute=14, second=0, microsecond=431_007)
    for n in range(5):
        yield start + timedelta(seconds=9 * n), 503


def _answer(
    actor: Actor, rng: random.Random, key: Key, moment: datetime, operation: Operation, status: int
) -> RequestLine:
    if not status:
        failed = 422 if operation.writes else 404 if operation.parameters else 200
        status = failed if rng.random() < 0.03 else CREATED.get(operation.method, 200)
    path = operation.path
    for parameter in operation.parameters:
        path = path.replace(f"{{{parameter}}}", str(rng.randint(1, 2)))
    found = RECORD.match(path) if operation.writes and status < 300 else None
    return RequestLine(
        time=as_instant(moment),
        request_id=f"req_{int(moment.timestamp()) * 1000:012x}{rng.getrandbits(48):012x}",
        method=operation.method,
        path=path,
        status=status,
        duration_ms=rng.randrange(900, 9000) / (1 if status == 503 else 1000),
        operation=None if status == 429 else operation.id,
        account_id=actor.account_id,
        user_id=key.user_id,
        key_id=key.id,
        key=key.prefix,
        address=f"198.51.100.{key.id}",
        record=found and found[0],
        reason=Reason(CODES[status], []) if status in CODES else None,
    )
