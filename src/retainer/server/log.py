"""The log: one JSON object a line, for each request, failure and warning."""

import time
import traceback
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from retainer import forwarding
from retainer.kernel.caller import Caller
from retainer.kernel.http import Request, Response
from retainer.kernel.resource import Operation
from retainer.traffic.answered import Answered, written_record
from retainer.traffic.recorder import Recorder
from retainer.values.exact import utcnow

encode_lines = msgspec.json.Encoder().encode_lines


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


class Log:
    """JSON lines, kept until `flush` writes them, so that no request waits for a terminal or a disk."""

    def __init__(self, stream: BinaryIO, recorder: Recorder | None = None) -> None:
        self._lines: deque[Answered | BackedUp | Failed | Warned] = deque()
        self.stream = stream
        self.recorder = recorder

    def request(self, request: Request, response: Response, caller: Caller | None, operation: Operation | None) -> None:
        """Log how a request was answered."""
        self._lines.append(
            Answered(
                utcnow(),
                request.id,
                request.method,
                request.path,
                response.status,
                (time.perf_counter_ns() - request.began) // 1000 / 1000,
                operation.id if operation else None,
                caller.account_id if caller else None,
                caller.user_id if caller else None,
                caller.key_id if caller else None,
                caller.prefix if caller else None,
                forwarding.shown(request.environ, request.settings),
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

    def warning(self, message: str) -> None:
        """Log what an operator should know."""
        self._lines.append(Warned(datetime.now(UTC), message))

    def flush(self) -> None:
        """Write the lines that were kept; those of requests go to the recorder too."""
        lines = [self._lines.popleft() for _ in range(len(self._lines))]
        if lines:
            if self.recorder is not None:
                self.recorder.add([line for line in lines if isinstance(line, Answered)])
            self.stream.write(encode_lines(lines))
            self.stream.flush()
