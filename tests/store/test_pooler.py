"""PgBouncer: it works with sessions of its clients, and is refused if it mixes them."""

import pytest
from testing.ports import free_port
from testing.process import command, running, tell

from tests.databases import only_postgresql
from tests.length import first
from tests.pooler import pooled

REFUSED = "A pooler between Retainer and PostgreSQL gives transactions of one connection to several sessions."


@pytest.fixture
def url(postgresql_databases):
    """The address of a PostgreSQL database of two agencies."""
    url = postgresql_databases.copy(postgresql_databases.prototype)
    yield url
    postgresql_databases.discard(url)


@only_postgresql
@pytest.mark.parametrize("mode", first(["transaction", "statement"]))
def test_a_pooler_that_mixes_sessions_is_refused_by_the_doctor_and_at_the_start(mode, url, fast_path, tmp_path):
    with pooled(fast_path, url, mode) as address:
        for arguments in (["doctor"], ["serve", "--port", free_port()], ["deliver", "--once"]):
            result = command(tmp_path, *arguments, RETAINER_DATABASE_URL=address)
            assert result.status == 1
            assert REFUSED in result.err
            assert "pool_mode = session" in result.err


@only_postgresql
def test_a_pooler_that_keeps_sessions_serves_requests_with_the_settings_of_each(url, fast_path, tmp_path):
    with pooled(fast_path, url, "session") as address, running(tmp_path, RETAINER_DATABASE_URL=address) as server:
        agency = server.agency("Pooled", "agency")
        with server.client(agency["key"]) as client:
            assert [client.post("/tags", {"name": f"Tag {n}"}).status for n in range(5)] == [201] * 5
            assert len(client.get("/tags").data) == 5
        assert tell(tmp_path, "doctor", RETAINER_DATABASE_URL=address)["result"] == "ok"
