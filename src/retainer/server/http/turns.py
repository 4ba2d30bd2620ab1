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
SHORT_SECONDS = 0.02
"""How long a request keeps its turn on SQLite while others wait; then it runs beside them."""
RELIEVERS = 1
"""Threads that let requests stand aside."""
MAX_WAITING = 384
"""Maximum number of requests that wait for their turn."""


class Turn:
    """The turn of a request."""

    __slots__ = ("began", "subject")

    def __init__(self, subject: Hashable) -> None:
        self.subject, self.began = subject, time.monotonic()


class OwnTurn(threading.local):
    """The turn of the request that a thread answers."""

    turn: Turn | None = None


class RequestTurns:
    """At most `count` requests run, of an account two, or one while other accounts send requests, too.

    On SQLite only `TURNS_ON_SQLITE` run. One that takes long while other accounts wait stands aside: it runs on beside
    them, up to `count` in all. `refuse` is called with a request that finds no room to wait, `run` with one that has
    its turn, and `start` with a function for a thread of its own.
    """

    def __init__(
        self,
        count: int,
        refuse: Callable[[Exchange], object],
        run: Callable[[Exchange | None], object],
        start: Callable[[Callable[[], object]], object],
        *,
        is_sqlite: bool,
    ) -> None:
        turns = min(count, TURNS_ON_SQLITE) if is_sqlite else count
        self.running = FairSemaphore(turns, SHARE, MAX_WAITING, refuse)
        self.places_aside = count - turns
        self.run, self.start = run, start
        self._own = OwnTurn()
        # The thread that removes a turn from one of these gives it back. One thread at a time moves turns between them.
        self._held: set[Turn] = set()
        self._aside: set[Turn] = set()
        self._relieving = threading.Lock()
        self._latest: Hashable = None
        self._shared_until = -math.inf

    def counts(self) -> tuple[int, int, int]:
        """Return how many requests can run, how many do, and how many wait for their turn."""
        running = self.running
        return running.count + self.places_aside, running.count - running.free + len(self._aside), running.waiting

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
        """Give an account that is alone its whole share again, and relieve what began to wait as `relieve` ended."""
        self.relieve()
        if self.running.share < SHARE and not self.is_shared():
            for exchange in self.running.widen(SHARE):
                self.run(exchange)

    def wait_end(self) -> float:
        """Return when a request that begins to wait for its turn now gives up."""
        return time.monotonic() + TURN_SECONDS

    def begin(self, subject: Hashable) -> None:
        """Begin the turn that a request has got, in the thread that answers it."""
        turn = self._own.turn = Turn(subject)
        self._held.add(turn)
        of_request.left = self.left

    def end(self) -> Exchange | None:
        """Give the turn of this thread back; return the request that has it next."""
        turn, self._own.turn = self._own.turn, None
        return None if turn is None else self._give_back(turn)

    @contextmanager
    def left(self, *, returns_at_once: bool = False) -> Iterator[None]:
        """Let others run during a block that waits for something else than a processor.

        Raises `unavailable` if there is no turn for the rest of the request. A request that `returns_at_once` needs
        none: it holds what all others wait for.
        """
        turn = self._own.turn
        if turn not in self._held and turn not in self._aside:  # a command, a test, or it has been left already
            yield
            return
        self.run(self._give_back(turn))
        try:
            yield
        finally:
            if returns_at_once:
                self.running.take(turn.subject)
            elif not self.running.acquire(turn.subject, min(TURN_SECONDS, of_request.remaining() - READ_SECONDS)):
                raise busy()
            turn.began = time.monotonic()
            self._held.add(turn)

    def _give_back(self, turn: Turn) -> Exchange | None:
        """Give a turn back, if it is not yet; return the request that has it next."""
        following: Exchange | None = None
        if _take(self._held, turn):
            following = self.running.release(turn.subject)
        elif _take(self._aside, turn):
            following = self.running.end_loan(turn.subject)
        return following

    def relieve(self) -> None:
        """Let slow requests stand aside until nobody waits, in a thread of its own. There is one at a time."""
        if self.places_aside and self.running.waiting and self._relieving.acquire(blocking=False):
            self.start(self._look_until_none_waits)

    def _look_until_none_waits(self) -> None:
        try:
            while self.running.waiting:
                time.sleep(SHORT_SECONDS / 2)
                self._let_slow_ones_stand_aside()
        finally:
            self._relieving.release()

    def _let_slow_ones_stand_aside(self) -> None:
        """Move slow requests aside, where they run on, and give their turns to other accounts."""
        end = time.monotonic() - SHORT_SECONDS
        for turn in list(self._held):
            if turn.began > end or len(self._aside) >= self.places_aside or not self.running.has_other(turn.subject):
                continue
            self._aside.add(turn)
            if _take(self._held, turn):
                self.run(self.running.lend())
            else:  # it has ended meanwhile, or waits for something else
                self._aside.discard(turn)


def _take(turns: set[Turn], turn: Turn) -> bool:
    """Take a turn out; return False if another thread has."""
    try:
        turns.remove(turn)
    except KeyError:
        return False
    return True


def busy() -> Refusal:
    message = (
        "The server is busy, and this request was not executed. "
        "Send fewer requests at the same time, and try again in 5 seconds."
    )
    return Refusal("unavailable", message, headers=RETRY)
