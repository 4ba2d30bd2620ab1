"""Databases of a running Citus cluster, whose ports RETAINER_TEST_CLUSTER names."""

import itertools
import os
import re
import socket
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Thread
from typing import Any, NamedTuple, Self

import psycopg
from testing.ports import free_port

from retainer.events.sender.schedule import AHEAD, DUE_SINCE, PENDING
from retainer.events.sender.schedule import DUE as DUE_WEBHOOKS
from retainer.identity.people.sessions import EXPIRED
from retainer.mail.sender.schedule import AHEAD as AHEAD_MAIL
from retainer.mail.sender.schedule import DUE as DUE_MAIL
from retainer.mail.sender.schedule import QUEUED
from retainer.schema import distribution
from retainer.schema.migrations import migrate
from retainer.server.monitoring.housekeeping import EVENTS, REQUESTS, SUMS
from retainer.server.monitoring.housekeeping import OLD as OLD_RESPONSES
from retainer.server.monitoring.housekeeping import OLDEST as OLDEST_RESPONSE
from retainer.sites.monitor.schedule import DUE as DUE_SITES
from retainer.sites.monitor.schedule import PUT_OFF_ACCOUNTS, STALE_ACCOUNTS
from retainer.sites.uptime import FAILING
from retainer.store.engines import connect
from retainer.store.engines.base import Values
from retainer.store.engines.postgresql import Postgresql
from retainer.store.statements import CompiledStatement, statements_of
from retainer.store.tx import Store
from retainer.traffic.recorder import ADD_TO_HOURS, ADD_TO_OPERATION_HOURS
from tests.databases import PostgresqlDatabases, name_of, open_agencies, open_both

USER = "retainer_test"
"""The owner of the databases, without special rights."""
SHARDS = 4
"""Of each table: two on each worker."""
RETIRE = (
    "UPDATE users SET email = id || email, email_folded = id || email_folded WHERE email ~ '^[am]'",
    "UPDATE webhooks SET status = 'paused'",
    "UPDATE sites SET monitoring_enabled = false",
)

BACKGROUND = (
    *(DUE_SITES.due, STALE_ACCOUNTS, PUT_OFF_ACCOUNTS, DUE_WEBHOOKS.due, DUE_SINCE, AHEAD, PENDING, FAILING),
    *(DUE_MAIL.due, AHEAD_MAIL, QUEUED),
    *(OLD_RESPONSES, OLDEST_RESPONSE, *EXPIRED),
    *(each.accounts for each in (*EVENTS, *REQUESTS, *SUMS)),
    *(ADD_TO_HOURS, ADD_TO_OPERATION_HOURS),
)
"""What processes and commands do for all accounts together, beside requests: these may need all shards."""
OF_ALL = {statements_of(Postgresql.dialect, Postgresql.marker).of_all(each).text for each in BACKGROUND}


WAYS = ("on the coordinator alone", "on one shard", "on several shards", "through the coordinator", "refused")
"""How a cluster runs a statement, the best first."""


def summarize(tables: Sequence[dict[str, str]]) -> list[str]:
    """Return the number of statements of each way, and the statements that need more than one shard."""
    worst: dict[str, str] = {}
    for text, way in (item for table in tables for item in table.items()):
        worst[text] = max(way, worst.get(text, way), key=WAYS.index)
    counts = Counter(worst.values())
    others = [f"{way}: {' '.join(text.split())[:180]}" for text, way in sorted(worst.items()) if way in WAYS[2:]]
    return [f"{counts[way]} statements {way}" for way in WAYS] + others


class Plan(NamedTuple):
    """How a cluster runs a statement."""

    shards: int
    """Number of shards that it reads or writes; 0 if the coordinator has all rows."""
    trouble: str = ""
    """Why it is refused, or the plan if it brings rows of a shard to the coordinator first."""
    is_refused: bool = False

    @property
    def way(self) -> str:
        """Return one of WAYS."""
        if self.trouble:
            return WAYS[4 if self.is_refused else 3]
        return WAYS[min(self.shards, 2)]


class Plans:
    """The statements that ran on a cluster, each once for each set of values that are null, with their plans."""

    def __init__(self) -> None:
        self.found: dict[str, Plan] = {}
        self._waiting: list[tuple[str, Values]] = []
        self._known: set[tuple[str, tuple[bool, ...]]] = set()
        self.statements: Any = statements_of(Postgresql.dialect, Postgresql.marker)
        self._texts: set[str] = set()
        of_account, of_all, run = self.statements.of_account, self.statements.of_all, Postgresql.run

        def noted(compiled: CompiledStatement) -> CompiledStatement:
            self._texts.add(compiled.text)
            return compiled

        def run_noted(engine: Postgresql, connection: Any, text: str, values: Values) -> Any:
            self.note(text, values)
            return run(engine, connection, text, values)

        vars(self.statements).update(
            of_account=lambda statement: noted(of_account(statement)), of_all=lambda statement: noted(of_all(statement))
        )
        Postgresql.run = run_noted  # type: ignore[method-assign, assignment]

    def note(self, text: str, values: Values) -> None:
        """Note a statement of the product, once for each set of values that are null."""
        key = text, tuple(value is None for value in values)
        if key not in self._known and (text in self._texts or BULK in text):
            self._known.add(key)
            self._waiting.append((text, values))

    def check(self, url: str) -> None:
        """Fail if a statement that ran since the last check is refused, or one of an account needs several shards."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        engine, wrong = connect(url), []
        connection = engine.connection()
        for text, values in waiting:
            plan = read_plan(connection, text, values)
            self.found[text] = max(plan, self.found.get(text, plan))
            if text not in OF_ALL or plan.is_refused:
                wrong += [(plan, text, values)] if plan.trouble or plan.shards > 1 else []
        engine.give_back(connection)
        engine.close()
        assert not wrong, "\n\n".join(f"{plan}\n{text}\n{values}" for plan, text, values in wrong)

    def table(self) -> dict[str, str]:
        """Return how the cluster runs each statement: one of WAYS."""
        return {text: plan.way for text, plan in self.found.items()}


BULK = " FROM json_populate_recordset("
"""In the statements that insert many rows."""


def read_plan(connection: Any, text: str, values: Values) -> Plan:
    """Return the plan of a statement, which the cluster makes with its values."""
    try:
        rows = connection.execute(f"EXPLAIN (COSTS OFF) {text}", values).fetchall()
    except psycopg.Error as error:
        return Plan(0, str(error), is_refused=True)
    plan = "\n".join(line for (line,) in rows)
    through = "Distributed Subplan" in plan or ("pull to coordinator" in plan and "Citus Adaptive" in plan)
    shards = sum(map(int, re.findall(r"Task Count: (\d+)", plan))) or int("INSERT/SELECT" in plan)
    return Plan(shards, plan if through else "")


class LosableWorker:
    """A relay to a worker: without it, the coordinator cannot reach the worker. It begins as reachable."""

    def __init__(self, host: str, port: int) -> None:
        self.target = host, port
        self.port = free_port()
        self._server: socket.socket | None = None
        self._sockets: set[socket.socket] = set()

    def __enter__(self) -> Self:
        self.come_back()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_away()

    def come_back(self) -> None:
        """Take connections again."""
        if self._server is None:
            self._server = socket.create_server(("127.0.0.1", self.port))
            Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def go_away(self) -> None:
        """Refuse connections, and end all that are open."""
        server, self._server = self._server, None
        for each in [*filter(None, [server]), *self._sockets]:
            with suppress(OSError):  # the other side may have closed it
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._sockets.clear()

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):  # it went away
            while True:
                near, _ = server.accept()
                far = socket.create_connection(self.target)
                self._sockets |= {near, far}
                for source, sink in ((near, far), (far, near)):
                    Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class CitusDatabases(PostgresqlDatabases):
    """Databases of a cluster. Each is on all nodes; a copy of one is a copy on each node.

    The connection that opens agencies in the shared one stays open: each new one is a process on every node.
    """

    def __init__(self, address: str) -> None:
        self.host, _, ports = address.rpartition(":")
        self.coordinator, *self.workers = map(int, ports.split(","))
        self.names = (f"citus_{os.getpid()}_{number}" for number in itertools.count(1))
        self.sessions, self.opened = {}, []
        self.made: set[str] = set()
        with self.admin() as admin:
            admin.execute("SELECT pg_advisory_lock(2)")  # one process creates the role
            if admin.execute("SELECT FROM pg_roles WHERE rolname = %s", [USER]).fetchone() is None:
                self.on_each_node(f"CREATE ROLE {USER} LOGIN")
        self.prototype = self.create()
        self.distribute(self.prototype)
        self.agencies = self.first_agencies = open_agencies(self.prototype)
        self.shared = self.copy(self.prototype)
        self.store = Store(connect(self.shared))
        self.plans = Plans()

    def superuser(self, port: int, name: str = "postgres") -> psycopg.Connection[Any]:
        """Connect to a node."""
        return psycopg.connect(f"postgresql://postgres@{self.host}:{port}/{name}", autocommit=True)

    def admin(self) -> psycopg.Connection[Any]:
        return self.superuser(self.coordinator)

    def on_each_node(self, *statements: str, name: str = "postgres") -> None:
        """Run statements on all nodes at the same time, each in a transaction of its own."""

        def run(port: int) -> None:
            with self.superuser(port, name) as connection:
                for statement in statements:
                    connection.execute(statement.encode())

        with ThreadPoolExecutor(1 + len(self.workers)) as pool:
            list(pool.map(run, (self.coordinator, *self.workers)))

    def url(self, name: str) -> str:
        self.made.add(name)
        return f"postgresql://{USER}@{self.host}:{self.coordinator}/{name}"

    def create(self, template: str = "template0", workers: Sequence[int] = ()) -> str:
        """Create a database of a cluster without tables, by default with all its workers."""
        name = next(self.names)
        with self.admin() as lock:  # nodes that are added at the same time would set the same rights
            lock.execute("SELECT pg_advisory_lock(1)")
            self.on_each_node(f"CREATE DATABASE {name} OWNER {USER} ENCODING UTF8 TEMPLATE {template}")
            self.on_each_node(
                "CREATE EXTENSION citus", f"ALTER DATABASE {name} SET synchronous_commit = off", name=name
            )
            with self.superuser(self.coordinator, name) as coordinator:
                coordinator.execute("SELECT citus_set_coordinator_host(%s, %s)", [self.host, self.coordinator])
                for port in workers or self.workers:
                    coordinator.execute("SELECT citus_add_node(%s, %s)", [self.host, port])
                coordinator.execute(f"ALTER DATABASE {name} SET citus.shard_count = {SHARDS}".encode())
        return self.url(name)

    def distribute(self, url: str) -> None:
        """Create the tables of a database, and distribute them."""
        engine = connect(url)
        migrate(engine)
        distribution.distribute(engine)
        engine.close()

    def copy(self, url: str) -> str:
        source, name = name_of(url), next(self.names)
        self.on_each_node(  # a process of Citus connects again as soon as it may
            f"ALTER DATABASE {source} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{source}'",
            f"CREATE DATABASE {name} OWNER {USER} TEMPLATE {source} ALLOW_CONNECTIONS true",
            f"ALTER DATABASE {name} SET synchronous_commit = off",
            f"ALTER DATABASE {source} ALLOW_CONNECTIONS true",
        )
        self.agencies = self.first_agencies
        return self.url(name)

    def fresh(self) -> str:
        """Return the address of the shared database with two new agencies; those of earlier tests do nothing more."""
        connection: Any = self.store.engine.connection()
        for statement in RETIRE:
            connection.execute(statement)
        self.store.engine.give_back(connection)
        self.agencies = open_both(self.store)
        return self.shared

    def discard(self, url: str) -> None:
        """Check the statements that ran, then drop a database, but for the shared one."""
        self.plans.check(url)
        if url != self.shared:
            self.drop(url)

    def drop(self, url: str) -> None:
        """Drop a database."""
        name = name_of(url)
        self.end_sessions(url)
        self.on_each_node(
            f"ALTER DATABASE {name} ALLOW_CONNECTIONS false",
            f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'",
            f"DROP DATABASE IF EXISTS {name} WITH (FORCE)",
        )
        self.made.discard(name)

    def remove(self) -> None:
        """Drop all databases that are left."""
        self.end_sessions()
        self.store.engine.close()
        for name in [*self.made]:
            self.drop(self.url(name))
