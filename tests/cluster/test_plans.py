"""Statements on a cluster: the check sees those that cannot run on one shard; background work reaches all nodes."""

from datetime import timedelta

import pytest
import time_machine
from sqlalchemy import select, text

from retainer.events.sender.loop import Sender
from retainer.identity.people import sessions
from retainer.rollups import doctor
from retainer.schema.crm import clients
from retainer.server.monitoring import housekeeping
from retainer.sites.monitor.probe import Monitor
from retainer.store.tables import events
from tests.contract.filler import NOW
from tests.contract_checker import NoChecks
from tests.factories import ApiClient
from tests.traffic import common as traffic

JOINED = "SELECT tags.id FROM tags JOIN api_keys ON api_keys.account_id = tags.account_id WHERE tags.account_id = 1"


@pytest.fixture
def both_agencies(cluster):
    """Clients of two agencies of a database that no other test uses."""
    app = cluster.open(cluster.copy(cluster.prototype))
    yield tuple(ApiClient(app, NoChecks(), agency, cluster) for agency in cluster.agencies.values())
    cluster.close()


def fail(what, error):
    raise error


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        (select(clients.c.id), "shards=4"),
        (
            text("INSERT INTO tags (account_id, id, name) VALUES (1, (SELECT 1 FROM tags), '')"),
            "not supported within INSERT",
        ),
        (text("SELECT 1 FROM accounts WHERE id IN (SELECT id FROM tags WHERE account_id = accounts.id)"), "correlated"),
        (text(JOINED), "Distributed Subplan"),
    ],
    ids=["several shards", "a subquery in VALUES", "correlated with a table of every node", "through the coordinator"],
)
def test_a_statement_that_a_cluster_cannot_run_on_one_shard_is_seen(cluster, statement, complaint):
    engine = cluster.open(cluster.fresh()).store.engine
    compiled = cluster.plans.statements.of_all(statement)
    cluster.plans.note(compiled.text, [])
    with pytest.raises(AssertionError, match=complaint):
        cluster.plans.check(cluster.shared)
    del cluster.plans.found[compiled.text]
    engine.close()
    cluster.close()


def test_retention_deletes_what_is_old_of_accounts_on_all_nodes(both_agencies):
    store = both_agencies[0].store
    with time_machine.travel(NOW - timedelta(days=200), tick=False):
        for api in both_agencies:
            for number in range(3):
                api.post("/clients", {"name": f"Old {number}"}, headers={"Idempotency-Key": f"{number}"})
            traffic.write(api, traffic.answered(api, status=422, record="/clients/1"))
    assert housekeeping.delete_old(store, housekeeping.EVENTS, 90) == 2 * 2, "the newest event of an account stays"
    assert housekeeping.delete_old(store, housekeeping.REQUESTS, 90) == 2
    assert housekeeping.delete_old(store, housekeeping.SUMS, 90) == 2 * 2
    assert housekeeping.delete_responses(store) is not None, "the responses of a minute, and there may be more"
    assert housekeeping.delete_responses(store) is None
    sessions.delete_expired(store)
    for api in both_agencies:
        with api.operating() as tx:
            assert [row[0] for row in tx.all(select(events.c.id))] == [3]
        assert [event["id"] for event in api.get("/events").data] == [3]
        assert api.get("/clients").json["meta"]["total"] == 3


def test_what_runs_beside_requests_finds_its_work_on_all_nodes(both_agencies):
    store = both_agencies[0].store
    for api in both_agencies:
        api.make("/sites", url="https://127.0.0.1:9/")
        webhook = api.make("/webhooks", url="https://127.0.0.1:9/")
        api.make("/clients")
        assert webhook["status"] == "active"
    assert Monitor(store, (), fail).run_once() == 2
    assert Sender(store, (), "https://agency.example", fail, fail).run_once() >= 2
    assert doctor.inspect(store, repair=False) == []
