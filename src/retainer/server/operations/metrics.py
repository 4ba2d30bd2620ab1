"""Metrics: figures that all processes of a server keep in shared memory, and the page that Prometheus reads."""

import itertools
import mmap
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from retainer import __version__
from retainer.errors import STATUS
from retainer.kernel.http import Response
from retainer.kernel.limits import Limiter
from retainer.kernel.resource import Routes
from retainer.server.http.slots import RunningSlots
from retainer.server.operations.log import Log
from retainer.sites.monitor.schedule import lateness
from retainer.store.engines import Engine, Unavailable
from retainer.store.tx import Store

PREFIX = "retainer_"
OTHER = "other"
"""What is counted of a status or an operation that has no cells of its own."""
STATUSES = {status: str(status) for status in sorted({200, 201, 204, 302, 303, 304, *STATUS.values()})}
NO_OPERATION = "none"
"""The operation of requests that were answered before one was found: refused callers, unknown paths."""
BOUNDS = ("0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0")
"""The upper bounds of the buckets in seconds, as Prometheus has them."""
MICROSECONDS = [int(Decimal(bound) * 1_000_000) for bound in BOUNDS]
WIDTH = len(BOUNDS) + 2  # cells of an operation's status: each bucket, what is above them, and the sum of microseconds
CELL_BYTES = 8


class Figure(NamedTuple):
    """A figure that each process keeps: how those of all are put together, and what it says."""

    combine: Callable[[Iterable[int]], int]
    description: str
    is_counter: bool = False


FIGURES = {
    "workers": Figure(sum, "Processes that answer requests."),
    "request_slots": Figure(sum, "Requests that can run at once."),
    "requests_running": Figure(sum, "Requests that run."),
    "requests_waiting": Figure(sum, "Requests that wait until another has ended."),
    "database_connections": Figure(sum, "Open connections to the database."),
    "database_connections_idle": Figure(sum, "Open connections to the database that nobody uses."),
    "database_outage": Figure(max, "1 from an error of the database until it answers again."),
    "database_errors": Figure(sum, "Requests and chores that failed because of the database.", is_counter=True),
    "limiter_shared": Figure(min, "1 while requests are counted together with all servers, in Valkey."),
    "log_lines_dropped": Figure(
        sum, "Lines of the log that were dropped because nobody read standard error.", is_counter=True
    ),
    "worker_deaths": Figure(sum, "Processes that ended without being asked to.", is_counter=True),
}
PLACES = {name: place for place, name in enumerate(FIGURES)}
GAUGES = [place for name, place in PLACES.items() if not FIGURES[name].is_counter]


class Board:
    """Memory that a server's processes share: a part for each of them, which alone writes there.

    Counters outlast the process that kept them: the next one in its part goes on counting.
    """

    def __init__(self, routes: Routes, parts: int) -> None:
        operations = [*sorted({operation.id for operation in routes.operations}), NO_OPERATION, OTHER]
        labels = itertools.product(operations, [*STATUSES.values(), OTHER])
        self.rows = {label: len(FIGURES) + WIDTH * number for number, label in enumerate(labels)}
        size = len(FIGURES) + WIDTH * len(self.rows)
        cells = memoryview(mmap.mmap(-1, size * parts * CELL_BYTES)).cast("Q")
        self.parts = [Part(cells[size * number : size * (number + 1)], self.rows) for number in range(parts)]


class Part:
    """What one process has counted."""

    def __init__(self, cells: memoryview, rows: dict[tuple[str, str], int]) -> None:
        self._cells, self._rows = cells, rows
        self._lock = threading.Lock()  # held for a moment, by the thread whose request is counted

    def __getitem__(self, name: str) -> int:
        figure: int = self._cells[PLACES[name]]
        return figure

    def __setitem__(self, name: str, figure: int) -> None:
        self._cells[PLACES[name]] = figure

    def count(self, operation: str | None, status: int, microseconds: int) -> None:
        """Count a request that has ended, whatever its operation and status are."""
        label = STATUSES.get(status, OTHER)
        row = self._rows.get((operation or NO_OPERATION, label)) or self._rows[OTHER, label]
        bucket = row + bisect_left(MICROSECONDS, microseconds)
        with self._lock:
            self._cells[bucket] += 1
            self._cells[row + WIDTH - 1] += microseconds

    def row(self, start: int) -> list[int]:
        """Return the cells of an operation's status."""
        return self._cells[start : start + WIDTH].tolist()

    def leave(self) -> None:
        """Forget what was so of a process that has ended; what it counted stays."""
        for place in GAUGES:
            self._cells[place] = 0


class State:
    """How things are in a worker, apart from its requests, which are counted when they end."""

    def __init__(self, part: Part, running: RunningSlots, engine: Engine, limiter: Limiter, log: Log) -> None:
        self.part, self.running, self.engine, self.limiter, self.log = part, running, engine, limiter, log
        self._errors_before, self._dropped_before = part["database_errors"], part["log_lines_dropped"]

    def note(self) -> None:
        """Note how things are now."""
        self.part["workers"] = 1
        self.part["request_slots"] = self.running.count
        self.part["requests_running"] = self.running.count - self.running.free
        self.part["requests_waiting"] = self.running.waiting
        self.part["database_connections"], self.part["database_connections_idle"] = self.engine.connections
        self.part["database_outage"] = int(self.log.outages.is_on)
        self.part["database_errors"] = self._errors_before + self.log.outages.errors
        self.part["log_lines_dropped"] = self._dropped_before + self.log.dropped
        self.part["limiter_shared"] = int(self.limiter.is_shared)


class MetricsPage(Collector):
    """The page /metrics, of all processes together, whichever of them answers it."""

    def __init__(self, board: Board, store: Store) -> None:
        self.board, self.store = board, store
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def answer(self) -> Response:
        """Return the figures in the text format of Prometheus."""
        return Response(200, [("content-type", CONTENT_TYPE_LATEST)], generate_latest(self._registry))

    def describe(self) -> Iterator[Metric]:
        """Return nothing: what is collected has distinct names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        build = GaugeMetricFamily(f"{PREFIX}build_info", "The version that runs.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        serving = [part for part in self.board.parts if part["workers"]]
        for name, figure in FIGURES.items():
            if figure.is_counter:
                values = [part[name] for part in self.board.parts]
                yield CounterMetricFamily(PREFIX + name, figure.description, figure.combine(values))
            elif serving:
                values = [part[name] for part in serving]
                yield GaugeMetricFamily(PREFIX + name, figure.description, figure.combine(values))
        yield from self._monitor()
        yield self._requests()

    def _requests(self) -> Metric:
        description = "Requests by operation and status, and how long they took from their arrival."
        name = f"{PREFIX}request_duration_seconds"
        histogram = HistogramMetricFamily(name, description, labels=["operation", "status"])
        for (operation, status), start in self.board.rows.items():
            *counts, microseconds = map(sum, zip(*(part.row(start) for part in self.board.parts), strict=True))
            if any(counts):
                buckets = list(zip([*BOUNDS, "+Inf"], itertools.accumulate(counts), strict=True))
                histogram.add_metric([operation, status], buckets, microseconds / 1_000_000)
        return histogram

    def _monitor(self) -> Iterator[Metric]:
        try:
            with self.store.unscoped("the monitor checks the sites of all accounts") as tx:
                late = lateness(tx)
        except Unavailable:
            return
        description = "How long the site that has waited longest is due."
        yield GaugeMetricFamily(f"{PREFIX}monitor_lateness_seconds", description, late.total_seconds())
