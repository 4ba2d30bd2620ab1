"""Commands of an operator take as long as they need: the time limits of requests do not hold for them."""

import os

import pytest
from typer.testing import CliRunner

from retainer.cli import cli, common
from retainer.cli.common import acting_for
from retainer.store.engines import connect, postgresql_connection, sqlite
from retainer.store.engines.base import DeadlineExceeded, Unavailable
from retainer.store.tx import Store
from tests.databases import each_database

pytestmark = each_database

SLOW = {
    "SQLite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000000) SELECT count(*) FROM n",
    "PostgreSQL": "SELECT pg_sleep(0.3)",
}


@pytest.fixture
def hasty(api, monkeypatch):
    """An agency on a database whose requests have hardly any time; commands read its address from the settings."""
    api.make("/clients")
    monkeypatch.setattr(sqlite, "TRANSACTION_SECONDS", 0)
    monkeypatch.setattr(postgresql_connection, "REPLY_SECONDS", 0.05)
    monkeypatch.setitem(postgresql_connection.SESSION, "statement_timeout", "1")
    for name in [name for name in os.environ if name.startswith("RETAINER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RETAINER_DATABASE_URL", api.app.settings.database)
    engines = []

    def remembered(*arguments, **options):
        engines.append(connect(*arguments, **options))
        return engines[-1]

    monkeypatch.setattr(common, "connect", remembered)
    yield api
    for engine in engines:
        engine.close()


def test_a_statement_of_a_request_is_ended_and_that_of_a_command_is_not(hasty):
    engine = hasty.store.engine
    limited = Store(connect(hasty.app.settings.database))
    with pytest.raises((DeadlineExceeded, Unavailable)), limited.unscoped() as tx:
        engine.all(engine.run(tx.connection, SLOW[engine.name], []))
    limited.engine.close()
    for write in (False, True):
        with acting_for(hasty.account_id, write=write) as tx:
            assert len(engine.all(engine.run(tx.connection, SLOW[engine.name], []))) == 1


@pytest.mark.parametrize("words", ["export ACCOUNT DIR", "account list --usage", "user list ACCOUNT", "migrate"])
def test_no_command_has_the_time_limit_of_a_request(hasty, tmp_path, words):
    given = {"ACCOUNT": str(hasty.account_id), "DIR": str(tmp_path / "files")}
    result = CliRunner().invoke(cli, [given.get(word, word) for word in words.split()])
    assert result.exit_code == 0, (result.output, result.exception)
