"""The guarded client: one request to an address that a tenant has entered, without redirects.

It ignores the environment's proxies, and uses no connection twice: two hosts of one address may differ in their
certificates.
"""

import ssl
from collections.abc import Mapping, Sequence

import httpx2

from retainer.outbound.guard import Forbidden, resolve
from retainer.settings import Network

MAX_ADDRESSES = 3
PORTS = {"http": 80, "https": 443}
UNREACHED = (Forbidden, httpx2.TransportError, httpx2.InvalidURL, OSError)
"""The errors of a request without a response. Tenants must not learn which it was: that would be a port scanner."""

Timeouts = dict[str, float]
"""Seconds for each of `connect`, `read`, `write` and `pool`; the caller also limits the request as a whole."""


class GuardedClient:
    """Sends requests to public addresses and to those in `allowed`."""

    def __init__(self, allowed: Sequence[Network], concurrency: int) -> None:
        self.allowed = allowed
        limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=0)
        self._transport = httpx2.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False, limits=limits, retries=0)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def send(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], timeouts: Timeouts, content: bytes | None = None
    ) -> httpx2.Response:
        """Return the response of an address that the guard has checked; the caller closes it. Raises UNREACHED."""
        if url.scheme not in PORTS or not url.host or url.userinfo:
            raise Forbidden
        port = PORTS[url.scheme] if url.port is None else url.port
        if not 0 < port < 65536:
            raise Forbidden
        addresses = await resolve(url.raw_host.decode(), port, self.allowed)
        headers = {**headers, "Host": url.netloc.decode()}
        extensions = {"sni_hostname": url.raw_host.decode(), "timeout": timeouts}
        for address in addresses[:MAX_ADDRESSES]:
            target = url.copy_with(host=address)
            request = httpx2.Request(method, target, headers=headers, content=content, extensions=extensions)
            try:
                return await self._transport.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure


async def read_start(response: httpx2.Response, size: int) -> bytes:
    """Return the first bytes of a response's body, as they were sent."""
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) >= size:
            break
    return bytes(body[:size])


def _ssl_context() -> ssl.SSLContext:
    """Return a context that accepts what browsers accept; from Python 3.13 on, the default is stricter."""
    context = ssl.create_default_context()
    context.verify_flags = ssl.VerifyFlags.VERIFY_X509_TRUSTED_FIRST
    return context


def is_certificate_error(error: BaseException | None) -> bool:
    """Whether an invalid certificate caused an error."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
