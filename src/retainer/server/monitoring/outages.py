"""Outages of the database: logged once when they begin and once when they end."""

import threading
import time
from collections.abc import Callable

from retainer.background import Background, Chore, Report
from retainer.store.engines import DiskFull, Engine, Unavailable

CHECK_SECONDS = 0.5
STOP_SECONDS = 10
WATCHING = "watching for the end of an outage"
QUIET_SECONDS = 2
"""Seconds without an error after which an outage has ended, if the database answers."""


class Outages:
    """Counts errors of the database; after the first one, a thread watches for the end of the outage.

    `tell` logs a message, and whether the outage is over.
    """

    def __init__(self, engine: Engine, tell: Callable[[str, bool], None], report: Report) -> None:
        self.engine, self.tell, self.report = engine, tell, report
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
            chores = [Chore(WATCHING, CHECK_SECONDS, self._end_if_over)]
            self._watch = Background("outage", self.report, chores, STOP_SECONDS)
            self._watch.start()  # before the log, so that the outage ends even if logging fails
            self.is_on = True
        reason = " ".join(str(error).split()).rstrip(".")
        message = f"{error.subject} cannot be used ({reason}). Until it can, requests that need it get 503."
        advice = f"Check {self.engine.hint}."
        if isinstance(error, DiskFull):
            message = f"The disk of the database is full ({reason}). Until it has room, requests that write get 503."
            advice = "Free space, or enlarge the disk."
        self.tell(f"{message} {advice}", False)  # noqa: FBT003

    def stop(self) -> None:
        if self._watch:
            self._watch.stop()

    def _end_if_over(self) -> None:
        if self._watch is None or not self._is_over():
            return
        with self._lock:
            self.is_on = self.is_full = False
            failed = self.errors - self._errors_before
        self._watch.stop()
        seconds = f"{self._newest - self._began_at:.0f} seconds"
        message = f"The database can be used again. Requests and tasks that failed in {seconds}: {failed}."
        self.tell(message, True)  # noqa: FBT003

    def _is_over(self) -> bool:
        if time.monotonic() - self._newest < QUIET_SECONDS:
            return False
        try:
            self.engine.check()
        except Unavailable:
            return False
        return self.engine.has_room()
