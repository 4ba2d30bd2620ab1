"""The HTTP server: Granian in front of the application."""

import socket
import sys
from collections.abc import Callable
from multiprocessing.util import Finalize
from typing import Any

from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels

from retainer import settings as configuration
from retainer.app import App

HEADER_SECONDS = 10
LARGEST_HEAD = 64 * 1024
DRAIN_SECONDS = 30

# The server's own words go to standard error, beside the log; standard output belongs to the command's answer.
STDERR = {"class": "logging.StreamHandler", "stream": "ext://sys.stderr", "formatter": "generic"}
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"generic": {"format": "[%(levelname)s] %(message)s"}},
    "handlers": {"console": STDERR},
    "loggers": {"_granian": {"handlers": ["console"], "level": "ERROR", "propagate": False}},
}


def serve(host: str, port: int, *, threads: int, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; requests in flight are finished. `ready` is called once the port listens.

    Raises OSError when the port cannot be had.
    """
    _claim(host, port)
    server = Granian(
        "retainer.server.serving:application",
        factory=True,
        interface=Interfaces.WSGI,
        address=host,
        port=port,
        workers=1,
        blocking_threads=threads,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_SECONDS * 1000, max_buffer_size=LARGEST_HEAD),
        backlog=2048,
        websockets=False,
        log_level=LogLevels.error,
        log_dictconfig=LOGGING,
        respawn_failed_workers=True,
        workers_kill_timeout=DRAIN_SECONDS,
    )
    server.on_startup(ready)
    server.serve()


def application() -> App:
    """Make the application of a serving process; its chores end with the process."""
    app = App(configuration.load(), sys.stderr.buffer)
    app.housekeeping.start()
    Finalize(None, app.housekeeping.stop, exitpriority=10)
    return app


def _claim(host: str, port: int) -> None:
    """Find out whether the port is free while a person can still be told in a sentence."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
