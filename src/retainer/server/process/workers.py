"""The main process: it keeps its workers at their number, renews them one after another, and ends them in order."""

import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from mmap import mmap
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import Protocol

from retainer.server.operations.log import Log
from retainer.settings import SettingsError

START_SECONDS = 60  # the longest that a worker may take until it is ready
LEAVE_SECONDS = 10  # the longest that a replaced worker waits for clients to close their connections
DRAIN_SECONDS = 15  # the longest that requests in flight may take after that
PAUSE_SECONDS = 1  # lie between the starts of two workers that replace dead ones
MOST_DEATHS = 10  # in DEATHS_SECONDS, before the server ends: its workers cannot live
DEATHS_SECONDS = 60
LEAVE = signal.SIGUSR1
"""Asks a worker to leave requests to others, and then to end."""
SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}

FORK = get_context("fork")  # this process has one thread, and workers inherit its sockets and shared memory


class Server(Protocol):
    """What the workers work for."""

    def work(self, place: int, ready: Callable[[], None]) -> None:
        """Do the work of a worker, in its process, until SIGTERM; call `ready` when requests can be answered."""

    def started(self) -> None:
        """Note that all workers were ready for the first time."""

    def reload(self) -> int:
        """Read the settings again; return the seconds of a stop's delay. Raises SettingsError for bad ones."""

    def ended(self, place: int, *, died: bool) -> None:
        """Note that a worker has ended: as it was asked to, or by itself."""

    def prepare_to_stop(self) -> None:
        """Let all workers say that the server is about to end."""

    def stop(self) -> None:
        """Take no more connections."""


class SharedFlag:
    """A flag that the main process sets for all its workers at once, in memory that they inherit."""

    def __init__(self) -> None:
        self._memory = mmap(-1, 1)

    def set(self) -> None:
        """Set the flag, for good."""
        self._memory[0] = 1

    def is_set(self) -> bool:
        """Whether the flag was set."""
        return self._memory[0] == 1


@dataclass(eq=False)
class Worker:
    """A process; `place` is a number that no other living worker has, `kill_at` when it has had enough time."""

    place: int
    process: ForkProcess
    pipe: Connection
    replaces: "Worker | None"
    is_ready: bool = False
    is_ending: bool = False
    kill_at: float = field(default_factory=lambda: time.monotonic() + START_SECONDS)

    def end(self, how: signal.Signals, seconds: float) -> None:
        """Ask it with a signal to end, and give it so much time."""
        self.is_ending = True
        self.kill_at = time.monotonic() + seconds
        if self.process.is_alive():
            os.kill(self.process.ident or 0, how)


class Workers:
    """`count` processes that work for a server, and one more while one of them is renewed."""

    def __init__(self, count: int, server: Server, log: Log, stop_delay: int) -> None:
        self.count, self.server, self.log, self.stop_delay = count, server, log, stop_delay
        self._workers: list[Worker] = []
        self._to_renew: deque[Worker] = deque()
        self._is_renewing = False
        self._deaths: deque[float] = deque(maxlen=MOST_DEATHS)
        self._next_start = -inf
        self._stop_at = inf
        self._has_started = self._is_stopping = self._is_ending = False
        self._signals, self._wakeup = socket.socketpair()

    def run(self) -> None:
        """Keep the workers at work until SIGTERM or SIGINT. Raises SystemExit when they die on and on."""
        try:
            with self._signals, self._wakeup, self._handled_signals():
                while self._workers or not self._is_stopping:
                    self._start_missing()
                    self._renew_next()
                    self._wait()
        finally:
            for worker in self._workers:
                worker.process.kill()

    @contextmanager
    def _handled_signals(self) -> Iterator[None]:
        """A block in which signals wake `_wait`."""
        self._signals.setblocking(False)  # noqa: FBT003
        self._wakeup.setblocking(False)  # noqa: FBT003
        before = {number: signal.signal(number, lambda *_: None) for number in SIGNALS}
        signal.set_wakeup_fd(self._wakeup.fileno())
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self, replaces: Worker | None = None) -> None:
        taken = {worker.place for worker in self._workers}
        place = next(number for number in range(len(taken) + 1) if number not in taken)
        reading, writing = FORK.Pipe(duplex=False)
        process = FORK.Process(target=self._work, args=(place, reading, writing), name=f"worker {place}")
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # or the worker would take one as this process does
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        writing.close()
        self._workers.append(Worker(place, process, reading, replaces))

    def _work(self, place: int, reading: Connection, writing: Connection) -> None:
        """Do the work of a worker, in its process."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all processes: this one's parent acts
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        reading.close()
        self._signals.close()
        self._wakeup.close()

        def ready() -> None:
            writing.send(None)
            writing.close()

        self.server.work(place, ready)

    def _start_missing(self) -> None:
        now = time.monotonic()
        if self._is_stopping or now < self._next_start:
            return
        for _ in range(self.count - sum(not worker.is_ending and not worker.replaces for worker in self._workers)):
            self._start()

    def _renew_next(self) -> None:
        """Start a worker in the place of the next that is to be renewed, when the one before has ended."""
        if not self._is_renewing or any(worker.is_ending or worker.replaces for worker in self._workers):
            return
        while self._to_renew:
            old = self._to_renew.popleft()
            if old in self._workers:
                self._start(replaces=old)
                return
        self._is_renewing = False
        self._say(self.log.notice, "All workers were renewed.")

    def _wait(self) -> None:
        """Wait for what happens next: a signal, a worker that is ready or has ended, the end of somebody's time."""
        starting = {worker.pipe: worker for worker in self._workers if not worker.pipe.closed}
        sentinels = {worker.process.sentinel: worker for worker in self._workers}
        ends = [self._stop_at, *(worker.kill_at for worker in self._workers)]
        ends += [] if len(self._workers) >= self.count or self._is_stopping else [self._next_start]
        wait = min(ends) - time.monotonic()
        happened = connection.wait([self._signals, *starting, *sentinels], None if wait == inf else max(0, wait))
        if self._signals in happened:
            for number in self._signals.recv(64):
                self._handle(signal.Signals(number))
        for worker in [worker for pipe, worker in starting.items() if pipe in happened]:
            self._note_ready(worker)
        for worker in [worker for sentinel, worker in sentinels.items() if sentinel in happened]:
            self._note_end(worker)
        now = time.monotonic()
        if now >= self._stop_at:
            self._end_all()
        for worker in self._workers:
            if now >= worker.kill_at:
                self._say(self.log.warning, f"Worker {worker.process.pid} took too long, and is killed.")
                worker.process.kill()
                worker.kill_at = inf

    def _handle(self, number: signal.Signals) -> None:
        if self._is_ending:
            return
        if number is signal.SIGHUP:
            self._renew()
        elif self._is_stopping or not self.stop_delay or number is signal.SIGINT:  # that is, from a keyboard
            self._is_stopping, self._stop_at = True, -inf
        else:
            self._is_stopping, self._stop_at = True, time.monotonic() + self.stop_delay
            self.server.prepare_to_stop()

    def _renew(self) -> None:
        if self._is_stopping:
            return
        try:
            self.stop_delay = self.server.reload()
        except SettingsError as error:
            self._say(self.log.warning, f"No worker was renewed. {error}")
            return
        self._to_renew = deque(worker for worker in self._workers if not worker.is_ending and not worker.replaces)
        self._is_renewing = True

    def _note_ready(self, worker: Worker) -> None:
        try:
            worker.pipe.recv()
        except EOFError:  # it has ended, which its sentinel says too
            return
        finally:
            worker.pipe.close()
        worker.is_ready, worker.kill_at = True, inf
        old, worker.replaces = worker.replaces, None
        if old in self._workers and not self._is_stopping:
            old.end(LEAVE, LEAVE_SECONDS + DRAIN_SECONDS)
        if not self._has_started and sum(each.is_ready for each in self._workers) == self.count:
            self._has_started = True
            self.server.started()

    def _note_end(self, worker: Worker) -> None:
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        died = not worker.is_ending
        self.server.ended(worker.place, died=died)
        for other in self._workers:
            if other.replaces is worker:
                other.replaces = None
        if not died or self._is_stopping:
            return
        how = f"Worker {worker.process.pid} has ended with status {worker.process.exitcode}"
        if worker.replaces:
            self._to_renew.clear()
            self._is_renewing = False
            self._say(self.log.warning, f"{how} before it was ready. The workers that are there go on.")
            return
        self._say(self.log.warning, f"{how}. Another takes its place.")
        now = time.monotonic()
        self._next_start = self._deaths[-1] + PAUSE_SECONDS if self._deaths else now
        self._deaths.append(now)
        if len(self._deaths) == MOST_DEATHS and now - self._deaths[0] < DEATHS_SECONDS:
            self._say(self.log.warning, f"{MOST_DEATHS} workers have died within a minute. The server ends.")
            raise SystemExit(1)

    def _end_all(self) -> None:
        """End all workers; requests in flight are finished."""
        self._is_ending, self._stop_at = True, inf
        self.server.stop()
        for worker in self._workers:
            worker.end(signal.SIGTERM, DRAIN_SECONDS)

    def _say(self, log: Callable[[str], None], message: str) -> None:
        log(message)
        self.log.drain()
