"""Metrics: counted in memory that the processes of a server share, and the page for Prometheus (decision 11)."""

import itertools
import mmap
import resource
import shutil
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as MetricFamily
from prometheus_client.registry import Collector

from retainer import __version__
from retainer.errors import STATUS
from retainer.identity.sign_in.throttle import Throttle
from retainer.jobs import loop as jobs
from retainer.kernel.http import Response
from retainer.kernel.limits import SlidingWindow
from retainer.kernel.routes import Routes
from retainer.server.monitoring.log import Log
from retainer.settings import Settings
from retainer.store.engines import Engine
from retainer.store.engines.base import Unavailable
from retainer.store.transaction import Transaction
from retainer.store.tx import Store

PREFIX = "retainer_"
OTHER = "other"
"""The label of a status or operation without its own cells."""
STATUSES = {status: str(status) for status in sorted({200, 201, 204, 302, 303, 304, *STATUS.values()})}
NO_OPERATION = "none"
"""The operation of requests that were refused before one was found."""
BOUNDS = ("0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0")
"""The upper bounds of the buckets in seconds, as Prometheus writes them."""
MICROSECONDS = [int(Decimal(bound) * 1_000_000) for bound in BOUNDS]
WIDTH = len(BOUNDS) + 2  # cells of an operation's status: each bucket, the one above them, and the sum of microseconds
CELL_BYTES = 8
LATE = {
    "monitor": "site has waited for its check",
    "webhook": "webhook has waited to be sent",
    "job": "job has waited for its next step",
}
Lateness = Callable[[Transaction], timedelta]
"""Returns how long the most overdue work of a kind has waited."""
STATM, DESCRIPTORS = Path("/proc/self/statm"), Path("/proc/self/fd")


class Storage:
    """Measures the disk of the data folder and the lateness of the backup schedule, if there is one.

    `database` is the file of the embedded database. Without any backup, one is late from the start of the server.
    """

    def __init__(self, settings: Settings, database: Path) -> None:
        self.settings, self.database = settings, database
        self._started = datetime.now(UTC)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        disk = shutil.disk_usage(self.database.parent)
        yield GaugeMetricFamily("retainer_disk_size_bytes", "Size of the disk of the data folder.", disk.total)
        yield GaugeMetricFamily("retainer_disk_free_bytes", "What is free of that disk.", disk.free)
        if self.settings.backup_dir:
            yield from self._backups(self.settings.backup_dir)

    def _backups(self, folder: Path) -> Iterator[GaugeMetricFamily]:
        from retainer.backup.schedule import backups_until  # noqa: PLC0415  # loaded only if backups are made

        now = datetime.now(UTC)
        made = max(backups_until(now, self.database, folder), default=None)
        due = made + timedelta(seconds=int(self.settings.backup_every * 3600)) if made else self._started
        late = max(now - due, timedelta(0)).total_seconds()
        yield GaugeMetricFamily("retainer_backup_lateness_seconds", "How long the next backup has been due.", late)
        if made:
            age = (now - made).total_seconds()
            yield GaugeMetricFamily("retainer_backup_age_seconds", "Time since the newest backup.", age)


class Metric(NamedTuple):
    """A metric of each process: how to combine those of all processes, and its help text."""

    combine: Callable[[Iterable[int]], int]
    description: str
    is_counter: bool = False


LIMITER = "limiter_shared"
"""The metric that only a server with Valkey has."""
METRICS = {
    "workers": Metric(sum, "Worker processes."),
    "request_slots": Metric(sum, "Requests that can run at the same time."),
    "requests_running": Metric(sum, "Requests that are running."),
    "requests_waiting": Metric(sum, "Requests that wait for a slot."),
    "database_connections": Metric(sum, "Open connections to the database."),
    "database_connections_idle": Metric(sum, "Idle connections to the database."),
    "database_outage": Metric(max, "1 while the database is not available."),
    "database_errors": Metric(sum, "Requests and background tasks that failed due to the database.", is_counter=True),
    LIMITER: Metric(min, "1 while all servers count requests together, in Valkey."),
    "sign_in_failures": Metric(sum, "Attempts to sign in that were refused.", is_counter=True),
    "memory_bytes": Metric(sum, "Resident memory of the workers."),
    "open_files": Metric(max, "Open files of the worker that has most, its connections among them."),
    "open_files_limit": Metric(min, "Files that a worker may open."),
    "start_time_seconds": Metric(min, "Unix time at which the oldest worker started."),
    "log_lines_dropped": Metric(sum, "Log lines dropped because standard error was not read.", is_counter=True),
    "worker_deaths": Metric(sum, "Worker processes that ended without being told to.", is_counter=True),
}
CELLS = {name: cell for cell, name in enumerate(METRICS)}
GAUGES = [cell for name, cell in CELLS.items() if not METRICS[name].is_counter]


class SharedMetrics:
    """Memory that all processes share, with a slot for each; only its process writes to it.

    Counters outlast a process: the next one in its slot continues them.
    """

    def __init__(self, routes: Routes, slots: int) -> None:
        operations = [*sorted({operation.id for operation in routes.operations}), NO_OPERATION, OTHER]
        labels = itertools.product(operations, [*STATUSES.values(), OTHER])
        self.rows = {label: len(METRICS) + WIDTH * number for number, label in enumerate(labels)}
        size = len(METRICS) + WIDTH * len(self.rows)
        cells = memoryview(mmap.mmap(-1, size * slots * CELL_BYTES)).cast("Q")
        self.slots = [Slot(cells[size * number : size * (number + 1)], self.rows) for number in range(slots)]


class Slot:
    """The metrics of one process."""

    def __init__(self, cells: memoryview, rows: dict[tuple[str, str], int]) -> None:
        self.cells, self._rows = cells, rows
        self._lock = threading.Lock()  # held briefly, by the thread whose request is counted

    def __getitem__(self, name: str) -> int:
        value: int = self.cells[CELLS[name]]
        return value

    def __setitem__(self, name: str, value: int) -> None:
        self.cells[CELLS[name]] = value

    def count(self, operation: str | None, status: int, microseconds: int) -> None:
        """Count a request that has ended. Never raises."""
        label = STATUSES.get(status, OTHER)
        row = self._rows.get((operation or NO_OPERATION, label)) or self._rows[OTHER, label]
        bucket = row + bisect_left(MICROSECONDS, microseconds)
        with self._lock:
            self.cells[bucket] += 1
            self.cells[row + WIDTH - 1] += microseconds

    def clear(self) -> None:
        for cell in GAUGES:
            self.cells[cell] = 0


def noting(
    slot: Slot,
    turns: Callable[[], tuple[int, int, int]],
    engine: Engine,
    limiter: SlidingWindow,
    throttle: Throttle,
    log: Log,
) -> Callable[[], None]:
    """Return the function that writes the state of a worker to its slot; requests are counted when they end."""
    errors_before, dropped_before = slot["database_errors"], slot["log_lines_dropped"]
    failures_before, started = slot["sign_in_failures"], int(time.time())

    def note() -> None:
        slot["workers"] = 1
        slot["request_slots"], slot["requests_running"], slot["requests_waiting"] = turns()
        slot["database_connections"], slot["database_connections_idle"] = engine.connections
        slot["database_outage"] = int(log.outages.is_on)
        slot["database_errors"] = errors_before + log.outages.errors
        slot["log_lines_dropped"] = dropped_before + log.writer.dropped
        slot[LIMITER] = int(limiter.is_shared)
        slot["sign_in_failures"] = failures_before + throttle.failed
        slot["memory_bytes"] = int(STATM.read_text(encoding="ascii").split()[1]) * resource.getpagesize()
        slot["open_files"] = sum(1 for _ in DESCRIPTORS.iterdir())
        slot["open_files_limit"] = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        slot["start_time_seconds"] = started

    note()
    return note


class MetricsPage(Collector):
    """The page /metrics, with the metrics of all processes."""

    def __init__(
        self,
        metrics: SharedMetrics,
        store: Store,
        storage: Storage | None = None,
        lateness: Mapping[str, Lateness] = MappingProxyType({}),
        *,
        has_valkey: bool = False,
    ) -> None:
        self.metrics, self.store, self.storage, self.lateness = metrics, store, storage, lateness
        self._names = [name for name in METRICS if has_valkey or name != LIMITER]

    def answer(self) -> Response:
        return Response(200, [("content-type", CONTENT_TYPE_LATEST)], generate_latest(self))

    def collect(self) -> Iterator[MetricFamily]:
        build = GaugeMetricFamily(f"{PREFIX}build_info", "The version of Retainer.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        running = [slot for slot in self.metrics.slots if slot["workers"]]
        for name in self._names:
            metric = METRICS[name]
            if metric.is_counter:
                total = metric.combine(slot[name] for slot in self.metrics.slots)
                yield CounterMetricFamily(PREFIX + name, metric.description, total)
            elif running:
                value = metric.combine(slot[name] for slot in running)
                yield GaugeMetricFamily(PREFIX + name, metric.description, value)
        yield from self._lateness()
        if self.storage:
            yield from self.storage.collect()
        yield self._requests()

    def _requests(self) -> MetricFamily:
        description = "Duration of requests by operation and status."
        name = f"{PREFIX}request_duration_seconds"
        histogram = HistogramMetricFamily(name, description, labels=["operation", "status"])
        for (operation, status), start in self.metrics.rows.items():
            *counts, microseconds = map(
                sum, zip(*(slot.cells[start : start + WIDTH] for slot in self.metrics.slots), strict=True)
            )
            if any(counts):
                buckets = list(zip([*BOUNDS, "+Inf"], itertools.accumulate(counts), strict=True))
                histogram.add_metric([operation, status], buckets, microseconds / 1_000_000)
        return histogram

    def _lateness(self) -> Iterator[MetricFamily]:
        try:
            with self.store.unscoped() as tx:
                late = {name: measure(tx).total_seconds() for name, measure in self.lateness.items()}
                open_jobs = jobs.open_count(tx)
        except Unavailable:
            return
        yield GaugeMetricFamily(f"{PREFIX}jobs_open", "Jobs that wait or run, without the daily ones.", open_jobs)
        for name, seconds in late.items():
            description = f"How long the most overdue {LATE[name]}."
            yield GaugeMetricFamily(f"{PREFIX}{name}_lateness_seconds", description, seconds)
