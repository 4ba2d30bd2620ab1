"""An exchange: a request, and the connection of its client, from its arrival to its response.

An exchange that waits is an object in a queue and in `Pending`, and takes no thread.
"""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from retainer.fairness import FairSemaphore
from retainer.kernel.http import Request, Response
from retainer.kernel.waiting import Ending, Place

CLOSE = ("connection", "close")
WATCH_SECONDS = 1.0
"""For how long an exchange waits until the server tells when its client hangs up, which takes a task of its own."""
Answer = Callable[[Request], Response]


class Rest(NamedTuple):
    """The rest of a request that waits for events, and what it is answered with if none comes."""

    place: Place
    found: Response


class Exchange:
    """A request on its way; `client` is the HTTP server's side of it (RSGI)."""

    __slots__ = (
        *("account_known", "answer", "arrived", "body", "client", "coming", "connection", "is_quick", "places"),
        *("queue", "request", "rest", "size", "subject", "writes", "_watch"),
    )

    def __init__(
        self, request: Request, client: Any, connection: str, answer: Answer, *, is_quick: bool, writes: bool = False
    ) -> None:
        self.request, self.client, self.connection, self.answer = request, client, connection, answer
        self.is_quick = is_quick
        """Whether it waits for nothing but the database, which tells what it reads at once."""
        self.writes = writes
        """Whether it is one for the writer of SQLite."""
        self.arrived = time.monotonic()
        self.subject: Hashable = None
        """Whose turns it takes: an account; until it is known, a network."""
        self.account_known = False
        self.body: list[bytes] = []
        self.size = 0
        """Bytes of the body that have come."""
        self.coming: Any = None
        """The part of it that is awaited."""
        self.places: Any = None
        self.queue: FairSemaphore | None = None
        """In which it waits, or has waited last."""
        self.rest: Rest | None = None
        self._watch: Any = None

    @property
    def is_resting(self) -> bool:
        return self.rest is not None and self.rest.place.is_waiting

    def send(self, response: Response, ending: Ending) -> None:
        headers = response.headers
        if ending.has_begun() and CLOSE not in headers:
            headers.append(CLOSE)
        body = b"" if self.request.method == "HEAD" else response.body
        for file in self.request.opened:
            file.close()
        client, self.client = self.client, None  # the server closes a connection whose body nobody can read any more
        client.response_bytes(response.status, headers, body)

    def watch_client(self, gone: Callable[["Exchange"], object]) -> None:
        """Call a function when the client hangs up, until `unwatch`."""
        if self._watch is None:
            self._watch = self.client.client_disconnect()
            self._watch.add_done_callback(lambda _: gone(self))

    def unwatch(self) -> None:
        if self._watch is not None:
            self._watch.remove_done_callback(None)
            self._watch.cancel()


class Pending:
    """Waiting exchanges with their deadlines. The thread that takes one from here answers it."""

    def __init__(self) -> None:
        self._waits: dict[Exchange, tuple[float, Callable[[Exchange], object]]] = {}
        self._lock = threading.Lock()

    def __contains__(self, exchange: Exchange) -> bool:
        return exchange in self._waits

    def add(self, exchange: Exchange, until: float, end: Callable[[Exchange], object]) -> None:
        """Let an exchange wait for something else; `end` is called with it if it still does when the time is up."""
        with self._lock:
            self._waits[exchange] = until, end

    def take(self, exchange: Exchange) -> bool:
        """Take an exchange out; return False if another has."""
        with self._lock:
            return self._waits.pop(exchange, None) is not None

    def look(self, gone: Callable[[Exchange], object]) -> None:
        """End the waits whose time is up, and have the clients of the others watched after a while."""
        now = time.monotonic()
        for exchange, wait in list(self._waits.items()):
            if wait[0] > now:
                if not exchange.request.has_body and now - exchange.arrived > WATCH_SECONDS:
                    exchange.watch_client(gone)
                continue
            with self._lock:
                is_up = self._waits.get(exchange) is wait
                if is_up:
                    del self._waits[exchange]
            if is_up:
                wait[1](exchange)
