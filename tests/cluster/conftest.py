"""Fixtures: databases of the cluster, and one whose second worker can be lost."""

from collections.abc import Iterator

import pytest

from tests.citus import CitusDatabases, LosableWorker
from tests.databases import CLUSTER, WITHOUT_CLUSTER, PostgresqlDatabases


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not CLUSTER and "cluster" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason=WITHOUT_CLUSTER))


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
