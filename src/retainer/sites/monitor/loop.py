"""Monitor loop: claim the sites that are due, probe them, save the results, until it is stopped."""

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial

from retainer.outbound.loop import BackgroundLoop
from retainer.settings import Network
from retainer.sites.monitor import schedule
from retainer.sites.monitor.probe import TOTAL_SECONDS, Prober
from retainer.sites.monitor.schedule import Checked, DueSite
from retainer.store.tx import Store

TICK_SECONDS = 0.5
CONCURRENCY = 100
DRAIN_SECONDS = 5.0
LEASE = timedelta(seconds=4 * TOTAL_SECONDS)  # longer than a probe and saving its result can take
REFRESH_TICKS = 120
WHAT = "checking sites"


class Monitor(BackgroundLoop):
    """Checks the sites of all accounts; the results of probes that end within DRAIN_SECONDS of a stop are saved."""

    def __init__(self, store: Store, allowed: tuple[Network, ...], on_error: Callable[[str, Exception], None]) -> None:
        super().__init__("monitor", store, allowed, on_error)
        self._results: list[Checked] = []
        self._running: set[asyncio.Task[None]] = set()

    async def _run(self, *, once: bool) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(CONCURRENCY, "monitor-names"))
        prober = Prober(self.allowed, CONCURRENCY)
        ticks, deadline = 0, math.inf
        while True:
            stopping = self._stopped.is_set()
            deadline = min(deadline, time.monotonic() + DRAIN_SECONDS) if stopping else deadline
            if time.monotonic() >= deadline:  # the remaining sites are due again when their leases end
                for task in self._running:
                    task.cancel()
            results, self._results = self._results, []
            if results:
                await self._in_database(WHAT, partial(self._save, results))
            free = 0 if stopping else CONCURRENCY - len(self._running)
            for site in (await self._in_database(WHAT, partial(self._claim, free)) if free else None) or []:
                task = asyncio.create_task(self._probe(prober, site))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
            if not self._running and not self._results and (stopping or once):
                break
            ticks += 1
            if ticks % REFRESH_TICKS == 0:
                await self._in_database(WHAT, self._refresh)
            await asyncio.sleep(TICK_SECONDS if not once else 0.05)
        await prober.close()

    async def _probe(self, prober: Prober, site: DueSite) -> None:
        try:
            result = await prober.probe(site)
            self._results.append((site, result))  # not before the await: every tick replaces the list
        except Exception as error:  # noqa: BLE001  # no result: the site is due again when its lease ends
            self.on_error(f"probing site {site.id}", error)

    def _save(self, results: list[Checked]) -> None:
        """Save results together; if that fails, save each alone."""
        try:
            schedule.save_results(self.store, results)
        except Exception as error:  # noqa: BLE001  # a site without its result is due again when its lease ends
            if len(results) == 1:
                self.on_error(f"saving the result of site {results[0][0].id}", error)
            else:
                for each in results:
                    self._save([each])
        else:
            self.done += len(results)

    def _claim(self, free: int) -> list[DueSite]:
        with self.store.unscoped() as tx:  # most ticks find nothing, and need no lock
            if not schedule.anything_due(tx):
                return []
        with self.store.unscoped(write=True) as tx:
            return schedule.claim(tx, free, LEASE)

    def _refresh(self) -> None:
        with self.store.unscoped(write=True) as tx:
            schedule.refresh(tx)
