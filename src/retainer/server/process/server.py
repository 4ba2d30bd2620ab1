"""The server: sockets and shared memory, which the main process creates before its workers."""

import os
import socket
from collections.abc import Callable
from ctypes import c_bool
from multiprocessing.sharedctypes import RawValue
from typing import TYPE_CHECKING

from retainer import settings as configuration
from retainer.app import ROUTES
from retainer.server.process import worker
from retainer.settings import NOWHERE, PUBLIC, Settings, SettingsError

if TYPE_CHECKING:
    from retainer.server.monitoring.metrics import SharedMetrics

FIRST_DESCRIPTOR = 3

LOCKED_FIELDS = ("database", "health", "metrics")
"""Settings of all workers; a change needs a restart."""


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


class Server:
    """The listening sockets and the metrics of all workers.

    Connections wait in the sockets, which belong to no worker, while workers are replaced.
    """

    def __init__(self, settings: Settings, workers: int, listener: socket.socket, ready: Callable[[], None]) -> None:
        self.settings, self.workers, self.listener, self._ready = settings, workers, listener, ready
        addresses = {settings.health, settings.metrics} - {PUBLIC, NOWHERE}
        self.private = {address: listen(*configuration.host_and_port(address)) for address in sorted(addresses)}
        self.is_stopping = RawValue(c_bool, False)  # noqa: FBT003  # in memory that workers share with this process
        slots = workers + 1  # workers are renewed one by one
        self.metrics = None if settings.metrics == NOWHERE else shared_metrics(slots)

    def work(self, worker_index: int, ready: Callable[[], None]) -> None:
        worker.work(self.listener, self.private, lambda: self.is_stopping.value, self.metrics, worker_index, ready)

    def started(self) -> None:
        self._ready()
        notify("READY=1")

    def reload(self) -> int:
        """Read the settings again, for new workers; return the new stop delay in seconds.

        Raises SettingsError for invalid settings, and for changes that need a restart.
        """
        settings = configuration.load()
        check(settings, self.workers)
        changed = [name for name in LOCKED_FIELDS if getattr(settings, name) != getattr(self.settings, name)]
        if changed:
            raise SettingsError(f"Restart the server to change {' and '.join(changed)}.")
        return settings.stop_delay

    def ended(self, worker_index: int, *, died: bool) -> None:
        if self.metrics:
            self.metrics.slots[worker_index].clear()
            self.metrics.slots[worker_index]["worker_deaths"] += died

    def stop(self) -> None:
        notify("STOPPING=1")
        for sock in (self.listener, *self.private.values()):
            sock.close()


def check(settings: Settings, workers: int) -> None:
    """Raise SettingsError for settings that contradict each other."""
    is_embedded = settings.database_path is not None
    if settings.backup_dir is not None and not is_embedded:
        advice = "Unset it, and schedule pg_dump instead: retainer backup FILE prints the command."
        raise SettingsError(f"RETAINER_BACKUP_DIR works only with the embedded database. {advice}")
    if workers > 1 and is_embedded:
        advice = "Raise --threads instead, or set RETAINER_DATABASE_URL (PostgreSQL) and RETAINER_VALKEY_URL."
        raise SettingsError(f"The embedded database allows only one worker. {advice}")
    if workers > 1 and not settings.valkey_url:
        advice = "Set RETAINER_VALKEY_URL, or raise --threads instead."
        raise SettingsError(f"Several workers need Valkey, where they count requests together. {advice}")


def shared_metrics(slots: int) -> "SharedMetrics":
    from retainer.server.monitoring.metrics import SharedMetrics  # noqa: PLC0415  # loaded only with metrics

    return SharedMetrics(ROUTES, slots)


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
