"""Health: /livez and /readyz, for process supervisors and load balancers."""

import threading
import time
from collections.abc import Callable

import msgspec

from retainer.kernel.http import Response
from retainer.kernel.limits import Limiter
from retainer.schema.migrations import current, head
from retainer.server.operations.outages import Outages
from retainer.store.engines import Busy, Unavailable
from retainer.store.tx import Store

FRESH_SECONDS = 1
"""Cache TTL of the health checks, in seconds."""
DEADLINE_SECONDS = 1
"""Timeout of the database check, in seconds."""
OK, NO_ANSWER = "ok", "no answer in time"

encode = msgspec.json.Encoder().encode


class Check:
    """A check of the database, in its own thread because it may hang."""

    def __init__(self, store: Store, newest_schema: str) -> None:
        self.began = time.monotonic()
        self.found = {"database": NO_ANSWER}
        self._store, self._newest_schema = store, newest_schema
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="health", daemon=True).start()

    @property
    def is_stale(self) -> bool:
        """Whether a new check is needed."""
        return self._ended.is_set() and time.monotonic() - self.began >= FRESH_SECONDS

    def wait(self) -> dict[str, str]:
        """Return the result, or that there is no answer yet."""
        self._ended.wait(max(0, self.began + DEADLINE_SECONDS - time.monotonic()))
        return self.found

    def _run(self) -> None:
        try:
            schema = current(self._store)
        except Busy:
            self.found = {"database": NO_ANSWER}
        except Unavailable:  # the reason may contain host names, so it is only in the log
            self.found = {"database": "out of reach"}
        else:
            is_behind = schema is None or schema < self._newest_schema
            self.found = {"database": OK, "migrations": "behind" if is_behind else OK}
        finally:
            self._ended.set()


class Health:
    """Whether a process is alive, and ready for requests; not while the server `is_stopping`.

    A newer schema is accepted: during a rolling update, the new version's migrations run while this one serves.
    """

    def __init__(
        self, store: Store, limiter: Limiter, outages: Outages, is_stopping: Callable[[], bool], *, uses_valkey: bool
    ) -> None:
        self.is_stopping = is_stopping
        self._outages = outages
        self._store, self._limiter, self._uses_valkey = store, limiter, uses_valkey
        self._newest_schema = head()
        self._check: Check | None = None
        self._lock = threading.Lock()

    def live(self) -> Response:
        """Return 200, without any check."""
        return reply(200, {"status": "alive"})

    def ready(self) -> Response:
        """Return 200 if the process should get requests, else 503; with the result of each check.

        Without Valkey, each process limits requests on its own, and on a full disk reads are answered: the status stays
        200.
        """
        if self.is_stopping():
            return reply(503, {"status": "stopping"})
        with self._lock:
            if self._check is None or self._check.is_stale:
                self._check = Check(self._store, self._newest_schema)
            check = self._check
        found = check.wait()
        is_ready = set(found.values()) == {OK}
        if self._uses_valkey:
            found = found | {"valkey": OK if self._limiter.is_shared else "out of reach"}
        if self._outages.is_full:
            found = found | {"disk": "full"}
        words = {True: "ready" if set(found.values()) == {OK} else "degraded", False: "unready"}
        return reply(200 if is_ready else 503, {"status": words[is_ready], **found})


def reply(status: int, found: dict[str, str]) -> Response:
    """Return a response with the results."""
    return Response(status, [("content-type", "application/json; charset=utf-8")], encode(found))
