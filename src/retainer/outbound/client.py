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
"""The errors of a request without a response. Tenants must not learn which it was: that would be a port scanner."""


class Failed(Exception):
    """A request without a response; the message is for the tenant."""


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
                raise Failed(f"The {self.host} did not answer within {seconds:.0f} seconds.") from error
            if any(isinstance(each, ssl.SSLCertVerificationError) for each in causes(error)):
                raise Failed(f"The {self.host}'s certificate is not valid.") from error
            # the same whether it refused, does not exist, or is forbidden
            raise Failed(f"The {self.host} cannot be reached.") from error

    async def send(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], content: bytes | None = None
    ) -> httpx2.Response:
        """Return the response of an address that the guard has checked; the caller closes it. Raises UNREACHED."""
        if url.scheme not in PORTS or not url.host or url.userinfo:
            raise Forbidden
        port = PORTS[url.scheme] if url.port is None else url.port
        if not 0 < port < 65536:
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


async def read_start(response: httpx2.Response, size: int) -> bytes:
    body, parts = bytearray(), 0
    async for part in response.aiter_raw():
        body += part
        parts += 1
        if len(body) >= size or parts >= MAX_PARTS:
            break
    return bytes(body[:size])
