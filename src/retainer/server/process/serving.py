"""Serving: what the main process makes before any worker starts, and does for all of them."""

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from retainer import settings as configuration
from retainer.app import ROUTES
from retainer.server.operations.log import Log
from retainer.server.process import systemd, worker
from retainer.server.process.workers import SharedFlag, Workers
from retainer.settings import NOWHERE, PUBLIC, Settings, SettingsError
from retainer.store.engines import connect

if TYPE_CHECKING:
    from retainer.server.operations.metrics import Board

FIXED = ("database", "health", "metrics")
"""The settings that are the same for all workers: another value takes a restart."""


class Server:
    """A server as its workers see it: the sockets on which it listens, and the memory that they share.

    Connections wait in the sockets, which belong to no worker, while workers come and go.
    """

    def __init__(self, settings: Settings, workers: int, listener: socket.socket, ready: Callable[[], None]) -> None:
        self.settings, self.workers, self.listener, self._ready = settings, workers, listener, ready
        places = {settings.health, settings.metrics} - {PUBLIC, NOWHERE}
        self.private = {place: listen(*configuration.host_and_port(place)) for place in sorted(places)}
        self.is_stopping = SharedFlag()
        self.board = None if settings.metrics == NOWHERE else new_board(workers + 1)  # one more while one is renewed

    def work(self, place: int, ready: Callable[[], None]) -> None:
        """Do the work of a worker, in its process, until SIGTERM; call `ready` when requests can be answered."""
        worker.work(self.listener, self.private, self.is_stopping, self.board, place, ready)

    def started(self) -> None:
        """Tell who started the server that requests are answered."""
        self._ready()
        systemd.notify("READY=1")

    def reload(self) -> int:
        """Read the settings again, for new workers; return the seconds of a stop's delay.

        Raises SettingsError for bad ones, and for those that take a restart.
        """
        settings = configuration.load()
        check(settings, self.workers)
        changed = [name for name in FIXED if getattr(settings, name) != getattr(self.settings, name)]
        if changed:
            raise SettingsError(f"Another value for {' and '.join(changed)} takes a restart.")
        return settings.stop_delay

    def ended(self, place: int, *, died: bool) -> None:
        """Let the metrics say that a worker has ended: as it was asked to, or by itself."""
        if self.board:
            self.board.parts[place].leave()
            self.board.parts[place]["worker_deaths"] += died

    def prepare_to_stop(self) -> None:
        """Let all workers say that the server is about to end."""
        self.is_stopping.set()

    def stop(self) -> None:
        """Take no more connections."""
        systemd.notify("STOPPING=1")
        for sock in (self.listener, *self.private.values()):
            sock.close()


def serve(*, host: str, port: int, workers: int, settings: Settings, log: Log, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT; requests in flight are finished. `ready` is called once requests are answered.

    Raises SettingsError when an address or the database is served by another process.
    """
    with connect(settings.database).serve_alone():
        server = Server(settings, workers, systemd.handed_over() or listen(host, port), ready)
        Workers(workers, server, log, settings.stop_delay).run()


def check(settings: Settings, workers: int) -> None:
    """Raise SettingsError for settings that do not go together."""
    is_embedded = settings.database_path is not None
    if settings.backup_dir is not None and not is_embedded:
        advice = (
            "Schedule pg_dump instead (retainer backup FILE prints the command), and leave RETAINER_BACKUP_DIR out."
        )
        raise SettingsError(f"RETAINER_BACKUP_DIR is for the embedded database. {advice}")
    if workers > 1 and is_embedded:
        advice = "Raise --threads instead, or name a PostgreSQL in RETAINER_DATABASE_URL and a Valkey in"
        raise SettingsError(f"The embedded database is served by one worker. {advice} RETAINER_VALKEY_URL.")
    if workers > 1 and not settings.valkey_url:
        advice = "Name a Valkey in RETAINER_VALKEY_URL, or raise --threads instead."
        raise SettingsError(f"Several workers count requests together, or each limit would be several. {advice}")


def new_board(parts: int) -> "Board":
    """Return memory for the metrics of so many processes."""
    from retainer.server.operations.metrics import Board  # noqa: PLC0415  # its library is loaded where it is used

    return Board(ROUTES, parts)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address. Raises SettingsError when that cannot be had."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(worker.BACKLOG)
    except OSError as error:
        sock.close()
        raise SettingsError(f"Port {port} of {host} cannot be had: {error.strerror}. Choose another.") from None
    return sock
