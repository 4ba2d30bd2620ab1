"""Outages of the database: logged once when they begin and once when they end."""

import threading
import time
from collections.abc import Callable

from retainer.store.engines import Engine
from retainer.store.engines.base import DiskFull, Unavailable

QUIET_SECONDS = 2
"""Seconds without an error after which an outage has ended, if the database answers."""


class Outages:
    """Counts errors of the database. `tell` logs a message, and whether the outage is over."""

    def __init__(self, engine: Engine, tell: Callable[[str, bool], None]) -> None:
        self.engine, self.tell = engine, tell
        self.is_on = False
        self.is_full = False
        """Whether the disk of the database is full; reads are answered meanwhile."""
        self.errors = 0
        self._newest = self._began_at = 0.0
        self._errors_before = 0
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
            self.is_on = True
        reason = " ".join(str(error).split()).rstrip(".")
        message = f"{error.subject} cannot be used ({reason}). Until it can, requests that need it get 503."
        advice = f"Check {self.engine.hint}."
        if isinstance(error, DiskFull):
            message = f"The disk of the database is full ({reason}). Until it has room, requests that write get 503."
            advice = "Free space, or enlarge the disk."
        self.tell(f"{message} {advice}", False)  # noqa: FBT003

    def end_if_over(self) -> None:
        """End an outage if there were no errors for a while, and the database answers."""
        if not self.is_on or time.monotonic() - self._newest < QUIET_SECONDS:
            return
        try:
            self.engine.check()
        except Unavailable:
            return
        if not self.engine.has_room():
            return
        with self._lock:
            self.is_on = self.is_full = False
            failed = self.errors - self._errors_before
        seconds = f"{self._newest - self._began_at:.0f} seconds"
        message = f"The database can be used again. Requests and tasks that failed in {seconds}: {failed}."
        self.tell(message, True)  # noqa: FBT003
