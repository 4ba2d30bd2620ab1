"""Requests and responses of the pipeline."""

import random
import re
import time
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from wsgiref.types import WSGIEnvironment

from retainer.errors import Refusal
from retainer.kernel import forwarding
from retainer.settings import BASE_PATH, Settings

NOTHING = frozenset({"", "0"})
MAX_BODY_BYTES = 1024 * 1024
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ID_PREFIX, ID_LENGTH = "req_", len("req_") + 24
"""Prefix and length of request ids that the server creates."""
NEW_ID = re.compile(rf"{ID_PREFIX}(0[0-9a-f]{{11}})[0-9a-f]{{12}}")
SENT_ID = re.compile(rf"(?!{ID_PREFIX}.{{24}}$)[A-Za-z0-9._-]{{1,64}}")
"""Accepted ids of clients; none that looks like one of the server."""


def new_request_id() -> str:
    """Return a request id, which begins with the time. It is not a secret."""
    return f"{ID_PREFIX}{time.time_ns() // 1_000_000:012x}{random.getrandbits(48):012x}"


def created_at(request_id: str) -> datetime | None:
    """Return when the server created a request id; None for the id of a client."""
    found = NEW_ID.fullmatch(request_id)
    return EPOCH + timedelta(milliseconds=int(found[1], 16)) if found else None


class Response(NamedTuple):
    """The status, headers and body of a response."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""


class Request:
    """A request; it `has_body` until its body was read.

    Only named headers are read, because the WSGI environ also holds the environment of the process.
    """

    __slots__ = ("began", "environ", "has_body", "id", "method", "part", "path", "query", "settings", "shown_address")

    def __init__(self, environ: WSGIEnvironment, settings: Settings) -> None:
        self.began = time.perf_counter_ns()
        self.environ = environ
        self.settings = settings
        self.has_body: bool = environ.get("CONTENT_LENGTH", "0") not in NOTHING or "HTTP_TRANSFER_ENCODING" in environ
        self.method: str = environ["REQUEST_METHOD"]
        self.path: str = environ["PATH_INFO"]
        self.query: str = environ["QUERY_STRING"]
        self.shown_address = forwarding.shown(environ, settings)
        self.part = ""
        """What tells the Idempotency-Key of an operation of a batch from the keys that callers send."""
        self.id: str = environ.get("HTTP_X_REQUEST_ID", "")
        if not self.id or not SENT_ID.fullmatch(self.id):
            self.id = new_request_id()

    def header(self, name: str) -> str | None:
        """Return a header by its WSGI name, like `IF_MATCH`."""
        return self.environ.get(f"HTTP_{name}")

    def check(self) -> None:
        """Raise `bad_request` unless there is one host, and `body_too_large` if Content-Length is over the limit."""
        forwarding.check_host(self.environ)
        length = self.environ.get("CONTENT_LENGTH")
        if length and (len(length) > 10 or int(length) > MAX_BODY_BYTES):
            raise too_large()

    def read(self) -> bytes:
        """Return the whole body; reads at most one byte more than the limit. Raises `body_too_large`."""
        body: bytes = self.environ["wsgi.input"].read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise too_large()
        self.has_body = False
        return body

    @property
    def address(self) -> str:
        """Return the client's address as the rate limit counts it."""
        return forwarding.group(forwarding.client_address(self.environ, self.settings))

    @property
    def networks(self) -> tuple[str, ...]:
        """Return the client's address as limits count it, and for IPv6 also the /48 network."""
        return forwarding.networks(forwarding.client_address(self.environ, self.settings))

    @property
    def origin(self) -> str:
        """Return the public address of the server, without a trailing slash."""
        return forwarding.origin(self.environ, self.settings)

    @property
    def base_url(self) -> str:
        """Return the public address of the API, without a trailing slash."""
        return self.origin + BASE_PATH


def too_large() -> Refusal:
    """Return the refusal of a body over 1 MiB."""
    return Refusal("body_too_large", "The body is larger than 1 MiB (1048576 bytes). Split it into several requests.")
