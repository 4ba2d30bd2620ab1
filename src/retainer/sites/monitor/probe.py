"""The monitor: it probes the sites that are due with one GET, with limits on time, size and redirects.

It sends no cookies and no credentials, and keeps no content: only the status, the
response time, the expiry of the certificate, and whether the keyword was found.
"""

import json
import ssl
import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from functools import partial

import httpx2

from retainer import __version__
from retainer.outbound.client import Failed, GuardedClient, read_start
from retainer.outbound.loop import BackgroundLoop
from retainer.sites.monitor import schedule
from retainer.sites.monitor.page_text import MAX_PAGE, find_keyword
from retainer.sites.monitor.schedule import CheckResult, DueSite
from retainer.values.exact import as_instant

TOTAL_SECONDS = 15.0
MAX_REDIRECTS = 3
REDIRECTS = {301, 302, 303, 307, 308}
DEFAULT_STATUSES = range(200, 400)
HEADERS = {"User-Agent": f"Retainer-Monitor/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}

TOO_MANY_REDIRECTS = f"The site redirects more than {MAX_REDIRECTS} times."


class Monitor(BackgroundLoop[DueSite]):
    """Checks the sites of all accounts; the results of probes that end soon after a stop are saved."""

    name, task, host = "monitor", "checking sites", "site"
    places = 100
    leases, lease = schedule.DUE, timedelta(seconds=4 * TOTAL_SECONDS)  # longer than a probe and saving can take

    def refresh(self) -> None:
        schedule.refresh(self.store)

    async def serve(self, client: GuardedClient, work: DueSite) -> None:
        result = await probe(client, work)
        await self.in_database(partial(schedule.save_result, self.store, work, result))
        self.done += 1


async def probe(client: GuardedClient, site: DueSite) -> CheckResult:
    """Probe a site; failures are results, too. Raises Overloaded."""
    try:
        async with client.within(TOTAL_SECONDS):
            return await _follow(client, site)
    except Failed as error:
        return CheckResult(is_up=False, error=str(error))


async def _follow(client: GuardedClient, site: DueSite) -> CheckResult:
    """Request a site and the addresses that it redirects to; the guard checks each."""
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
                milliseconds = round((time.monotonic() - began) * 1000)
                error = await _evaluate(site, response, expected or DEFAULT_STATUSES)
                return CheckResult(error is None, response.status_code, milliseconds, error, expires)
            url = url.join(location)
        finally:
            await response.aclose()
    return CheckResult(is_up=False, status_code=response.status_code, error=TOO_MANY_REDIRECTS, ssl_expires_at=expires)


async def _evaluate(site: DueSite, response: httpx2.Response, expected: Collection[int]) -> str | None:
    if response.status_code not in expected:
        return f"The site answered {response.status_code}."
    if site.keyword is None:
        return None
    body = await read_start(response, MAX_PAGE)
    coding = response.headers.get("content-encoding", "")
    return find_keyword(site.keyword, body, coding, response.charset_encoding)


def certificate_expiry(response: httpx2.Response) -> str | None:
    connection = response.extensions["network_stream"].get_extra_info("ssl_object")
    end = connection.getpeercert().get("notAfter") if connection is not None else None
    return as_instant(datetime.fromtimestamp(ssl.cert_time_to_seconds(end), UTC)) if end else None
