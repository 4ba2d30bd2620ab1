"""The HTTP server: Granian in front of the application."""

import gc
import resource
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels

from retainer import settings as configuration
from retainer.app import App
from retainer.server.connections import MOST_CONNECTIONS, ConnectionGuard
from retainer.server.slots import threads
from retainer.settings import Settings, SettingsError
from retainer.store.engines import connect

HEADER_SECONDS = 10
LARGEST_HEAD = 64 * 1024
DRAIN_SECONDS = 15
MOST_DEATHS = 10  # of workers in DEATHS_SECONDS, before the server ends; PAUSE_SECONDS lie between two
DEATHS_SECONDS = 60
PAUSE_SECONDS = 1

# Granian's messages go to standard error, as the log does; standard output has only the result of the command.
STDERR = {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "formatter": "generic"}
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"generic": {"format": "[%(levelname)s] %(message)s"}},
    "handlers": {"console": STDERR},
    "loggers": {"_granian": {"handlers": ["console"], "level": "ERROR", "propagate": False}},
}


def serve(host: str, port: int, *, settings: Settings, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; requests in flight are finished. `ready` is called once requests are answered.

    Raises SettingsError when the port or the database is served by another process, and for backups of PostgreSQL.
    """
    if settings.backup_dir is not None and settings.database_path is None:
        advice = (
            "Schedule pg_dump instead (retainer backup FILE prints the command), and leave RETAINER_BACKUP_DIR out."
        )
        raise SettingsError(f"RETAINER_BACKUP_DIR is for the embedded database. {advice}")
    with connect(settings.database).serve_alone():
        _claim(host, port)
        server = Granian(
            "retainer.server.serving:application",
            factory=True,
            interface=Interfaces.WSGI,
            address=host,
            port=port,
            workers=1,
            blocking_threads=threads(settings.threads),
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(header_read_timeout=HEADER_SECONDS * 1000, max_buffer_size=LARGEST_HEAD),
            backlog=2048,
            backpressure=_most_connections(),
            websockets=False,
            log_level=LogLevels.error,
            log_dictconfig=LOGGING,
            respawn_failed_workers=True,
            workers_kill_timeout=DRAIN_SECONDS,
        )
        server.respawned_wrks = Deaths()
        server.on_startup(threading.Thread(target=_tell, args=(host, port, ready), daemon=True).start)
        server.serve()


class Deaths(dict[int, float]):
    """When workers were replaced, in place of Granian's dict: Granian ends if one dies twice within 5.5 seconds.

    Here that takes ten deaths in a minute, as of a worker that cannot start, and replacements are a second apart.
    """

    def __init__(self) -> None:
        super().__init__()
        self._times: deque[float] = deque(maxlen=MOST_DEATHS)

    def __setitem__(self, worker: int, at: float) -> None:
        if self._times and at - self._times[-1] < PAUSE_SECONDS:
            time.sleep(PAUSE_SECONDS)
        self._times.append(at)

    def get(self, worker: int, default: Any = None) -> Any:  # noqa: ARG002  # there is one worker
        """Return the time of the last death if there were too many in a minute, so that Granian ends."""
        last = self._times[-1] if self._times else 0.0
        return last if len(self._times) == MOST_DEATHS and last - self._times[0] < DEATHS_SECONDS else default


def application() -> App:
    """Return the application of a serving process; its threads end with the process."""
    app = App(configuration.load(), sys.stderr.buffer)
    app.housekeeping.start()
    if app.settings.monitor:
        start_monitor(app)
    if app.settings.backup_dir is not None and app.settings.database_path is not None:
        start_backups(app, app.settings.database_path, app.settings.backup_dir)
    if sys.platform == "linux":
        guard = ConnectionGuard(app.settings, app.log.failure)
        guard.start()
        Finalize(None, guard.stop, exitpriority=12)
    gc.freeze()  # objects made so far live as long as the process: no collection need visit them
    gc.set_threshold(20_000, 20, 50)
    Finalize(None, app.housekeeping.stop, exitpriority=10)
    return app


def start_monitor(app: App) -> None:
    """Check the sites beside the requests; running checks are finished before the process ends."""
    from retainer.sites.monitor.loop import Monitor  # noqa: PLC0415  # loaded only where sites are checked

    monitor = Monitor(app.store, app.settings.monitor_allow, app.log.failure)
    monitor.start()
    Finalize(None, monitor.stop, exitpriority=11)


def start_backups(app: App, database: Path, folder: Path) -> None:
    """Back up the embedded database beside the requests, by the schedule of the settings."""
    from retainer.backup.schedule import Schedule  # noqa: PLC0415  # loaded only where backups are made

    every = timedelta(seconds=int(app.settings.backup_every * 3600))
    schedule = Schedule(database, folder, every, app.settings.backup_keep, app.log)
    schedule.start()
    Finalize(None, schedule.stop, exitpriority=11)


def _most_connections() -> int:
    """Raise a low limit of open files; return how many connections that allows: half, the rest is for the database."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY  # a negative number
    files = 2 * MOST_CONNECTIONS if hard_limit == unlimited else min(hard_limit, 2 * MOST_CONNECTIONS)
    if soft_limit != unlimited and soft_limit < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard_limit))
    return min(MOST_CONNECTIONS, files // 2)


def _claim(host: str, port: int) -> None:
    """Raise SettingsError unless the port is free: Granian would fail later, with a stack trace."""
    with _socket(host) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SettingsError(
                f"Port {port} of {host} cannot be had: {error.strerror}. Choose another: --port."
            ) from None


def _tell(host: str, port: int, ready: Callable[[], None]) -> None:
    """Call `ready` as soon as the port answers."""
    for _ in range(500):
        with _socket(host) as probe:
            if probe.connect_ex((host, port)) == 0:
                ready()
                return
        time.sleep(0.02)


def _socket(host: str) -> socket.socket:
    return socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
