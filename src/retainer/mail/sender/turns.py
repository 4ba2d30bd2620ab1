"""Turns: which account gets the next connection to the mail server, so that mail that stalls delays no other."""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

SLOW_SECONDS = 30
"""An account whose message has held a connection for longer leaves one to the mail of other accounts."""


class MailTurns:
    """The connections of an event loop, and the accounts that hold or await them: the longest without one is next.

    An account gets a further connection only while it holds fewer than are free: alone, it has half of them. Slow
    accounts never hold all of them together; an account is slow until it has sent a message fast again.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._held: defaultdict[int, list[float]] = defaultdict(list)
        self._waiting: defaultdict[int, deque[asyncio.Future[float]]] = defaultdict(deque)
        self._slow: set[int] = set()
        self._turn, self._last_turns = 0, dict[int, int]()

    @asynccontextmanager
    async def of(self, account_id: int) -> AsyncIterator[None]:
        """Hold a connection of an account, once it is its turn."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting[account_id].append(turn)
        self._hand_out()
        try:
            await turn
            yield
        finally:
            if not turn.cancelled():
                self._leave(account_id, turn.result())
            self._hand_out()

    def _hand_out(self) -> None:
        """Hand out what is free, and wake only those who get it: each morning, many accounts wait at once."""
        while (account_id := self._next()) is not None:
            turn = self._waiting[account_id].popleft()
            if not self._waiting[account_id]:
                del self._waiting[account_id]
            if turn.cancelled():
                continue
            began = time.monotonic()
            self._held[account_id].append(began)
            self._turn += 1
            self._last_turns[account_id] = self._turn
            turn.set_result(began)

    def _next(self) -> int | None:
        free = self.total - sum(map(len, self._held.values()))
        may_be_slow = sum(len(began) for each, began in self._held.items() if self._is_slow(each)) < self.total - 1
        able = (
            each
            for each in (self._waiting if free else ())
            if len(self._held.get(each, ())) < free and (may_be_slow or not self._is_slow(each))
        )
        return min(able, key=lambda each: self._last_turns.get(each, 0), default=None)

    def _is_slow(self, account_id: int) -> bool:
        began = self._held.get(account_id)
        return account_id in self._slow or (began is not None and began[0] + SLOW_SECONDS < time.monotonic())

    def _leave(self, account_id: int, began: float) -> None:
        if began + SLOW_SECONDS < time.monotonic():
            self._slow.add(account_id)
        else:
            self._slow.discard(account_id)
        self._held[account_id].remove(began)
        if not self._held[account_id]:
            del self._held[account_id]
        if not self._waiting:  # then it decides nothing, and would grow with the accounts
            self._last_turns.clear()
