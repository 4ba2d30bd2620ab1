"""Housekeeping: write the logs, record the use of keys, delete expired data."""

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import starmap
from typing import Any

from sqlalchemy import Column, ColumnElement, Update, and_, bindparam, delete, func, or_, select, true, update

from retainer.background import Background, Chore
from retainer.identity.actors import in_accounts
from retainer.identity.closing import erase_due
from retainer.identity.people import sessions
from retainer.kernel.downloads import DOWNLOADS, KEPT_SECONDS
from retainer.kernel.idempotency import RETENTION
from retainer.kernel.limits import SlidingWindow
from retainer.mail.people import ask_for_link
from retainer.schema.identity import api_keys
from retainer.schema.links import client_links
from retainer.schema.requests import idempotency_keys, operation_hours, refusals, request_hours, requests
from retainer.schema.webhooks import webhook_deliveries
from retainer.server.monitoring.log import Log
from retainer.settings import Settings
from retainer.store.engines.base import Unavailable
from retainer.store.engines.sql import INSTANT
from retainer.store.outbox import NEWEST_ID
from retainer.store.tables import ONCE, events, totals
from retainer.store.tx import Store, Tx
from retainer.traffic.recorder import QUIET_SECONDS, RequestRecorder
from retainer.values.exact import as_instant, instant_after

STATE_SECONDS = 0.1
NOTE_SECONDS = 2.0
SWEEP_SECONDS = 60.0
ERASE_SECONDS = 0.2
"""Pause between two batches of an account that is deleted."""
SUMS_SECONDS = 3600.0
SUMS_DAYS = 90
"""How long sums of requests are kept at least."""
BATCH_SIZE = 5000
"""Number of rows that one transaction deletes, plus those with the same place in the order as the last one."""
PASS_SECONDS = 1.0
"""How long a thread that has other chores deletes old rows at a time."""
NOTED_SECONDS = 60
"""Minimum time between two writes of the same key, session or link."""
MAX_ASKED = 1000
"""Emails that wait for a password link; further ones have to be asked for again."""
STOP_SECONDS = 5
THIS = and_(api_keys.c.account_id == bindparam("account"), api_keys.c.id == bindparam("id"))
_used_at = api_keys.c.last_used_at
BEFORE = or_(_used_at.is_(None), _used_at < bindparam("at"), _used_at > bindparam("latest", type_=INSTANT))
"""Whether a use is the newest one: a time after `latest` is of a clock that was ahead."""
USED = update(api_keys).where(THIS, BEFORE).values(last_used_at=bindparam("at"), last_used_address=bindparam("address"))
OPENED = (
    update(client_links)
    .where(
        *(client_links.c.account_id == bindparam("account"), client_links.c.id == bindparam("id")),
        or_(client_links.c.last_opened_at.is_(None), client_links.c.last_opened_at < bindparam("at")),
    )
    .values(last_opened_at=bindparam("at"))
)
OLD = delete(idempotency_keys).where(idempotency_keys.c.created_at <= bindparam("before"))
EACH = true()
OLDEST = select(func.min(idempotency_keys.c.created_at))


class UsageRecorder:
    """When and from where keys, sessions and links were last used; written outside requests, each once a minute."""

    def __init__(self, statement: Update) -> None:
        self.statement = statement
        self._used: dict[tuple[int, int], tuple[float, str | None]] = {}
        """The uses that are not written yet."""
        self._written: dict[tuple[int, int], float] = {}
        """When the uses of the last minute were written."""

    def note(self, account_id: int, used_id: int, address: str | None) -> None:
        self._used[account_id, used_id] = time.time(), address

    def write(self, store: Store) -> None:
        now = time.time()
        # after now: the clock was ahead
        self._written = {key: moment for key, moment in self._written.items() if now - NOTED_SECONDS < moment <= now}
        due = sorted((key, use) for key, use in self._used.copy().items() if key not in self._written)
        if not due:
            return
        with store.unscoped(write=True) as tx:
            # sorted, so that servers lock rows in the same order
            latest = instant_after(tx.now, timedelta(seconds=NOTED_SECONDS))
            for (account_id, used_id), (moment, address) in due:
                at = as_instant(datetime.fromtimestamp(moment, UTC))
                tx.run(self.statement, account=account_id, id=used_id, at=at, address=address, latest=latest)
        self._written.update((key, now) for key, _ in due)
        for key, use in due:
            if self._used[key] is use:  # else it was used again meanwhile
                del self._used[key]


class AskedLinks:
    """Emails for which a password link was asked; a known one is as much work for the request as an unknown one."""

    def __init__(self) -> None:
        self._asked: dict[str, None] = {}

    def note(self, folded_email: str) -> None:
        if len(self._asked) < MAX_ASKED:
            self._asked[folded_email] = None

    def send(self, store: Store) -> None:
        for email in [*self._asked]:
            del self._asked[email]
            try:
                ask_for_link(store, email)
            except Unavailable:  # people were told that it is sent: it is tried again, after the others
                self._asked[email] = None
                raise


def delete_responses(store: Store) -> timedelta | None:
    """Delete the old responses of the first minute that has some; return the time until the next one's, if it is old.

    So many fit into a transaction, however many are left of a time in which no server ran.
    """
    before = as_instant(datetime.now(UTC) - RETENTION)
    with store.unscoped(write=True) as tx:
        oldest: str | None = tx.value(OLDEST)
        if oldest is None or oldest > before:
            return None
        until = instant_after(oldest, timedelta(minutes=1))
        tx.run(OLD, before=min(until, before))
        return timedelta(seconds=NOTE_SECONDS) if until < before else None


class RetentionRule:
    """Rows of each account that are deleted once their `time` is old, in an order that is also that of their times.

    Where it is not, as in the demo, all from the first young one on stay. Small batches let no writer wait for long.
    The newest row of an account stays with `keeps_newest`, and those that `may_go` does not name.
    """

    def __init__(
        self, time: Column[Any], order: Column[Any], may_go: ColumnElement[bool] = EACH, *, keeps_newest: bool = False
    ) -> None:
        self.table = table = order.table
        before = bindparam("before", type_=time.type)
        of_account = select(order).where(table.c.account_id == totals.c.account_id, may_go).limit(1)
        first = of_account.order_by(order)
        is_old = [first.with_only_columns(time).scalar_subquery() < before]
        if keeps_newest:  # the next one follows its id
            is_old.append(first.scalar_subquery() < of_account.order_by(order.desc()).scalar_subquery())
            may_go = order < NEWEST_ID
        self.accounts = select(totals.c.account_id).where(ONCE, *is_old)
        batch = select(order, time.label("time")).where(may_go).order_by(order).limit(bindparam("batch")).subquery()
        last = select(func.max(batch.c[order.name])).where(batch.c.time < before).scalar_subquery()
        young = select(func.min(batch.c[order.name])).where(batch.c.time >= before).scalar_subquery()
        self.delete = delete(table).where(order <= last, or_(young.is_(None), order < young), may_go)

    def delete_old(self, store: Store, before: str) -> int:
        def delete_batch(tx: Tx) -> int:
            deleted = tx.change(self.delete, before=before, batch=BATCH_SIZE)
            if self.table is webhook_deliveries:
                tx.count(self.table, -deleted)
            return deleted

        return in_accounts(store, self.accounts, delete_batch, PASS_SECONDS, before=before)


REQUESTS = [RetentionRule(table.c.answered_at, table.c.answered_at) for table in (refusals, requests)]
SUMS = [RetentionRule(table.c.hour, table.c.hour) for table in (request_hours, operation_hours)]
EVENTS = [
    RetentionRule(events.c.at, events.c.id, keeps_newest=True),
    RetentionRule(webhook_deliveries.c.created_at, webhook_deliveries.c.id, webhook_deliveries.c.status != "pending"),
]
"""Pending deliveries stay until their sender has noticed that the event is gone."""


def delete_old(store: Store, kept: Iterable[RetentionRule], days: int) -> int:
    """Delete a batch of rows of accounts that are older than these days; return how many were deleted."""
    before = as_instant(datetime.now(UTC) - timedelta(days=days))
    return sum(each.delete_old(store, before) for each in kept)


class Housekeeping(Background):
    """A thread that does the chores of a worker until it is stopped; `note_state` updates its metrics."""

    def __init__(
        self,
        store: Store,
        limiter: SlidingWindow,
        log: Log,
        recorder: RequestRecorder,
        settings: Settings,
        note_state: Callable[[], None] | None = None,
    ) -> None:
        self.store, self.log, self.recorder, self.settings = store, log, recorder, settings
        self.keys_used, self.sessions_used, self.links_opened = (
            UsageRecorder(USED),
            UsageRecorder(sessions.USED),
            UsageRecorder(OPENED),
        )
        self.links_asked = AskedLinks()
        self._last = (
            Chore("writing the request log", QUIET_SECONDS, self._record),
            Chore("noting used keys", NOTE_SECONDS, lambda: self.keys_used.write(store)),
            Chore("noting used sessions", NOTE_SECONDS, lambda: self.sessions_used.write(store)),
            Chore("noting opened links", NOTE_SECONDS, lambda: self.links_opened.write(store)),
            Chore("sending password links", NOTE_SECONDS, lambda: self.links_asked.send(store)),
            *([Chore("noting metrics", STATE_SECONDS, note_state)] if note_state else []),
            *log.chores,
        )
        """The chores that a stopping worker does once more."""
        sums_days = max(SUMS_DAYS, settings.request_log_days)
        kept = (
            ("events", SWEEP_SECONDS, EVENTS, settings.event_days),
            ("requests", SWEEP_SECONDS, REQUESTS, settings.request_log_days),
            ("sums of requests", SUMS_SECONDS, SUMS, sums_days),
        )
        super().__init__(
            "housekeeping",
            log.report,
            (
                Chore("deleting old counts", SWEEP_SECONDS, limiter.sweep),
                Chore("deleting old idempotency keys", SWEEP_SECONDS, lambda: delete_responses(store)),
                *starmap(self._deleting, kept),
                Chore("closing copies of files", KEPT_SECONDS, DOWNLOADS.close_unused),
                Chore("deleting old sessions", SWEEP_SECONDS, lambda: sessions.delete_expired(store)),
                Chore("deleting closed accounts", SWEEP_SECONDS, self._erase, at_once=True),
                *self._last,
            ),
            STOP_SECONDS,
        )

    def stop(self) -> None:
        """Stop the thread, then write everything that waits."""
        super().stop()
        for chore in self._last:
            chore.do(self.report)
        self.log.drain()

    def _record(self) -> timedelta:
        """Write the request log, and warn if requests are missing from it; return the time until the next write."""
        try:
            return self.recorder.write(self.store)
        finally:
            if dropped := self.recorder.pop_dropped():
                reason = "the database refused them or was too slow"
                message = f"{dropped} requests are missing from the request log: {reason}."
                self.log.warning(message)

    def _erase(self) -> timedelta | None:
        """Delete a batch of each account whose deletion is due; return the time until the next one, if any."""
        return timedelta(seconds=ERASE_SECONDS) if erase_due(self.store, self.log.warning) else None

    def _deleting(self, name: str, every: float, kept: list[RetentionRule], days: int) -> Chore:
        """Return the chore that deletes older rows: a batch, and soon another one if it was full.

        While requests come, some rows have just become old at any time: they wait for the next regular one.
        """

        def delete_batch() -> timedelta | None:
            return timedelta(seconds=NOTE_SECONDS) if delete_old(self.store, kept, days) >= BATCH_SIZE else None

        return Chore(f"deleting old {name}", every, delete_batch)
