"""The writer of the log: it accepts lines without waiting, even if standard error is not read."""

import contextlib
import sys
import threading
from collections import deque
from typing import Protocol

MAX_WAITING_BYTES = 8 * 1024 * 1024
"""Maximum size of the lines that wait: about 20,000 requests. More are refused."""


class Stream(Protocol):
    """An unbuffered stream; a buffer would keep lines that a full disk refuses."""

    def write(self, data: bytes, /) -> int | None: ...


def standard_error() -> Stream:
    return open(sys.stderr.fileno(), "wb", buffering=0, closefd=False)


class Writer:
    """Writes to a stream in its own thread, because the reader of a pipe or terminal may block it.

    The thread ends when nothing is left to write, because the main process forks and must have one thread. The
    descriptor stays blocking, because other processes share it.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # held for a moment, never while something is written

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def put(self, lines: bytes) -> bool:
        """Queue lines; return False if there are too many, which are dropped."""
        with self._lock:
            if self._bytes + len(lines) > MAX_WAITING_BYTES:
                return False
            self._waiting.append(lines)
            self._bytes += len(lines)
            return True

    def start(self) -> None:
        with self._lock:
            if self._waiting and self._thread is None:
                thread = threading.Thread(target=self._run, name="log", daemon=True)
                with contextlib.suppress(RuntimeError):  # no thread available; the next call tries again
                    thread.start()
                    self._thread = thread

    def wait(self, seconds: int) -> None:
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self) -> None:
        lines: bytes | None = self._waiting[0]
        while lines:
            try:
                taken = self.stream.write(lines) or 0
            except (OSError, ValueError):  # a full disk, a missing reader, a closed stream
                taken = 0
            lines = self._next(taken)

    def _next(self, taken: int) -> bytes | None:
        """Return what is left to write after some bytes were taken; None if nothing is, or none could be taken."""
        with self._lock:
            self._bytes -= taken
            rest = self._waiting.popleft()[taken:]
            if rest:
                self._waiting.appendleft(rest)
            if taken and self._waiting:
                return self._waiting[0]
            self._thread = None
            return None
