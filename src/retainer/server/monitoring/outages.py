"""Outages of the database: logged once when they begin and once when they end."""

import threading
import time
from typing import Protocol

from retainer.background import Background, Chore
from retainer.store.engines import DiskFull, Engine, Unavailable

CHECK_SECONDS = 0.5
STOP_SECONDS = 10
WATCHING = "watching for the end of an outage"
QUIET_SECONDS = 2
"""Seconds without an error after which an outage has ended, if the database answers."""


class OutageLog(Protocol):
    """The log of outages."""

    def outage(self, message: str, *, is_over: bool) -> None: ...

    def report(self, what: str, error: BaseException) -> None: ...

    def flush(self) -> None: ...


class Outages:
    """Counts errors of the database; after the first one, a thread watches for the end of the outage."""

    def __init__(self, engine: Engine, log: OutageLog) -> None:
        self.engine, self.log = engine, log
        self.is_on = False
        self.is_full = False
        """Whether the disk of the database is full; reads are answered meanwhile."""
        self.errors = 0
        self._newest = self._began_at = 0.0
        self._errors_before = 0
        self._watch: Background | None = None
        self._lock = threading.Lock()

    def count_error(self) -> None:
        with self._lock:
            self.errors += 1

    def note(self, error: Unavailable) -> None:
        """Count an error; the first one starts an outage."""
        with self._lock:
            self.errors += 1
            self._newest = time.monotonic()
            self.is_full = isinstance(error, DiskFull)
            if self.is_on:
                return
            self._began_at, self._errors_before = self._newest, self.errors - 1
            self._watch = Background("outage", self.log.report, [Chore(WATCHING, CHECK_SECONDS, self._end_if_over)])
            self._watch.start()  # before the log, so that the outage ends even if logging fails
            self.is_on = True
        reason = " ".join(str(error).split()).rstrip(".")
        message = f"{error.subject} cannot be used ({reason}). Until it can, requests that need it get 503."
        advice = f"Check {self.engine.hint}."
        if isinstance(error, DiskFull):
            message = f"The disk of the database is full ({reason}). Until it has room, requests that write get 503."
            advice = "Free space, or enlarge the disk."
        self.log.outage(f"{message} {advice}", is_over=False)
        self.log.flush()

    def stop(self) -> None:
        if self._watch:
            self._watch.stop(STOP_SECONDS)

    def _end_if_over(self) -> None:
        if self._watch is None or not self._is_over():
            return
        with self._lock:
            self.is_on = self.is_full = False
            failed = self.errors - self._errors_before
        self._watch.stop()
        seconds = f"{self._newest - self._began_at:.0f} seconds"
        message = f"The database can be used again. Requests and tasks that failed in {seconds}: {failed}."
        self.log.outage(message, is_over=True)
        self.log.flush()

    def _is_over(self) -> bool:
        if time.monotonic() - self._newest < QUIET_SECONDS:
            return False
        try:
            self.engine.check()
        except Unavailable:
            return False
        return self.engine.has_room()
