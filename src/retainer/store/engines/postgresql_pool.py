"""The connections of a process to PostgreSQL: lent to one user at a time, refused at once while the server is lost."""

import contextlib
import threading

from retainer.store.engines.base import Unavailable
from retainer.store.engines.postgresql_connection import REPLY_SECONDS, Connection, open_connection

PAUSE_SECONDS = 0.1
"""From the loss of the server, and from each attempt that failed, to the next attempt to connect."""


class Pool:
    """As many connections are kept as were used at once.

    When one is found closed, the others of its generation are closed as well. When the server does not answer, or
    refuses a new connection, callers do not wait for it: a thread tries to connect until it succeeds.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self.idle: list[Connection] = []
        self.count = 0
        self._reason = ""
        self._generation = 0
        self._lock = threading.Lock()
        self._is_back = threading.Event()  # one for each loss; its waiting thread ends when it is set
        self._is_back.set()

    def lend(self) -> Connection:
        """Lend a connection that nobody uses; its user gives it back. Raises Unavailable."""
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

    def give_back(self, connection: Connection) -> None:
        """Take back what was lent: for the next user, if its last transaction ended in order."""
        with self._lock:
            if connection.is_reusable() and connection.generation == self._generation:
                self.idle.append(connection)
                return
            self.count -= 1
        if connection.closed:
            self._renew(connection.generation)
            if connection.has_timed_out:
                self._lose(f"It has not answered for {REPLY_SECONDS} seconds.")
        connection.close()

    def close(self) -> None:
        """Close what is idle, and later what is lent: none may be open when a process forks."""
        self._renew(self._generation)
        self._is_back.set()

    def _open(self) -> Connection:
        generation = self._generation
        connection = open_connection(self._conninfo)
        connection.generation = generation
        with self._lock:
            self.count += 1
        return connection

    def _renew(self, generation: int) -> None:
        """Begin another generation, if this one is the newest."""
        with self._lock:
            if generation != self._generation:
                return
            self._generation += 1
            idle, self.idle = self.idle, []
            self.count -= len(idle)
        for connection in idle:
            connection.close()

    def _lose(self, reason: str) -> None:
        """Refuse new connections until a thread has got one."""
        with self._lock:
            if self._is_back.is_set():
                self._reason = reason
                self._is_back = threading.Event()
                threading.Thread(
                    target=self._await_return, args=(self._is_back,), name="postgresql", daemon=True
                ).start()

    def _await_return(self, is_back: threading.Event) -> None:
        while not is_back.wait(PAUSE_SECONDS):
            with contextlib.suppress(Unavailable):
                self.give_back(self._open())
                is_back.set()
