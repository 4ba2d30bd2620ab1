"""Group commit: writers that wait for each other share one transaction, and with it one flush to the disk."""

import threading
import time
from typing import NoReturn, Protocol

from retainer.fairness import FairQueue
from retainer.store import deadline
from retainer.store.engines.base import (
    TRANSACTION_SECONDS,
    WAIT_SECONDS,
    Busy,
    CommitTooSlow,
    DriverConnection,
    OutcomeUnknown,
    Unavailable,
)

LONG_SECONDS = 0.2  # a turn of this length has consequences for the next one of its account
PAUSES = 4  # times as long as its turn does an account pause that has kept others waiting
GROUP_SECONDS = 0.05  # an older group accepts no more writers, since its first ones wait
END_SECONDS = TRANSACTION_SECONDS + 1  # the last writer of a group must reach its own deadline first


class Transactions(Protocol):
    """An engine that begins and ends the transactions that groups share."""

    def begin(self) -> DriverConnection:
        """Begin a writing transaction; lend its connection."""

    def end(self, connection: DriverConnection, *, commit: bool) -> None:
        """Commit a transaction or roll it back."""

    def rolled_back(self, message: str) -> Unavailable:
        """Return the error of a transaction that was rolled back."""


class Group:
    """A transaction that writers use one after another, and the writers that wait for its commit."""

    def __init__(self, connection: DriverConnection) -> None:
        self.connection = connection
        self.began = time.monotonic()
        self.waiting: list[threading.Event] = []
        self.failure: Unavailable | None = OutcomeUnknown(
            "The shared transaction did not end."
        )  # replaced when it ends


class GroupCommit:
    """One writer at a time, and the accounts in turn. A writer that ends while others wait leaves the commit to them.

    An account that held the turn for long shares no group, because a group waits for its last writer. If others waited
    for it, it pauses before its next turn, so that the writer is free for most of the time.

    The first writer of a group begins the transaction; each following one works in a savepoint, so that it can be
    rolled back alone. A writer that ends with no other waiting, or in a group that is too old, commits for all. No
    request is answered before the commit: even the reason of a refusal may be a row of another writer.
    """

    def __init__(self, engine: Transactions) -> None:
        self.engine = engine
        self._group: Group | None = None  # used only by the writer that has the turn
        self._lock = threading.Lock()  # guards the attributes below
        self._is_taken = False
        self._queue: FairQueue[threading.Event] = FairQueue()
        self._slow: dict[int | None, float] = {}  # accounts whose last turn was long, and the end of their pause
        self._holder: int | None = None  # the account that has the turn, and since when; used only by its writer
        self._since = 0.0

    def begin(self, account_id: int | None = None) -> DriverConnection:
        """Wait for the turn; lend a connection in a new transaction, or in a savepoint of the current one."""
        self._take_turn(account_id)
        self._holder, self._since = account_id, time.monotonic()
        group = self._group
        if group is None:
            try:
                group = self._group = Group(self.engine.begin())
            except BaseException:
                self._pass_turn()
                raise
        else:
            try:
                group.connection.execute("SAVEPOINT writer")
            except BaseException as error:  # noqa: BLE001  # the other writers must be released
                self._give_up(group, error)
        return group.connection

    def is_shared(self, connection: DriverConnection) -> bool:
        """Return whether other writers wait for the commit of a transaction."""
        group = self._group
        return group is not None and group.connection is connection and bool(group.waiting)

    def end(self, *, commit: bool) -> None:
        """Commit the work of the writer or roll it back. Raises Unavailable if the group fails."""
        group = self._group
        if group is None:
            raise RuntimeError("No transaction has begun.")
        if not commit and not group.waiting:  # no other writer has used the transaction
            self._close(group, commit=False)
            return
        try:
            if not commit:
                group.connection.execute("ROLLBACK TO writer")
            if group.waiting:
                group.connection.execute("RELEASE writer")
        except BaseException as error:  # noqa: BLE001  # such as a rollback by SQLite on a full disk
            self._give_up(group, error)
        ended = self._hand_over(group)
        if ended is None:
            self._close(group, commit=True)
        elif not ended.wait(END_SECONDS):
            raise CommitTooSlow("The writes that share the transaction took too long.")
        elif group.failure is not None:
            raise type(group.failure)(*group.failure.args) from group.failure

    def _give_up(self, group: Group, cause: BaseException) -> NoReturn:
        """Roll the whole group back."""
        failure = self.engine.rolled_back(f"A shared transaction was rolled back: {cause}.")
        self._close(group, commit=False, failure=failure)
        raise failure from cause

    def _close(self, group: Group, *, commit: bool, failure: Unavailable | None = None) -> None:
        """End the group, pass the turn, and release the writers that wait for the end."""
        self._group = None
        try:
            self.engine.end(group.connection, commit=commit)
            group.failure = failure
        except Unavailable as error:
            group.failure = error
            raise
        finally:
            self._pass_turn()
            for ended in group.waiting:
                ended.set()

    def _take_turn(self, account_id: int | None) -> None:
        pause = self._slow.get(account_id, 0) - time.monotonic()
        if pause > 0:
            time.sleep(min(pause, WAIT_SECONDS, max(0, deadline.remaining())))
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

    def _note_length(self) -> None:
        """Remember whether the turn that ends was long."""
        now = time.monotonic()
        length = now - self._since
        self._slow.pop(self._holder, None)
        if length > LONG_SECONDS and self._holder is not None:
            self._slow[self._holder] = now + PAUSES * length if self._queue.has_other(self._holder) else now

    def _pass_turn(self) -> None:
        with self._lock:
            self._note_length()
            turn = self._queue.pop()
            if turn is None:
                self._is_taken = False
            else:
                turn.set()

    def _hand_over(self, group: Group) -> threading.Event | None:
        """Pass the group to the next writer; return the event of its end, or None without one."""
        is_open = group.connection.in_transaction and time.monotonic() - group.began < GROUP_SECONDS
        with self._lock:
            turn = self._queue.pop(lambda account_id: account_id not in self._slow) if is_open else None
            if turn is None:
                return None
            self._note_length()
            ended = threading.Event()
            group.waiting.append(ended)
            turn.set()
            return ended
