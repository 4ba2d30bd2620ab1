"""Health: /livez and /readyz, for process supervisors and load balancers."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from msgspec import json

from retainer.kernel.http import Response
from retainer.kernel.limits import SlidingWindow
from retainer.schema import fingerprint
from retainer.schema.fingerprint import UnknownSchema, head, is_newer
from retainer.schema.migrations import current
from retainer.server.monitoring.log import Outages
from retainer.store.engines import catalogue
from retainer.store.engines.base import Busy, PartlyUnavailable, Unavailable
from retainer.store.tx import Store

FRESH_SECONDS = 1
"""Cache TTL of the health checks, in seconds."""
DEADLINE_SECONDS = 1
"""Timeout of the database check, in seconds."""
OK, NO_ANSWER, PARTLY = "ok", "no answer in time", "partly out of reach"


class Health:
    """Whether a process is alive, and ready for requests; not while the server `is_stopping`.

    A newer revision is accepted: during a rolling update, the new version's migrations run while this one serves. The
    tables of the own revision are compared again whenever the schema has changed.
    """

    def __init__(
        self,
        store: Store,
        limiter: SlidingWindow,
        outages: Outages,
        is_stopping: Callable[[], bool],
        *,
        uses_valkey: bool,
    ) -> None:
        self.is_stopping = is_stopping
        self._outages = outages
        self._store, self._limiter, self._uses_valkey = store, limiter, uses_valkey
        self._newest_schema = head()
        self._compared: object = None  # the mark of the schema whose tables were right
        self._check: Future[dict[str, str]] | None = None
        self._checked_at = 0.0
        self._lacks_room = False
        self._lock = threading.Lock()

    def live(self) -> Response:
        return reply(200, {"status": "alive"})

    def ready(self) -> Response:
        """Return 200 if the process should get requests, else 503; with the result of each check.

        The status stays 200 in three cases: without Valkey, each process limits requests on its own; on a full disk,
        reads are answered; while a node of a cluster is out of reach, accounts on other nodes are served.
        """
        if self.is_stopping():
            return reply(503, {"status": "stopping"})
        with self._lock:
            age = time.monotonic() - self._checked_at
            if self._check is None or (self._check.done() and age >= FRESH_SECONDS):
                self._check, self._checked_at, age = Future(), time.monotonic(), 0
                # a thread of its own, because the check may hang
                threading.Thread(target=self._inspect, args=(self._check,), name="health", daemon=True).start()
            check = self._check
        try:
            found = check.result(max(0, DEADLINE_SECONDS - age))
        except TimeoutError:
            found = {"database": NO_ANSWER}
        is_ready = {OK, PARTLY}.issuperset(found.values())
        if self._uses_valkey:
            found = found | {"valkey": OK if self._limiter.is_shared else "out of reach"}
        if self._outages.is_full or self._lacks_room:
            found = found | {"disk": "full"}
        words = {True: "ready" if set(found.values()) == {OK} else "degraded", False: "unready"}
        return reply(200 if is_ready else 503, {"status": words[is_ready], **found})

    def _inspect(self, check: "Future[dict[str, str]]") -> None:
        found = {"database": NO_ANSWER}
        try:
            found = {"database": self._inspect_nodes(), "migrations": self._inspect_schema()}
            self._lacks_room = not self._store.engine.has_room()
        except Busy:
            pass
        except Unavailable:  # the reason may contain host names, so it is only in the log
            found = {"database": "out of reach"}
        finally:
            check.set_result(found)

    def _inspect_schema(self) -> str:
        stated = current(self._store) or ""
        if is_newer(stated):
            return OK
        if "" < stated < self._newest_schema:
            return "behind"
        mark = catalogue.mark(self._store.engine)
        if mark != self._compared or not stated:
            try:
                revision = fingerprint.revision(self._store.engine)
            except UnknownSchema:
                return "unknown"
            if revision != self._newest_schema:
                return "behind"
            self._compared = mark
        return OK

    def _inspect_nodes(self) -> str:
        """Return whether the whole database can be used; the log and the metrics learn what no request has met yet."""
        try:
            self._store.engine.check()
        except PartlyUnavailable as error:
            if not self._outages.is_on:
                self._outages.note(error)
            return PARTLY
        return OK


def reply(status: int, found: dict[str, str]) -> Response:
    return Response(status, [("content-type", "application/json; charset=utf-8")], json.encode(found))
