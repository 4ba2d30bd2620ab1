"""While a worker is out of reach, accounts on the other nodes work, and all signs of the server say the same."""

import json
import re
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from testing.agencies import open_agency, open_app
from testing.process import running, until

from retainer.identity.keys import keys
from retainer.settings import BASE_PATH
from retainer.store.engines import connect
from retainer.store.engines.base import PartlyUnavailable
from retainer.store.tx import Store
from tests.console.visitor import Visitor, admin_of
from tests.contract_checker import NoChecks
from tests.factories import ApiClient
from tests.quick_hashes import hash_quickly

PORT_OF = """
SELECT nodeport FROM pg_dist_node JOIN pg_dist_placement USING (groupid)
WHERE shardid = get_shard_id_for_distribution_column('clients', %s)
"""
PAGE = (Path(__file__).parents[2] / "docs" / "citus.md").read_text(encoding="utf-8")
EMERGENCY = re.findall(r"^UPDATE .*;$", PAGE, re.MULTILINE)
DEGRADED = {"status": "degraded", "database": "partly out of reach", "migrations": "ok"}


@pytest.fixture(scope="module")
def agencies(losable):
    """An agency on a worker that stays, and one on the worker that is lost."""
    url, worker = losable
    found = {}
    with psycopg.connect(url) as connection, closing(connect(url)) as engine:
        for number in range(30):
            agency = open_agency(Store(engine), f"Agency{number}", "agency")
            (port,) = connection.execute(PORT_OF, [agency["account_id"]]).fetchone()
            found.setdefault("lost" if port == worker.port else "there", agency)
            if len(found) == 2:
                return found["there"], found["lost"]
    raise AssertionError("30 accounts are on one node")


@pytest.fixture
def both_nodes(losable, agencies, monkeypatch):
    """Clients of both agencies, and the worker of the second, which is back after the test."""
    url, worker = losable
    hash_quickly(monkeypatch)
    app = open_app(url)
    yield *(ApiClient(app, NoChecks(), agency) for agency in agencies), worker
    worker.come_back()
    app.store.engine.close()


def test_accounts_on_other_nodes_read_write_revoke_keys_and_sign_in(both_nodes):
    there, lost, worker = both_nodes
    client = lost.make("/clients")["id"]
    key = there.new_key()
    email = there.sql("SELECT email FROM users WHERE id = $1", there.admin_id)[0][0]
    admin_of(there)  # with a password
    worker.go_away()
    assert there.get("/clients").status == 200
    assert there.post("/clients", {"name": "Meanwhile"}).status == 201
    assert there.get("/me", key=key).status == 200
    there.revoke_newest_key()
    assert there.get("/me", key=key).code == "revoked_key"
    admin = Visitor(there.app, "203.0.113.8")
    assert admin.sign_in(email).location == "/console"
    assert admin.get("/console").status == 200
    for answer in (lost.get("/clients"), lost.post("/clients", {"name": "Lost"})):
        assert (answer.status, answer.code) == (503, "unavailable")
        assert answer.json["message"].startswith("The part of the database with this account is out of reach.")
    worker.come_back()
    until(lambda: lost.get(f"/clients/{client}").status == 200, "the account can be read again")
    assert [record["id"] for record in lost.get("/clients").data] == [client]


def test_a_key_of_an_account_on_the_lost_node_is_not_revoked_by_half(both_nodes):
    _, lost, worker = both_nodes
    key = lost.new_key()
    worker.go_away()
    with pytest.raises(PartlyUnavailable), lost.operating() as tx:
        keys.revoke_key(tx, lost.key_id)
    worker.come_back()
    until(lambda: lost.get("/me", key=key).status == 200, "the account can be read again")


def test_keys_and_sessions_of_an_account_on_the_lost_node_are_ended_as_the_page_says(both_nodes, losable):
    _, lost, worker = both_nodes
    key, admin = lost.new_key(), admin_of(lost)
    worker.go_away()
    revoke, end_sessions = (text.replace("account_id = 17", f"account_id = {lost.account_id}") for text in EMERGENCY)
    revoke = revoke.replace(";", " AND name = 'Test';")  # other tests use the first key
    with psycopg.connect(losable[0]) as connection:
        assert connection.execute(revoke).rowcount >= 1
        assert connection.execute(end_sessions).rowcount == 1
    worker.come_back()
    until(lambda: lost.get("/clients").status == 200, "the account can be read again")
    assert lost.get("/me", key=key).code == "revoked_key"
    assert admin.get("/console").location.startswith("/console/sign-in")


def test_health_metrics_and_log_agree(losable, agencies, tmp_path):
    url, worker = losable
    there, lost = agencies
    options = {"RETAINER_DATABASE_URL": url, "RETAINER_METRICS": "public"}
    with running(tmp_path, "--no-monitor", "--no-webhooks", **options) as server, server.client() as client:

        def ready():
            answer = client.send("GET", "/readyz")
            return answer.status, answer.json

        def outages():
            lines = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
            return [
                line["message"] for line in lines if "can be used again" in str(line) or "cannot be used" in str(line)
            ]

        def status_of(agency):
            with server.client(agency["key"]) as caller:
                return caller.send("GET", f"{BASE_PATH}/clients").status

        def is_out():
            page = client.send("GET", "/metrics").body.decode()
            return "retainer_database_outage 1.0" in page

        assert ready()[0] == 200
        assert not is_out()
        worker.go_away()
        until(lambda: ready() == (200, DEGRADED), "the server says that it is degraded")
        until(is_out, "the metric says so")
        (began,) = outages()
        assert began.startswith("A part of the database cannot be used (")
        noticed = r"\((no connection to |connection to the remote node \S+@)127\.0\.0\.1:"
        assert re.search(noticed, began), "between requests, or during one"
        assert (status_of(there), status_of(lost)) == (200, 503)
        worker.come_back()
        until(lambda: ready()[1]["status"] == "ready", "the server is ready")
        until(lambda: not is_out(), "the metric says so")
        until(lambda: len(outages()) == 2, "the log says so")
        assert (status_of(there), status_of(lost)) == (200, 200)
