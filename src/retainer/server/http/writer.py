"""The writer of SQLite: answers requests that write one after another, and commits for all that wait (decision 6)."""

import time
from collections.abc import Callable

from retainer.fairness import FairSemaphore
from retainer.kernel.http import Response
from retainer.server.http.exchange import Exchange
from retainer.store.engines.base import MAX_WRITERS_WAITING, OutcomeUnknown, Unavailable
from retainer.store.engines.sqlite_groups import Group, GroupedSqlite
from retainer.store.engines.turns import LONG_SECONDS

GROUP_SECONDS = 0.01
"""Time of the processor after which a group commits although others wait: its first writers have waited long enough."""
MAX_GROUP = 64
MAX_LONG = 1024
"""Maximum number of accounts of which it is remembered that their last write was long."""
Answered = list[tuple[Exchange, Response]]


class Writer:
    """Answers requests that write, of one account after another; one thread at a time has their turn.

    None is answered before the commit of its group. If that fails, each is answered again by itself; if nobody knows
    its outcome, all are told so. An account whose last write was long has a transaction of its own, so that nobody
    waits for its end to hear of another write. One that pauses is passed on: its requests wait in threads of their own.
    """

    def __init__(
        self,
        engine: GroupedSqlite,
        answer: Callable[[Exchange], Response],
        send: Callable[[Exchange, Response], object],
        pass_on: Callable[[Exchange], object],
        refuse: Callable[[Exchange], object],
        is_shared: Callable[[], bool],
    ) -> None:
        self.engine, self.answer, self.send, self.pass_on = engine, answer, send, pass_on
        self.is_shared = is_shared
        self.queue = FairSemaphore(1, 1, MAX_WRITERS_WAITING, refuse)
        self._long: set[object] = set()
        self._flush_seconds = 0.0  # the last flush, on the clock

    def takes(self, exchange: Exchange) -> bool:
        return exchange.writes and isinstance(exchange.subject, int) and not self._is_pausing(exchange)

    def run(self, exchange: Exchange | None) -> None:
        """Answer a request that has the turn to write, and all that have it after that."""
        while exchange is not None:
            exchange = self._run_group(exchange)

    def _run_group(self, first: Exchange) -> Exchange | None:
        """Answer requests in one transaction; return the one that has the turn after them."""
        answered: Answered = []
        last: Exchange | None = first
        following: Exchange | None = None
        try:
            with self.engine.grouped() as group:
                last, following = self._fill(group, first, answered)
                filled = time.monotonic()
            self._flush_seconds = time.monotonic() - filled
        except Exception as error:  # noqa: BLE001  # else no request could write any more
            kept = answered[-1:] if group.is_lost else []  # the one with which it was lost knows why
            if isinstance(error, OutcomeUnknown) or not isinstance(error, Unavailable):
                for exchange, _ in answered:
                    exchange.request.refusal = error
                kept = []
            again = answered[: len(answered) - len(kept)]
            answered = [(exchange, self.answer(exchange)) for exchange, _ in again] + kept
        for exchange, response in answered:
            self.send(exchange, response)
        return self._next(last) if last is not None else following

    def _fill(self, group: Group, exchange: Exchange, answered: Answered) -> tuple[Exchange | None, Exchange | None]:
        """Answer requests within a group; return the one that still has the turn, or the next one that has it."""
        began = now = time.thread_time()
        while True:
            answered.append((exchange, self.answer(exchange)))
            before, now = now, time.thread_time()
            is_full = group.is_lost or len(answered) == MAX_GROUP or now - began > self._group_seconds()
            if self._note(exchange, now - before) or is_full or not self.queue.waiting:
                return exchange, None
            following = self._next(exchange)
            if following is None or following.subject in self._long:
                return None, following
            exchange = following

    def _group_seconds(self) -> float:
        """Return how long a group may take: while other accounts send requests, too, as long as the last flush took.

        All answers of a group are sent at once, and so are the next requests of their clients, which everybody else
        stands behind. Flushes then take half of the time.
        """
        return min(self._flush_seconds, GROUP_SECONDS) if self.is_shared() else GROUP_SECONDS

    def _next(self, exchange: Exchange) -> Exchange | None:
        """Hand the turn on; return the request that has it, unless its account pauses by now."""
        following: Exchange | None = self.queue.release(exchange.subject)
        while following is not None and self._is_pausing(following):
            self.pass_on(following)
            following = self.queue.release(following.subject)
        return following

    def _note(self, exchange: Exchange, seconds: float) -> bool:
        """Note how much of the processor a write took; return whether it was long."""
        account_id, is_long = int(str(exchange.subject)), seconds > LONG_SECONDS
        self.queue.charge(account_id, seconds)
        self.engine.turns.note(account_id, seconds, others_wait=self.queue.has_other(account_id))
        if is_long and len(self._long) < MAX_LONG:
            self._long.add(account_id)
        else:
            self._long.discard(account_id)
        return is_long

    def _is_pausing(self, exchange: Exchange) -> bool:
        return isinstance(exchange.subject, int) and self.engine.turns.is_pausing(exchange.subject)
