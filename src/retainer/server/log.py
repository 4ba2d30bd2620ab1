"""The log: one JSON object a line, for each request, failure and warning."""

import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from retainer.kernel.caller import Caller
from retainer.kernel.http import Request, Response
from retainer.kernel.resource import Operation
from retainer.server.outages import Outages
from retainer.store.engines import Busy, DeadlineExceeded, Engine, Unavailable
from retainer.traffic.answered import LONGEST_METHOD, Answered, shown_path, written_record
from retainer.traffic.recorder import RequestRecorder
from retainer.values.exact import utcnow

encode_lines = msgspec.json.Encoder().encode_lines

AT_ONCE = 12
"""Lines that are written together: usually less than a pipe takes whole, for several processes may write into one."""
IN_CACHE = 10 * AT_ONCE
"""Lines that the processor still has in its caches when the second reader looks at them."""
MOST_UNWRITTEN = 1000
"""So many pieces of lines are kept while they cannot be written; then new ones are lost."""


class Stream(Protocol):
    """Where lines are written, without a buffer that would keep what a full disk refuses."""

    def write(self, data: bytes, /) -> int | None:
        """Write, and return how much was taken; None for nothing."""


def standard_error() -> Stream:
    """Return standard error without its buffer."""
    return open(sys.stderr.fileno(), "wb", buffering=0, closefd=False)


class BackedUp(msgspec.Struct, gc=False, tag_field="event", tag="backup"):
    """A backup that the server has made by its schedule."""

    time: datetime
    file: str
    bytes: int
    level: str = "info"


class Failed(msgspec.Struct, gc=False, tag_field="event", tag="failure"):
    """An internal error, with its stack."""

    time: datetime
    during: str
    request_id: str | None
    error: str
    level: str = "error"


class Warned(msgspec.Struct, gc=False, tag_field="event", tag="warning"):
    """What an operator should know and may want to change."""

    time: datetime
    message: str
    level: str = "warning"


class Noted(msgspec.Struct, gc=False, tag_field="event", tag="notice"):
    """What the server does that nobody asked of a request."""

    time: datetime
    message: str
    level: str = "info"


class Outage(msgspec.Struct, gc=False, tag_field="event", tag="outage"):
    """The database cannot be used from now on, or can again."""

    time: datetime
    state: str
    message: str
    level: str


Line = Answered | BackedUp | Failed | Warned | Noted | Outage


class Log:
    """JSON lines, kept until `flush` writes them, so that no request waits for a terminal or a disk.

    It knows the outages of a database. `count` is called with all lines, a recorder gets those of requests.
    """

    def __init__(self, stream: Stream, engine: Engine, recorder: RequestRecorder | None = None) -> None:
        self.outages = Outages(engine, self)
        self.count: Callable[[list[Line]], None] = lambda _: None
        self._lines: deque[Line] = deque()
        self._unwritten: deque[bytes] = deque()
        self._lost = 0
        self._writing = threading.Lock()
        self.stream = stream
        self.recorder = recorder

    def request(self, request: Request, response: Response, caller: Caller | None, operation: Operation | None) -> None:
        """Log how a request was answered."""
        self._lines.append(
            Answered(
                utcnow(),
                request.id,
                request.method[:LONGEST_METHOD],
                shown_path(request.path),
                response.status,
                (time.perf_counter_ns() - request.began) // 1000 / 1000,
                operation.id if operation else None,
                caller.account_id if caller else None,
                caller.user_id if caller else None,
                caller.key_id if caller else None,
                caller.prefix if caller else None,
                request.shown_address,
                written_record(request, response, operation) if operation and operation.writes else None,
            )
        )

    def backup(self, file: Path, size: int) -> None:
        """Log that a backup was made; `size` is in bytes."""
        self._lines.append(BackedUp(datetime.now(UTC), str(file), size))

    def failure(self, what: Request | str, error: Exception) -> None:
        """Log an internal error, with its stack; `what` is the request or the chore that failed."""
        during, request_id = (what, None) if isinstance(what, str) else (f"{what.method} {what.path}", what.id)
        stack = "".join(traceback.format_exception(error))
        self._lines.append(Failed(datetime.now(UTC), during, request_id, stack))

    def report(self, what: Request | str, error: Exception) -> None:
        """Log an error with its stack; one of the database as part of an outage, which is two lines."""
        if isinstance(error, Busy):
            during = what if isinstance(what, str) else f"{what.method} {what.path}"
            self.warning(f"Another transaction was in the way of {during} ({' '.join(str(error).split())}).")
        elif isinstance(error, DeadlineExceeded):
            during = what if isinstance(what, str) else f"{what.method} {what.path}"
            self.warning(f"{during} took too long and was undone ({' '.join(str(error).split())}).")
        elif isinstance(error, Unavailable):
            self.outages.note(error)
        else:
            self.failure(what, error)

    def warning(self, message: str) -> None:
        """Log what an operator should know."""
        self._lines.append(Warned(datetime.now(UTC), message))

    def notice(self, message: str) -> None:
        """Log what the server does."""
        self._lines.append(Noted(datetime.now(UTC), message))

    def outage(self, message: str, *, is_over: bool) -> None:
        """Log the beginning or the end of an outage of the database."""
        state, level = ("ended", "warning") if is_over else ("began", "error")
        self._lines.append(Outage(datetime.now(UTC), state, message, level))

    def flush(self) -> None:
        """Write the lines that were kept; what cannot be written, as on a full disk, waits for the next call."""
        with self._writing:
            if self._lost and len(self._unwritten) < MOST_UNWRITTEN:
                self.warning(f"{self._lost} lines of the log are missing here: they could not be written.")
                self._lost = 0
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            self.count(lines)
            for start in range(0, len(lines), IN_CACHE):
                self._keep(lines[start : start + IN_CACHE])
            self._write()

    def _keep(self, lines: list[Line]) -> None:
        """Encode lines for the stream, and hand those of requests to the recorder."""
        for start in range(0, len(lines), AT_ONCE):
            together = lines[start : start + AT_ONCE]
            if len(self._unwritten) < MOST_UNWRITTEN:
                self._unwritten.append(encode_lines(together))
            else:
                self._lost += len(together)
        if self.recorder is not None:
            self.recorder.add([line for line in lines if isinstance(line, Answered)])

    def _write(self) -> None:
        """Write until something is not taken whole: a request that has something to log must not fail for that."""
        while self._unwritten:
            piece = self._unwritten[0]
            try:
                taken = self.stream.write(piece) or 0
            except OSError:
                return
            if taken < len(piece):
                self._unwritten[0] = piece[taken:]
                return
            self._unwritten.popleft()
