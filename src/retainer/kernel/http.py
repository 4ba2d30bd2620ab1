"""Requests and responses of the pipeline, with the addresses of clients and of the server, also behind proxies."""

import random
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import IO, BinaryIO
from wsgiref.types import WSGIEnvironment

import msgspec

from retainer.errors import Refusal
from retainer.kernel.downloads import Download
from retainer.kernel.waiting import WaitingPlace
from retainer.settings import BASE_PATH, Settings

Address = IPv4Address | IPv6Address
MAX_HOST_LENGTH, MAX_ADDRESS_LENGTH = 262, 64
HOST = re.compile(r"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
WITH_PORT = re.compile(r"(?:\[([^]]*)\]|([0-9.]+))(?::[0-9]{1,5})?")
NOTHING = frozenset({"", "0"})
CHUNKED = "chunked"
CLOSING = {"connection": "close"}
"""The header of responses after which nothing that arrives is trusted to be a request."""
MAX_BODY_BYTES = 1024 * 1024
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ID_PREFIX = "req_"
"""Prefix of request ids that the server creates."""
NEW_ID = re.compile(rf"{ID_PREFIX}(0[0-9a-f]{{11}})[0-9a-f]{{12}}")
SENT_ID = re.compile(rf"(?!{ID_PREFIX}.{{24}}$|rtn_)[A-Za-z0-9._-]{{1,64}}")
"""Accepted ids of clients; none that looks like one of the server, or like a key."""


def new_request_id() -> str:
    """Return a request id, which begins with the time. It is not a secret."""
    return ID_PREFIX + (time.time_ns() // 1_000_000 << 48 | random.getrandbits(48)).to_bytes(12).hex()


def created_at(request_id: str) -> datetime | None:
    """Return when the server created a request id; None for the id of a client."""
    found = NEW_ID.fullmatch(request_id)
    return EPOCH + timedelta(milliseconds=int(found[1], 16)) if found else None


class Response(msgspec.Struct):
    """The status, headers and body of a response."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    download: Download | None = None
    """The body instead, if it is too large for memory."""

    @property
    def size(self) -> int:
        return len(self.body) if self.download is None else self.download.size


class Request:
    """A request; it `has_body` until its body was received.

    A request with a `refusal` was not admitted. `account_id` is set when it has been authenticated, and `place` when it
    may wait for what it asks for.
    """

    body = b""
    upload: tuple[BinaryIO, int] | None = None
    """A body that is too large for memory: the file on disk that has it, and its size."""
    opened: tuple[IO[bytes], ...] = ()
    """The files of the request, which are closed with its response."""
    refusal: Exception | None = None
    account_id: int | None = None
    place: WaitingPlace | None = None
    is_counted = False
    """Whether the rate limit has counted it, if it is answered more than once."""
    is_provisional = False
    """Whether its response is not sent yet, so that `log` is to be called when it is."""
    log: Callable[[], None] | None = None
    idempotency_suffix = ""
    """Added to the Idempotency-Key of an operation of a batch, so that it never meets one of a caller."""
    record = ""
    """The path by id of the record that an external id in `path` has named."""

    def __init__(self, environ: WSGIEnvironment, settings: Settings) -> None:
        self.began = time.perf_counter_ns()
        self.environ = environ
        self.settings = settings
        self.has_body: bool = environ.get("CONTENT_LENGTH", "0") not in NOTHING or "HTTP_TRANSFER_ENCODING" in environ
        self.method: str = environ["REQUEST_METHOD"]
        self.path: str = environ["PATH_INFO"]
        self.query: str = environ["QUERY_STRING"]
        self.shown_address: str | None = environ.get("REMOTE_ADDR")
        if settings.trusted_proxies:
            client = self.client
            self.shown_address = None if client is None else str(client)
        self.id: str = environ.get("HTTP_X_REQUEST_ID", "")
        if not self.id or not SENT_ID.fullmatch(self.id):
            self.id = new_request_id()

    def header(self, name: str) -> str | None:
        """Return a header by its WSGI name, like `IF_MATCH`."""
        return self.environ.get(f"HTTP_{name}")

    def check(self) -> None:
        """Raise `bad_request` unless there is one host (RFC 9112, 3.2), and the refusal of a request not admitted.

        Several hosts arrive joined with a comma. Raises `unsupported_transfer_coding`, too.
        """
        host = self.environ.get("HTTP_HOST", "")
        if not is_host(host) and (host or self.environ["SERVER_PROTOCOL"] != "HTTP/1"):
            raise Refusal("bad_request", "Send one Host header with the name of this server, like api.agency.example.")
        if "HTTP_TRANSFER_ENCODING" in self.environ:
            self._check_coding(self.environ["HTTP_TRANSFER_ENCODING"])
        if self.refusal is not None:
            raise self.refusal

    def _check_coding(self, sent: str) -> None:
        """Raise a refusal unless the body comes in plain chunks (RFC 9112, 6.1 and 6.3).

        A proxy in front may have read chunks within chunks as another request. With a length and chunks, the HTTP
        server takes the chunks, drops the length and closes the connection after the response.
        """
        codings = [coding for each in sent.split(",") if (coding := each.strip().lower())]
        if codings.count(CHUNKED) > 1:
            raise Refusal("bad_request", "Transfer-Encoding has chunked twice. Send it once.", headers=CLOSING)
        if codings != [CHUNKED]:
            message = "Bodies have no transfer coding but chunked. Send Transfer-Encoding: chunked, or Content-Length."
            raise Refusal("unsupported_transfer_coding", message, headers=CLOSING)

    def check_plain(self) -> None:
        """Raise `unsupported_media_type` for a form that is compressed, because nothing here unpacks it."""
        if self.header("CONTENT_ENCODING") not in {None, "identity"}:
            raise Refusal("unsupported_media_type", "Send the form without Content-Encoding.")

    @property
    def client(self) -> Address | None:
        """Return the client's address: the peer, or what trusted proxies report; None if that is malformed."""
        address, header = parse_address(self.environ.get("REMOTE_ADDR", "")), self.environ.get("HTTP_X_FORWARDED_FOR")
        for reported in reversed(header.split(",")) if header else ():
            if not is_trusted(address, self.settings):
                break
            address = parse_address(reported.strip())
        return address

    @property
    def address(self) -> str:
        """Return the address as the rate limit counts it: for IPv6, the /64 network."""
        return self.networks[0]

    @property
    def networks(self) -> tuple[str, ...]:
        return networks(self.client)

    @property
    def origin(self) -> str:
        """Return the public address of the server, without a trailing slash. Trusted proxies may name another host."""
        if self.settings.base_url:
            return self.settings.base_url
        environ = self.environ
        scheme, host = environ["wsgi.url_scheme"], environ.get("HTTP_HOST", "")
        if self.settings.trusted_proxies and is_trusted(parse_address(environ.get("REMOTE_ADDR", "")), self.settings):
            shown, named = environ.get("HTTP_X_FORWARDED_PROTO"), environ.get("HTTP_X_FORWARDED_HOST", "")
            scheme, host = shown if shown in {"http", "https"} else scheme, named if is_host(named) else host
        return f"{scheme}://{host if is_host(host) else 'localhost'}"

    @property
    def base_url(self) -> str:
        return self.origin + BASE_PATH


@lru_cache(maxsize=256)
def is_host(text: str) -> bool:
    return len(text) <= MAX_HOST_LENGTH and HOST.fullmatch(text) is not None


def networks(address: Address | None) -> tuple[str, ...]:
    """Return the address as limits count it; for IPv6, the networks of a customer (/64) and of a site (/48)."""
    if address is not None and address.version == 6:
        return tuple(str(ip_network(f"{address}/{length}", strict=False)) for length in (64, 48))
    return (str(address),)


def is_trusted(peer: Address | None, settings: Settings) -> bool:
    return peer is not None and any(peer in network for network in settings.trusted_proxies)


def parse_address(text: str) -> Address | None:
    """Parse an address, of which a port and a zone are dropped; IPv4-mapped IPv6 becomes IPv4. None for other text."""
    return _parse(text) if len(text) <= MAX_ADDRESS_LENGTH else None


@lru_cache(maxsize=4096)
def _parse(text: str) -> Address | None:
    found = WITH_PORT.fullmatch(text)
    try:
        address = ip_address(((found[1] or found[2]) if found else text).partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
