"""A request as the stages see it, and a response before it is sent."""

import random
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from retainer.errors import Refusal
from retainer.kernel import forwarding
from retainer.settings import BASE_PATH, Settings

NOTHING = frozenset({"", "0"})
MAX_BODY_BYTES = 1024 * 1024
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ID_PREFIX, ID_LENGTH = "req_", len("req_") + 24
"""How an id begins that was made here, and how long it is."""
NEW_ID = re.compile(rf"{ID_PREFIX}(0[0-9a-f]{{11}})[0-9a-f]{{12}}")
SENT_ID = re.compile(rf"(?!{ID_PREFIX}.{{24}}$)[A-Za-z0-9._-]{{1,64}}")
"""Which ids of callers are taken: none that looks as if it was made here."""


def new_request_id() -> str:
    """Return a label, no secret; it begins with the time."""
    return f"{ID_PREFIX}{time.time_ns() // 1_000_000:012x}{random.getrandbits(48):012x}"


def created_at(request_id: str) -> datetime | None:
    """Return when a request id was made here; None for one that a caller has sent."""
    found = NEW_ID.fullmatch(request_id)
    return EPOCH + timedelta(milliseconds=int(found[1], 16)) if found else None


class Response(NamedTuple):
    """What goes back: status, headers, body."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""


class Request:
    """One request, with `has_body` until its body was read.

    Only named headers are ever read: the WSGI environ also holds the process environment.
    """

    __slots__ = ("began", "environ", "has_body", "id", "method", "path", "query", "settings", "shown_address")

    def __init__(self, environ: dict[str, Any], settings: Settings) -> None:
        self.began = time.perf_counter_ns()
        self.environ = environ
        self.settings = settings
        self.has_body: bool = environ.get("CONTENT_LENGTH", "0") not in NOTHING or "HTTP_TRANSFER_ENCODING" in environ
        self.method: str = environ["REQUEST_METHOD"]
        self.path: str = environ["PATH_INFO"]
        self.query: str = environ["QUERY_STRING"]
        self.shown_address = forwarding.shown(environ, settings)
        self.id: str = environ.get("HTTP_X_REQUEST_ID", "")
        if not self.id or not SENT_ID.fullmatch(self.id):
            self.id = new_request_id()

    def header(self, name: str) -> str | None:
        """A header by its WSGI name, like `IF_MATCH`."""
        return self.environ.get(f"HTTP_{name}")

    def check(self) -> None:
        """Refuse what needs no look at the rest: no host, or several, or a body that says it is too large."""
        forwarding.check_host(self.environ)
        length = self.environ.get("CONTENT_LENGTH")
        if length and (len(length) > 10 or int(length) > MAX_BODY_BYTES):
            raise too_large()

    def read(self) -> bytes:
        """The whole body; at most a byte more than the limit is ever read."""
        body: bytes = self.environ["wsgi.input"].read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise too_large()
        self.has_body = False
        return body

    @property
    def address(self) -> str:
        """The caller's address as it is counted."""
        return forwarding.group(forwarding.client_address(self.environ, self.settings))

    @property
    def networks(self) -> tuple[str, ...]:
        """The caller's address as it is counted, and for IPv6 the larger network that it is part of."""
        return forwarding.networks(forwarding.client_address(self.environ, self.settings))

    @property
    def origin(self) -> str:
        """The public address of the server, without a slash at the end."""
        return forwarding.origin(self.environ, self.settings)

    @property
    def base_url(self) -> str:
        """The public address of the API, without a slash at the end."""
        return self.origin + BASE_PATH


def too_large() -> Refusal:
    """413: the body is over 1 MiB."""
    return Refusal("body_too_large", "The body is larger than 1 MiB (1048576 bytes). Send less at once.")
