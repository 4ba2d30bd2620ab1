"""The writer of the log: it takes lines without waiting, whether or not somebody reads standard error."""

import contextlib
import sys
import threading
from collections import deque
from typing import Protocol

MAX_WAITING_BYTES = 8 * 1024 * 1024
"""The most that waits to be written: some 20,000 lines of requests. What follows is refused."""


class Stream(Protocol):
    """Where lines are written, without a buffer that would keep what a full disk refuses."""

    def write(self, data: bytes, /) -> int | None:
        """Write, and return how much was taken; None for nothing."""


def standard_error() -> Stream:
    """Return standard error without its buffer."""
    return open(sys.stderr.fileno(), "wb", buffering=0, closefd=False)


class Writer:
    """Writes to a stream in a thread of its own: a write takes as long as the reader of a pipe or a terminal likes.

    The thread ends when nothing is left to write, so that the main process, which forks, has one thread. The descriptor
    is not made non-blocking instead: other processes share it.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # held for a moment, never while something is written

    @property
    def is_empty(self) -> bool:
        """Whether all that was put has been written."""
        return not self._waiting

    def put(self, lines: bytes) -> bool:
        """Keep lines until `start` has them written; return False for too many, which are not kept."""
        with self._lock:
            if self._bytes + len(lines) > MAX_WAITING_BYTES:
                return False
            self._waiting.append(lines)
            self._bytes += len(lines)
            return True

    def start(self) -> None:
        """Have written what waits, and do not wait for that."""
        with self._lock:
            if self._waiting and self._thread is None:
                thread = threading.Thread(target=self._run, name="log", daemon=True)
                with contextlib.suppress(RuntimeError):  # no thread can be had: the next call tries again
                    thread.start()
                    self._thread = thread

    def wait(self, seconds: int) -> None:
        """Wait until all is written, but no longer than so many seconds."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self) -> None:
        lines: bytes | None = self._waiting[0]
        while lines:
            try:
                taken = self.stream.write(lines) or 0
            except (OSError, ValueError):  # a full disk, a reader that has gone, a stream that was closed
                taken = 0
            lines = self._next(taken)

    def _next(self, taken: int) -> bytes | None:
        """Return what is to be written after so many bytes were taken; None ends the thread, also if it was nothing."""
        with self._lock:
            self._bytes -= taken
            rest = self._waiting.popleft()[taken:]
            if rest:
                self._waiting.appendleft(rest)
            if taken and self._waiting:
                return self._waiting[0]
            self._thread = None
            return None
