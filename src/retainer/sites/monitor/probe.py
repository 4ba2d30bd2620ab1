"""The probe: one GET of a site, with limits of time, size and redirects.

No cookies, no credentials, no proxies of the environment. No content is kept, only the status, the response time, the
end of the certificate, and whether the keyword was there.
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
from retainer.sites.monitor.schedule import Due, Finding
from retainer.values.exact import as_instant

TOTAL_SECONDS = 15.0
CONNECT_SECONDS = 5.0
MOST_REDIRECTS = 3
MOST_ADDRESSES = 3
LARGEST_BODY = 64 * 1024
REDIRECTS = {301, 302, 303, 307, 308}
USUAL = range(200, 400)
PORTS = {"http": 80, "https": 443}
SENT = {"User-Agent": f"Retainer-Monitor/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}
TIMEOUT = {"connect": CONNECT_SECONDS, "read": TOTAL_SECONDS, "write": CONNECT_SECONDS, "pool": TOTAL_SECONDS}

UNREACHABLE = "The site cannot be reached."  # the same whether it refused, does not exist, or is forbidden
TOO_SLOW = f"The site did not answer within {TOTAL_SECONDS:.0f} seconds."
BAD_CERTIFICATE = "The site's certificate is not valid."
NO_KEYWORD = f"The keyword is not in the first {LARGEST_BODY // 1024} KB of the page."
ENDLESS = f"The site redirects more than {MOST_REDIRECTS} times."


class Prober:
    """Probes sites; `opened` are the networks that it may connect to beside the public ones."""

    def __init__(self, opened: Sequence[Network], at_once: int) -> None:
        self.opened = opened
        limits = httpx2.Limits(max_connections=at_once, max_keepalive_connections=0)
        self._transport = httpx2.AsyncHTTPTransport(verify=_as_browsers(), trust_env=False, limits=limits, retries=0)

    async def look(self, due: Due) -> Finding:
        """Probe a site; failures are findings, too."""
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                return await self._follow(due)
        except TimeoutError:
            return Finding(is_up=False, error=TOO_SLOW)
        except (Forbidden, httpx2.TransportError, httpx2.InvalidURL, OSError) as error:
            return Finding(is_up=False, error=BAD_CERTIFICATE if is_of_certificate(error) else UNREACHABLE)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def _follow(self, due: Due) -> Finding:
        """Request a site, and the addresses that it redirects to; each is checked by the guard."""
        url, began, expires = httpx2.URL(due.url), time.monotonic(), None
        for _ in range(MOST_REDIRECTS + 1):
            response = await self._ask(url)
            try:
                expires = expires or end_of_certificate(response)
                location = response.headers.get("location") if response.status_code in REDIRECTS else None
                if location is None or response.status_code in (due.expected_status or ()):
                    milliseconds = round((time.monotonic() - began) * 1000)
                    error = await self._judge(due, response)
                    return Finding(error is None, response.status_code, milliseconds, error, expires)
                url = url.join(location)
            finally:
                await response.aclose()
        return Finding(is_up=False, status_code=response.status_code, error=ENDLESS, ssl_expires_at=expires)

    async def _ask(self, url: httpx2.URL) -> httpx2.Response:
        """Return the response to one request, from an address that the guard has checked."""
        if url.scheme not in PORTS or not url.host or url.userinfo:
            raise Forbidden
        port = PORTS[url.scheme] if url.port is None else url.port
        if not 0 < port < 65536:
            raise Forbidden
        addresses = await resolve(url.raw_host.decode(), port, self.opened)
        headers = {**SENT, "Host": url.netloc.decode()}
        extensions = {"sni_hostname": url.raw_host.decode(), "timeout": TIMEOUT}
        for address in addresses[:MOST_ADDRESSES]:
            request = httpx2.Request("GET", url.copy_with(host=address), headers=headers, extensions=extensions)
            try:
                return await self._transport.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _judge(self, due: Due, response: httpx2.Response) -> str | None:
        """Return what is wrong with a response, or None."""
        if response.status_code not in (due.expected_status or USUAL):
            return f"The site answered {response.status_code}."
        if due.keyword is None:
            return None
        read = bytearray()
        async for part in response.aiter_raw():
            read += part
            if len(read) >= LARGEST_BODY:
                break
        text = decoded(bytes(read[:LARGEST_BODY]), response.charset_encoding)
        return None if due.keyword in text else NO_KEYWORD


def decoded(page: bytes, encoding: str | None) -> str:
    """Return a page as text, in its declared encoding, or else in UTF-8."""
    try:
        return page.decode(encoding or "utf-8", errors="ignore")
    except (LookupError, UnicodeError):  # an unknown encoding, or one that is not for text
        return page.decode(errors="ignore")


def end_of_certificate(response: httpx2.Response) -> str | None:
    """Return when the certificate of a connection ends; None without one."""
    connection = response.extensions["network_stream"].get_extra_info("ssl_object")
    end = connection.getpeercert().get("notAfter") if connection is not None else None
    return as_instant(datetime.fromtimestamp(ssl.cert_time_to_seconds(end), UTC)) if end else None


def _as_browsers() -> ssl.SSLContext:
    """Return a context that takes the certificates that browsers take; from Python 3.13 on, the usual is stricter."""
    context = ssl.create_default_context()
    context.verify_flags = ssl.VerifyFlags.VERIFY_X509_TRUSTED_FIRST
    return context


def is_of_certificate(error: BaseException | None) -> bool:
    """Whether a failure comes from a certificate that is not valid."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
