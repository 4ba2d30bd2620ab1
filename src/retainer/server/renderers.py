"""Renderers: processes that make documents, read images and search pages, which cost a worker neither memory nor time.

What a job may take is processor time, which it takes on a busy machine, too. An account has one renderer at most. After
a job that took long it pauses for four times as long, in which it shares all renderers but one with other accounts that
pause. So an account whose jobs are short finds a renderer that is free, or nearly so.
"""

import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TypeVar, cast

from retainer.errors import Refusal
from retainer.fairness import FairSemaphore
from retainer.kernel.representations import JobFailed
from retainer.store.engines.base import of_request

T = TypeVar("T")
COUNT = 2
WAIT_SECONDS, IDLE_SECONDS = 10, 15
CLOCK_SECONDS = 20
"""Time by the clock after which a job is ended: the machine is so busy that it gets too little processor time."""
LEAST_SECONDS, KEPT_SECONDS = 9, 6
"""What a request keeps of its time for its job, and after it for its turn, and to store the file."""
LONG_SECONDS = 1
"""Processor time after which an account pauses. A document of 200 lines takes a tenth of it."""
PAUSES = 4
MAX_WAITING, MAX_PAUSED = 64, 32
"""Jobs that may wait for a renderer, and those of accounts in a pause that may wait for that."""
RETRY_SECONDS = 5


class RendererEnded(Exception):
    """A renderer that ended during a job."""


class Renderer:
    """A process, and the connection to it."""

    def __init__(self) -> None:
        here, there = socket.socketpair()
        read, write = os.pipe()
        self._errors = open(read, "rb")  # noqa: SIM115, PTH123  # its lines are not for the server's log
        os.set_blocking(write, False)  # what a pipe does not hold is dropped, or it would wait
        with there, open(write, "wb") as errors:  # noqa: PTH123
            command = [sys.executable, "-P", "-m", "retainer.server.renderer", str(there.fileno())]
            environment = {name: text for name, text in os.environ.items() if not name.startswith("RETAINER_")}
            environment["RAYON_NUM_THREADS"] = "1"  # of typst, which would use all processors
            self.process = subprocess.Popen(  # noqa: S603
                command, env=environment, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, stderr=errors
            )
        self.connection = Connection(here.detach())
        self.is_used_up = False
        self.took = 0.0
        """Processor time of the last job; infinite if it ended the process."""

    def call(self, seconds: float, clock_seconds: float, function: Callable[..., T], *arguments: object) -> T:
        """Return the result of a function, which may take some seconds of processor time, and some by the clock.

        Raises its error, JobFailed, TimeoutError by the clock, and RendererEnded.
        """
        self.took = math.inf
        began = time.monotonic()
        killer = start_timer(clock_seconds, self.process.kill)
        try:
            self.connection.send((function, arguments, seconds, math.ceil(2 * clock_seconds)))
            result, error, self.took, self.is_used_up = self.connection.recv()
        except (EOFError, OSError):
            self.is_used_up = True
            self.connection.close()
            status, errors = self.process.wait(), self._errors.read().decode(errors="replace")
            if status == -signal.SIGPROF:
                raise JobFailed("time") from None
            if time.monotonic() - began >= clock_seconds:
                raise TimeoutError from None
            raise RendererEnded(f"The renderer ended with status {status}. {errors}".strip()) from None
        finally:
            killer.cancel()
        if isinstance(error, MemoryError):
            raise JobFailed("memory")
        if error is not None:
            raise error
        return cast("T", result)

    def close(self) -> None:
        self.connection.close()
        self.process.wait()
        self._errors.close()


class RendererPool:
    """The renderers of a process. They start when they are needed, and end when they have been idle for a while."""

    def __init__(self, idle_seconds: int = IDLE_SECONDS) -> None:
        self.idle_seconds = idle_seconds
        self._idle: dict[Renderer, threading.Timer] = {}
        self._lock = threading.Lock()

    @contextmanager
    def renderer(self) -> Iterator[Renderer]:
        renderer = self._take()
        try:
            yield renderer
        finally:
            self._give_back(renderer)

    def run(self, _: int, seconds: float, function: Callable[..., T], *arguments: object) -> T:
        """Return the result of a function at once. Raises what `Renderer.call` does."""
        with self.renderer() as renderer:
            return renderer.call(seconds, CLOCK_SECONDS, function, *arguments)

    def close(self) -> None:
        for renderer in [*self._idle]:
            self._end(renderer)

    def _take(self) -> Renderer:
        with self._lock:
            if not self._idle:
                return Renderer()
            renderer, timer = self._idle.popitem()
            timer.cancel()
            return renderer

    def _give_back(self, renderer: Renderer) -> None:
        if renderer.is_used_up:
            renderer.close()
        else:
            with self._lock:
                self._idle[renderer] = start_timer(self.idle_seconds, self._end, renderer)

    def _end(self, renderer: Renderer) -> None:
        with self._lock:
            timer = self._idle.pop(renderer, None)
        if timer is not None:
            timer.cancel()
            renderer.close()


class PricedTurns:
    """Turns of accounts, one at a time for each; those in a pause share all turns but one."""

    def __init__(self, count: int = COUNT) -> None:
        self.all = FairSemaphore(count, 1, MAX_WAITING)
        self.of_paused = FairSemaphore(count - 1, 1, MAX_PAUSED)
        self._pauses: dict[int, float] = {}
        """The ends of pauses. An account has one only after a long job, so there are few."""
        self._lock = threading.Lock()

    def pause_of(self, account_id: int) -> float:
        """Return the rest of an account's pause, in seconds; not above 0 if there is none."""
        return self._pauses.get(account_id, -math.inf) - time.monotonic()

    def pause(self, account_id: int, seconds: float) -> None:
        now = time.monotonic()
        with self._lock:
            others = {each: end for each, end in self._pauses.items() if end > now}
            self._pauses = others | {account_id: now + seconds}

    @contextmanager
    def turn(self, account_id: int, seconds: float) -> Iterator[None]:
        """Wait for a turn for some seconds, and take it for a block. Raises `unavailable`."""
        until = time.monotonic() + seconds
        if self.pause_of(account_id) <= 0:
            with self._taken(self.all, account_id, until):
                if self.pause_of(account_id) <= 0:
                    yield
                    return
            # another job of the account has earned it a pause meanwhile
        with self._taken(self.of_paused, account_id, until), self._taken(self.all, account_id, until):
            yield

    @contextmanager
    def _taken(self, turns: FairSemaphore, account_id: int, until: float) -> Iterator[None]:
        if not turns.acquire(account_id, until - time.monotonic()):
            pause = math.ceil(self.pause_of(account_id)) if self.pause_of(account_id) > 0 else 0
            raise busy(AFTER_LONG if pause else AT_ONCE, max(pause, RETRY_SECONDS))
        try:
            yield
        finally:
            turns.release(account_id)


class Renderers:
    """The renderers of a worker, and the turns of accounts to use them."""

    def __init__(
        self,
        *,
        wait_seconds: int = WAIT_SECONDS,
        idle_seconds: int = IDLE_SECONDS,
        clock_seconds: float = CLOCK_SECONDS,
    ) -> None:
        self.wait_seconds, self.clock_seconds = wait_seconds, clock_seconds
        self.turns = PricedTurns()
        self.pool = RendererPool(idle_seconds)

    def run(self, account_id: int, seconds: float, function: Callable[..., T], *arguments: object) -> T:
        """Return the result of a function that can be imported, of values that can be pickled.

        It may take some seconds of processor time. Raises its error, JobFailed, RendererEnded, and `unavailable`.
        """
        wait = min(self.wait_seconds, of_request.remaining() - LEAST_SECONDS - KEPT_SECONDS)
        with self.turns.turn(account_id, wait), self.pool.renderer() as renderer:
            began = time.monotonic()
            clock_seconds = max(1, min(self.clock_seconds, of_request.remaining() - KEPT_SECONDS))
            try:
                return renderer.call(seconds, clock_seconds, function, *arguments)
            except TimeoutError:
                raise busy(SLOW, RETRY_SECONDS) from None
            finally:
                if renderer.took > LONG_SECONDS:
                    self.turns.pause(account_id, PAUSES * (time.monotonic() - began))

    def close(self) -> None:
        self.pool.close()


AT_ONCE = "The server makes as many documents as it can at once."
AFTER_LONG = (
    "Documents or logos of this account have just taken much processor time, so those of other accounts come first."
)
SLOW = "The server is too busy to make this document now."


def busy(reason: str, seconds: int) -> Refusal:
    advice = f"Try again in {seconds} seconds."
    return Refusal("unavailable", f"{reason} {advice}", headers={"Retry-After": str(seconds)})


def start_timer(seconds: float, function: Callable[..., object], *arguments: object) -> threading.Timer:
    timer = threading.Timer(seconds, function, arguments)
    timer.daemon = True
    timer.start()
    return timer
