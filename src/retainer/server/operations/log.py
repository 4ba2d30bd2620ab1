"""The log: one JSON object a line, for each request, failure and warning."""

import json
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retainer.kernel.caller import Caller
from retainer.kernel.http import Request, Response
from retainer.kernel.resource import Operation
from retainer.server.operations.outages import Outages
from retainer.server.operations.writer import Stream, Writer
from retainer.store.engines import Busy, DeadlineExceeded, Engine, Unavailable
from retainer.traffic.answered import MAX_METHOD_LENGTH, Answered, shown_path, written_record
from retainer.traffic.recorder import RequestRecorder
from retainer.values.exact import utcnow

encode_lines = msgspec.json.Encoder().encode_lines

LINES_PER_WRITE = 12
"""Lines that are written together: usually less than a pipe takes whole, for several processes may write into one."""
LINES_PER_BATCH = 10 * LINES_PER_WRITE
"""Lines that the processor still has in its caches when the second reader looks at them."""
MAX_LINES = 20_000
"""The most lines that are kept until `flush`, at some 700 bytes each; then new ones are dropped."""
DRAIN_SECONDS = 1
"""The longest that `drain` waits for a reader."""


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
    """JSON lines, kept until `flush`; no request or chore waits for a terminal, a pipe or a disk.

    It knows the outages of a database. When a request ends, it is kept as a line and counted; `flush` hands it to the
    writer and to a recorder.
    """

    def __init__(self, stream: Stream, engine: Engine, recorder: RequestRecorder | None = None) -> None:
        self.outages = Outages(engine, self)
        self.count: Callable[[str | None, int, int], None] = lambda *_: None
        """Is told of each request that has ended: its operation, status and microseconds. Cannot raise."""
        self.dropped = 0
        self.recorder = recorder
        self.writer = Writer(stream)
        self._lines: deque[Line] = deque()
        self._overflowed = self._missing = 0
        self._lock = threading.Lock()  # held for a moment, for what overflows
        self._flushing = threading.Lock()  # nothing is waited for while it is held

    def request(self, request: Request, response: Response, caller: Caller | None, operation: Operation | None) -> None:
        """Log and count a request that has ended."""
        microseconds = (time.perf_counter_ns() - request.began) // 1000
        answered = Answered(
            utcnow(),
            request.id,
            request.method[:MAX_METHOD_LENGTH],
            shown_path(request.path),
            response.status,
            microseconds / 1000,
            operation.id if operation else None,
            caller.account_id if caller else None,
            caller.user_id if caller else None,
            caller.key_id if caller else None,
            caller.prefix if caller else None,
            request.shown_address,
            written_record(request, response, operation) if operation and operation.writes else None,
        )
        if not self._keep(answered) and self.recorder is not None:
            self.recorder.count_dropped()
        self.count(answered.operation, answered.status, microseconds)

    def backup(self, file: Path, size: int) -> None:
        """Log that a backup was made; `size` is in bytes."""
        self._keep(BackedUp(datetime.now(UTC), str(file), size))

    def failure(self, what: Request | str, error: Exception) -> None:
        """Log an internal error, with its stack; `what` is the request or the chore that failed."""
        during, request_id = (what, None) if isinstance(what, str) else (f"{what.method} {what.path}", what.id)
        stack = "".join(traceback.format_exception(error))
        self._keep(Failed(datetime.now(UTC), during, request_id, stack))

    def report(self, what: Request | str, error: Exception) -> None:
        """Log an error with its stack; one of the database as part of an outage, or as a warning if it was busy."""
        if isinstance(error, Busy):
            during = what if isinstance(what, str) else f"{what.method} {what.path}"
            self.warning(f"{during} was given up. {error.reason} ({' '.join(str(error).split())})")
            if isinstance(error, DeadlineExceeded):
                self.outages.count_error()
        elif isinstance(error, Unavailable):
            self.outages.note(error)
        else:
            self.failure(what, error)

    def warning(self, message: str) -> None:
        """Log what an operator should know."""
        self._keep(Warned(datetime.now(UTC), message))

    def notice(self, message: str) -> None:
        """Log what the server does."""
        self._keep(Noted(datetime.now(UTC), message))

    def outage(self, message: str, *, is_over: bool) -> None:
        """Log the beginning or the end of an outage of the database."""
        state, level = ("ended", "warning") if is_over else ("began", "error")
        self._keep(Outage(datetime.now(UTC), state, message, level))

    def flush(self) -> None:
        """Hand the lines that were kept to the writer and the recorder, and do not wait until they are written.

        Once the writer has too many, lines are dropped until it has written all: then a warning says how many.
        """
        with self._flushing:
            if self._missing and self.writer.is_empty:
                missing, self._missing = self._missing, 0
                message = f"{missing} lines of the log are missing here: nobody read them, or the disk was full."
                self._write([Warned(datetime.now(UTC), message)])
            for _ in range(0, len(self._lines), LINES_PER_BATCH):
                lines = [self._lines.popleft() for _ in range(min(LINES_PER_BATCH, len(self._lines)))]
                for start in range(0, len(lines), LINES_PER_WRITE):
                    self._write(lines[start : start + LINES_PER_WRITE])
                if self.recorder is not None:
                    self.recorder.add([line for line in lines if isinstance(line, Answered)])
            with self._lock:
                overflowed, self._overflowed = self._overflowed, 0
            self._drop(overflowed)
            self.writer.start()

    def drain(self) -> None:
        """Like `flush`, and wait a moment until all is written, before a process does something else or ends."""
        self.flush()
        self.writer.wait(DRAIN_SECONDS)

    def _keep(self, line: Line) -> bool:
        """Keep a line until it is flushed; return False for one too many, which is dropped."""
        if len(self._lines) < MAX_LINES:
            self._lines.append(line)
            return True
        with self._lock:
            self._overflowed += 1
        return False

    def _write(self, lines: list[Line]) -> None:
        if self._missing or not self.writer.put(encoded(lines)):
            self._drop(len(lines))

    def _drop(self, lines: int) -> None:
        self._missing += lines
        self.dropped += lines


def encoded(lines: list[Line]) -> bytes:
    """Return lines as JSON."""
    try:
        return encode_lines(lines)
    except UnicodeEncodeError:  # a surrogate, as the name of a file may have: it is escaped
        return b"".join(json.dumps(msgspec.to_builtins(line)).encode() + b"\n" for line in lines)
