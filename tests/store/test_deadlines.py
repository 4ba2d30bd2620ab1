"""Deadlines: a transaction that takes too long is rolled back, and its request gets a response."""

import json
import math
import time

import pytest
from sqlalchemy import insert, select, text

from retainer.store.engines.base import DeadlineExceeded
from retainer.store.tables import totals
from tests.databases import each_database, only_postgresql, only_sqlite

pytestmark = each_database

PUT = insert(totals)
NAMES = select(totals.c.name).where(totals.c.name == "row")
SLOW_TAGS = {
    "SQLite": (
        "CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "CREATE TRIGGER slow BEFORE INSERT ON tags BEGIN SELECT max(i) FROM endless; END",
    ),
    "PostgreSQL": (
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.3); RETURN NEW; END $$",
        "CREATE TRIGGER slow BEFORE INSERT ON tags FOR EACH ROW EXECUTE FUNCTION slow()",
    ),
}
LIFT = {"SQLite": ("DROP TRIGGER slow",), "PostgreSQL": ("DROP FUNCTION slow CASCADE",)}


@pytest.fixture
def put(api):
    """A function that writes a row."""
    return lambda tx: tx.run(PUT, account_id=api.account_id, name="row", count=0)


def written(api):
    with api.store.unscoped() as tx:
        return tx.all(NAMES)


def run(api, *steps, write=True, seconds=0.05):
    """Run steps in a transaction with a time limit."""
    with api.store.unscoped(write=write, seconds=seconds) as tx:
        for step in steps:
            step(tx)


def wait(_):
    time.sleep(0.1)


def ask(tx):
    tx.all(NAMES)


@pytest.mark.parametrize("steps", [(wait, ask), (wait,)], ids=["before a statement", "before the commit"])
def test_a_transaction_that_is_late_runs_no_further_statement_and_is_not_committed(api, put, steps):
    with pytest.raises(DeadlineExceeded):
        run(api, put, *steps)
    assert written(api) == []
    run(api, put, seconds=4)
    assert len(written(api)) == 1, "the next write succeeds"


def test_a_reading_transaction_has_a_deadline_too(api):
    with pytest.raises(DeadlineExceeded):
        run(api, ask, wait, ask, write=False)


def test_a_command_without_a_limit_has_no_deadline(api, put):
    run(api, put, wait, ask, seconds=math.inf)
    assert len(written(api)) == 1


ENDLESS = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
ROWS = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i % 1000000 = 0")


@only_sqlite
@pytest.mark.parametrize("statement", [ENDLESS, ROWS])
def test_an_endless_statement_is_interrupted(api, put, statement):
    for steps in ({"write": False}, {}):
        with pytest.raises(DeadlineExceeded):
            run(api, *[put] * (not steps), lambda tx: tx.all(statement), seconds=0.2, **steps)
    assert written(api) == []
    run(api, put, seconds=4)
    assert len(written(api)) == 1, "its connection is reused"


@only_postgresql
def test_pipelined_statements_that_take_too_long_are_stopped(api, put):
    def send(tx):
        for _ in range(105):
            tx.run(text("SELECT pg_sleep(0.02)"))

    with pytest.raises(DeadlineExceeded):
        run(api, put, send, seconds=1)
    assert written(api) == []


@only_postgresql
def test_the_server_limits_transactions_except_those_of_commands(api):
    with api.store.unscoped(write=True) as tx:
        assert tx.value(text("SHOW transaction_timeout")) == "14s"
    for write in (True, False):
        with api.store.unscoped(write=write, seconds=math.inf) as tx:
            assert tx.value(text("SHOW transaction_timeout")) == "0"


def test_a_request_that_takes_too_long_gets_a_503_and_changes_nothing(api):
    for statement in SLOW_TAGS[api.store.engine.name]:
        api.sql(statement)
    api.store.seconds = 0.2
    try:
        refused = api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"})
    finally:  # or the trigger would stay for the tests after this one
        for statement in LIFT[api.store.engine.name]:
            api.sql(statement)
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (503, "unavailable", "2")
    assert "took too long" in refused.json["message"]
    assert "Ask for less in one request" in refused.json["message"]
    api.store.seconds = 20
    assert api.get("/tags").data == []
    assert api.post("/tags", {"name": "A"}, headers={"Idempotency-Key": "k"}).status == 201
    api.app.log.drain()
    lines = [json.loads(line) for line in api.app.log.writer.stream.getvalue().splitlines()]
    (warning,) = [line for line in lines if "took too long" in json.dumps(line)]
    assert warning["level"] == "warning"
    assert "POST" in json.dumps(warning)
    assert not any("outage" in json.dumps(line) for line in lines)
