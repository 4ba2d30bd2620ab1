"""PostgreSQL fails while callers read and write, and comes back: they are told so at once, and nothing else happens."""

import contextlib
import json
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from testing.process import query, unsound, until

from retainer.settings import BASE_PATH
from tests.blackbox import outages
from tests.length import length, only_full

CYCLES = length(2)


@pytest.fixture(scope="module")
def place(fast_disk):
    """A server and its PostgreSQL, which fails in each test and is back after it."""
    with tempfile.TemporaryDirectory(dir=fast_disk) as folder, outages.started(Path(folder)) as place:
        yield place


@only_full
@pytest.mark.parametrize("kind", outages.KINDS)
def test_an_outage_gives_503_loses_nothing_and_ends_with_its_cause(place, kind):
    """Every answer is the expected one or a 503, never a 401 or 404; `outages` judges how long each takes."""
    book, cycles = outages.run(*place, [kind], CYCLES)
    assert book.wrong == []
    assert len(cycles) == CYCLES
    for cycle in cycles:
        assert cycle.outcomes[200] > 0
        assert cycle.outcomes[201] > 0
        if kind != "connections ended":
            assert cycle.outcomes[503] > 2 * outages.CALLERS, "callers that wait to be refused are refused once at most"


ACCOUNTS, WRITES = 8, 4
UNKNOWN = "The request took too long, and its outcome is unknown."
LOCKED = "Other requests are writing the same records."
REFUSED = "The database does not confirm writes now, and this one was not executed."


@only_full
def test_a_commit_that_waits_for_a_missing_standby_fails_alone(place):
    """Reads and /readyz go on, and connections do not run out. Nothing is lost when the standby is back."""
    servers, database = place
    agencies = [servers.agency(f"Alone{number}", "enterprise") for number in range(ACCOUNTS)]
    keys = [servers.new_key(agency) for agency in agencies]
    ids = ", ".join(str(agency["account_id"]) for agency in agencies)

    def write(key, turn):
        with servers.client(key) as client:
            name = f"{key[-8:]}-{turn}"
            return client.send("POST", f"{BASE_PATH}/clients", {"name": name}, Idempotency_Key=name)

    def write_often(key):
        return [write(key, turn) for turn in range(WRITES)]

    readers = [client for key in (keys[0], keys[-1]) for client in servers.clients(key)]
    until(lambda: all(has_ended(server) for server in servers.each), "the outages of the tests before have ended")
    before = [len(outage_lines(server)) for server in servers.each]
    most = 0
    with (
        database.without_standby(),
        contextlib.ExitStack() as stack,
        ThreadPoolExecutor(ACCOUNTS) as pool,
        psycopg.connect(database.url) as watching,
    ):
        for reader in readers:
            stack.callback(reader.close)
        writers = [pool.submit(write_often, key) for key in keys]
        until(lambda: hanging(watching), "a commit hangs")
        while not all(writer.done() for writer in writers):
            for reader in readers:
                assert reader.send("GET", f"{BASE_PATH}/clients").status == 200
                assert reader.send("GET", "/readyz").status == 200
            most = max(most, hanging(watching))
            time.sleep(outages.PAUSE_SECONDS)
        answers = [answer for writer in writers for answer in writer.result()]
        assert query(servers.database, f"SELECT count(*) FROM clients WHERE account_id IN ({ids})") == [(0,)]
    assert all(outages.is_unavailable(answer) for answer in answers), answers
    said = {answer.json["message"].partition(" Try again")[0] for answer in answers}
    assert {UNKNOWN} <= said <= {UNKNOWN, LOCKED, REFUSED}
    assert most <= 40, "of 60 connections"
    told = [outage_lines(server)[count:] for server, count in zip(servers.each, before, strict=True)]
    assert told == [[], []], "no outage"
    for key in keys:
        for turn in range(WRITES):
            until(lambda key=key, turn=turn: write(key, turn).status == 201, "the write succeeds")
    names = query(servers.database, f"SELECT name FROM clients WHERE account_id IN ({ids})")
    assert len({*names}) == len(names) == ACCOUNTS * WRITES
    assert unsound(servers.database) == []


def has_ended(server):
    """Whether each outage that a server has logged is over."""
    states = Counter(json.loads(line)["state"] for line in outage_lines(server))
    return states["began"] == states["ended"]


def hanging(connection):
    """The number of connections whose commit waits for the standby."""
    statement = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    ((count,),) = connection.execute(statement).fetchall()
    connection.rollback()
    return count


def outage_lines(server):
    """The lines of the log about outages."""
    return [line for line in server.log().splitlines() if '"event":"outage"' in line]
