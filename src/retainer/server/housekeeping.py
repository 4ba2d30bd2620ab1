"""Housekeeping beside requests: write the log, record when keys were used, delete what has expired."""

import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import and_, bindparam, delete, update

from retainer.kernel.idempotency import KEEP
from retainer.limits import Limiter
from retainer.schema.identity import api_keys
from retainer.schema.requests import idempotency_keys
from retainer.server.log import Log
from retainer.store.tx import Store
from retainer.values.exact import as_instant

LOG_SECONDS = 0.1
NOTE_SECONDS = 2.0
SWEEP_SECONDS = 60.0
THIS = and_(api_keys.c.account_id == bindparam("account"), api_keys.c.id == bindparam("key"))
USED = update(api_keys).where(THIS).values(last_used_at=bindparam("at"))
OLD = delete(idempotency_keys).where(idempotency_keys.c.created_at <= bindparam("before"))


class KeysUsed:
    """When each key was last used; written at most once a minute for each, outside every request."""

    def __init__(self) -> None:
        self._used: dict[tuple[int, int], float] = {}
        self._written: dict[tuple[int, int], float] = {}

    def note(self, account_id: int, key_id: int) -> None:
        """Remember that a key of an account was used now."""
        self._used[account_id, key_id] = time.time()

    def write(self, store: Store) -> None:
        """Write the times that are due."""
        now = time.time()
        due = {key: at for key, at in list(self._used.items()) if now - self._written.get(key, 0) >= 60}
        if not due:
            return
        with store.unscoped("keys of all accounts were used", write=True) as tx:
            for key, at in due.items():
                account_id, key_id = key
                tx.run(USED, account=account_id, key=key_id, at=as_instant(datetime.fromtimestamp(at, UTC)))
                self._written[key] = now
        for key, at in due.items():
            if self._used.get(key) == at:
                del self._used[key]


def forget_answers(store: Store) -> int:
    """Delete the stored responses of expired Idempotency-Keys; return how many."""
    with store.unscoped("old idempotency keys are of no account's interest", write=True) as tx:
        return tx.change(OLD, before=as_instant(datetime.now(UTC) - KEEP))


class Housekeeping:
    """A thread that does the chores of a serving process until it is stopped."""

    def __init__(self, store: Store, limiter: Limiter, log: Log, keys_used: KeysUsed) -> None:
        self.store, self.limiter, self.log, self.keys_used = store, limiter, log, keys_used
        self._parent = os.getppid()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, then write what is left."""
        self._stopped.set()
        self._thread.join(timeout=5)
        self._try("noting used keys", lambda: self.keys_used.write(self.store))
        self.log.flush()

    def _run(self) -> None:
        noted = swept = time.monotonic()
        while not self._stopped.wait(LOG_SECONDS):
            now = time.monotonic()
            if os.getppid() != self._parent:  # the main process was killed: nobody else would stop this one
                os.kill(os.getpid(), signal.SIGTERM)
            if now - noted >= NOTE_SECONDS:
                noted = now
                self._try("noting used keys", lambda: self.keys_used.write(self.store))
            if now - swept >= SWEEP_SECONDS:
                swept = now
                self.limiter.sweep()
                self._try("forgetting old idempotency keys", lambda: forget_answers(self.store))
            self._try("writing the log", self.log.flush)

    def _try(self, what: str, chore: Callable[[], object]) -> None:
        """Do a chore; a failure is logged, and the chore is tried again in its turn."""
        try:
            chore()
        except Exception as error:  # noqa: BLE001
            self.log.report(what, error)
