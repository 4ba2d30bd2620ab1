"""Groups: writers of SQLite that share a transaction and its flush, each in a savepoint (decision 6)."""

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from functools import partial

from retainer.store.engines.base import Busy, DriverConnection
from retainer.store.engines.sqlite import Sqlite

BEGIN, KEEP, UNDO = "SAVEPOINT writer", "RELEASE writer", "ROLLBACK TO writer"


class Group:
    """A transaction that writers share, one after another."""

    def __init__(self) -> None:
        self.connection: DriverConnection = None
        """Begun by the first of them."""
        self.has_written = False
        self.is_lost = False
        """Whether SQLite has rolled the transaction back, as on a full disk or when it interrupts a statement."""
        self.calls: list[Callable[[], None]] = []
        """What is to be called when it is durable."""

    def leave(self, *, commit: bool) -> None:
        """End the part of a writer. Raises Busy if the transaction was lost, and what was written with it."""
        self.connection.deadline[0] = math.inf
        try:
            if not commit:
                self.connection.execute(UNDO)
            self.connection.execute(KEEP)
            self.has_written |= commit
        except Sqlite.driver.Error as error:
            self.is_lost = True
            if commit:
                raise Busy("The transaction of several writes was rolled back.") from error


class OfThread(threading.local):
    """The group whose writers this thread answers."""

    group: Group | None = None


class GroupedSqlite(Sqlite):
    """A database whose writers may share commits. What a thread reads within a group is what that has written."""

    def __init__(self, *arguments: object, **options: bool) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._of_thread = OfThread()

    @contextlib.contextmanager
    def grouped(self) -> Iterator[Group]:
        """Let the writers of this thread share a transaction, which is committed at the end of the block.

        Raises Unavailable if it is not: nothing of it was written, or with OutcomeUnknown nobody knows.
        """
        group = self._of_thread.group = Group()
        try:
            yield group
        finally:
            self._of_thread.group = None
            if group.connection is not None:
                super().end_write(group.connection, commit=group.has_written and not group.is_lost)
        if group.is_lost:
            raise Busy("The transaction of several writes was rolled back.")
        for call in group.calls:
            call()

    def once_durable(self, call: Callable[[int], None]) -> Callable[[int], None]:
        """Return a function that calls another when what its thread has written until then is durable."""

        def call_then(account_id: int) -> None:
            group = self._of_thread.group
            if group is None:
                call(account_id)
            else:
                group.calls.append(partial(call, account_id))

        return call_then

    def begin_write(self, account_id: int | None, *, is_patient: bool = True) -> DriverConnection:
        group = self._of_thread.group
        if group is None:
            return super().begin_write(account_id, is_patient=is_patient)
        if group.is_lost:  # a savepoint would begin a transaction of its own
            raise Busy("The transaction of several writes was rolled back.")
        if group.connection is None:
            group.connection = super().begin_write(None)
        group.connection.execute(BEGIN)
        return group.connection

    def end_write(self, connection: DriverConnection, *, commit: bool) -> None:
        group = self._of_thread.group
        if group is None:
            super().end_write(connection, commit=commit)
        else:
            group.leave(commit=commit)

    def begin_snapshot(self, connection: DriverConnection) -> None:
        if not self._is_of_group(connection):
            super().begin_snapshot(connection)

    def end_snapshot(self, connection: DriverConnection) -> None:
        if not self._is_of_group(connection):
            super().end_snapshot(connection)

    def connection(self) -> DriverConnection:
        group = self._of_thread.group
        return super().connection() if group is None or group.connection is None else group.connection

    def give_back(self, connection: DriverConnection) -> None:
        if self._is_of_group(connection):
            connection.deadline[0] = math.inf
        else:
            super().give_back(connection)

    def _is_of_group(self, connection: DriverConnection) -> bool:
        group = self._of_thread.group
        return group is not None and group.connection is connection
