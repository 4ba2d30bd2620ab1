"""The main process: replaces dead workers, renews workers one by one, and stops them (decision 11)."""

import os
import select
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from ctypes import c_bool
from dataclasses import dataclass
from math import inf
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import RawValue

from retainer import settings as configuration
from retainer.api import ROUTES
from retainer.identity.plans import limits_of
from retainer.processes import worker
from retainer.processes.worker import DRAIN_SECONDS, DRAIN_SIGNAL, STOP_SECONDS
from retainer.server.monitoring.log import Log
from retainer.settings import NOWHERE, PUBLIC, Settings, SettingsError

START_SECONDS = 60  # until a worker must be ready
LOOK_SECONDS = 0.05  # between two looks at workers that start
PAUSE_SECONDS = 1  # between two starts that replace dead workers
MAX_DEATHS = 10  # in DEATHS_SECONDS; then the server stops
DEATHS_SECONDS = 60
MAX_SIGNALS = 64  # that are read together
WAKING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
FIRST_DESCRIPTOR = 3
LOCKED_FIELDS = ("database", "health", "metrics")
"""Settings of all workers; a change needs a restart."""

FORK = get_context("fork")  # workers inherit sockets, and threads of libraries hold no lock of Python


@dataclass(eq=False)
class Worker:
    """A worker process; `index` is unique among running workers, `kill_at` is the time of its SIGKILL."""

    index: int
    generation: int
    process: ForkProcess
    has_started: c_bool
    kill_at: float
    is_ending: bool = False

    @property
    def is_ready(self) -> bool:
        return self.has_started.value

    def end(self, number: signal.Signals, seconds: float) -> None:
        self.is_ending = True
        self.kill_at = time.monotonic() + seconds
        if self.process.is_alive():
            os.kill(self.process.ident or 0, number)


class Workers:
    """`count` worker processes, and one more during a renewal; with the sockets and the metrics of all.

    A renewal begins a new generation: while there are older workers, it starts a new one, and drains an older one
    when the new one is ready. Connections wait in the sockets, which belong to no worker, meanwhile.
    """

    def __init__(
        self, settings: Settings, count: int, listener: socket.socket, log: Log, ready: Callable[[], None]
    ) -> None:
        self.settings, self.count, self.listener, self.log, self._ready = settings, count, listener, log, ready
        addresses = {settings.health, settings.metrics} - {PUBLIC, NOWHERE}
        self.private = {address: listen(*configuration.host_and_port(address)) for address in sorted(addresses)}
        self.is_stopping = RawValue(c_bool, False)  # noqa: FBT003  # in memory that workers share with this process
        self.metrics = None
        if settings.metrics != NOWHERE:
            from retainer.server.monitoring.metrics import SharedMetrics  # noqa: PLC0415  # loaded only with metrics

            self.metrics = SharedMetrics(ROUTES, count + 1)  # workers are renewed one by one
        self._stop_delay = settings.stop_delay
        self._workers: list[Worker] = []
        self._generation = 0
        self._deaths: deque[float] = deque(maxlen=MAX_DEATHS)
        self._next_start, self._stop_at = -inf, inf
        self._has_started = self._is_renewing = self._is_stopping = self._is_ending = False

    def run(self) -> None:
        """Keep the workers running until SIGTERM or SIGINT. Raises SystemExit if they keep dying."""
        woken, waking = socket.socketpair()
        waking.setblocking(False)  # noqa: FBT003  # a signal must not wait
        # Each signal becomes a byte, whichever thread receives it: libraries may have started some.
        signal.set_wakeup_fd(waking.fileno())
        for number in WAKING:
            signal.signal(number, lambda *_: None)
        try:
            while self._workers or not self._is_stopping:
                if not self._is_stopping:
                    self._take_next_step()
                wait = self._next_look() - time.monotonic()
                if select.select([woken], [], [], None if wait == inf else max(0, wait))[0]:
                    for received in woken.recv(MAX_SIGNALS):
                        self._handle(received)
                self._look()
        finally:
            for each in self._workers:
                each.process.kill()

    @property
    def _active(self) -> list[Worker]:
        return [each for each in self._workers if not each.is_ending]

    def _next_look(self) -> float:
        times = [self._stop_at, *(each.kill_at for each in self._workers)]
        if not all(each.is_ready for each in self._active):
            times.append(time.monotonic() + LOOK_SECONDS)
        if len(self._active) < self.count and not self._is_stopping:
            times.append(self._next_start)
        return min(times)

    def _take_next_step(self) -> None:
        active = self._active
        outdated = [each for each in active if each.generation < self._generation]
        if len(active) < self.count:
            if time.monotonic() >= self._next_start:
                for _ in range(self.count - len(active)):
                    self._start()
        elif self._is_renewing and all(each.is_ready for each in active):
            if len(active) > self.count:
                outdated[0].end(DRAIN_SIGNAL, DRAIN_SECONDS + STOP_SECONDS)
            elif len(self._workers) == self.count and outdated:
                self._start()
            elif not outdated and len(self._workers) == self.count:
                self._is_renewing = False
                self.log.notice("All workers were renewed.")
                self.log.drain()

    def _start(self) -> None:
        taken = {each.index for each in self._workers}
        index = next(number for number in range(len(taken) + 1) if number not in taken)
        has_started = RawValue(c_bool, False)  # noqa: FBT003
        process = FORK.Process(target=self._work, args=(index, has_started), name=f"worker {index}")
        signal.pthread_sigmask(signal.SIG_BLOCK, WAKING)  # until the worker handles them itself
        process.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WAKING)
        kill_at = time.monotonic() + START_SECONDS
        self._workers.append(Worker(index, self._generation, process, has_started, kill_at))

    def _work(self, index: int, has_started: c_bool) -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        for number in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all processes; the main process acts
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WAKING)

        def ready() -> None:
            has_started.value = True

        worker.work(self.listener, self.private, lambda: self.is_stopping.value, self.metrics, index, ready)

    def _look(self) -> None:
        for each in [*self._workers]:
            if not each.process.is_alive():
                self._note_end(each)
            elif each.is_ready and not each.is_ending:
                each.kill_at = inf
        if not self._has_started and sum(each.is_ready for each in self._workers) == self.count:
            self._has_started = True
            self._ready()
            notify("READY=1")
        now = time.monotonic()
        if now >= self._stop_at:
            self._is_ending, self._stop_at = True, inf
            notify("STOPPING=1")
            for sock in (self.listener, *self.private.values()):
                sock.close()
            for each in self._workers:
                each.end(signal.SIGTERM, STOP_SECONDS)
        for each in self._workers:
            if now >= each.kill_at:
                self.log.warn_now(f"Worker {each.process.pid} exceeded its time limit and was killed.")
                each.process.kill()
                each.kill_at = inf

    def _handle(self, number: int) -> None:
        if self._is_ending or number == signal.SIGCHLD:
            return
        if number == signal.SIGHUP:
            self._renew()
        elif self._is_stopping or not self._stop_delay or number == signal.SIGINT:  # SIGINT comes from the keyboard
            self._is_stopping, self._stop_at = True, -inf
        else:
            self._is_stopping, self._stop_at = True, time.monotonic() + self._stop_delay
            self.is_stopping.value = True

    def _renew(self) -> None:
        """Begin a renewal, unless the new settings are invalid or some that need a restart have changed."""
        if self._is_stopping:
            return
        try:
            settings = configuration.load()
            check(settings, self.count, self.settings)
        except SettingsError as error:
            self.log.warn_now(f"No worker was renewed. {error}")
            return
        self._stop_delay = settings.stop_delay
        self._generation += 1
        self._is_renewing = True

    def _note_end(self, ended: Worker) -> None:
        self._workers.remove(ended)
        died = not ended.is_ending
        if self.metrics:
            self.metrics.slots[ended.index].clear()
            self.metrics.slots[ended.index]["worker_deaths"] += died
        if not died or self._is_stopping:
            return
        how = f"Worker {ended.process.pid} ended with status {ended.process.exitcode}"
        if self._is_renewing and not ended.is_ready and ended.generation == self._generation:
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


def serve(*, host: str, port: int, workers: int, settings: Settings, log: Log, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, and finish requests in flight. Call `ready` when requests are answered.

    Raises SettingsError if another process uses the address.
    """
    Workers(settings, workers, handed_over() or listen(host, port), log, ready).run()


def check(settings: Settings, workers: int, before: Settings | None = None) -> None:
    """Raise SettingsError for settings that no worker can use, or that differ from `before` and need a restart."""
    changed = [name for name in LOCKED_FIELDS if before and getattr(settings, name) != getattr(before, name)]
    if changed:
        raise SettingsError(f"Restart the server to change {' and '.join(changed)}.")
    limits_of(settings)
    settings.sender  # noqa: B018  # raises if mail has no sender
    is_embedded = settings.database_path is not None
    if settings.backup_dir is not None and settings.database_path is not None:
        kept, data = settings.backup_dir.resolve(), settings.database_path.resolve().parent
        if kept.is_relative_to(data):
            advice = (
                "Name a folder outside of it, best on another disk: what destroys the data must not reach the backups."
            )
            raise SettingsError(f"RETAINER_BACKUP_DIR is {kept}, within the data folder {data}. {advice}")
    if settings.backup_dir is not None and not is_embedded:
        advice = "Unset it, and schedule pg_dump instead: retainer backup FILE prints the command."
        raise SettingsError(f"RETAINER_BACKUP_DIR works only with the embedded database. {advice}")
    if workers > 1 and is_embedded:
        advice = "Raise --threads instead, or set RETAINER_DATABASE_URL (PostgreSQL) and RETAINER_VALKEY_URL."
        raise SettingsError(f"The embedded database allows only one worker. {advice}")
    if workers > 1 and not settings.valkey_url:
        advice = "Set RETAINER_VALKEY_URL, or raise --threads instead."
        raise SettingsError(f"Several workers need Valkey, where they count requests together. {advice}")


def handed_over() -> socket.socket | None:
    """Return the socket that a socket unit hands over, if any (sd_listen_fds(3))."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS", "0") == "0":
        return None
    return socket.socket(fileno=FIRST_DESCRIPTOR)


def notify(state: str) -> None:
    """Report the state of the server to systemd, if it runs, like READY=1 (sd_notify(3))."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.sendto(state.encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address. Raises SettingsError when the address is not available."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(worker.BACKLOG)
    except OSError as error:
        sock.close()
        advice = "Choose another with --port, or in the setting that names it."
        raise SettingsError(f"Cannot listen on port {port} of {host}: {error.strerror}. {advice}") from None
    return sock
