"""The log: one JSON object a line, for each request, failure and warning."""

import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from retainer import forwarding
from retainer.kernel.caller import Caller
from retainer.kernel.http import Request, Response
from retainer.kernel.resource import Operation
from retainer.server.outages import Outages
from retainer.store.engines import Engine, Unavailable

encode_lines = msgspec.json.Encoder().encode_lines

AT_ONCE = 12
"""Lines that are written together: usually less than a pipe takes whole, for several processes may write into one."""


class Answered(msgspec.Struct, gc=False, tag_field="event", tag="request"):
    """A request and how it was answered: the key by its prefix, no query, no body, no header but the request id."""

    time: datetime
    request_id: str
    method: str
    path: str
    status: int
    duration_ms: float
    operation: str | None
    account_id: int | None
    user_id: int | None
    key: str | None
    address: str | None
    level: str = "info"


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

    It knows the outages of a database. `count` is called with all lines that are written.
    """

    def __init__(self, stream: BinaryIO, engine: Engine) -> None:
        self.outages = Outages(engine, self)
        self.count: Callable[[list[Line]], None] = lambda _: None
        self._lines: deque[Line] = deque()
        self._writing = threading.Lock()
        self.stream = stream

    def request(self, request: Request, response: Response, caller: Caller | None, operation: Operation | None) -> None:
        """Log how a request was answered."""
        self._lines.append(
            Answered(
                datetime.now(UTC),
                request.id,
                request.method,
                request.path,
                response.status,
                (time.perf_counter_ns() - request.began) // 1000 / 1000,
                operation.id if operation else None,
                caller.account_id if caller else None,
                caller.user_id if caller else None,
                caller.prefix if caller else None,
                forwarding.shown(request.environ, request.settings),
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
        if isinstance(error, Unavailable):
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
        """Write the lines that were kept."""
        with self._writing:
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            self.count(lines)
            for start in range(0, len(lines), AT_ONCE):
                self.stream.write(encode_lines(lines[start : start + AT_ONCE]))
                self.stream.flush()
