"""Fixtures: databases of former deliveries, as they were delivered."""

from pathlib import Path

import pytest

from tests.databases import PostgresqlDatabases
from tests.upgrades.former import Former, fill_postgresql, write_sqlite


@pytest.fixture
def url(former: Former, kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The address of a former database."""
    if kind == "sqlite":
        return f"sqlite:///{write_sqlite(former, tmp_path / 'data' / 'retainer.db')}"
    databases: PostgresqlDatabases = request.getfixturevalue("postgresql_databases")
    made = databases.create()
    fill_postgresql(former, made)
    return made
