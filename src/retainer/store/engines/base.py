"""What all engines share: types of rows and values, limits of time, and errors."""

import math
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from retainer.fairness import FairSemaphore

WAIT_SECONDS = 5  # maximum wait of a writer for its turn
MAX_WRITERS_WAITING, MAX_PAUSING = 384, 64
"""Maximum number of writers that wait for their turn, and for the end of their account's pause, each in a thread."""
TRANSACTION_SECONDS = 10  # maximum duration of a transaction, once it has its turn
OPERATOR_WAIT_SECONDS = 60
"""Maximum wait for a lock of a command, whose statements and transactions have no time limit."""
DriverConnection = Any  # a connection of the driver; SQLite's driver has no types
DriverCursor = Any
Values = list[object]  # the values of a statement's numbered placeholders
Row = tuple[Any, ...]
Columns = dict[str, Any]
Rows = Callable[[], list[Row]]  # returns rows, once they have arrived


def _runs_on(*, returns_at_once: bool = False) -> AbstractContextManager[None]:  # noqa: ARG001
    return nullcontext()


class RequestLimits(threading.local):
    """The limits of this thread's request. Outside of requests there are none."""

    at = math.inf
    """The deadline, on the monotonic clock."""
    left: Callable[..., AbstractContextManager[None]] = staticmethod(_runs_on)
    """`RequestTurns.left`: a block that waits, in which another request runs."""

    def remaining(self) -> float:
        return self.at - time.monotonic()

    def reset(self) -> None:
        vars(self).clear()


of_request = RequestLimits()


def wait_end() -> float:
    """Return when a writer that begins to wait now gives up."""
    return min(time.monotonic() + WAIT_SECONDS, of_request.at)


def wait_for(turns: FairSemaphore, subject: Hashable, end: float, *, holds_up_all: bool = False) -> bool:
    """Take a writer's turn, or wait for it until `end`; return whether it was taken.

    Meanwhile another request runs. Then this one waits to run again, unless the turn that it has `holds_up_all`.
    """
    if turns.acquire(subject, 0):
        return True
    is_taken = False
    try:
        with of_request.left(returns_at_once=holds_up_all):
            is_taken = turns.acquire(subject, end - time.monotonic())
    except BaseException:
        if is_taken:
            turns.release(subject)
        raise
    return is_taken


ELSEWHERE = (
    "Run the command in the folder of your .env, or name the database with RETAINER_DATA_DIR or RETAINER_DATABASE_URL."
)
"""What an operator does whose database is not where a command looks for it."""


class Unavailable(Exception):
    """The database is unreachable, busy for too long, or full: the write did not happen, or its outcome is unknown."""

    reason = "The database is out of reach."  # the sentence for clients
    subject = "The database"  # what cannot be used, for operators
    retry_seconds = 2


class PartlyUnavailable(Unavailable):
    """A node of a cluster is unreachable. Accounts on other nodes are not affected."""

    reason = "The part of the database with this account is out of reach."
    subject = "A part of the database"


class DiskFull(Unavailable):
    """The disk of the database has no room for a write, which was rolled back. Reads are still answered."""

    reason = "The disk of the database is full, and nothing was changed."
    needed = 0  # bytes of free room that the work needs at most, if that is known


class WrongStatement(Unavailable):
    """The database refused a statement that does not fit its tables or rows: they, or the program, have a defect."""


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line; PostgreSQL begins another for a hint."""
    return " ".join(str(error).replace("\n\t", ". ").split())


def refused(error: BaseException) -> Unavailable:
    """Return an error of an engine as Unavailable, whatever the database has refused."""
    return error if isinstance(error, Unavailable) else WrongStatement(str(error))


class OutcomeUnknown(Unavailable):
    """A commit failed, and not because the disk is full: its changes may be durable or not."""


class Busy(Unavailable):
    """A transaction timed out waiting for a lock. The database is reachable."""

    reason = "Other requests are writing the same records."


class AccountPaused(Busy):
    """A write of an account that pauses, because its last one took the only writer for long. It was not executed."""

    reason = "The last write of this account took long while others waited, so this one was not executed."

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.retry_seconds = seconds


class TransientConflict(Busy):
    """The database rolled the transaction back because of another one; a retry may succeed."""


class DeadlineExceeded(Busy):
    """A statement or a transaction exceeded its time limit, and was rolled back."""

    reason = "The request took too long, and nothing was changed. Ask for less in one request."


class CommitsWait(Busy):
    """Too many commits wait to be confirmed, so that another would too. The transaction has not begun."""

    reason = "The database does not confirm writes now, and this one was not executed."


class CommitTooSlow(OutcomeUnknown, DeadlineExceeded):
    """A commit exceeded its time limit: its changes may be durable or not."""

    reason = "The request took too long, and its outcome is unknown."
