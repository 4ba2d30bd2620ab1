"""Background threads: chores that are repeated until their thread is stopped, whatever errors they raise."""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta

MAX_PAUSE = 30
"""Maximum pause after an error, in seconds: the first one is a second, and each further error in a row doubles it."""

Report = Callable[[str, BaseException], None]
"""Logs an error: what was done, and the error."""
Progress = Callable[[str, int, int], None]
"""Called with a step of long work, how much of it is done, and its total, which is 0 if unknown."""


class Chore:
    """Work to be done `every` some seconds, or after the time that it returns.

    An error is reported and never raised; the next run then comes after a pause.
    """

    def __init__(
        self, name: str, every: float, work: Callable[[], object], *, max_pause: int = MAX_PAUSE, at_once: bool = False
    ) -> None:
        self.name, self.every, self.work, self.max_pause = name, every, work, max_pause
        self.due_at = time.monotonic() + (0 if at_once else every)
        self._failures = 0

    def do(self, report: Report) -> None:
        """Do the work now, and decide when it is due again."""
        try:
            result = self.work()
            self._failures = 0
            wait = result.total_seconds() if isinstance(result, timedelta) else self.every
        except BaseException as error:  # noqa: BLE001  # SystemExit, too, would end the thread without a word
            wait = max(self.every, min(2**self._failures, self.max_pause))
            self._failures = min(self._failures + 1, self.max_pause)
            with suppress(Exception):
                report(self.name, error)
        self.due_at = time.monotonic() + wait


class Background:
    """A thread that does chores until it is stopped; `stop` waits some seconds for the chore that it is doing."""

    def __init__(self, name: str, report: Report, chores: Iterable[Chore], stop_seconds: int = 0) -> None:
        self.report, self.chores, self.stop_seconds = report, tuple(chores), stop_seconds
        self.stopped = threading.Event()
        self._thread = threading.Thread(target=self.run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(self.stop_seconds)

    def run(self) -> None:
        while not self.stopped.wait(max(0, min(chore.due_at for chore in self.chores) - time.monotonic())):
            for chore in self.chores:
                if chore.due_at <= time.monotonic():
                    chore.do(self.report)
