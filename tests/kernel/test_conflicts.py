"""A write that the database rolled back because of a conflict is retried before its response."""

import contextlib
import threading
from functools import partial

import psycopg
import pytest
from testing.process import until

from retainer.store.engines.postgresql_writers import WRITES
from retainer.store.retries import RETRIES
from tests.databases import only_postgresql

pytestmark = only_postgresql
UNDONE = """
CREATE SEQUENCE tries;
CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('tries') <= {times} THEN
        RAISE EXCEPTION 'could not serialize access due to concurrent update' USING ERRCODE = '40001';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER undone AFTER INSERT OR UPDATE ON {table} DEFERRABLE INITIALLY {moment}
FOR EACH ROW EXECUTE FUNCTION undo();
"""
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


@pytest.fixture
def database(api):
    """A connection of another application."""
    with psycopg.connect(api.app.settings.database, autocommit=True) as connection:
        yield connection


@contextlib.contextmanager
def undone(database, table, times, moment):
    """The first writes of a table are undone as those of serializable transactions are; a sequence counts all."""
    database.execute(UNDONE.format(table=table, times=times, moment=moment))
    try:
        yield lambda: database.execute("SELECT last_value FROM tries").fetchone()[0]
    finally:
        database.execute("DROP FUNCTION undo CASCADE")
        database.execute("DROP SEQUENCE tries")


@pytest.mark.parametrize("moment", ["IMMEDIATE", "DEFERRED"])
@pytest.mark.parametrize("table", ["invoices", "invoice_lines"])
def test_a_write_that_is_undone_three_times_succeeds_once(api, database, table, moment):
    entry = api.make("/time-entries", hourly_rate="90")
    lines = [{"time_entry_ids": [entry["id"]]}, {"description": "Books", "unit_price": "7.5", "quantity": "2"}]
    body = api.recipe("/invoices") | {"status": "sent", "lines": lines}
    with undone(database, table, RETRIES, moment) as tries:
        answer = api.post("/invoices", body)
        assert (answer.status, answer.data["number"][-4:], answer.data["total"]) == (201, "0001", "150.00")
        assert tries() > RETRIES
    invoice = api.get(f"/invoices/{answer.data['id']}").data
    assert invoice == answer.data
    assert len(invoice["lines"]) == 2
    assert api.sql("SELECT count(*) FROM invoice_lines WHERE account_id = $1", api.account_id) == [(2,)]
    assert len(api.get("/invoices").data) == 1
    assert api.get(f"/time-entries/{entry['id']}").data["invoice_id"] == invoice["id"]


@pytest.mark.parametrize("moment", ["IMMEDIATE", "DEFERRED"])
def test_with_an_idempotency_key_it_has_one_effect_too(api, database, moment):
    key = {"Idempotency-Key": "once"}
    with undone(database, "clients", RETRIES, moment):
        answer = api.post("/clients", {"name": "Bergmann"}, headers=key)
        assert (answer.status, answer.data["number"]) == (201, "C-0001")
    again = api.post("/clients", {"name": "Bergmann"}, headers=key)
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (201, answer.body, "true")
    assert len(api.get("/clients").data) == 1


@pytest.mark.parametrize("moment", ["IMMEDIATE", "DEFERRED"])
def test_a_write_that_is_undone_again_and_again_leaves_nothing(api, database, moment):
    with undone(database, "clients", 1000, moment) as tries:
        answer = api.post("/clients", {"name": "Bergmann"}, headers={"Idempotency-Key": "k"})
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (503, "unavailable", "2")
        assert answer.json["message"].startswith("Other requests are writing the same records.")
        assert not api.app.log.outages.is_on, "the database can be used"
        assert tries() == RETRIES + 1
    assert api.get("/clients").data == []
    assert api.post("/clients", {"name": "Bergmann"}, headers={"Idempotency-Key": "k"}).data["number"] == "C-0001"


def test_a_deadlock_with_another_program_is_survived(api, database):
    """The other one holds a table and waits for the account's turn; the request has the turn and waits for the table.

    What the first try read of the hours and wrote into the line that was sent is forgotten.
    """
    entry = api.make("/time-entries", hourly_rate="90", duration_minutes=60)["id"]
    body = api.recipe("/invoices") | {"lines": [{"time_entry_ids": [entry]}]}
    answers = []
    request = threading.Thread(target=lambda: answers.append(api.post("/invoices", body)))
    turn = "SELECT pg_advisory_xact_lock(%s::INTEGER, %s::INTEGER)"
    with psycopg.connect(api.app.settings.database) as other:
        other.execute("SET deadlock_timeout = '1min'")  # so that it is the request that finds the deadlock
        other.execute("LOCK TABLE invoice_lines IN SHARE MODE")
        request.start()
        until(lambda: database.execute(WAITING).fetchone() == (1,), "the request waits for the table")
        other.execute(turn, [WRITES, api.account_id])  # which it gets once the request was undone
        other.execute("UPDATE time_entries SET duration_minutes = 120, amount = 18000 WHERE id = %s", [entry])
        other.commit()
    request.join(timeout=60)
    (answer,) = answers
    assert answer.status == 201, answer
    (line,) = answer.data["lines"]
    assert (line["quantity"], line["amount"]) == ("2", "180.00")


def test_servers_note_the_same_keys_in_the_same_order_so_that_none_waits_in_a_circle(api, database):
    second, noted = api.new_key(["clients:read"]), []
    for key in (second, api.key):
        assert api.get("/me", key=key).status == 200
    write = partial(api.app.housekeeping.keys_used.write, api.store)
    note = threading.Thread(target=lambda: noted.append(write()))
    ids = [key_id for (key_id,) in api.sql("SELECT id FROM api_keys WHERE account_id = $1 ORDER BY id", api.account_id)]
    with psycopg.connect(api.app.settings.database) as other:
        other.execute("SET deadlock_timeout = '1min'")
        other.execute("UPDATE api_keys SET name = name WHERE id = %s", [ids[0]])
        note.start()
        until(lambda: database.execute(WAITING).fetchone() == (1,), "the notes wait for the key")
        other.execute("UPDATE api_keys SET name = name WHERE id = %s", [ids[-1]])
        other.commit()
    note.join(timeout=60)
    assert noted == [None]


def test_a_waiting_write_holds_up_no_other_account(api, other_tenant):
    with api.databases.held_writes(api.app, api.account_id, patience=0):
        assert api.post("/clients", {"name": "Acme"}).status == 503
        assert other_tenant.make("/clients")
