"""Turns: one writer of a SQLite database at a time, and its accounts in turn."""

import threading
import time

from retainer.fairness import FairQueue
from retainer.store import deadline
from retainer.store.engines.base import WAIT_SECONDS, Busy

LONG_SECONDS = 0.02  # a usual turn takes 1 or 2 ms; after one of this length, the account may have to pause
PAUSES = 4  # times as long as its turn does an account pause that has kept others waiting


class Turns:
    """The turn to write, which accounts take one after another.

    An account that held the turn for long, while others waited for it, pauses before its next turn. So the turn is free
    for most of the time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the attributes below
        self._is_taken = False
        self._queue: FairQueue[threading.Event] = FairQueue()
        self._pauses: dict[int, float] = {}  # the ends of the pauses of accounts
        self._holder: int | None = None  # the account that has the turn, and since when
        self._since = 0.0

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def take(self, account_id: int | None) -> None:
        """Wait for the turn. Raises Busy after 5 seconds, or at the deadline of the request."""
        pause = self._pauses.get(account_id or 0, 0) - time.monotonic()
        if pause > 0:
            time.sleep(min(pause, WAIT_SECONDS, max(0, deadline.remaining())))
        self._wait(account_id)
        self._holder, self._since = account_id, time.monotonic()

    def _wait(self, account_id: int | None) -> None:
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            turn = threading.Event()
            self._queue.push(account_id, turn)
        if not turn.wait(min(WAIT_SECONDS, max(0, deadline.remaining()))):
            with self._lock:
                if self._queue.remove(account_id, turn):  # or the turn was passed to it just now
                    raise Busy("Other writes took too long.")

    def hand_on(self) -> None:
        with self._lock:
            self._note_length()
            turn = self._queue.pop()
            if turn is None:
                self._is_taken = False
            else:
                turn.set()

    def _note_length(self) -> None:
        """Let the account of a long turn pause, if another one waits; its former pause is over."""
        if self._holder is None:
            return
        now = time.monotonic()
        length = now - self._since
        self._pauses.pop(self._holder, None)
        if length > LONG_SECONDS and self._queue.has_other(self._holder):
            self._pauses[self._holder] = now + PAUSES * length
