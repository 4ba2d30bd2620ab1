"""Renderers: processes that make documents and read images, so that these cost a worker neither memory nor time.

An account has one renderer at most, so that another account always finds one free or nearly so.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar, cast

from retainer.errors import Refusal
from retainer.fairness import FairSemaphore
from retainer.kernel.representations import JobFailed
from retainer.store.engines.base import of_request

T = TypeVar("T")
COUNT = 2
JOB_SECONDS, WAIT_SECONDS, IDLE_SECONDS = 10, 10, 15
MAX_WAITING = 96
"""Jobs that may wait."""


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

    def call(self, seconds: int, function: Callable[..., T], *arguments: object) -> T:
        """Return the result of a function. Raises its error, TimeoutError, and RendererEnded."""
        began = time.monotonic()
        killer = start_timer(seconds, self.process.kill)
        try:
            self.connection.send((function, arguments, 2 * seconds))
            result, error, self.is_used_up = self.connection.recv()
        except (EOFError, OSError):
            self.is_used_up = True
            self.connection.close()
            status, errors = self.process.wait(), self._errors.read().decode(errors="replace")
            if time.monotonic() - began >= seconds:
                raise TimeoutError from None
            raise RendererEnded(f"The renderer ended with status {status}. {errors}".strip()) from None
        finally:
            killer.cancel()
        if error is not None:
            raise error
        return cast("T", result)

    def close(self) -> None:
        self.connection.close()
        self.process.wait()
        self._errors.close()


class Renderers:
    """The renderers of a worker. They start when they are needed, and end when they have been idle for a while."""

    def __init__(
        self, *, job_seconds: int = JOB_SECONDS, wait_seconds: int = WAIT_SECONDS, idle_seconds: int = IDLE_SECONDS
    ) -> None:
        self.job_seconds, self.wait_seconds, self.idle_seconds = job_seconds, wait_seconds, idle_seconds
        self.turns = FairSemaphore(COUNT, 1, MAX_WAITING)
        self._idle: dict[Renderer, threading.Timer] = {}
        self._lock = threading.Lock()

    def run(self, account_id: int, function: Callable[..., T], *arguments: object) -> T:
        """Return the result of a function that can be imported, of values that can be pickled.

        Raises its error, RendererEnded, and `unavailable` with what an account can do about it.
        """
        time_for_job = self.job_seconds + 1
        if not self.turns.acquire(account_id, min(self.wait_seconds, of_request.remaining() - time_for_job)):
            raise unavailable("Too many documents are asked for at once. Wait for some before asking for more.")
        try:
            renderer = self._take()
            try:
                return renderer.call(self.job_seconds, function, *arguments)
            finally:
                self._give_back(renderer)
        except TimeoutError:
            message = f"This document takes more than {self.job_seconds} seconds. Shorten its texts."
            raise unavailable(message, JobFailed) from None
        except MemoryError:
            raise unavailable("This document needs too much memory. Shorten its texts.", JobFailed) from None
        finally:
            self.turns.release(account_id)

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


def start_timer(seconds: int, function: Callable[..., object], *arguments: object) -> threading.Timer:
    timer = threading.Timer(seconds, function, arguments)
    timer.daemon = True
    timer.start()
    return timer


def unavailable(message: str, kind: type[Refusal] = Refusal) -> Refusal:
    return kind("unavailable", message, headers={"Retry-After": "5"})
