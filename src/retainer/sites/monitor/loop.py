"""The loop of the monitor: claim the sites that are due, probe them, write the findings; until it is stopped."""

import asyncio
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from retainer.settings import Network
from retainer.sites.monitor import schedule
from retainer.sites.monitor.probe import TOTAL_SECONDS, Prober
from retainer.sites.monitor.schedule import Due, Finding
from retainer.store.tx import Store

TICK_SECONDS = 0.5
AT_ONCE = 100
DRAIN_SECONDS = 5.0
LEASE = timedelta(seconds=4 * TOTAL_SECONDS)  # longer than any probe and its writing can take
REFRESH_TICKS = 120
MOST_REFRESHED = 100

Found = tuple[Due, Finding]


class Monitor:
    """Checks the sites of all accounts, in its own thread; `failed` is called with errors of the monitor itself."""

    def __init__(self, store: Store, opened: tuple[Network, ...], failed: Callable[[str, Exception], None]) -> None:
        self.store = store
        self.opened = opened
        self.failed = failed
        self.checked = 0
        self._findings: list[Found] = []
        self._running: set[asyncio.Task[None]] = set()
        self._database = ThreadPoolExecutor(1, "monitor-database")  # one thread: one connection
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self.run, name="monitor", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Claim no more sites; probes that end within DRAIN_SECONDS are written."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2 * DRAIN_SECONDS)

    def run(self, *, once: bool = False) -> int:
        """Check what is due, for ever or `once`; return how many sites were checked."""
        asyncio.run(self._run(once=once))
        return self.checked

    async def _run(self, *, once: bool) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(AT_ONCE, "monitor-names"))
        prober = Prober(self.opened, AT_ONCE)
        ticks, deadline = 0, math.inf
        while True:
            stopping = self._stopped.is_set()
            deadline = min(deadline, time.monotonic() + DRAIN_SECONDS) if stopping else deadline
            if time.monotonic() >= deadline:  # a site whose probe takes longer is due again when its lease ends
                for task in self._running:
                    task.cancel()
            findings, self._findings = self._findings, []
            free = 0 if stopping else AT_ONCE - len(self._running)
            for due in await self._try(self._tick, findings, free) or []:
                task = asyncio.create_task(self._look(prober, due))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
            if not self._running and not self._findings and (stopping or once):
                break
            ticks += 1
            if ticks % REFRESH_TICKS == 0:
                await self._try(self._refresh)
            await asyncio.sleep(TICK_SECONDS if not once else 0.05)
        await prober.close()

    async def _look(self, prober: Prober, due: Due) -> None:
        try:
            finding = await prober.look(due)
            self._findings.append((due, finding))  # not before the await: every tick replaces the list
        except Exception as error:  # noqa: BLE001  # no finding: the site is due again when its lease ends
            self.failed(f"looking at site {due.site_id}", error)

    async def _try(self, chore: Callable[..., Any], *arguments: Any) -> Any:
        """Do a chore in the thread of the database; return its result, or None when it failed, which is reported."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._database, chore, *arguments)
        except Exception as error:  # noqa: BLE001
            self.failed("checking sites", error)
            return None

    def _tick(self, findings: list[Found], free: int) -> list[Due]:
        """Write findings and claim sites, in one transaction; if it fails, write each finding in its own."""
        if not findings and not self._anything_due(free):
            return []
        try:
            with self.store.unscoped("the monitor checks the sites of all accounts", write=True) as tx:
                for due, finding in findings:
                    schedule.record(tx, due, finding)
                claimed = schedule.claim(tx, free, LEASE) if free > 0 else []
        except Exception as error:  # noqa: BLE001
            self.failed("writing what was found", error)
            self._write_one_by_one(findings)
            return []
        self.checked += len(findings)
        return claimed

    def _write_one_by_one(self, findings: list[Found]) -> None:
        for due, finding in findings:
            try:
                with self.store.unscoped("the monitor checks the sites of all accounts", write=True) as tx:
                    schedule.record(tx, due, finding)
            except Exception as error:  # noqa: BLE001  # its lease ends, and it is due again
                self.failed(f"writing what was found of site {due.site_id}", error)
            else:
                self.checked += 1

    def _anything_due(self, free: int) -> bool:
        if free <= 0:
            return False
        with self.store.unscoped("the monitor checks the sites of all accounts") as tx:
            return schedule.anything_due(tx)

    def _refresh(self) -> None:
        with self.store.unscoped("time passes for the sites of all accounts", write=True) as tx:
            schedule.refresh(tx, MOST_REFRESHED)
