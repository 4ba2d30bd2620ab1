"""Group commit: writers that wait for each other share one transaction, and with it one flush of the disk."""

import threading
import time
from collections import deque
from typing import Any, NoReturn, Protocol

from retainer.store.engines.base import (
    TRANSACTION_SECONDS,
    WAIT_SECONDS,
    Busy,
    CommitTooSlow,
    DriverConnection,
    OutcomeUnknown,
    Unavailable,
)

GROUP_SECONDS = 0.05  # an older group takes nobody in: those in it have waited long enough
END_SECONDS = TRANSACTION_SECONDS + 1  # for the end of a group: the last writer that it takes in has its deadline


class Transactions(Protocol):
    """What begins and ends the transactions that groups share."""

    def begin(self) -> DriverConnection:
        """Lend a connection on which a writing transaction has begun."""

    def end(self, connection: DriverConnection, *, commit: bool) -> None:
        """Make a transaction durable, or undo it."""


class Group:
    """A transaction that writers work in one after another, and those who wait for its end."""

    def __init__(self, connection: DriverConnection) -> None:
        self.connection = connection
        self.began = time.monotonic()
        self.waiting: list[threading.Event] = []
        self.failure: Unavailable | None = OutcomeUnknown("The shared transaction did not end.")  # unless it does


class GroupCommit:
    """One writer at a time, in the order in which they came. Who ends while others wait leaves the commit to them.

    The first writer of a group has the transaction; each that follows works in a savepoint, so that undoing it takes
    nothing of the others with it. Who ends and finds nobody waiting, or the group too old, commits for all. Nobody is
    answered before: not even who was refused, for what it was refused for may be the work of the others.
    """

    def __init__(self, engine: Transactions) -> None:
        self.engine = engine
        self._group: Any = None  # touched only by the writer whose turn it is
        self._lock = threading.Lock()  # held for a moment, for what follows
        self._is_taken = False
        self._queue: deque[threading.Event] = deque()

    def begin(self) -> DriverConnection:
        """Wait for the turn; lend a connection on which a transaction has begun, or a savepoint in that of others."""
        self._take_turn()
        if self._group is None:
            try:
                self._group = Group(self.engine.begin())
            except BaseException:
                self._pass_turn()
                raise
        else:
            try:
                self._group.connection.execute("SAVEPOINT writer")
            except BaseException as error:  # noqa: BLE001  # whatever it is, others wait for the end
                self._give_up(error)
        return self._group.connection

    def is_shared(self, connection: DriverConnection) -> bool:
        """Whether a transaction holds what other writers have written, who wait for its end."""
        group = self._group
        return group is not None and group.connection is connection and bool(group.waiting)

    def end(self, *, commit: bool) -> None:
        """Make what was written durable, or undo it. Raises Unavailable if any writer of the group fails."""
        group, connection = self._group, self._group.connection
        if not commit and not group.waiting:  # nothing of others is in the transaction
            self._close(commit=False)
            return
        try:
            if not commit:
                connection.execute("ROLLBACK TO writer")
            if group.waiting:
                connection.execute("RELEASE writer")
        except BaseException as error:  # noqa: BLE001  # as when SQLite has undone all of it, on a full disk for one
            self._give_up(error)
        ended = self._hand_over()
        if ended is None:
            self._close(commit=True)
        elif not ended.wait(END_SECONDS):
            raise CommitTooSlow("The writes that share the transaction took too long.")
        elif group.failure is not None:
            raise type(group.failure)(*group.failure.args) from group.failure

    def _give_up(self, cause: BaseException) -> NoReturn:
        """Undo all that the group has written."""
        failure = Unavailable(f"A shared transaction was undone: {cause}.")
        self._close(commit=False, failure=failure)
        raise failure from cause

    def _close(self, *, commit: bool, failure: Unavailable | None = None) -> None:
        """End the group; let the next writer in, and let those go on who have waited for the end."""
        group, self._group = self._group, None
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

    def _take_turn(self) -> None:
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            turn = threading.Event()
            self._queue.append(turn)
        if not turn.wait(WAIT_SECONDS):
            with self._lock:
                if turn in self._queue:  # or it was handed over just now
                    self._queue.remove(turn)
                    raise Busy("Other writes took too long.")

    def _pass_turn(self) -> None:
        with self._lock:
            if self._queue:
                self._queue.popleft().set()
            else:
                self._is_taken = False

    def _hand_over(self) -> threading.Event | None:
        """Leave the group to who has waited longest; return what is set when it has ended, or None if nobody waits."""
        group = self._group
        is_open = group.connection.in_transaction and time.monotonic() - group.began < GROUP_SECONDS
        with self._lock:
            if not (is_open and self._queue):
                return None
            ended = threading.Event()
            group.waiting.append(ended)
            self._queue.popleft().set()
            return ended
