"""Sender loop: lease the webhooks with something to send, send it, save the results, until it is stopped."""

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

import httpx2

from retainer.events.sender.batch import GONE, Attempt, Batch, Outcome, load_batch
from retainer.events.sender.message import Receiver
from retainer.events.sender.results import save_results
from retainer.events.sender.schedule import Leased, claim
from retainer.outbound.client import UNREACHED, GuardedClient, Timeouts, is_certificate_error, read_start
from retainer.outbound.loop import BackgroundLoop
from retainer.settings import Network
from retainer.store.tx import Store

TICK_SECONDS = 0.5
WEBHOOKS = 32
"""Webhooks that are served at the same time."""
REQUESTS = 8
"""Requests to one receiver at the same time, each for another record."""
TOTAL_SECONDS = 10.0
"""Time limit of a request."""
CONNECT_SECONDS = 5.0
TURN_SECONDS = 30.0
"""After this time, a turn begins no more requests."""
DRAIN_SECONDS = 5.0
LEASE = timedelta(seconds=2 * (TURN_SECONDS + TOTAL_SECONDS))  # longer than a turn and saving it can take
MAX_BODY = 1024
"""Bytes of a response that are kept."""
TIMEOUTS: Timeouts = {"connect": CONNECT_SECONDS, "read": TOTAL_SECONDS, "write": TOTAL_SECONDS, "pool": TOTAL_SECONDS}
WHAT = "sending webhooks"

UNREACHABLE = "The receiver cannot be reached."  # the same whether it refused, does not exist, or is forbidden
TOO_SLOW = f"The receiver did not answer within {TOTAL_SECONDS:.0f} seconds."
BAD_CERTIFICATE = "The receiver's certificate is not valid."
ANSWERED = "The receiver answered {}."
BROKEN = "The server could not send it."


class Sender(BackgroundLoop):
    """Sends the events of all accounts; `on_notice` is called with what the operator should know."""

    def __init__(
        self,
        store: Store,
        allowed: tuple[Network, ...],
        base_url: str,
        on_error: Callable[[str, Exception], None],
        on_notice: Callable[[str], None],
    ) -> None:
        super().__init__("webhooks", store, allowed, on_error)
        self.base_url, self.on_notice = base_url, on_notice
        self._drained_at = math.inf

    async def _run(self, *, once: bool) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(WEBHOOKS, "webhook-names"))
        client = GuardedClient(self.allowed, WEBHOOKS * REQUESTS)
        running: set[asyncio.Task[None]] = set()
        while True:
            is_stopping = self._stopped.is_set()
            if is_stopping:
                self._drained_at = min(self._drained_at, time.monotonic() + DRAIN_SECONDS)
            free = 0 if is_stopping else WEBHOOKS - len(running)
            found = await self._in_database(WHAT, partial(claim, self.store, free, LEASE)) if free else None
            for leased in found or []:
                task = asyncio.create_task(self._serve(client, leased))
                running.add(task)
                task.add_done_callback(running.discard)
            if not running and (is_stopping or once):
                break
            await asyncio.sleep(0.05 if once else TICK_SECONDS)
        await client.close()

    async def _serve(self, client: GuardedClient, leased: Leased) -> None:
        """Give a webhook its turn. If a part fails, it is due again when its lease ends."""
        batch = await self._in_database(WHAT, partial(load_batch, self.store, leased, self.base_url))
        if batch is None:
            return
        await self._send(client, batch)
        saved = await self._in_database(WHAT, partial(save_results, self.store, leased, batch))
        if saved is not None:
            tried, messages = saved
            self.done += tried
            for message in messages:
                self.on_notice(message)

    async def _send(self, client: GuardedClient, batch: Batch) -> None:
        """Send what is due, several records at the same time, until the time of the turn is up."""
        until, free = time.monotonic() + TURN_SECONDS, asyncio.Semaphore(REQUESTS)

        async def send_group(group: list[Attempt]) -> None:
            for attempt in group:
                async with free:
                    if time.monotonic() >= until or self._stopped.is_set():
                        return
                    attempt.outcome = await self._attempt(client, batch.receiver, attempt)
                if attempt.outcome.error is not None and not attempt.outcome.is_final:
                    return

        waiting = {asyncio.create_task(send_group(group)) for group in batch.due}
        while waiting and time.monotonic() < self._drained_at:
            _, waiting = await asyncio.wait(waiting, timeout=TICK_SECONDS)
        for task in waiting:
            task.cancel()

    async def _attempt(self, client: GuardedClient, receiver: Receiver, attempt: Attempt) -> Outcome:
        """Send an event or a test; failures are results, too."""
        began = time.monotonic()
        try:
            message = attempt.message(receiver)
            if message is None:
                return GONE
            async with asyncio.timeout(TOTAL_SECONDS):
                url = httpx2.URL(receiver.url)
                response = await client.send("POST", url, message.headers, TIMEOUTS, message.body)
                try:
                    body = (await read_start(response, MAX_BODY)).decode(errors="replace").replace("\0", "")
                finally:
                    await response.aclose()
        except TimeoutError:
            return Outcome(error=TOO_SLOW)
        except UNREACHED as error:
            return Outcome(error=BAD_CERTIFICATE if is_certificate_error(error) else UNREACHABLE)
        except Exception as error:  # noqa: BLE001  # a failure as well: it must not be tried without a pause
            self.on_error(f"sending event {attempt.event_id} to webhook {receiver.webhook_id}", error)
            return Outcome(error=BROKEN)
        status, milliseconds = response.status_code, round((time.monotonic() - began) * 1000)
        return Outcome(status, body or None, milliseconds, None if 200 <= status < 300 else ANSWERED.format(status))
