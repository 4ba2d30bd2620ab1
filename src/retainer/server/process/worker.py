"""A worker: Granian in front of the application, and the threads beside the requests."""

import gc
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces, RuntimeModes
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server import MPServer

from retainer import settings as configuration
from retainer.app import App
from retainer.server.http.connections import MOST_CONNECTIONS, ConnectionGuard
from retainer.server.http.slots import THREAD_SECONDS, threads
from retainer.server.http.spare_thread import SpareThread
from retainer.server.operations.endpoints import Operations, OperationsServer
from retainer.server.operations.writer import standard_error
from retainer.server.process.workers import LEAVE, LEAVE_SECONDS, SharedFlag

if TYPE_CHECKING:
    from retainer.server.operations.metrics import Board

HEADER_SECONDS = 10
LARGEST_HEAD = 64 * 1024
BACKLOG = 2048  # connections that wait until a worker takes them

# Granian's messages go to standard error, as the log does; standard output has only the result of the command.
STDERR = {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "formatter": "generic"}
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"generic": {"format": "[%(levelname)s] %(message)s"}},
    "handlers": {"console": STDERR},
    "loggers": {"_granian": {"handlers": ["console"], "level": "ERROR", "propagate": False}},
}


def work(
    listener: socket.socket,
    private: Mapping[str, socket.socket],
    is_stopping: SharedFlag,
    board: "Board | None",
    place: int,
    ready: Callable[[], None],
) -> None:
    """Answer requests until SIGTERM; those in flight are finished. Settings are read anew; the rest is the server's.

    `private` are the sockets for pages beside the API, by the addresses that the settings name.
    """
    app = App(configuration.load(), standard_error(), is_stopping, board, place)
    with ExitStack() as chores:
        app.housekeeping.start()
        chores.callback(app.housekeeping.stop)
        if app.settings.monitor:
            chores.callback(start_monitor(app))
        if app.settings.backup_dir is not None and app.settings.database_path is not None:
            chores.callback(start_backups(app, app.settings.database_path, app.settings.backup_dir))
        guard = ConnectionGuard(app.settings, app.log.failure)
        if sys.platform == "linux":
            guard.start()
            chores.callback(guard.stop)
        spare = SpareThread(listener, app.running)
        spare.start()
        chores.callback(spare.stop)
        for address, sock in private.items():
            sock.setblocking(False)  # noqa: FBT003  # another process may have taken the connection that woke this one
            OperationsServer(sock, Operations(app.pages(address))).start()
        gc.freeze()  # objects made so far live as long as the process: no collection need visit them
        gc.set_threshold(20_000, 20, 50)
        heed_leave(app, guard)
        ready()
        http_server(app.settings.threads).run(app, listener)


class HttpServer(MPServer):
    """A worker of Granian without its main process, whose private names are why the version is pinned.

    With that each worker would listen by itself, so that connections which wait are lost with it, and workers would be
    replaced after some seconds instead of when the next one is ready.
    """

    def run(self, app: App, listener: socket.socket) -> None:
        """Answer requests until SIGTERM; those in flight are finished."""
        listener.setblocking(False)  # noqa: FBT003
        self._shd: Any = SocketHolder(listener.fileno(), False, BACKLOG)  # type: ignore[call-arg]  # noqa: FBT003
        self._sso = None
        process = self._spawn_worker(0, self._spawn_wsgi_worker, lambda: app).inner
        process.run()  # in this process: it is not started


def http_server(running: int) -> HttpServer:
    """Return the HTTP server for so many requests at once."""
    return HttpServer(
        "",
        interface=Interfaces.WSGI,
        runtime_mode=RuntimeModes.mt,
        blocking_threads=threads(running),
        blocking_threads_idle_timeout=THREAD_SECONDS,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_SECONDS * 1000, max_buffer_size=LARGEST_HEAD),
        backpressure=_most_connections(),
        websockets=False,
        log_level=LogLevels.error,
        log_dictconfig=LOGGING,
    )


def heed_leave(app: App, guard: ConnectionGuard) -> None:
    """On the signal LEAVE, leave requests to other workers, and then end."""

    def leave() -> None:
        if sys.platform == "linux":
            guard.leave(LEAVE_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    def on_leave(*_: object) -> None:
        app.is_leaving = True
        threading.Thread(target=leave, name="leave", daemon=True).start()

    signal.signal(LEAVE, on_leave)


def start_monitor(app: App) -> Callable[[], None]:
    """Check the sites beside the requests; return what stops that, and finishes running checks."""
    from retainer.sites.monitor.loop import Monitor  # noqa: PLC0415  # loaded only where sites are checked

    monitor = Monitor(app.store, app.settings.monitor_allow, app.log.report)
    monitor.start()
    return monitor.stop


def start_backups(app: App, database: Path, folder: Path) -> Callable[[], None]:
    """Back up the embedded database beside the requests, by the schedule of the settings; return what stops that."""
    from retainer.backup.schedule import Schedule  # noqa: PLC0415  # loaded only where backups are made

    every = timedelta(seconds=int(app.settings.backup_every * 3600))
    schedule = Schedule(database, folder, every, app.settings.backup_keep, app.log)
    schedule.start()
    return schedule.stop


def _most_connections() -> int:
    """Raise a low limit of open files; return how many connections that allows: half, the rest is for the database."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY  # a negative number
    files = 2 * MOST_CONNECTIONS if hard_limit == unlimited else min(hard_limit, 2 * MOST_CONNECTIONS)
    if soft_limit != unlimited and soft_limit < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard_limit))
    return min(MOST_CONNECTIONS, files // 2)
