"""The turns of requests: how many run at the same time, and how many of one account (decision 27)."""

import math
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from retainer.errors import Refusal
from retainer.fairness import FairSemaphore
from retainer.server.http.bodies import RETRY
from retainer.server.http.exchange import Exchange
from retainer.store.engines.base import of_request
from retainer.store.transaction import READ_SECONDS

TURN_SECONDS = 10
"""How long a request waits for its turn. After that it is never executed."""
SHARE, SHARE_BESIDE_OTHERS = 2, 1
"""How many requests of an account run at the same time, and how many while other accounts send requests, too. One
thread runs Python at a time: with two of an account, everybody else would have a third of it."""
SHARED_SECONDS = 1
"""How long the server counts as shared after requests of two accounts."""
TURNS_ON_SQLITE = 2
"""How many requests run at the same time on SQLite, which answers in this process: they wait for nothing but the
interpreter, which each would have to ask for after every statement, the longer the more of them run."""
SHORT_SECONDS = 0.005
"""How long a request keeps its turn while SQLite computes for it, which needs no interpreter."""
MAX_WAITING = 384
"""Maximum number of requests that wait for their turn."""


class Turn(threading.local):
    """The turn of the request that a thread answers."""

    subject: Hashable = None
    is_held = False
    stands_aside = False
    """Whether others run while SQLite computes for its request."""
    began = 0.0
    """By the time of the processor that its thread has taken."""


class RequestTurns:
    """At most `count` requests run, of an account two, or one while other accounts send requests, too.

    On SQLite only `TURNS_ON_SQLITE` run, and besides these up to `count` for which it computes for long, one of an
    account. `refuse` is called with a request that finds no room to wait, `run` with one that has its turn.
    """

    def __init__(
        self,
        count: int,
        refuse: Callable[[Exchange], object],
        run: Callable[[Exchange | None], object],
        *,
        is_sqlite: bool,
    ) -> None:
        turns = min(count, TURNS_ON_SQLITE) if is_sqlite else count
        self.running = FairSemaphore(turns, SHARE, MAX_WAITING, refuse)
        self.aside = FairSemaphore(count - turns, 1, 0)
        self.run = run
        self._turn = Turn()
        self._latest: Hashable = None
        self._shared_until = -math.inf

    def counts(self) -> tuple[int, int, int]:
        """Return how many requests can run, how many do, and how many wait for their turn."""
        count, free = self.running.count + self.aside.count, self.running.free + self.aside.free
        return count, count - free, self.running.waiting

    def notice(self, exchange: Exchange) -> None:
        """Notice whose requests arrive: beside others, each account has a smaller share from now on."""
        latest, self._latest = self._latest, exchange.subject
        if latest not in (None, exchange.subject):
            self._shared_until = exchange.arrived + SHARED_SECONDS
            self.running.share = SHARE_BESIDE_OTHERS

    def is_shared(self) -> bool:
        """Return whether several accounts have sent requests of late."""
        return time.monotonic() < self._shared_until

    def look(self) -> None:
        """Give an account that is alone its whole share again."""
        if self.running.share < SHARE and not self.is_shared():
            for exchange in self.running.widen(SHARE):
                self.run(exchange)

    def wait_end(self) -> float:
        """Return when a request that begins to wait for its turn now gives up."""
        return time.monotonic() + TURN_SECONDS

    def begin(self, subject: Hashable) -> None:
        """Begin the turn that a request has got, in the thread that answers it."""
        turn = self._turn
        turn.subject, turn.is_held, turn.began = subject, True, time.thread_time()
        of_request.left, of_request.is_computed_for = self.left, self.stand_aside

    def end(self) -> Exchange | None:
        """Give the turn of this thread back; return the request that has it next."""
        turn = self._turn
        following: Exchange | None = self.running.release(turn.subject) if turn.is_held else None
        if turn.stands_aside:
            self.aside.release(turn.subject)
        turn.is_held = turn.stands_aside = False
        return following

    @contextmanager
    def left(self, *, returns_at_once: bool = False) -> Iterator[None]:
        """Let others run during a block that waits for something else than a processor.

        Raises `unavailable` if there is no turn for the rest of the request. A request that `returns_at_once` needs
        none: it holds what all others wait for.
        """
        turn = self._turn
        if not turn.is_held:  # a command, a test without a server, or it stands aside already
            yield
            return
        turn.is_held = False
        self.run(self.running.release(turn.subject))
        try:
            yield
        finally:
            if returns_at_once:
                self.running.take(turn.subject)
            elif not self.running.acquire(turn.subject, min(TURN_SECONDS, of_request.remaining() - READ_SECONDS)):
                raise busy()
            turn.is_held = True

    def stand_aside(self) -> None:
        """Let others run while a statement of SQLite computes for a request that has had its turn for a while."""
        turn = self._turn
        if not turn.is_held or time.thread_time() - turn.began < SHORT_SECONDS:
            return
        if self.aside.acquire(turn.subject, 0):
            turn.is_held, turn.stands_aside = False, True
            self.run(self.running.release(turn.subject))


def busy() -> Refusal:
    message = (
        "The server is busy, and this request was not executed. "
        "Send fewer requests at the same time, and try again in 5 seconds."
    )
    return Refusal("unavailable", message, headers=RETRY)
