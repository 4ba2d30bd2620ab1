"""The log: one JSON object per line, for each request, error and warning."""

import json
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from retainer.errors import Refusal
from retainer.kernel.caller import Caller
from retainer.kernel.http import Request, Response
from retainer.kernel.resource import Operation
from retainer.server.monitoring.outages import Outages
from retainer.server.monitoring.writer import Stream, Writer
from retainer.store.engines import Busy, DeadlineExceeded, Engine, Unavailable
from retainer.traffic.answered import MAX_METHOD_LENGTH, Answered, reason_of, shown_path, written_record
from retainer.traffic.recorder import RequestRecorder
from retainer.values.exact import utcnow

encode_lines = msgspec.json.Encoder().encode_lines

LINES_PER_WRITE = 12
"""Lines in one write: usually few enough for a pipe to take them whole, since processes may share it."""
MAX_LINES = 20_000
"""Maximum number of lines that wait for `flush`, about 700 bytes each; more are dropped."""
DRAIN_SECONDS = 1
"""Maximum time that `drain` waits for a reader."""


Line = Answered | dict[str, object]
"""A request, or an event of another kind."""


class Log:
    """JSON lines, kept until `flush` hands them to the writer, so that no request waits for standard error.

    Requests are also handed to the recorder of the request log, and counted: `count` takes the operation, status and
    microseconds of one, and cannot raise.
    """

    def __init__(
        self,
        stream: Stream,
        engine: Engine,
        recorder: RequestRecorder | None = None,
        count: Callable[[str | None, int, int], None] | None = None,
    ) -> None:
        self.outages = Outages(engine, self)
        self.count = count or (lambda *_: None)
        self.dropped = 0
        self.recorder = recorder
        self.writer = Writer(stream)
        self._lines: deque[Line] = deque()
        self._overflowed = self._missing = 0
        self._lock = threading.Lock()  # held briefly, for `_overflowed`
        self._flushing = threading.Lock()  # held without waiting for anything

    def request(
        self,
        request: Request,
        response: Response,
        caller: Caller | None,
        operation: Operation | None,
        refusal: Refusal | None,
    ) -> None:
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
            reason_of(refusal) if refusal else None,
        )
        if not self._keep(answered) and self.recorder is not None:
            self.recorder.count_dropped()
        self.count(answered.operation, answered.status, microseconds)

    def backup(self, file: Path, size: int) -> None:
        self._keep(event("backup", "info", file=str(file), bytes=size))

    def failure(self, what: Request | str, error: BaseException) -> None:
        """Log an internal error with its stack; `what` is the request or the task that failed."""
        during, request_id = (what, None) if isinstance(what, str) else (f"{what.method} {what.path}", what.id)
        stack = "".join(traceback.format_exception(error))
        self._keep(event("failure", "error", during=during, request_id=request_id, error=stack))

    def report(self, what: Request | str, error: BaseException) -> None:
        """Log an error with its stack; a database error as part of an outage, or as a warning if it was busy."""
        if isinstance(error, Busy):
            during = what if isinstance(what, str) else f"{what.method} {what.path}"
            self.warning(f"{during} was cancelled. {error.reason} ({' '.join(str(error).split())})")
            if isinstance(error, DeadlineExceeded):
                self.outages.count_error()
        elif isinstance(error, Unavailable):
            self.outages.note(error)
        else:
            self.failure(what, error)

    def warning(self, message: str) -> None:
        self._keep(event("warning", "warning", message=message))

    def notice(self, message: str) -> None:
        self._keep(event("notice", "info", message=message))

    def outage(self, message: str, *, is_over: bool) -> None:
        state, level = ("ended", "warning") if is_over else ("began", "error")
        self._keep(event("outage", level, state=state, message=message))

    def flush(self) -> None:
        """Hand the lines to the writer and the recorder, without waiting until they are written.

        If the writer has too many, lines are dropped until it has written all; then a warning has their number.
        """
        with self._flushing:
            if self._missing and self.writer.is_empty:
                missing, self._missing = self._missing, 0
                reason = "because standard error was not read or the disk was full"
                self._write([event("warning", "warning", message=f"{missing} log lines are missing here, {reason}.")])
            for _ in range(0, len(self._lines), LINES_PER_WRITE):
                lines = [self._lines.popleft() for _ in range(min(LINES_PER_WRITE, len(self._lines)))]
                self._write(lines)
                if self.recorder is not None:
                    self.recorder.add([line for line in lines if isinstance(line, Answered)])
            with self._lock:
                overflowed, self._overflowed = self._overflowed, 0
            self._drop(overflowed)
            self.writer.start()

    def drain(self) -> None:
        """Flush, and wait briefly until all lines are written, for example before the process ends."""
        self.flush()
        self.writer.wait(DRAIN_SECONDS)

    def _keep(self, line: Line) -> bool:
        """Keep a line until `flush`; return False if there are too many, and drop it."""
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


def event(name: str, level: str, **fields: object) -> dict[str, object]:
    return {"event": name, "time": datetime.now(UTC), **fields, "level": level}


def encoded(lines: list[Line]) -> bytes:
    try:
        return encode_lines(lines)
    except UnicodeEncodeError:  # file names may have surrogates, which are escaped
        return b"".join(json.dumps(msgspec.to_builtins(line)).encode() + b"\n" for line in lines)
