"""Turns: one writer of a SQLite database at a time, and its accounts in turn."""

import time

from retainer.fairness import FairSemaphore
from retainer.store.engines.base import WAIT_SECONDS, Busy, of_request

MAX_WAITING = 10_000  # more than there are threads
LONG_SECONDS = 0.02  # a usual turn takes 1 or 2 ms; after one of this length, the account may have to pause
PAUSES = 4  # times as long as its turn does an account pause that has kept others waiting


class Turns:
    """The turn to write, which accounts take one after another.

    An account that held the turn for long, while others waited for it, pauses before its next turn. So the turn is free
    for most of the time.
    """

    def __init__(self) -> None:
        self.writer = FairSemaphore(1, 1, MAX_WAITING)
        self._pauses: dict[int, float] = {}  # the ends of the pauses of accounts
        self._holder: int | None = None  # the account that has the turn, and since when
        self._since = 0.0

    def take(self, account_id: int | None) -> None:
        """Wait for the turn. Raises Busy after 5 seconds, or at the deadline of the request."""
        pause = self._pauses.get(account_id or 0, 0) - time.monotonic()
        if pause > 0:
            time.sleep(min(pause, WAIT_SECONDS, max(0, of_request.remaining())))
        if not self.writer.acquire(account_id, min(WAIT_SECONDS, of_request.remaining())):
            raise Busy("Other writes took too long.")
        self._holder, self._since = account_id, time.monotonic()

    def hand_on(self) -> None:
        """Pass the turn on. The account of a long one pauses if another one waits; its former pause is over."""
        holder, now = self._holder, time.monotonic()
        if holder is not None:
            length = now - self._since
            self._pauses.pop(holder, None)
            if length > LONG_SECONDS and self.writer.has_other(holder):
                self._pauses[holder] = now + PAUSES * length
        self.writer.release(holder)
