"""An exchange: a request, and the connection of its client, from its arrival to its response.

An exchange that waits is an object in a queue and in `Pending`, and takes no thread.
"""

import threading
import time
from collections.abc import Callable, Container, Hashable
from typing import Any, NamedTuple

from retainer.fairness import FairSemaphore
from retainer.kernel.http import Request, Response
from retainer.kernel.waiting import Ending, WaitingPlace

CLOSE = ("connection", "close")
WATCH_SECONDS = 1.0
"""How long an exchange waits before the server watches for its client to hang up, which takes a task of its own."""
Answer = Callable[[Request], Response]


class Rest(NamedTuple):
    """The rest of a request that waits for events, and what it is answered with if none comes."""

    place: WaitingPlace
    found: Response


class Exchange:
    """A request on its way; `client` is the HTTP server's side of it (RSGI)."""

    subject: Hashable = None
    """Whose turns it takes: an account; until it is known, a network."""
    account_known = False
    size = 0
    """Bytes of the body that have come."""
    coming: Any = None
    """The part of it that is awaited."""
    places: Any = None
    queue: FairSemaphore | None = None
    """In which it waits, or has waited last."""
    rest: Rest | None = None
    _watch: Any = None

    def __init__(
        self, request: Request, client: Any, connection: str, answer: Answer, *, is_quick: bool, writes: bool = False
    ) -> None:
        self.request, self.client, self.connection, self.answer = request, client, connection, answer
        self.is_quick = is_quick
        """Whether it waits only for the database, which answers at once."""
        self.writes = writes
        """Whether it is one for the writer of SQLite."""
        self.arrived = time.monotonic()
        self.body: list[bytes] = []

    @property
    def is_resting(self) -> bool:
        return self.rest is not None and self.rest.place.is_waiting

    def send(self, response: Response, ending: Ending) -> None:
        headers = response.headers
        if ending.has_begun() and CLOSE not in headers:
            headers.append(CLOSE)
        is_head = self.request.method == "HEAD"
        for file in self.request.opened:
            file.close()
        self.request.body = b""  # pages keep their request until the collector finds the cycles of their template
        client, self.client = self.client, None  # the server closes a connection whose body can no longer be read
        if response.download is None or is_head:
            client.response_bytes(response.status, headers, b"" if is_head else response.body)
        else:
            client.response_file(response.status, headers, response.download.path)

    def watch_client(self, gone: Callable[["Exchange"], object]) -> None:
        """Call a function when the client hangs up, until `unwatch`."""
        if self._watch is None:
            self._watch = self.client.client_disconnect()
            self._watch.add_done_callback(lambda _: gone(self))

    def unwatch(self) -> None:
        if self._watch is not None:
            self._watch.remove_done_callback(None)
            self._watch.cancel()


class WaitingExchanges:
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
            if wait[0] <= now:
                self._end(exchange, wait)
            elif not exchange.request.has_body and now - exchange.arrived > WATCH_SECONDS:
                exchange.watch_client(gone)

    def end_those_of(self, clients: Container[str]) -> None:
        """End the waits of clients, each an address and a port, as if their time were up."""
        for exchange, wait in list(self._waits.items()):
            if exchange.connection in clients:
                self._end(exchange, wait)

    def _end(self, exchange: Exchange, wait: tuple[float, Callable[[Exchange], object]]) -> None:
        with self._lock:
            is_up = self._waits.get(exchange) is wait
            if is_up:
                del self._waits[exchange]
        if is_up:
            wait[1](exchange)
