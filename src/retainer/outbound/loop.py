"""Background loops: work that a process leases, in a thread of its own."""

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import timedelta
from functools import partial
from typing import ClassVar, Generic, TypeVar

from retainer.background import MAX_PAUSE, Background, Chore, Report
from retainer.outbound.client import GuardedClient, Overloaded
from retainer.outbound.leases import Leases, Places, Work
from retainer.settings import Network
from retainer.store.engines.base import AccountPaused
from retainer.store.tx import Store

TICK_SECONDS = 0.5
CLUSTER_SECONDS = 2
"""Pause after a search that finds nothing on a cluster, where it asks every shard."""
REFRESH_SECONDS = 60
STOP_SECONDS = 10
"""Maximum time that `stop` waits, which includes saving the results of what ends soon."""
PAUSE_SECONDS = 8
"""How long work waits for a turn to write while its account, which writes much itself, pauses again and again."""
DRAIN_SECONDS = 5
"""After a stop, time for work that has begun."""

T = TypeVar("T")


class BackgroundLoop(Background, ABC, Generic[Work]):
    """Leases what is due and does it, until it is stopped. What fails is due again when its lease ends."""

    name: ClassVar[str]
    task: ClassVar[str]
    """What the loop does, for the log."""
    places: ClassVar[int]
    """Places that accounts share, in addition to one of each."""
    leases: Leases[Work]
    lease: ClassVar[timedelta]
    """How long work is leased: longer than it can take."""

    def __init__(self, store: Store, report: Report) -> None:
        super().__init__(
            self.name, report, [Chore(self.task, 0, lambda: asyncio.run(self._run(once=False)))], STOP_SECONDS
        )
        self.store = store
        self.done = 0
        self._refresh_at = self._search_at = self._told_at = -math.inf
        self._database = ThreadPoolExecutor(1, f"{self.name}-database")  # one thread: one connection

    def run_once(self) -> int:
        """Do what is due in the calling thread; return how much was done."""
        asyncio.run(self._run(once=True))
        return self.done

    @abstractmethod
    def refresh(self) -> None:
        """Correct what time has changed; called at the start and every REFRESH_SECONDS, in the database's thread."""

    @abstractmethod
    async def serve(self, work: Work) -> None:
        """Do what was leased."""

    def equipped(self) -> AbstractAsyncContextManager[object]:
        """Return what is open while the loop runs."""
        return nullcontext()

    async def _run(self, *, once: bool) -> None:
        running: dict[asyncio.Task[None], int] = {}
        failures, next_turn = 0, -math.inf
        async with self.equipped():
            while not self.stopped.is_set():
                if time.monotonic() >= next_turn:
                    try:
                        await self._turn(running, once=once)
                        failures = 0
                    except Exception as error:  # noqa: BLE001  # the work that has begun goes on
                        self.report(self.task, error)
                        next_turn = time.monotonic() + min(2**failures, MAX_PAUSE)
                        failures = min(failures + 1, MAX_PAUSE)
                if once and not running:
                    return
                await asyncio.sleep(0.05 if once else TICK_SECONDS)
            if running:
                _, late = await asyncio.wait(running, timeout=DRAIN_SECONDS)
                for task in late:
                    task.cancel()
                await asyncio.gather(*late, return_exceptions=True)

    async def _turn(self, running: dict[asyncio.Task[None], int], *, once: bool) -> None:
        for task in [task for task in running if task.done()]:
            del running[task]
        if time.monotonic() >= self._refresh_at:
            self._refresh_at = time.monotonic() + REFRESH_SECONDS
            await self.in_database(self.refresh)
        if once or time.monotonic() >= self._search_at:
            for work in await self.in_database(partial(self._search, Places(self.places, running.values()))):
                running[asyncio.create_task(self._try(work))] = work.account_id

    def _search(self, places: Places) -> list[Work]:
        found = self.leases.claim(self.store, places, self.lease)
        if not found and self.store.engine.is_cluster:
            self._search_at = time.monotonic() + CLUSTER_SECONDS
        return found

    async def _try(self, work: Work) -> None:
        try:
            await self.serve(work)
        except Overloaded as error:
            if time.monotonic() >= self._told_at + REFRESH_SECONDS:  # it concerns all work alike
                self._told_at = time.monotonic()
                self.report(self.task, error)
        except Exception as error:  # noqa: BLE001
            self.report(f"{self.task} ({work.id} of account {work.account_id})", error)

    async def in_database(self, action: Callable[[], T]) -> T:
        """Do something in the thread of the database; again while its account pauses, and others use the thread."""
        end = time.monotonic() + PAUSE_SECONDS
        while True:
            try:
                return await asyncio.get_running_loop().run_in_executor(self._database, action)
            except AccountPaused:  # what raised it was not executed
                if time.monotonic() > end:
                    raise
            await asyncio.sleep(TICK_SECONDS / 4)


class RequestLoop(BackgroundLoop[Work], ABC):
    """A background loop whose work is requests to addresses that tenants have entered."""

    host: ClassVar[str]
    """What the hosts of its requests are called in messages to tenants."""

    def __init__(self, store: Store, allowed: tuple[Network, ...], report: Report) -> None:
        super().__init__(store, report)
        self.allowed = allowed

    def equipped(self) -> GuardedClient:
        self.client = GuardedClient(self.allowed, self.host)  # of the event loop that now runs
        return self.client
