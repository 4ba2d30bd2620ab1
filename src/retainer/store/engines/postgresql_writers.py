"""Writers of PostgreSQL: one transaction of an account at a time, in this process and in others."""

import time
from contextlib import ExitStack

from retainer.fairness import FairSemaphore
from retainer.store.engines.base import MAX_WRITERS_WAITING, Busy, of_request, wait_end, wait_for
from retainer.store.engines.postgresql_connection import TRANSLATED, PostgresqlConnection
from retainer.store.engines.postgresql_pool import ConnectionPool

WRITES = 1382377
"""The first key of our advisory locks for the writes of an account."""
TRY_LOCK = "SELECT pg_try_advisory_xact_lock($1::INTEGER, $2::INTEGER)"
LOCK = "SELECT pg_advisory_xact_lock($1::INTEGER, $2::INTEGER)"
MAX_ACCOUNTS = 10**9
MAX_LOCKS_AWAITED = 8
"""Maximum number of connections of this process that wait for a lock of another one."""


class AccountWriters:
    """The turns to write of accounts: in this process a queue of each, between processes an advisory lock of each.

    Nothing that waits for them holds a turn of requests. The queue takes no connection either; only the first of an
    account waits for its lock in the database, so that processes get it in turn.
    """

    def __init__(self, pool: ConnectionPool) -> None:
        self.queues = FairSemaphore(MAX_ACCOUNTS, 1, MAX_WRITERS_WAITING)
        self.awaited = FairSemaphore(MAX_LOCKS_AWAITED, 1, MAX_WRITERS_WAITING)
        self._pool = pool

    def begin(self, account_id: int, *, is_patient: bool) -> PostgresqlConnection:
        """Begin a transaction once no other of the account writes. Raises Busy if that takes too long.

        Without patience, it raises Busy if another one writes now.
        """
        is_next = wait_for(self.queues, account_id, wait_end()) if is_patient else self.queues.acquire(account_id, 0)
        if not is_next:
            raise Busy("Other writes of the account took too long.")
        try:
            connection = self._try_lock(account_id) or self._await_lock(account_id, is_patient=is_patient)
        except BaseException:
            self.hand_on(account_id)
            raise
        connection.account_id = account_id
        return connection

    def begin_any(self) -> PostgresqlConnection:
        """Begin a transaction that waits for no other: of no account, or to ask for the lock of one."""
        connection = self._pool.lend()
        try:
            with TRANSLATED:
                connection.begin("READ COMMITTED READ WRITE")
        except BaseException:
            self._pool.give_back(connection)
            raise
        return connection

    def hand_on(self, account_id: int) -> None:
        self.queues.release(account_id)

    def _try_lock(self, account_id: int) -> PostgresqlConnection | None:
        with ExitStack() as failed, TRANSLATED:
            connection = self.begin_any()
            failed.callback(self._abandon, connection)
            ((is_locked,),) = connection.run(TRY_LOCK, [WRITES, account_id]).fetchall()
            if is_locked:
                failed.pop_all()
                return connection
        return None

    def _await_lock(self, account_id: int, *, is_patient: bool) -> PostgresqlConnection:
        """Wait for the process that has the lock, on a connection that no running request needs."""
        if not is_patient:
            raise Busy("Another process writes for the account.")
        with ExitStack() as place, ExitStack() as failed:
            with of_request.left():
                end = wait_end()
                if not self.awaited.acquire(account_id, end - time.monotonic()):
                    raise Busy("Too many writes wait for other processes.")
                place.callback(self.awaited.release, account_id)
                connection = self.begin_any()
                failed.callback(self._abandon, connection)
                with TRANSLATED:
                    connection.run(LOCK, [WRITES, account_id]).fetchall()
            failed.pop_all()
        return connection

    def _abandon(self, connection: PostgresqlConnection) -> None:
        """Roll a transaction back that has done nothing."""
        connection.end("ROLLBACK")
        self._pool.give_back(connection)
