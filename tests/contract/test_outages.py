"""What is answered when the database is out of reach or broken: every operation says so, and nothing is half done."""

import io
import json

import psycopg
import pytest

from retainer.api import ROUTES
from retainer.app import App
from retainer.cli import unavailable
from retainer.schema import metadata
from retainer.server.monitoring import log
from retainer.server.monitoring.metrics import SharedMetrics
from retainer.settings import Settings
from retainer.store.engines.base import Busy, DeadlineExceeded
from tests.console.visitor import Visitor
from tests.contract.cases import (
    OPERATIONS,
    READS,
    UPDATES,
    WRITES,
    commits,
    db_copy,
    few,
    held_writes,
    sample,
    send,
    some_change,
    succeeds,
)
from tests.databases import each_database, only_postgresql, set_on_two
from tests.factories import Answer

pytestmark = each_database

ONCE = {"Idempotency-Key": "once"}
IDENTITY = {"accounts", "users", "api_keys"}
"""The tables by which a key is recognised; `/me` shows more of them than that takes."""


@few(OPERATIONS)
def test_a_database_that_is_out_of_reach_is_503_until_it_is_back(api, operation):
    request = sample(api, operation)
    before = commits(api)
    with api.databases.out_of_reach(api.app):
        says_that_it_cannot_be_done_now(send(api, request, headers=ONCE), "The database is out of reach.")
    assert api.app.log.outages.is_on
    assert commits(api) == before
    assert "idempotency-replayed" not in succeeds(send(api, request, headers=ONCE)).headers


def test_a_write_that_waits_too_long_for_another_is_503_while_reads_go_on(api):
    request = sample(api, next(iter(WRITES)))
    with held_writes(api, patience=0):
        before = commits(api)
        says_that_it_cannot_be_done_now(
            send(api, request, headers=ONCE), "Other requests are writing the same records."
        )
        assert commits(api) == before
        succeeds(api.get("/me"))
    found = api.app.log.outages
    assert (found.is_on, found.errors) == (False, 0), "the database is there"
    assert "idempotency-replayed" not in succeeds(send(api, request, headers=ONCE)).headers


def measured(api):
    """The same client at an application with metrics, whose log is read by `lines`."""
    app = App(Settings(database_url=api.app.settings.database), io.BytesIO(), metrics=SharedMetrics(ROUTES, 1))
    api.databases.opened.append(app)
    return api.on(app)


def lines(api):
    """The lines of the log so far, without those of requests."""
    api.app.log.drain()
    logged = map(json.loads, api.app.log.writer.stream.getvalue().splitlines())
    return [line for line in logged if line["event"] != "request"]


def test_an_outage_that_begins_after_a_redirect_is_told_and_ends_with_metrics_too(api, monkeypatch):
    monkeypatch.setattr(log, "QUIET_SECONDS", 0)
    api = measured(api)
    assert Visitor(api.app).get("/").status == 302
    with api.databases.out_of_reach(api.app):
        says_that_it_cannot_be_done_now(api.get("/clients"), "The database is out of reach.")
        assert [line["state"] for line in lines(api)] == ["began"]
    api.app.log.outages.end_if_over()
    assert [line["state"] for line in lines(api)] == ["began", "ended"]


@pytest.fixture
def database(api):
    """A connection beside the application's."""
    with psycopg.connect(api.app.settings.database, autocommit=True) as connection:
        yield connection


@only_postgresql
@pytest.mark.parametrize(
    ("limit", "reason"),
    [("statement_timeout", DeadlineExceeded.reason), ("lock_timeout", "Other requests are writing the same records.")],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_statement_that_takes_too_long_is_503_and_no_outage(api, database, limit, reason, method):
    set_on_two(api.store.engine, f"SET {limit} = 100")
    with database.transaction():
        database.execute("LOCK TABLE clients")
        answer = api.call(method, "/clients", {"name": "Acme"} if method == "POST" else None)
    says_that_it_cannot_be_done_now(answer, reason)
    found = api.app.log.outages
    assert (found.is_on, found.errors) == (False, int(limit == "statement_timeout"))
    (line,) = lines(api)
    assert (line["event"], line["level"]) == ("warning", "warning")
    assert line["message"].startswith(f"{method} /clients was cancelled. {reason} (canceling statement due to")


@only_postgresql
def test_a_server_whose_database_is_too_busy_is_not_told_to_be_without_one(api, database):
    set_on_two(api.store.engine, "SET statement_timeout = 50")
    with database.transaction():
        database.execute("LOCK TABLE alembic_version")
        answer = api.app.health.ready()
    assert (answer.status, json.loads(answer.body)) == (503, {"status": "unready", "database": "no answer in time"})


def test_a_command_says_of_a_busy_database_that_it_can_be_run_again(api):
    engine, seen = api.store.engine, "canceling statement due to lock timeout"
    said = unavailable(Busy(seen), engine)
    advice = "Nothing was changed: run the command again in a moment."
    assert said == f"The database {engine.location} was too busy: {seen}. {advice}"


@few(WRITES)
def test_a_write_that_fails_at_its_very_end_is_500_and_undone_as_a_whole(api, operation):
    request = sample(api, operation)
    if operation in UPDATES:  # a record that is sent back as it is leaves nothing to undo
        request = request._replace(body=some_change(request.path, request.record, "other"))
    with api.databases.broken_answers(api.app):
        before = commits(api)
        says_that_it_is_our_fault(send(api, request, headers=ONCE))
        assert commits(api) == before
    assert "idempotency-replayed" not in succeeds(send(api, request, headers=ONCE)).headers


@few(READS)
def test_a_read_of_tables_that_are_gone_is_500(api, operation):
    request = sample(api, operation)
    broken = db_copy(api)
    for name in metadata.tables.keys() - IDENTITY:
        broken.sql(f"ALTER TABLE {name} RENAME TO {name}_gone")
    for table in ("api_keys", "users"):  # no request is authenticated without them
        broken.sql(f"ALTER TABLE {table} RENAME COLUMN name TO gone")
    says_that_it_is_our_fault(send(broken, request))
    succeeds(send(api, request))


def says_that_it_cannot_be_done_now(answer: Answer, reason: str) -> None:
    assert (answer.status, answer.code) == (503, "unavailable"), answer
    assert answer.json.keys() == {"message", "code", "request_id", "docs_url"}
    assert answer.json["message"].startswith(f"{reason} Try again in a few seconds"), answer
    assert int(answer.headers["retry-after"]) >= 1


def says_that_it_is_our_fault(answer: Answer) -> None:
    """No word of what is wrong: that is in the log, where the request id leads."""
    assert (answer.status, answer.code) == (500, "server_error"), answer
    number = answer.headers["x-request-id"]
    message = f"Internal error. Report the request id {number} to the operator."
    docs_url = "http://agency.example/docs/errors#server_error"
    assert answer.json == {"message": message, "code": "server_error", "request_id": number, "docs_url": docs_url}
