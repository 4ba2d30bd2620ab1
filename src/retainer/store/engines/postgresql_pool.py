"""The connection pool of a process for PostgreSQL; it fails immediately while the server is unreachable."""

import socket
import threading

from retainer.store.engines.base import CommitsWait, Unavailable
from retainer.store.engines.postgresql_connection import REPLY_SECONDS, PostgresqlConnection, open_connection

PAUSE_SECONDS = 0.1  # pause before each attempt to reconnect
MAX_UNCONFIRMED = 4
"""Commits without a reply, at which further writes are refused: each holds a connection of the server."""
STANDBYS = "Check the standbys of PostgreSQL in synchronous_standby_names, and its disk."


class ConnectionPool:
    """Connections that are kept open once a thread has needed them.

    If one is found closed, all that were open with it are closed. If the server does not answer or refuses a
    connection, new connections fail immediately until a background thread has reconnected.
    """

    def __init__(self, conninfo: str, *, is_limited: bool) -> None:
        self._conninfo, self._is_limited = conninfo, is_limited
        self.idle: list[PostgresqlConnection] = []
        self.open: set[PostgresqlConnection] = set()  # a lent connection that is not in it is closed when it returns
        self._unconfirmed: list[socket.socket] = []
        self._reason = ""
        self._lock = threading.Lock()
        self._is_back = threading.Event()  # a new one for each outage; setting it ends the thread
        self._is_back.set()

    def lend(self) -> PostgresqlConnection:
        """Lend an idle or new connection; the caller returns it with `give_back`. Raises Unavailable."""
        try:
            return self.idle.pop()
        except IndexError:  # all are lent
            if not self._is_back.is_set():
                raise Unavailable(f"PostgreSQL is out of reach: {self._reason}") from None
        try:
            return self._open()
        except Unavailable as error:
            self._lose(str(error))
            raise

    def check_commits(self) -> None:
        """Raise CommitsWait if too many commits wait, such as for a standby that does not answer."""
        with self._lock:
            for each in [each for each in self._unconfirmed if not is_silent(each)]:
                self._unconfirmed.remove(each)
                each.close()
            count = len(self._unconfirmed)
        if count >= MAX_UNCONFIRMED:
            raise CommitsWait(f"{count} commits wait. {STANDBYS}")

    def give_back(self, connection: PostgresqlConnection) -> None:
        """Take a lent connection back, and keep it if its last transaction has ended.

        A commit that waits is no outage: PostgreSQL answers reads meanwhile, or the next one finds that it does not.
        """
        with self._lock:
            is_open = connection in self.open
            if is_open and connection.is_reusable():
                self.idle.append(connection)
                return
            self.open.discard(connection)
            if connection.unconfirmed is not None:
                self._unconfirmed.append(connection.unconfirmed)
                return
        if connection.closed and is_open:
            self._close_all()
        if connection.has_timed_out:
            self._lose(f"It has not answered for {REPLY_SECONDS} seconds.")
        connection.close()

    def close(self) -> None:
        """Close idle connections, and lent ones when they return: none may be open when a process forks."""
        self._close_all()
        self._is_back.set()

    def _open(self) -> PostgresqlConnection:
        connection = open_connection(self._conninfo, is_limited=self._is_limited)
        with self._lock:
            self.open.add(connection)
        return connection

    def _close_all(self) -> None:
        with self._lock:
            idle, self.idle, self.open = self.idle, [], set()
            unconfirmed, self._unconfirmed = self._unconfirmed, []
        for connection in idle:
            connection.close()
        for end in unconfirmed:
            end.close()

    def _lose(self, reason: str) -> None:
        with self._lock:
            if self._is_back.is_set():
                self._reason = reason
                is_back = threading.Event()
                threading.Thread(target=self._await_return, args=(is_back,), name="postgresql", daemon=True).start()
                self._is_back = is_back  # last: without a thread, nothing would set it

    def _await_return(self, is_back: threading.Event) -> None:
        while not is_back.wait(PAUSE_SECONDS):
            try:
                self.give_back(self._open())
                is_back.set()
            except Unavailable:
                continue
            except Exception as error:  # noqa: BLE001  # the thread must not end; requests say why they are refused
                self._reason = repr(error)


def is_silent(end: socket.socket) -> bool:
    """Return whether nothing has arrived, not even the end of the connection."""
    try:
        end.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
