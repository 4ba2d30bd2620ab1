"""Housekeeping: write the logs, record the use of keys, delete expired data."""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from sqlalchemy import and_, bindparam, delete, or_, update

from retainer.events.retention import delete_events
from retainer.identity.people import expiry
from retainer.kernel.caller import Caller
from retainer.kernel.http import Request
from retainer.kernel.idempotency import RETENTION
from retainer.rollups import labour
from retainer.schema.identity import api_keys
from retainer.schema.requests import idempotency_keys
from retainer.server.operations.log import Log
from retainer.store.tx import Store
from retainer.traffic import retention
from retainer.traffic.recorder import RequestRecorder
from retainer.values.exact import as_instant

LOG_SECONDS = 0.1
NOTE_SECONDS = 2.0
SWEEP_SECONDS = 60.0
SUMS_SECONDS = 3600.0
THIS = and_(api_keys.c.account_id == bindparam("account"), api_keys.c.id == bindparam("key"))
BEFORE = or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at < bindparam("at"))
USED = update(api_keys).where(THIS, BEFORE).values(last_used_at=bindparam("at"), last_used_address=bindparam("address"))
OLD = delete(idempotency_keys).where(idempotency_keys.c.created_at <= bindparam("before"))


class Counter(Protocol):
    """A counter of requests or failures in memory."""

    def sweep(self) -> None:
        """Delete expired counts."""


class RetentionDays(NamedTuple):
    """Days for which requests and events are kept."""

    requests: int
    events: int


class KeysUsed:
    """When and from where each key was last used; written at most once a minute for each key, outside requests."""

    def __init__(self) -> None:
        self._used: dict[tuple[int, int], tuple[float, str | None]] = {}
        self._written: dict[tuple[int, int], float] = {}

    def note(self, caller: Caller, request: Request) -> None:
        """Note that a key was used now."""
        self._used[caller.account_id, caller.key_id] = time.time(), request.shown_address

    def write(self, store: Store) -> None:
        """Write the entries that are due."""
        now, used = time.time(), self._used.copy().items()
        due = sorted((key, use) for key, use in used if self._written.get(key, 0) <= min(use[0], now - 60))
        if not due:
            return
        with store.unscoped(write=True) as tx:
            # sorted, so that servers lock rows in the same order
            for (account_id, key_id), (moment, address) in due:
                at = as_instant(datetime.fromtimestamp(moment, UTC))
                tx.run(USED, account=account_id, key=key_id, at=at, address=address)
        self._written.update((key, now) for key, _ in due)


def delete_responses(store: Store) -> int:
    """Delete the stored responses of expired Idempotency-Keys; return their number."""
    with store.unscoped(write=True) as tx:
        return tx.change(OLD, before=as_instant(datetime.now(UTC) - RETENTION))


class Housekeeping:
    """A thread that does the chores of a worker until it is stopped."""

    def __init__(
        self,
        store: Store,
        counters: Sequence[Counter],
        log: Log,
        keys_used: KeysUsed,
        recorder: RequestRecorder,
        retention_days: RetentionDays,
    ) -> None:
        self.store, self.counters, self.log, self.keys_used = store, counters, log, keys_used
        self.recorder, self.retention_days = recorder, retention_days
        self.note_state: Callable[[], None] = lambda: None
        """Updates the metrics of this process."""
        self._has_old = False
        self._has_pending_rates = True  # possibly: another process may have ended before it had recounted all
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, then write everything that waits."""
        self._stopped.set()
        self._thread.join(timeout=5)
        self.log.outages.stop()
        self._try("noting used keys", lambda: self.keys_used.write(self.store))
        self.log.flush()
        self._try("writing the request log", lambda: self._record(self.recorder.finish))
        self._try("noting metrics", self.note_state)
        self.log.drain()

    def _record(self, write: Callable[[Store], None]) -> None:
        """Write the request log, and warn if requests are missing from it."""
        try:
            write(self.store)
        finally:
            if dropped := self.recorder.pop_dropped():
                reason = "the database refused them or was too slow"
                message = f"{dropped} requests are missing from the request log: {reason}."
                self.log.warning(message)

    def _delete_old(self) -> None:
        """Delete a batch of old requests and events; the next ones follow with the notes until none is left."""
        requests = retention.delete_requests(self.store, self.retention_days.requests)
        self._has_old = requests + delete_events(self.store, self.retention_days.events) > 0

    def _recount_labour(self) -> None:
        """Recount a batch of hours at changed cost rates; the next ones follow after a pause until none is left."""
        self._has_pending_rates = False  # a failure waits for the next sweep
        self._has_pending_rates = labour.recount_step(self.store)

    def _run(self) -> None:
        noted = recorded = swept = summed = time.monotonic()
        while not self._stopped.wait(LOG_SECONDS):
            now = time.monotonic()
            if now - noted >= NOTE_SECONDS:
                noted = now
                self._try("noting used keys", lambda: self.keys_used.write(self.store))
                if self._has_old:
                    self._try("deleting old requests and events", self._delete_old)
            if self.recorder.is_due(now - recorded):
                recorded = now
                self._try("writing the request log", lambda: self._record(self.recorder.write))
            if self._has_pending_rates or now - swept >= SWEEP_SECONDS:
                self._try("recounting hours at changed cost rates", self._recount_labour)
            if now - swept >= SWEEP_SECONDS:
                swept = now
                for counter in self.counters:
                    counter.sweep()
                self._try("deleting old idempotency keys", lambda: delete_responses(self.store))
                self._try("deleting old requests and events", self._delete_old)
                self._try("deleting old sessions", lambda: expiry.delete_expired(self.store))
            if now - summed >= SUMS_SECONDS:
                summed = now
                self._try("deleting old sums", lambda: retention.delete_sums(self.store, self.retention_days.requests))
            self._try("noting metrics", self.note_state)
            self._try("writing the log", self.log.flush)

    def _try(self, what: str, chore: Callable[[], object]) -> None:
        """Do a chore; log a failure, and try again when the chore is next due."""
        try:
            chore()
        except Exception as error:  # noqa: BLE001
            self.log.report(what, error)
