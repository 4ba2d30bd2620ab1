"""A worker: the HTTP server with the application, and its background threads."""

import ctypes
import gc
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from granian import _granian
from granian.http import HTTP1Settings
from granian.log import LogLevels, configure_logging

from retainer import settings as configuration
from retainer.app import App
from retainer.background import Background
from retainer.job_kinds import kinds_with
from retainer.jobs.loop import Jobs
from retainer.kernel.representations import RunApart
from retainer.kernel.waiting import Ending
from retainer.server.http.connections import IDLE_SECONDS, MAX_CONNECTIONS, ConnectionGuard
from retainer.server.http.gate import SERVER_THREADS
from retainer.server.monitoring.endpoints import MonitoringPages, serve_pages
from retainer.server.monitoring.log import standard_error
from retainer.server.renderers import RendererPool

if TYPE_CHECKING:
    from retainer.server.monitoring.metrics import SharedMetrics

MAX_HEAD = 64 * 1024
BACKLOG = 2048  # connections that wait for a worker
STOP_SECONDS = 15  # for requests in flight
DRAIN_SECONDS = 10  # for clients of a drained worker to close their connections
WAKE_SECONDS = 1
SWITCH_SECONDS = 0.00002
"""How long, a few times, a small request waits for one that computes; Python's default of 5 ms is noticeable."""
THREAD_SECONDS = 2**31  # threads never end, because one that is about to end would still count as idle
M_ARENA_MAX, ARENAS = -8, 2
"""Pools from which threads allocate memory. By default each thread has one, and keeps the most that it ever needed."""
DRAIN_SIGNAL = signal.SIGUSR1
"""Makes a worker accept no more connections, and stop when all are closed."""

# Standard error, like the log; standard output is for results of commands.
STDERR = {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "formatter": "generic"}
LOGGING = {"handlers": {"console": STDERR, "access": STDERR}}
PR_SET_PDEATHSIG = 1


def work(
    listener: socket.socket,
    private: Mapping[str, socket.socket],
    is_stopping: Callable[[], bool],
    metrics: "SharedMetrics | None",
    worker_index: int,
    ready: Callable[[], None],
) -> None:
    """Answer requests until SIGTERM, and finish those in flight. Reads the settings again.

    `private` has the sockets of monitoring pages, by their addresses in the settings.
    """
    with suppress(AttributeError):  # only glibc has arenas
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)
    with suppress(AttributeError):  # only Linux ends workers whose main process was killed
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    threading.Thread(target=end_with, args=(os.getppid(), STOP_SECONDS), name="orphan", daemon=True).start()
    ending = Ending(is_stopping)
    app = App(configuration.load(), standard_error(), ending, metrics, worker_index)
    with ExitStack() as chores:
        searches = RendererPool()
        for pool in (app.renderers, searches):
            chores.callback(pool.close)
        connections = _max_connections()
        gate = app.gate
        guard = ConnectionGuard(app.settings, gate.underway, gate.pending.end_those_of, connections, app.log.failure)
        loops = [*background_work(app, searches.run)]
        for background in (app.housekeeping, gate.clock, *loops, *([guard] if sys.platform == "linux" else [])):
            background.start()
            chores.callback(background.stop)
        for address, sock in private.items():
            sock.setblocking(False)  # noqa: FBT003  # another process may have accepted the connection already
            serve_pages(sock, MonitoringPages(app.pages(address)))
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.freeze()  # the objects so far live as long as the process; no collection needs to scan them
        gc.set_threshold(20_000, 20, 50)
        install_drain(ending, guard)
        # Python handles signals in its main thread, which misses one that arrives just as it begins to wait.
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, WAKE_SECONDS, WAKE_SECONDS)
        chores.callback(signal.setitimer, signal.ITIMER_REAL, 0)
        ready()
        serve(app, listener, connections, loops)


class Loop:
    """What the HTTP server takes for an event loop: a callback runs at once, in the thread that has the result."""

    def call_soon(self, callback: Callable[..., object], *arguments: object, context: object = None) -> None:  # noqa: ARG002
        callback(*arguments)

    call_soon_threadsafe = call_soon


def serve(app: App, listener: socket.socket, connections: int, loops: Iterable[Background]) -> None:
    """Serve with Granian, without its main process (decision 11) and without an event loop of Python, until SIGTERM.

    Then the `loops` of background work begin nothing more, and what has begun ends in the same seconds as the requests.

    Granian's threads call `App.take` with each request. It uses private names of Granian, so pyproject.toml pins the
    version, and `tests/test_http_server.py` names them.
    """
    configure_logging(LogLevels.error, LOGGING)
    listener.setblocking(False)  # noqa: FBT003
    granian: Any = _granian
    holder = granian.SocketHolder(listener.fileno(), False, BACKLOG)  # noqa: FBT003
    # Granian counts from the last response, so the time limit ends idle connections too.
    http = HTTP1Settings(header_read_timeout=IDLE_SECONDS * 1000, max_buffer_size=MAX_HEAD)
    server = granian.RSGIWorker(
        0,
        (None, holder),
        None,
        threads=1,
        blocking_threads=1,
        py_threads=SERVER_THREADS,
        py_threads_idle_timeout=THREAD_SECONDS,
        backpressure=connections,
        http1_opts=http,
    )
    ended, stopping, loop = threading.Event(), granian.WorkerSignal(), Loop()

    def stop(*_: object) -> None:
        app.ending.is_draining = True  # requests that wait for events are answered now
        for each in loops:
            each.stopped.set()
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    stopping.add_cb(ended.set)
    scheduler = granian.CallbackScheduler(loop, None, None, None, None)
    scheduler._schedule_fn = app.take  # noqa: SLF001
    server.serve_mtr(scheduler, loop, stopping)
    while not ended.wait(WAKE_SECONDS):  # a signal handler runs in this thread, which must wake up for it
        pass


def end_with(main: int, seconds: float) -> None:
    """Kill this process if it still runs some seconds after its main process has died, which would have killed it."""
    while os.getppid() == main:
        time.sleep(WAKE_SECONDS)
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def install_drain(ending: Ending, guard: ConnectionGuard) -> None:
    def drain() -> None:
        if sys.platform == "linux":
            guard.drain(DRAIN_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    def on_signal(*_: object) -> None:
        ending.is_draining = True
        threading.Thread(target=drain, name="drain", daemon=True).start()

    signal.signal(DRAIN_SIGNAL, on_signal)


def background_work(app: App, run_apart: RunApart) -> Iterator[Background]:
    """Yield each thread of the settings. Modules are loaded only if they are needed."""
    settings, log = app.settings, app.log
    if settings.monitor:
        from retainer.sites.monitor.probe import Monitor  # noqa: PLC0415

        yield Monitor(app.store, settings.monitor_allow, log.report, run_apart)
    if settings.webhooks:
        from retainer.events.sender.loop import Sender  # noqa: PLC0415

        yield Sender(app.store, settings.monitor_allow, settings.api_url, log.report, log.warning)
    yield Jobs(app.store, kinds_with(run_apart), log.report)
    if settings.smtp_url:
        from retainer.mail.sender.loop import Mailer  # noqa: PLC0415

        yield Mailer(app.store, settings, run_apart, log.report, log.warning)
    if settings.backup_dir is not None and settings.database_path is not None:
        from retainer.backup.schedule import Schedule  # noqa: PLC0415

        every = timedelta(seconds=int(settings.backup_every * 3600))
        path, folder, keep = settings.database_path, settings.backup_dir, settings.backup_keep
        yield Schedule(path, folder, every, keep, log.backup, log.failure)


def _max_connections() -> int:
    """Raise a low limit of open files; return half of it for connections. The database needs the rest."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY  # a negative number
    files = 2 * MAX_CONNECTIONS if hard_limit == unlimited else min(hard_limit, 2 * MAX_CONNECTIONS)
    if soft_limit != unlimited and soft_limit < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard_limit))
    return min(MAX_CONNECTIONS, files // 2)
