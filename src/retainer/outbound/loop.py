"""Background loops: leased work in a thread of its own, until it is stopped."""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from retainer.settings import Network
from retainer.store.tx import Store

STOP_SECONDS = 10
"""Maximum time that `stop` waits for work that has begun."""

T = TypeVar("T")


class BackgroundLoop(ABC):
    """Work on all accounts, in its own thread; `on_error` is called with errors of the loop itself."""

    def __init__(
        self, name: str, store: Store, allowed: tuple[Network, ...], on_error: Callable[[str, Exception], None]
    ) -> None:
        self.store, self.allowed, self.on_error = store, allowed, on_error
        self.done = 0
        self._database = ThreadPoolExecutor(1, f"{name}-database")  # one thread: one connection
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self.run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no more work; what ends soon is saved."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(timeout=STOP_SECONDS)

    def run(self, *, once: bool = False) -> int:
        """Work until stopped, or `once` on what is due; return how much was done."""
        asyncio.run(self._run(once=once))
        return self.done

    @abstractmethod
    async def _run(self, *, once: bool) -> None:
        """Work until stopped, or once on what is due."""

    async def _in_database(self, what: str, action: Callable[[], T]) -> T | None:
        """Run an action in the thread of the database; return its result, or None if it failed."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._database, action)
        except Exception as error:  # noqa: BLE001
            self.on_error(what, error)
            return None
