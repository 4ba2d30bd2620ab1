"""The monitor: it probes the sites that are due with one GET, with limits on time, size and redirects.

It sends no cookies and no credentials, and keeps no content: only the status, the
response time, the expiry of the certificate, and whether the keyword was found.
"""

import asyncio
import json
import ssl
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from weakref import WeakValueDictionary

import httpx2

from retainer import __version__
from retainer.background import Report
from retainer.kernel.representations import RunApart, run_here
from retainer.outbound.client import Failed, GuardedClient, read_start
from retainer.outbound.loop import BackgroundLoop
from retainer.settings import Network
from retainer.sites.monitor import schedule
from retainer.sites.monitor.page_text import MAX_PAGE, find_keyword
from retainer.sites.monitor.schedule import CheckResult, DueSite
from retainer.store.tx import Store
from retainer.values.exact import as_instant

TOTAL_SECONDS = 15.0
MAX_REDIRECTS = 3
REDIRECTS = {301, 302, 303, 307, 308}
DEFAULT_STATUSES = range(200, 400)
HEADERS = {"User-Agent": f"Retainer-Monitor/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}

TOO_MANY_REDIRECTS = f"The site redirects more than {MAX_REDIRECTS} times."


class Monitor(BackgroundLoop[DueSite]):
    """Checks the sites of all accounts; the results of probes that end soon after a stop are saved.

    Pages are searched apart, one of an account at a time: some take long, and meanwhile the loop would probe no site.
    """

    name, task, host = "monitor", "checking sites", "site"
    places = 100
    leases, lease = schedule.DUE, timedelta(seconds=4 * TOTAL_SECONDS)  # longer than a probe and saving can take

    def __init__(
        self, store: Store, allowed: tuple[Network, ...], report: Report, run_apart: RunApart = run_here
    ) -> None:
        super().__init__(store, allowed, report)
        self.run_apart = run_apart
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    def refresh(self) -> None:
        schedule.refresh(self.store)

    async def serve(self, client: GuardedClient, work: DueSite) -> None:
        result = await probe(client, work, self._search_page)
        await self.in_database(partial(schedule.save_result, self.store, work, result))
        self.done += 1

    async def _search_page(self, site: DueSite, *page: object) -> str | None:
        async with self._turns.setdefault(site.account_id, asyncio.Lock()):
            return await asyncio.to_thread(self.run_apart, site.account_id, find_keyword, site.keyword, *page)


Page = tuple[bytes, str, str | None]
"""The beginning of a page, its Content-Encoding, and the charset of its header."""


async def probe(client: GuardedClient, site: DueSite, search: Callable[..., Awaitable[str | None]]) -> CheckResult:
    """Probe a site; failures are results, too. `search` says why the page lacks the keyword. Raises Overloaded."""
    try:
        async with client.within(TOTAL_SECONDS):
            result, page = await _follow(client, site)
    except Failed as error:
        return CheckResult(is_up=False, error=str(error))
    if page is None:
        return result
    missing = await search(site, *page)
    return result._replace(is_up=missing is None, error=missing)


async def _follow(client: GuardedClient, site: DueSite) -> tuple[CheckResult, Page | None]:
    """Request a site and where it redirects to, each checked by the guard; return the page if a keyword decides."""
    url = httpx2.URL(site.url)
    expected: list[int] = json.loads(site.expected_status or "[]")
    expires = None
    began = time.monotonic()
    for _ in range(MAX_REDIRECTS + 1):
        response = await client.send("GET", url, HEADERS)
        try:
            expires = expires or certificate_expiry(response)
            location = response.headers.get("location") if response.status_code in REDIRECTS else None
            if location is None or response.status_code in expected:
                took, status = round((time.monotonic() - began) * 1000), response.status_code
                result = CheckResult(is_up=True, status_code=status, milliseconds=took, ssl_expires_at=expires)
                if status not in (expected or DEFAULT_STATUSES):
                    return result._replace(is_up=False, error=f"The site answered {status}."), None
                return result, await _page(response) if site.keyword is not None else None
            url = url.join(location)
        finally:
            await response.aclose()
    result = CheckResult(is_up=False, status_code=response.status_code, error=TOO_MANY_REDIRECTS)
    return result._replace(ssl_expires_at=expires), None


async def _page(response: httpx2.Response) -> Page:
    coding = response.headers.get("content-encoding", "")
    return await read_start(response, MAX_PAGE), coding, response.charset_encoding


def certificate_expiry(response: httpx2.Response) -> str | None:
    connection = response.extensions["network_stream"].get_extra_info("ssl_object")
    end = connection.getpeercert().get("notAfter") if connection is not None else None
    return as_instant(datetime.fromtimestamp(ssl.cert_time_to_seconds(end), UTC)) if end else None
