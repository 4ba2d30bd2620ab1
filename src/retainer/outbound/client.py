"""The guarded client: one request to an address that a tenant has entered, without redirects.

It ignores the environment's proxies, and uses no connection twice: two hosts of one address may differ in their
certificates.
"""

import asyncio
import math
import ssl
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import httpcore2
import httpx2

from retainer.outbound.guard import Forbidden, checked
from retainer.outbound.names import causes, is_own, look_up
from retainer.settings import Network

MAX_ADDRESSES = 3
PORTS = {"http": 80, "https": 443}
CONNECT_SECONDS = 5
MAX_HEAD = 64 * 1024
"""Bytes that a host may send before the end of its response's head, which `100 Continue` may precede."""
MAX_PARTS = 4096
"""Pieces of a body that are read: each costs time, however short it is."""
CIPHERS = "@SECLEVEL=2:ECDH+AESGCM:ECDH+CHACHA20:ECDH+AES:!aNULL:!eNULL:!aDSS:!SHA1:!AESCCM"
"""Python's default without DHE, as in browsers: a handshake with the primes of a server can take a second."""
BEAT_SECONDS = 0.5
STALL_SECONDS = 1
"""A loop that runs so much too late has not given hosts their time."""
UNREACHED = (Forbidden, httpx2.TransportError, httpx2.InvalidURL, OSError)
"""The errors of a request without a response."""
BROKEN = (httpx2.ProtocolError, httpx2.ReadError, httpx2.WriteError)
"""The errors of a connection that was established."""
UNREACHABLE = "cannot be reached"
"""Whether a host refused, does not exist, or is forbidden: tenants must not learn which, as of a port scanner."""
NOT_HTTP = "did not give a valid HTTP answer"
BAD_CERTIFICATE = "has a certificate that is not valid"
CERTIFICATES = {
    9: "has a certificate that is not valid yet",
    10: "has a certificate that has expired",
    18: "has a self-signed certificate",
    19: "has a certificate of an authority that is not trusted",
    **dict.fromkeys(
        (20, 21), "has a certificate whose issuer is unknown, or whose intermediate certificate is missing"
    ),
    **dict.fromkeys((62, 64), "has a certificate for another name"),
}
"""What is wrong with a certificate, by the code of OpenSSL (X509_STORE_CTX_get_error)."""


class RequestFailed(Exception):
    """A request without a response. Tenants read the message: a host as its subject, and a predicate."""

    def __init__(self, host: str, predicate: str, *, is_late: bool = False) -> None:
        super().__init__(f"The {host} {predicate}.")
        self.predicate, self.is_late = predicate, is_late


class Overloaded(Exception):
    """A request that failed because of this process. The host is not to blame."""


class GuardedClient:
    """Sends requests to public addresses and to those in `allowed`; messages call a host `host`."""

    def __init__(self, allowed: Sequence[Network], host: str) -> None:
        self.allowed, self.host = allowed, host
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        context = ssl.create_default_context()
        context.verify_flags = ssl.VerifyFlags.VERIFY_X509_TRUSTED_FIRST  # as browsers; Python 3.13 is stricter
        context.set_ciphers(CIPHERS)
        self._transport = httpx2.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits, retries=0)
        self._transport._pool._network_backend = Backend()  # noqa: SLF001  # a test floods it
        self._beat_at, self._stalled_at = time.monotonic(), -math.inf

    async def __aenter__(self) -> Self:
        self._heart = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._heart.cancel()
        await self._transport.aclose()

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """Limit the time of requests, and name what went wrong. Raises Failed, Overloaded."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                yield
        except UNREACHED as error:
            if is_own(error) or self._has_stalled(began):
                raise Overloaded from error
            if isinstance(error, TimeoutError):
                late = f"did not answer within {seconds:.0f} seconds"
                raise RequestFailed(self.host, late, is_late=True) from error
            raise RequestFailed(self.host, predicate_of(error)) from error

    async def send(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], content: bytes | None = None
    ) -> httpx2.Response:
        """Return the response of an address that the guard has checked; the caller closes it. Raises UNREACHED."""
        if not is_usable(url):
            raise Forbidden
        host = url.raw_host.decode()
        addresses = checked(await look_up(host), self.allowed)
        headers = {**headers, "Host": url.netloc.decode()}
        extensions = {"sni_hostname": host, "timeout": {"connect": CONNECT_SECONDS}}
        for address in addresses[:MAX_ADDRESSES]:
            target = url.copy_with(host=address)
            request = httpx2.Request(method, target, headers=headers, content=content, extensions=extensions)
            try:
                response = await self._transport.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
            else:
                response.extensions["network_stream"].left = sys.maxsize  # `read_start` limits the body
                return response
        raise failure

    async def _beat(self) -> None:
        while True:
            self._beat_at = time.monotonic()
            await asyncio.sleep(BEAT_SECONDS)
            if self._has_stalled(math.inf):
                self._stalled_at = time.monotonic()

    def _has_stalled(self, began: float) -> bool:
        return self._stalled_at >= began or time.monotonic() - self._beat_at > BEAT_SECONDS + STALL_SECONDS


def is_usable(url: httpx2.URL) -> bool:
    """Whether a URL is one that the client requests, if the guard allows its addresses."""
    if url.scheme not in PORTS or not url.host or url.userinfo:
        return False
    return 0 < (PORTS[url.scheme] if url.port is None else url.port) < 65536


def predicate_of(error: BaseException) -> str:
    for each in causes(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return CERTIFICATES.get(each.verify_code, BAD_CERTIFICATE)
    return NOT_HTTP if isinstance(error, BROKEN) else UNREACHABLE


class Backend(httpcore2.AnyIOBackend):
    """Opens connections that read a limited head."""

    async def connect_tcp(self, **options: Any) -> "LimitedStream":  # type: ignore[override]
        return LimitedStream(await super().connect_tcp(**options))


class LimitedStream:
    """A connection of which `left` bytes may be read: endless `100 Continue` would keep this process busy."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream, self.left = stream, MAX_HEAD

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # of httpcore
        """Return the next bytes. Raises ReadError if none are left."""
        if not self.left:
            raise httpcore2.ReadError(f"The head is longer than {MAX_HEAD} bytes.")
        data = await self._stream.read(min(max_bytes, self.left), timeout)
        self.left -= len(data)
        return data

    async def start_tls(self, **options: Any) -> "LimitedStream":
        return LimitedStream(await self._stream.start_tls(**options))


async def read_start(response: httpx2.Response, size: int) -> tuple[bytes, bool]:
    """Return the beginning of a body, and whether it came as it was announced: hosts may end it early."""
    body, parts = bytearray(), 0
    try:
        async for part in response.aiter_raw():
            body += part
            parts += 1
            if len(body) >= size or parts >= MAX_PARTS:
                break
    except BROKEN as error:
        if is_own(error):
            raise
        return bytes(body[:size]), False
    return bytes(body[:size]), True
