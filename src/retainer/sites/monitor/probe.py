"""The probe: one GET of a site, with limits on time, size and redirects.

It sends no cookies and no credentials, ignores the environment's proxies, and keeps no content: only the status, the
response time, the expiry of the certificate, and whether the keyword was found.
"""

import asyncio
import ssl
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import httpx2

from retainer import __version__
from retainer.settings import Network
from retainer.sites.monitor.guard import Forbidden, resolve
from retainer.sites.monitor.schedule import CheckResult, DueSite
from retainer.values.exact import as_instant

TOTAL_SECONDS = 15.0
CONNECT_SECONDS = 5.0
MAX_REDIRECTS = 3
MAX_ADDRESSES = 3
MAX_BODY = 64 * 1024
REDIRECTS = {301, 302, 303, 307, 308}
DEFAULT_STATUSES = range(200, 400)
PORTS = {"http": 80, "https": 443}
HEADERS = {"User-Agent": f"Retainer-Monitor/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}
TIMEOUT = {"connect": CONNECT_SECONDS, "read": TOTAL_SECONDS, "write": CONNECT_SECONDS, "pool": TOTAL_SECONDS}

UNREACHABLE = "The site cannot be reached."  # the same whether it refused, does not exist, or is forbidden
TOO_SLOW = f"The site did not answer within {TOTAL_SECONDS:.0f} seconds."
BAD_CERTIFICATE = "The site's certificate is not valid."
NO_KEYWORD = f"The keyword is not in the first {MAX_BODY // 1024} KB of the page."
TOO_MANY_REDIRECTS = f"The site redirects more than {MAX_REDIRECTS} times."


class Prober:
    """Probes sites. It may connect to public networks and to those in `allowed`."""

    def __init__(self, allowed: Sequence[Network], concurrency: int) -> None:
        self.allowed = allowed
        limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=0)
        self._transport = httpx2.AsyncHTTPTransport(verify=_ssl_context(), trust_env=False, limits=limits, retries=0)

    async def probe(self, site: DueSite) -> CheckResult:
        """Probe a site; failures are results, too."""
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                return await self._follow(site)
        except TimeoutError:
            return CheckResult(is_up=False, error=TOO_SLOW)
        except (Forbidden, httpx2.TransportError, httpx2.InvalidURL, OSError) as error:
            return CheckResult(is_up=False, error=BAD_CERTIFICATE if is_certificate_error(error) else UNREACHABLE)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def _follow(self, site: DueSite) -> CheckResult:
        """Request a site and the addresses that it redirects to; the guard checks each."""
        url, began, expires, expected = httpx2.URL(site.url), time.monotonic(), None, site.expected()
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._request(url)
            try:
                expires = expires or certificate_expiry(response)
                location = response.headers.get("location") if response.status_code in REDIRECTS else None
                if location is None or response.status_code in expected:
                    milliseconds = round((time.monotonic() - began) * 1000)
                    error = await self._evaluate(site, response)
                    return CheckResult(error is None, response.status_code, milliseconds, error, expires)
                url = url.join(location)
            finally:
                await response.aclose()
        return CheckResult(
            is_up=False, status_code=response.status_code, error=TOO_MANY_REDIRECTS, ssl_expires_at=expires
        )

    async def _request(self, url: httpx2.URL) -> httpx2.Response:
        """Return the response to one request, from an address that the guard has checked."""
        if url.scheme not in PORTS or not url.host or url.userinfo:
            raise Forbidden
        port = PORTS[url.scheme] if url.port is None else url.port
        if not 0 < port < 65536:
            raise Forbidden
        addresses = await resolve(url.raw_host.decode(), port, self.allowed)
        headers = {**HEADERS, "Host": url.netloc.decode()}
        extensions = {"sni_hostname": url.raw_host.decode(), "timeout": TIMEOUT}
        for address in addresses[:MAX_ADDRESSES]:
            request = httpx2.Request("GET", url.copy_with(host=address), headers=headers, extensions=extensions)
            try:
                return await self._transport.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _evaluate(self, site: DueSite, response: httpx2.Response) -> str | None:
        """Return what is wrong with a response, or None."""
        if response.status_code not in (site.expected() or DEFAULT_STATUSES):
            return f"The site answered {response.status_code}."
        if site.keyword is None:
            return None
        body = bytearray()
        async for part in response.aiter_raw():
            body += part
            if len(body) >= MAX_BODY:
                break
        text = decode(bytes(body[:MAX_BODY]), response.charset_encoding)
        return None if site.keyword in text else NO_KEYWORD


def decode(page: bytes, encoding: str | None) -> str:
    """Return a page as text, in its declared encoding, or else in UTF-8."""
    try:
        return page.decode(encoding or "utf-8", errors="ignore")
    except (LookupError, UnicodeError):  # an unknown encoding, or one that is not for text
        return page.decode(errors="ignore")


def certificate_expiry(response: httpx2.Response) -> str | None:
    """Return when the certificate of a connection expires; None without one."""
    connection = response.extensions["network_stream"].get_extra_info("ssl_object")
    end = connection.getpeercert().get("notAfter") if connection is not None else None
    return as_instant(datetime.fromtimestamp(ssl.cert_time_to_seconds(end), UTC)) if end else None


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
