"""Turns: one writer of a SQLite database at a time; of the accounts that wait, the one that has used it least."""

import math
import time

from retainer.fairness import FairSemaphore
from retainer.store.engines.base import (
    MAX_PAUSING,
    MAX_WRITERS_WAITING,
    AccountPaused,
    Busy,
    of_request,
    wait_end,
    wait_for,
)

LONG_SECONDS = 0.02  # of the processor; a usual turn takes 1 or 2 ms
PAUSING_SHARE = 2  # writers of an account that wait for the end of its pause; more are refused at once
PAUSES = 4  # times as long as its turn does an account pause that has kept others waiting


class Turns:
    """The turn to write, which accounts take one after another. Nothing that waits for it holds a turn of requests.

    An account whose turn took the processor for long, while others waited for it, pauses before its next turn. So the
    turn is free for most of the time.
    """

    def __init__(self) -> None:
        self.writer = FairSemaphore(1, 1, MAX_WRITERS_WAITING)
        self.pausing = FairSemaphore(MAX_PAUSING, PAUSING_SHARE, 0)
        self.pauses: dict[int, float] = {}
        """When the pauses of accounts end, on the monotonic clock."""
        self._holder: int | None = None  # the account that has the turn, and the time of its thread when it took it
        self._since = 0.0

    def take(self, account_id: int | None) -> None:
        """Wait for the turn. Raises Busy after 5 seconds, or at the deadline of the request; AccountPaused at once."""
        end = wait_end()
        while True:
            self._pause(account_id, end)
            if not wait_for(self.writer, account_id, end, holds_up_all=True):
                raise Busy("Other writes took too long.")
            if not self.is_pausing(account_id):
                break
            self.writer.release(account_id)  # its pause has begun while this writer waited
        self._holder, self._since = account_id, time.thread_time()

    def take_now(self, account_id: int | None) -> None:
        """Take the turn without waiting for it. Raises Busy if it is not free, or if the account pauses."""
        if self.is_pausing(account_id) or not self.writer.acquire(account_id, 0):
            raise Busy("Another write is running.")
        self._holder, self._since = account_id, time.thread_time()

    def hand_on(self) -> None:
        """Pass the turn on. The account of a long one pauses if another one waits; its former pause is over."""
        holder = self._holder
        if holder is not None:
            seconds = time.thread_time() - self._since
            self.writer.charge(holder, seconds)
            self.note(holder, seconds, others_wait=self.writer.has_other(holder))
        self.writer.release(holder)

    def note(self, account_id: int, seconds: float, *, others_wait: bool) -> None:
        """Note how much of the processor the write of an account took, for which it may have to pause."""
        self.pauses.pop(account_id, None)
        if seconds > LONG_SECONDS and others_wait:
            self.pauses[account_id] = time.monotonic() + PAUSES * seconds

    def is_pausing(self, account_id: int | None) -> bool:
        return self.pauses.get(account_id or 0, 0) > time.monotonic()

    def _pause(self, account_id: int | None, end: float) -> None:
        """Wait until the pause of an account is over. Raises AccountPaused if that is too late, or enough wait."""
        until = self.pauses.get(account_id or 0, 0)
        seconds = until - time.monotonic()
        if seconds <= 0:
            return
        if until > end or not self.pausing.acquire(account_id, 0):
            raise AccountPaused(f"Account {account_id} pauses for {seconds:.1f} seconds.", math.ceil(seconds))
        try:
            with of_request.left():
                time.sleep(seconds)
        finally:
            self.pausing.release(account_id)
