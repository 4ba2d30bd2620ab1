"""What leaves as log lines: one JSON object for each request, one for each failure."""

import time
import traceback
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from retainer.kernel.http import Request, Response

if TYPE_CHECKING:
    from retainer.domain.keys import Caller
    from retainer.kernel.resource import Operation

encode = msgspec.json.Encoder().encode


class Log:
    """JSON lines, kept until `flush` writes them, so that no request waits for a terminal or a disk.

    A line has a key's prefix, never the key; no query, no body, no header but the request id.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._lines: deque[dict[str, Any]] = deque()
        self._stream = stream

    def request(
        self, request: Request, response: Response, caller: "Caller | None", operation: "Operation | None"
    ) -> None:
        """Note how a request was answered."""
        self._lines.append(
            {
                "time": time.time(),
                "level": "info",
                "event": "request",
                "request_id": request.id,
                "method": request.method,
                "path": request.path,
                "status": response.status,
                "duration_ms": round((time.perf_counter() - request.began) * 1000, 3),
                "operation": operation and operation.id,
                "account_id": caller and caller.account_id,
                "user_id": caller and caller.user_id,
                "key": caller and caller.prefix,
                "address": request.environ.get("REMOTE_ADDR"),
            }
        )

    def failure(self, what: Request | str, error: Exception) -> None:
        """Note an error of ours, with its stack."""
        self._lines.append(
            {
                "time": time.time(),
                "level": "error",
                "event": "failure",
                "during": what if isinstance(what, str) else f"{what.method} {what.path}",
                "request_id": None if isinstance(what, str) else what.id,
                "error": "".join(traceback.format_exception(error)),
            }
        )

    def flush(self) -> None:
        """Write the lines that have come together."""
        lines = []
        while self._lines:
            line = self._lines.popleft()
            line["time"] = datetime.fromtimestamp(line["time"], UTC).isoformat(timespec="milliseconds")
            lines.append(encode(line))
        if lines:
            self._stream.write(b"\n".join(lines) + b"\n")
            self._stream.flush()
