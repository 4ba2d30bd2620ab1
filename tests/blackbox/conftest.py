"""Fixtures: shared servers, and agencies for each test."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from testing.process import Server, Servers, running, running_together, with_database

from tests.databases import CLUSTER, PostgresqlDatabases
from tests.length import first
from tests.valkey_process import ValkeyProcess

NUMBERS = itertools.count(1)


@pytest.fixture(scope="package")  # an idle server takes some of the processor from the tests that come after
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server; each test has its own agencies and source addresses."""
    with running(with_database(tmp_path_factory.mktemp("server"))) as running_server:
        yield running_server


@pytest.fixture(scope="package")
def embedded(server: Server) -> Servers:
    """The only server of the embedded database."""
    return Servers(server)


@pytest.fixture(scope="package")
def two_servers(
    tmp_path_factory: pytest.TempPathFactory, postgresql_databases: PostgresqlDatabases, valkey_process: ValkeyProcess
) -> Iterator[Servers]:
    """Two running servers that share a PostgreSQL and a Valkey."""
    url = postgresql_databases.copy(postgresql_databases.prototype)
    addresses = {"RETAINER_DATABASE_URL": url, "RETAINER_VALKEY_URL": valkey_process.url}
    with running_together(tmp_path_factory.mktemp("servers"), 2, **addresses) as servers:
        yield servers
    postgresql_databases.discard(url)


@pytest.fixture(params=["two_servers"] if CLUSTER else first(["two_servers", "embedded"]))
def servers(request: pytest.FixtureRequest) -> Servers:
    """All servers of a database: one with the embedded database, or two with PostgreSQL."""
    servers: Servers = request.getfixturevalue(request.param)
    return servers


@pytest.fixture
def address() -> str:
    """A loopback address for one test, with its own rate limit."""
    return f"127.0.1.{next(NUMBERS)}"


@pytest.fixture
def open_agency(request: pytest.FixtureRequest) -> Callable[[str], dict[str, Any]]:
    """A function that opens an agency of a plan, in the database of the test's servers."""
    asked = request.getfixturevalue("servers" if "servers" in request.fixturenames else "server")
    return lambda plan: asked.agency(f"Agency{next(NUMBERS)}", plan)


@pytest.fixture
def agency(open_agency: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """An agency whose keys may send 3,000 requests a minute."""
    return open_agency("enterprise")
