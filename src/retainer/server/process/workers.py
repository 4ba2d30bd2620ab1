"""The main process: replaces dead workers, renews workers one by one, and stops them (decision 11)."""

import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess

from retainer.server.monitoring.log import Log
from retainer.server.process.server import Server, handed_over, listen
from retainer.server.process.worker import DRAIN_SECONDS, DRAIN_SIGNAL, STOP_SECONDS
from retainer.settings import Settings, SettingsError
from retainer.store.engines import connect

START_SECONDS = 60  # until a worker must be ready
PAUSE_SECONDS = 1  # between two starts that replace dead workers
MAX_DEATHS = 10  # in DEATHS_SECONDS; then the server stops
DEATHS_SECONDS = 60
SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}

FORK = get_context("fork")  # this process has one thread, and workers inherit its sockets


@dataclass(eq=False)
class Worker:
    """A worker process; `worker_index` is unique among running workers, `kill_at` is the time of its SIGKILL."""

    worker_index: int
    generation: int
    process: ForkProcess
    pipe: Connection
    is_ready: bool = False
    is_ending: bool = False
    kill_at: float = field(default_factory=lambda: time.monotonic() + START_SECONDS)

    def end(self, number: signal.Signals, seconds: float) -> None:
        self.is_ending = True
        self.kill_at = time.monotonic() + seconds
        if self.process.is_alive():
            os.kill(self.process.ident or 0, number)


class Workers:
    """`count` worker processes, and one more during a renewal.

    A renewal begins a new generation: while there are older workers, it starts a new one, and drains an older one
    when the new one is ready.
    """

    def __init__(self, count: int, server: Server, log: Log, stop_delay: int) -> None:
        self.count, self.server, self.log, self.stop_delay = count, server, log, stop_delay
        self._workers: list[Worker] = []
        self._generation = 0
        self._deaths: deque[float] = deque(maxlen=MAX_DEATHS)
        self._next_start = -inf
        self._stop_at = inf
        self._has_started = self._is_renewing = self._is_stopping = self._is_ending = False
        self._signals, self._wakeup = socket.socketpair()

    def run(self) -> None:
        """Keep the workers running until SIGTERM or SIGINT. Raises SystemExit if they keep dying."""
        for end in (self._signals, self._wakeup):
            end.setblocking(False)  # noqa: FBT003
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._wakeup.fileno())  # signals wake `_wait`
        try:
            while self._workers or not self._is_stopping:
                if not self._is_stopping:
                    self._take_next_step()
                self._wait()
        finally:
            for worker in self._workers:
                worker.process.kill()

    @property
    def _active(self) -> list[Worker]:
        return [worker for worker in self._workers if not worker.is_ending]

    def _take_next_step(self) -> None:
        """Start missing workers, or take the next step of a renewal."""
        active = self._active
        outdated = [worker for worker in active if worker.generation < self._generation]
        if len(active) < self.count:
            if time.monotonic() >= self._next_start:
                for _ in range(self.count - len(active)):
                    self._start()
        elif self._is_renewing and all(worker.is_ready for worker in active):
            if len(active) > self.count:
                outdated[0].end(DRAIN_SIGNAL, DRAIN_SECONDS + STOP_SECONDS)
            elif len(self._workers) == self.count and outdated:
                self._start()
            elif not outdated and len(self._workers) == self.count:
                self._is_renewing = False
                self.log.notice("All workers were renewed.")
                self.log.drain()

    def _start(self) -> None:
        taken = {worker.worker_index for worker in self._workers}
        worker_index = next(number for number in range(len(taken) + 1) if number not in taken)
        reading, writing = FORK.Pipe(duplex=False)
        process = FORK.Process(target=self._work, args=(worker_index, reading, writing), name=f"worker {worker_index}")
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the worker has its own handlers
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        writing.close()
        self._workers.append(Worker(worker_index, self._generation, process, reading))

    def _work(self, worker_index: int, reading: Connection, writing: Connection) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all processes; the main process acts
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        reading.close()
        self._signals.close()
        self._wakeup.close()

        def ready() -> None:
            writing.send(None)
            writing.close()

        self.server.work(worker_index, ready)

    def _wait(self) -> None:
        starting = {worker.pipe: worker for worker in self._workers if not worker.pipe.closed}
        sentinels = {worker.process.sentinel: worker for worker in self._workers}
        ends = [self._stop_at, *(worker.kill_at for worker in self._workers)]
        if len(self._active) < self.count and not self._is_stopping:
            ends.append(self._next_start)
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
                self.log.warn_now(f"Worker {worker.process.pid} exceeded its time limit and was killed.")
                worker.process.kill()
                worker.kill_at = inf

    def _handle(self, number: signal.Signals) -> None:
        if self._is_ending:
            return
        if number is signal.SIGHUP:
            self._renew()
        elif self._is_stopping or not self.stop_delay or number is signal.SIGINT:  # SIGINT comes from the keyboard
            self._is_stopping, self._stop_at = True, -inf
        else:
            self._is_stopping, self._stop_at = True, time.monotonic() + self.stop_delay
            self.server.is_stopping.value = True

    def _renew(self) -> None:
        if self._is_stopping:
            return
        try:
            self.stop_delay = self.server.reload()
        except SettingsError as error:
            self.log.warn_now(f"No worker was renewed. {error}")
            return
        self._generation += 1
        self._is_renewing = True

    def _note_ready(self, worker: Worker) -> None:
        try:
            worker.pipe.recv()
        except EOFError:  # the worker has ended; its sentinel reports it
            return
        finally:
            worker.pipe.close()
        worker.is_ready, worker.kill_at = True, inf
        if not self._has_started and sum(each.is_ready for each in self._workers) == self.count:
            self._has_started = True
            self.server.started()

    def _note_end(self, worker: Worker) -> None:
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        died = not worker.is_ending
        self.server.ended(worker.worker_index, died=died)
        if not died or self._is_stopping:
            return
        how = f"Worker {worker.process.pid} ended with status {worker.process.exitcode}"
        if self._is_renewing and not worker.is_ready and worker.generation == self._generation:
            self._is_renewing = False
            for other in self._workers:
                other.generation = self._generation
            self.log.warn_now(f"{how} before it was ready. The renewal was cancelled.")
            return
        self.log.warn_now(f"{how}. A new worker replaces it.")
        now = time.monotonic()
        self._next_start = self._deaths[-1] + PAUSE_SECONDS if self._deaths else now
        self._deaths.append(now)
        if len(self._deaths) == MAX_DEATHS and now - self._deaths[0] < DEATHS_SECONDS:
            self.log.warn_now(f"{MAX_DEATHS} workers died within a minute. The server stops.")
            raise SystemExit(1)

    def _end_all(self) -> None:
        self._is_ending, self._stop_at = True, inf
        self.server.stop()
        for worker in self._workers:
            worker.end(signal.SIGTERM, STOP_SECONDS)


def serve(*, host: str, port: int, workers: int, settings: Settings, log: Log, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, and finish requests in flight. Call `ready` when requests are answered.

    Raises SettingsError if another process uses the address or serves the database.
    """
    with connect(settings.database).serve_alone():
        server = Server(settings, workers, handed_over() or listen(host, port), ready)
        Workers(workers, server, log, settings.stop_delay).run()
