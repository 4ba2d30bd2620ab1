"""Sender loop: lease the webhooks with something to send, send it, save the results, until it is stopped."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import httpx2

from retainer.background import Report
from retainer.events.sender import schedule
from retainer.events.sender.batch import GONE, DeliveryAttempt, DeliveryBatch, SendOutcome, load_batch
from retainer.events.sender.results import save_results
from retainer.events.sender.schedule import instant_of_retry
from retainer.outbound.client import GuardedClient, RequestFailed, read_start
from retainer.outbound.leases import LeasedRow
from retainer.outbound.loop import RequestLoop
from retainer.settings import Network
from retainer.store.tx import Store
from retainer.values.exact import utcnow

REQUESTS = 8
"""Requests to one receiver at the same time, each for another record."""
TOTAL_SECONDS = 10.0
"""Time limit of a request."""
TURN_SECONDS = 30.0
"""After this time, a turn begins no more requests."""
MAX_BODY = 1024
"""Bytes of a response that are kept."""
ANSWERED = "The receiver answered {}."


class Sender(RequestLoop[LeasedRow]):
    """Sends the events of all accounts; `notify` is called with what the operator should know."""

    name, task, host = "webhooks", "sending webhooks", "receiver"
    places = 64  # so that 20 webhooks of an account are served together
    leases = schedule.DUE
    lease = timedelta(seconds=2 * (TURN_SECONDS + TOTAL_SECONDS))  # longer than a turn and saving it can take

    def __init__(
        self, store: Store, allowed: tuple[Network, ...], base_url: str, report: Report, notify: Callable[[str], None]
    ) -> None:
        super().__init__(store, allowed, report)
        self.base_url, self.notify = base_url, notify

    def refresh(self) -> None:
        schedule.set_back(self.store, self.lease)

    async def serve(self, work: LeasedRow) -> None:
        """Give a webhook its turn; what has been sent is saved even if the turn is cancelled."""
        batch = await self.in_database(partial(load_batch, self.store, work, self.base_url))
        if batch is None:
            return
        try:
            await self._send(batch)
        finally:
            tried, messages = await self.in_database(partial(save_results, self.store, work, batch))
            self.done += tried
            for message in messages:
                self.notify(message)

    async def _send(self, batch: DeliveryBatch) -> None:
        until, free = time.monotonic() + TURN_SECONDS, asyncio.Semaphore(REQUESTS)

        async def send_group(group: list[DeliveryAttempt]) -> None:
            for attempt in group:
                async with free:
                    if time.monotonic() >= until or self.stopped.is_set():
                        return
                    try:
                        attempt.outcome = await _attempt(self.client, batch, attempt)
                    except Exception as error:  # noqa: BLE001  # of this process: the receiver is not to blame
                        if not batch.needs_rest:
                            self.report(f"sending event {attempt.event_id} to webhook {batch.webhook.id}", error)
                        batch.needs_rest = True
                        return
                if attempt.outcome.error is not None and not attempt.outcome.is_final:
                    return

        await asyncio.gather(*map(send_group, batch.due))


async def _attempt(client: GuardedClient, batch: DeliveryBatch, attempt: DeliveryAttempt) -> SendOutcome:
    message = batch.message(attempt)
    if message is None:
        return GONE
    body, headers = message
    began = time.monotonic()
    response, start = None, b""
    try:
        async with client.within(TOTAL_SECONDS):
            response = await client.send("POST", httpx2.URL(batch.webhook.url), headers, body)
            try:
                start, _ = await read_start(response, MAX_BODY)
            finally:
                await response.aclose()
    except RequestFailed as error:
        if response is None:
            return SendOutcome(error=str(error))
    status, milliseconds = response.status_code, round((time.monotonic() - began) * 1000)  # the body is for people
    answer = start.decode(errors="replace").replace("\0", "") or None
    if 200 <= status < 300:
        return SendOutcome(status, answer, milliseconds)
    retry_at = instant_of_retry(response.headers.get("retry-after", ""), utcnow())
    return SendOutcome(status, answer, milliseconds, ANSWERED.format(status), retry_at)
