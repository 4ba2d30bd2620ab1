"""Accounts that an operator suspends, resumes and deletes while servers answer."""

import sqlite3
from contextlib import closing as closed

import pytest
from testing.process import command, running, tell, until, with_database

from retainer.values.exact import utcnow
from tests.length import only_full

REASON = ("--reason", "Invoice 2026-31 is not paid.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return with_database(tmp_path_factory.mktemp("closing"))


def opened(folder):
    return tell(
        folder, "account", "create", "--name", "North", "--admin-name", "Ana", "--admin-email", "a@north.example"
    )


def test_an_account_is_suspended_and_resumed_by_commands(folder):
    account = opened(folder)["account_id"]
    suspended = tell(folder, "account", "suspend", account, *REASON)
    assert (suspended["status"], suspended["suspension_reason"]) == ("suspended", REASON[1])
    again = tell(folder, "account", "suspend", account, "--reason", "Taken over by somebody else")
    assert again == suspended | {"suspension_reason": "Taken over by somebody else"}
    shown = tell(folder, "account", "show", account)
    assert shown.items() >= again.items()
    assert next(each for each in tell(folder, "account", "list")["accounts"] if each["id"] == account) == shown
    assert "suspended" in command(folder, "account", "list").out
    resumed = tell(folder, "account", "resume", account)
    assert resumed == again | {"status": "active", "suspended_at": None, "suspension_reason": None}
    assert tell(folder, "account", "resume", account) == resumed
    noted = [each["action"] for each in tell(folder, "audit", "list", account)["entries"]]
    assert noted[:3] == ["account resumed", "account suspended", "account suspended"]


def test_a_deletion_says_when_and_how_to_export_and_to_undo_it(folder):
    account = opened(folder)["account_id"]
    told = command(folder, "account", "delete", account, *REASON)
    assert told.status == 0
    assert f"retainer export {account} DIR" in told.err
    assert f"retainer account resume {account}" in told.err
    announced = tell(folder, "account", "delete", account)
    assert (announced["status"], announced["suspension_reason"]) == ("closing", REASON[1])
    assert announced["deletes_at"] > announced["suspended_at"]
    assert tell(folder, "account", "delete", account) == announced, "the day stays"
    exported = tell(folder, "export", account, folder / "exported")
    assert exported["records"] > 0
    assert tell(folder, "account", "resume", account)["deletes_at"] is None
    assert tell(folder, "account", "delete", account)["suspension_reason"] is None


def test_a_suspension_needs_a_reason_of_one_line(folder):
    account = opened(folder)["account_id"]
    assert command(folder, "account", "suspend", account).status == 2
    refused = command(folder, "account", "suspend", account, "--reason", " ", "--json")
    assert (refused.status, refused.err.count("--reason: ")) == (1, 1)
    assert tell(folder, "account", "show", account)["status"] == "active"


def test_a_suspension_counts_from_the_next_request_in_every_process(servers, agency):
    account = agency["account_id"]

    def answers():
        found = set()
        for client in servers.clients(agency["key"]):
            with client:
                answer = client.get("/clients")
                found.add((answer.status, answer.json.get("code")))
                assert REASON[1] not in answer.body.decode(), "a program that has a key is not told why"
        return found

    assert answers() == {(200, None)}
    servers.tell("account", "suspend", account, *REASON)
    assert answers() == {(403, "account_suspended")}
    servers.tell("account", "resume", account)
    assert answers() == {(200, None)}


EVENTS = 3_000


def count(database, account, table="events", column="account_id"):
    with closed(sqlite3.connect(database)) as connection:
        return connection.execute(f"SELECT count(*) FROM {table} WHERE {column} = ?", [account]).fetchone()[0]


@only_full
def test_a_deletion_goes_on_after_a_kill_while_others_are_answered(tmp_path):
    folder = with_database(tmp_path)
    database = folder / "data" / "retainer.db"
    with running(folder, "--no-monitor") as server:
        gone, kept = server.agency("Gone", "agency"), server.agency("Kept", "agency")
        with server.client(kept["key"]) as client:
            assert client.post("/tags", {"name": "VIP"}).status == 201
    account = gone["account_id"]
    tell(folder, "account", "delete", account)
    rows = [(account, number, utcnow(), "tag.created", 1, "[]") for number in range(1, EVENTS + 1)]
    with closed(sqlite3.connect(database)) as connection, connection:
        names = "account_id, id, at, type, record_id, fields"
        connection.executemany(f"INSERT INTO events ({names}) VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("UPDATE accounts SET deletes_at = '2026-01-01T00:00:00.000000Z' WHERE id = ?", [account])
    kept_rows = count(database, kept["account_id"])
    left = EVENTS
    for _ in range(3):
        with running(folder, "--no-monitor") as server:
            until(lambda before=left: count(database, account) < before, "a batch is deleted")
            server.kill()
        left = count(database, account)
        with closed(sqlite3.connect(database)) as connection:
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        if not left:  # the kill came late
            break
    with running(folder, "--no-monitor") as server:
        with server.client(kept["key"]) as client:
            until(lambda: not count(database, account, "accounts", "id"), "all is deleted")
            assert client.get("/tags").status == 200
        with server.client(gone["key"]) as client:
            assert client.get("/me").json["code"] == "invalid_key"
    assert f"There is no account {account}." in command(folder, "account", "show", account, "--json").err
    assert f"Account {account} was deleted" in (folder / "err.txt").read_text()
    assert count(database, kept["account_id"]) == kept_rows
    assert tell(folder, "doctor")["result"] == "ok"
