"""The log: one JSON object per line, for each request, error, warning and outage of the database."""

import json
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec

from retainer.background import Chore
from retainer.errors import Refusal
from retainer.kernel.caller import Caller
from retainer.kernel.http import Request, Response
from retainer.kernel.resource import Operation
from retainer.store.engines import Engine
from retainer.store.engines.base import Busy, DeadlineExceeded, DiskFull, Unavailable
from retainer.traffic.answered import MAX_METHOD_LENGTH, RequestLine, reason_of, shown_path, written_record
from retainer.traffic.recorder import RequestRecorder
from retainer.values.exact import utcnow

encode_lines = msgspec.json.Encoder().encode_lines

LINES_PER_WRITE = 12
"""Lines in one write: usually few enough for a pipe to take them whole, since processes may share it."""
MAX_LINES = 20_000
"""Maximum number of lines that wait for their reader, about 700 bytes each; more are dropped."""
WRITE_SECONDS, CHECK_SECONDS = 0.1, 0.5
DRAIN_SECONDS = 1
"""Maximum time that `drain` waits for a reader."""
QUIET_SECONDS = 2
"""Seconds without an error after which an outage has ended, if the database answers."""
MISSING = "{} log lines are missing here, because standard error was not read or the disk was full."

Line = RequestLine | dict[str, object]
"""A request, or an event of another kind."""


def standard_error() -> IO[bytes]:
    """Return the unbuffered stream of the log; a buffer would keep lines that a full disk refuses."""
    return open(sys.stderr.fileno(), "wb", buffering=0, closefd=False)


class LineWriter:
    """Writes lines to a stream in its own thread, because the reader of a pipe or terminal may block it.

    The thread ends when nothing is left to write, because the main process forks and must have one thread. The
    descriptor stays blocking, because other processes share it.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream = stream
        self.dropped = 0
        self._missing = 0  # of `dropped`, those that no line has reported yet
        self._waiting: deque[Line] = deque()
        self._rest = b""
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # held for a moment, never while something is written

    def put(self, line: Line) -> None:
        """Queue a line. If there are too many, lines are dropped until all others are written; then their number is."""
        if self._missing or len(self._waiting) >= MAX_LINES:
            with self._lock:
                self._missing += 1
                self.dropped += 1
        else:
            self._waiting.append(line)

    def start(self) -> None:
        with self._lock:
            if (self._waiting or self._rest or self._missing) and self._thread is None:
                thread = threading.Thread(target=self._run, name="log", daemon=True)
                with suppress(RuntimeError):  # no thread available; the next call tries again
                    thread.start()
                    self._thread = thread

    def wait(self, seconds: int) -> None:
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _run(self) -> None:
        while data := self._rest or self._take():
            try:
                taken = self.stream.write(data) or 0
            except (OSError, ValueError):  # a full disk, a missing reader, a closed stream
                taken = 0
            self._rest = data[taken:]
            if not taken:
                with self._lock:
                    self._thread = None
                return

    def _take(self) -> bytes:
        """Return the next lines; nothing if none is left, and then the thread ends."""
        with self._lock:
            if self._missing and not self._waiting:
                self._waiting.append(event("warning", "warning", message=MISSING.format(self._missing)))
                self._missing = 0
            lines = [self._waiting.popleft() for _ in range(min(LINES_PER_WRITE, len(self._waiting)))]
            if not lines:
                self._thread = None
        try:
            return encode_lines(lines)
        except UnicodeEncodeError:  # file names may have surrogates, which are escaped
            return b"".join(json.dumps(msgspec.to_builtins(line)).encode() + b"\n" for line in lines)


class Outages:
    """Counts errors of the database. `tell` logs a message, and whether the outage is over."""

    def __init__(self, engine: Engine, tell: Callable[[str, bool], None]) -> None:
        self.engine, self.tell = engine, tell
        self.is_on = False
        self.is_full = False
        """Whether the disk of the database is full; reads are answered meanwhile."""
        self.errors = 0
        self._newest = self._began_at = 0.0
        self._errors_before = 0
        self._lock = threading.Lock()

    def count_error(self) -> None:
        with self._lock:
            self.errors += 1

    def note(self, error: Unavailable) -> None:
        """Count an error; the first one starts an outage."""
        with self._lock:
            self.errors += 1
            self._newest = time.monotonic()
            self.is_full = isinstance(error, DiskFull)
            if self.is_on:
                return
            self._began_at, self._errors_before = self._newest, self.errors - 1
            self.is_on = True
        reason = " ".join(str(error).split()).rstrip(".")
        message = f"{error.subject} cannot be used ({reason}). Until it can, requests that need it get 503."
        advice = f"Check {self.engine.hint}."
        if isinstance(error, DiskFull):
            message = f"The disk of the database is full ({reason}). Until it has room, requests that write get 503."
            advice = "Free space, or enlarge the disk."
        self.tell(f"{message} {advice}", False)  # noqa: FBT003

    def end_if_over(self) -> None:
        """End an outage if there were no errors for a while, and the database answers."""
        if not self.is_on or time.monotonic() - self._newest < QUIET_SECONDS:
            return
        try:
            self.engine.check()
        except Unavailable:
            return
        if not self.engine.has_room():
            return
        with self._lock:
            self.is_on = self.is_full = False
            failed = self.errors - self._errors_before
        seconds = f"{self._newest - self._began_at:.0f} seconds"
        message = f"The database can be used again. Requests and tasks that failed in {seconds}: {failed}."
        self.tell(message, True)  # noqa: FBT003


class Log:
    """JSON lines, which the writer gets without waiting, so that no request waits for standard error.

    Requests are also handed to the recorder of the request log, and counted: `count` takes the operation, status and
    microseconds of one, and cannot raise.
    """

    def __init__(
        self,
        stream: IO[bytes],
        engine: Engine,
        recorder: RequestRecorder | None = None,
        count: Callable[[str | None, int, int], None] | None = None,
    ) -> None:
        self.outages = Outages(engine, self.outage)
        self.count = count
        self.recorder = recorder
        self.writer = LineWriter(stream)
        self.chores = (
            Chore("watching for the end of an outage", CHECK_SECONDS, self.outages.end_if_over),
            Chore("writing the log", WRITE_SECONDS, self.flush),
        )
        """What a thread of the process does for the log."""

    def request(
        self,
        request: Request,
        response: Response,
        caller: Caller | None,
        operation: Operation | None,
        refusal: Refusal | None,
    ) -> None:
        microseconds = (time.perf_counter_ns() - request.began) // 1000
        answered = RequestLine(
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
            written_record(request, response) if operation and operation.writes else None,
            reason_of(refusal) if refusal else None,
        )
        self.writer.put(answered)
        if self.recorder is not None:
            self.recorder.add([answered])
        if self.count is not None:
            self.count(answered.operation, answered.status, microseconds)

    def backup(self, file: Path, size: int) -> None:
        self.writer.put(event("backup", "info", file=str(file), bytes=size))

    def failure(self, what: Request | str, error: BaseException) -> None:
        """Log an internal error with its stack; `what` is the request or the task that failed."""
        request_id = None if isinstance(what, str) else what.id
        stack = "".join(traceback.format_exception(error))
        self.writer.put(event("failure", "error", during=described(what), request_id=request_id, error=stack))

    def report(self, what: Request | str, error: BaseException) -> None:
        """Log an error with its stack; a database error as part of an outage, or as a warning if it was busy."""
        if isinstance(error, Busy):
            self.warning(f"{described(what)} was cancelled. {error.reason} ({' '.join(str(error).split())})")
            if isinstance(error, DeadlineExceeded):
                self.outages.count_error()
        elif isinstance(error, Unavailable):
            self.outages.note(error)
        else:
            self.failure(what, error)

    def warning(self, message: str) -> None:
        self.writer.put(event("warning", "warning", message=message))

    def notice(self, message: str) -> None:
        self.writer.put(event("notice", "info", message=message))

    def outage(self, message: str, is_over: bool) -> None:  # noqa: FBT001
        state, level = ("ended", "warning") if is_over else ("began", "error")
        self.writer.put(event("outage", level, state=state, message=message))
        self.flush()

    def warn_now(self, message: str) -> None:
        self.warning(message)
        self.drain()

    def flush(self) -> None:
        self.writer.start()

    def drain(self) -> None:
        self.flush()
        self.writer.wait(DRAIN_SECONDS)


def described(what: Request | str) -> str:
    return what if isinstance(what, str) else f"{what.method[:MAX_METHOD_LENGTH]} {shown_path(what.path)}"


def event(name: str, level: str, **fields: object) -> dict[str, object]:
    return {"event": name, "time": datetime.now(UTC), **fields, "level": level}
