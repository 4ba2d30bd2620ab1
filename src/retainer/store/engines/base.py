"""What all engines share: types of rows and values, limits of time, and errors."""

import math
import threading
import time
from collections.abc import Callable
from typing import Any

WAIT_SECONDS = 5  # maximum wait of a writer for its turn
TRANSACTION_SECONDS = 10  # maximum duration of a transaction, once it has its turn
OPERATOR_WAIT_SECONDS = 60
"""Maximum wait for a lock of a command, whose statements and transactions have no time limit."""
DriverConnection = Any  # a connection of the driver; SQLite's driver has no types
DriverCursor = Any
Values = list[object]  # the values of a statement's numbered placeholders
Row = tuple[Any, ...]
Columns = dict[str, Any]
Rows = Callable[[], list[Row]]  # returns rows, once they have arrived


class Deadline(threading.local):
    """The deadline of this thread's request on the monotonic clock; infinite outside of requests."""

    at = math.inf

    def remaining(self) -> float:
        return self.at - time.monotonic()


of_request = Deadline()


class Unavailable(Exception):
    """The database is unreachable, busy for too long, or full: the write did not happen, or its outcome is unknown."""

    reason = "The database is out of reach."  # the sentence for clients
    subject = "The database"  # what cannot be used, for operators


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


def refused(error: BaseException) -> Unavailable:
    """Return an error of an engine as Unavailable, whatever the database has refused."""
    return error if isinstance(error, Unavailable) else WrongStatement(str(error))


class OutcomeUnknown(Unavailable):
    """A commit failed, and not because the disk is full: its changes may be durable or not."""


class Busy(Unavailable):
    """A transaction timed out waiting for a lock. The database is reachable."""

    reason = "Other requests are writing the same records."


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
