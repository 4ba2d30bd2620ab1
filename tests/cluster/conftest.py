"""Fixtures: databases of the cluster, and one whose second worker can be lost."""

from collections.abc import Iterator

import pytest

from tests.citus import CitusDatabases, LosableWorker
from tests.databases import PostgresqlDatabases


@pytest.fixture(scope="session")
def cluster(postgresql_databases: PostgresqlDatabases) -> CitusDatabases:
    """Databases of the cluster."""
    assert isinstance(postgresql_databases, CitusDatabases)
    return postgresql_databases


@pytest.fixture(scope="module")
def losable(cluster: CitusDatabases) -> Iterator[tuple[str, LosableWorker]]:
    """The address of a distributed database, and the worker that it can lose."""
    with LosableWorker(cluster.host, cluster.workers[-1]) as worker:
        url = cluster.create(workers=[*cluster.workers[:-1], worker.port])
        cluster.distribute(url)
        yield url, worker
        worker.come_back()
        cluster.drop(url)
