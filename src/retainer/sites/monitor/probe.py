"""The monitor: it probes the sites that are due with one GET, with limits on time, size and redirects.

It sends no cookies and no credentials, and keeps no content: only the status, the
response time, the expiry of the certificate, and whether the keyword was found.
"""

import asyncio
import json
import ssl
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from weakref import WeakValueDictionary

import httpx2

from retainer import __version__
from retainer.background import Report
from retainer.kernel.representations import JobFailed, RunApart, run_here
from retainer.outbound.client import GuardedClient, RequestFailed, is_usable, read_start
from retainer.outbound.loop import RequestLoop
from retainer.settings import Network
from retainer.sites.monitor import schedule
from retainer.sites.monitor.page_text import MAX_PAGE, find_keyword
from retainer.sites.monitor.schedule import CheckResult, DueSite
from retainer.store.tx import Store
from retainer.values.exact import as_instant
from retainer.values.hosts import unicode_host

TOTAL_SECONDS = 15.0
MAX_REDIRECTS = 3
REDIRECTS = {301, 302, 303, 307, 308}
DEFAULT_STATUSES = range(200, 400)
HEADERS = {"User-Agent": f"Retainer-Monitor/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}

EVERYONE = 0
SEARCHES = 2
"""Pages that are searched at the same time."""
SEARCH_SECONDS = 1
"""Processor time of a search; pages that were made to be slow take a tenth of it."""
WAIT_SECONDS = 15
"""How long a page waits for its search."""
TOO_MANY_REDIRECTS = f"The site redirects more than {MAX_REDIRECTS} times."
NOT_ALLOWED = "The site redirects to an address that is not allowed."
ENDED_EARLY = "The page ended early."
UNSEARCHABLE = "The page takes too much time or memory to search for the keyword."
MAX_HOST = 80
"""Characters of a host in a message."""


class Monitor(RequestLoop[DueSite]):
    """Checks the sites of all accounts; the results of probes that end soon after a stop are saved.

    Pages are searched apart, and one of an account at a time, so that accounts take turns. A site whose search finds no
    place is checked again in a second.
    """

    name, task, host = "monitor", "checking sites", "site"
    places = 100
    leases, lease = schedule.DUE, timedelta(seconds=4 * TOTAL_SECONDS)  # longer than a probe and saving can take

    def __init__(
        self, store: Store, allowed: tuple[Network, ...], report: Report, run_apart: RunApart = run_here
    ) -> None:
        super().__init__(store, allowed, report)
        self.run_apart = run_apart
        self._threads = ThreadPoolExecutor(SEARCHES, f"{self.name}-search")
        self._turns: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()  # kept while they are used

    def refresh(self) -> None:
        schedule.refresh(self.store)

    async def serve(self, work: DueSite) -> None:
        try:
            result = await probe(self.client, work, self._search_page)
        except SearchesBusy:
            await self.in_database(partial(schedule.put_off, self.store, work))
            return
        await self.in_database(partial(schedule.save_result, self.store, work, result))
        self.done += 1

    async def _search_page(self, site: DueSite, *page: object) -> str | None:
        turn = self._turns.setdefault(site.account_id, asyncio.Semaphore(1))
        place = self._turns.setdefault(EVERYONE, asyncio.Semaphore(SEARCHES))
        search = partial(self.run_apart, site.account_id, SEARCH_SECONDS, find_keyword, site.keyword, *page)
        try:
            async with asyncio.timeout(WAIT_SECONDS) as waiting, turn, place:
                waiting.reschedule(None)
                return await asyncio.get_running_loop().run_in_executor(self._threads, search)
        except TimeoutError:
            raise SearchesBusy from None
        except JobFailed:
            return UNSEARCHABLE


class SearchesBusy(Exception):
    """A page that could not be searched, because others were. The site is not to blame."""


class Progress:
    """What is known of a probe while it goes on: the last status that came, and the host that is asked after it."""

    status: int | None = None
    redirected_to: str | None = None

    def result_of(self, failed: RequestFailed) -> CheckResult:
        error = str(failed)
        if self.redirected_to is not None and not failed.is_late:
            error = f"The site redirects to {self.redirected_to}, which {failed.predicate}."
        return CheckResult(is_up=False, status_code=self.status, error=error)


Page = tuple[bytes, str, str | None]
"""The beginning of a page, its Content-Encoding, and the charset of its header."""


async def probe(client: GuardedClient, site: DueSite, search: Callable[..., Awaitable[str | None]]) -> CheckResult:
    """Probe a site; failures are results, too. `search` says why the page lacks the keyword.

    Raises Overloaded and SearchesBusy.
    """
    progress = Progress()
    try:
        async with client.within(TOTAL_SECONDS):
            result, page = await _follow(client, site, progress)
    except RequestFailed as failed:
        return progress.result_of(failed)
    if page is None:
        return result
    missing = await search(site, *page)
    return result._replace(is_up=missing is None, error=missing)


async def _follow(client: GuardedClient, site: DueSite, progress: Progress) -> tuple[CheckResult, Page | None]:
    """Request a site and where it redirects to, each checked by the guard; return the page if a keyword decides."""
    url = httpx2.URL(site.url)
    expected: list[int] = json.loads(site.expected_status or "[]")
    expires = None
    began = time.monotonic()
    for _ in range(MAX_REDIRECTS + 1):
        response = await client.send("GET", url, HEADERS)
        progress.status = response.status_code
        try:
            expires = expires or certificate_expiry(response)
            location = response.headers.get("location") if response.status_code in REDIRECTS else None
            if location is None or response.status_code in expected:
                took, status = round((time.monotonic() - began) * 1000), response.status_code
                result = CheckResult(is_up=True, status_code=status, milliseconds=took, ssl_expires_at=expires)
                if status not in (expected or DEFAULT_STATUSES):
                    return result._replace(is_up=False, error=f"The site answered {status}."), None
                if site.keyword is None:
                    return result, None
                page, is_whole = await read_start(response, MAX_PAGE)
                if not is_whole:
                    return result._replace(is_up=False, error=ENDED_EARLY), None
                return result, (page, response.headers.get("content-encoding", ""), response.charset_encoding)
        finally:
            await response.aclose()
        target = _target(url, location)
        if target is None:
            break
        url = target
        progress.redirected_to = unicode_host(url.raw_host.decode())[:MAX_HOST]
    error = NOT_ALLOWED if target is None else TOO_MANY_REDIRECTS
    return CheckResult(is_up=False, status_code=progress.status, error=error, ssl_expires_at=expires), None


def _target(url: httpx2.URL, location: str) -> httpx2.URL | None:
    """Return where a redirect leads; None if that is no address that the client requests."""
    try:
        target = url.join(location)
    except httpx2.InvalidURL:
        return None
    return target if is_usable(target) else None


def certificate_expiry(response: httpx2.Response) -> str | None:
    connection = response.extensions["network_stream"].get_extra_info("ssl_object")
    end = connection.getpeercert().get("notAfter") if connection is not None else None
    return as_instant(datetime.fromtimestamp(ssl.cert_time_to_seconds(end), UTC)) if end else None
