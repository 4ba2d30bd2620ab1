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
MAX_DISCARDED_BYTES, CHUNK_BYTES = 16 * MAX_BODY_BYTES, 64 * 1024
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ID_PREFIX = "req_"
"""Prefix of request ids that the server creates."""
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
    """A request; it `has_body` until its body was received.

    A request with a `refusal` was not admitted. `account_id` is set when it has been authenticated.
    Only named headers are read, because the WSGI environ also holds the environment of the process.
    """

    __slots__ = (
        *("account_id", "began", "body", "environ", "has_body", "id", "method", "part", "path", "query", "record"),
        *("refusal", "settings", "shown_address"),
    )

    def __init__(self, environ: WSGIEnvironment, settings: Settings) -> None:
        self.began = time.perf_counter_ns()
        self.environ = environ
        self.settings = settings
        self.body = b""
        self.refusal: Refusal | None = None
        self.account_id: int | None = None
        self.has_body: bool = environ.get("CONTENT_LENGTH", "0") not in NOTHING or "HTTP_TRANSFER_ENCODING" in environ
        self.method: str = environ["REQUEST_METHOD"]
        self.path: str = environ["PATH_INFO"]
        self.query: str = environ["QUERY_STRING"]
        self.shown_address: str | None = environ.get("REMOTE_ADDR")
        if settings.trusted_proxies:
            self.shown_address = str(forwarding.client_address(environ, settings))
        self.part = ""
        """What tells the Idempotency-Key of an operation of a batch from the keys that callers send."""
        self.record = ""
        """The path by id of the record that an external id in `path` has named."""
        self.id: str = environ.get("HTTP_X_REQUEST_ID", "")
        if not self.id or not SENT_ID.fullmatch(self.id):
            self.id = new_request_id()

    def header(self, name: str) -> str | None:
        """Return a header by its WSGI name, like `IF_MATCH`."""
        return self.environ.get(f"HTTP_{name}")

    def check(self) -> None:
        """Raise `bad_request` unless there is one host (RFC 9112, 3.2), and the refusal of a request not admitted.

        Several hosts arrive joined with a comma.
        """
        host = self.environ.get("HTTP_HOST", "")
        if not forwarding.is_host(host) and (host or self.environ["SERVER_PROTOCOL"] != "HTTP/1"):
            raise Refusal("bad_request", "Send one Host header with the name of this server, like api.agency.example.")
        if self.refusal is not None:
            raise self.refusal

    def receive(self) -> None:
        """Receive the whole body. Raises `body_too_large`.

        The rest of a body that is too large is received too, and discarded: closing a connection with unread data
        resets it, and a client or a proxy that is still sending would lose the response.
        """
        stream, length = self.environ["wsgi.input"], self.environ.get("CONTENT_LENGTH") or "0"
        if len(length) <= 10 and int(length) <= MAX_BODY_BYTES:
            self.body = stream.read(MAX_BODY_BYTES + 1)
            if len(self.body) <= MAX_BODY_BYTES:
                self.has_body = False
                return
            self.body = b""
        if "HTTP_EXPECT" not in self.environ:  # or the client asks before it sends (RFC 9110, 10.1.1)
            left = MAX_DISCARDED_BYTES
            while left > 0 and (chunk := stream.read(CHUNK_BYTES)):
                left -= len(chunk)
        raise too_large()

    @property
    def address(self) -> str:
        return forwarding.group(forwarding.client_address(self.environ, self.settings))

    @property
    def networks(self) -> tuple[str, ...]:
        return forwarding.networks(forwarding.client_address(self.environ, self.settings))

    @property
    def origin(self) -> str:
        return forwarding.origin(self.environ, self.settings)

    @property
    def base_url(self) -> str:
        """Return the public address of the API, without a trailing slash."""
        return self.origin + BASE_PATH


def too_large() -> Refusal:
    return Refusal("body_too_large", "The body is larger than 1 MiB (1048576 bytes). Split it into several requests.")
