"""Outages of the database: said once when one begins and once when it is over, whatever fails meanwhile."""

import threading
import time
from typing import Protocol

from retainer.store.engines import Engine, Unavailable

CHECK_SECONDS = 0.5
QUIET_SECONDS = 2
"""Seconds without a failure after which an outage is over, once the database answers again."""


class OutageLog(Protocol):
    """Where it is said that an outage began, and that it is over."""

    def outage(self, message: str, *, is_over: bool) -> None:
        """Log the beginning or the end of an outage."""

    def flush(self) -> None:
        """Have written what was logged, without waiting for that."""


class Outages:
    """Counts what fails because of the database; from the first error on a thread looks for the end of the outage."""

    def __init__(self, engine: Engine, log: OutageLog) -> None:
        self.engine, self.log = engine, log
        self.is_on = False
        self.errors = 0
        self._newest = 0.0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def count_error(self) -> None:
        """Count an error that is no outage: the database is there."""
        with self._lock:
            self.errors += 1

    def note(self, error: Unavailable) -> None:
        """Count an error; the first one begins an outage."""
        with self._lock:
            self.errors += 1
            self._newest = time.monotonic()
            if self.is_on:
                return
            began = self._newest, self.errors - 1
            self._thread = threading.Thread(target=self._await_end, args=began, name="outage", daemon=True)
            self._thread.start()  # before anything is logged: whatever becomes of that, the outage ends
            self.is_on = True
        reason = " ".join(str(error).split()).rstrip(".")
        message = f"The database cannot be used ({reason}). Until it can, requests that need it are answered 503."
        self.log.outage(f"{message} Check {self.engine.hint}.", is_over=False)
        self.log.flush()

    def stop(self) -> None:
        """Look for the end of an outage no longer, before the database's connections are closed."""
        self._stopped.set()
        if self._thread:
            self._thread.join()

    def _await_end(self, began: float, errors_before: int) -> None:
        wait = float(QUIET_SECONDS)
        while not self._stopped.wait(wait):
            if self._is_over():
                self._end(began, errors_before)
                return
            wait = CHECK_SECONDS

    def _end(self, began: float, errors_before: int) -> None:
        with self._lock:
            self.is_on = False
            failed = self.errors - errors_before
        seconds = f"{self._newest - began:.0f} seconds"
        message = f"The database can be used again. Requests and chores that failed in {seconds}: {failed}."
        self.log.outage(message, is_over=True)
        self.log.flush()

    def _is_over(self) -> bool:
        if time.monotonic() - self._newest < QUIET_SECONDS:
            return False
        try:
            self.engine.has_table("alembic_version")  # reads the database, as SELECT 1 would not on SQLite
        except Unavailable:
            return False
        return True
