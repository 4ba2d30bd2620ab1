import json
import os
import re
import signal
import socket
import threading
import time
from collections import Counter

import pytest
from testing.ports import free_port
from testing.process import (
    PATIENCE,
    Client,
    answers,
    at_once,
    checked,
    children,
    command,
    drained,
    parsed,
    query,
    running,
    start,
    statuses,
    unsound,
    until,
    with_database,
)

from retainer.settings import BASE_PATH
from tests.length import first, only_full

CRASHES = ("all", "worker", "main", "all")
WRITERS = 16


@pytest.fixture
def disposable_server(tmp_path):
    """A server that a test may end as it likes."""
    with running(with_database(tmp_path)) as server:
        yield server


def numbers(server, account_id):
    """The client numbers of an account, in order."""
    found = query(server.database, f"SELECT number FROM clients WHERE account_id = {account_id} ORDER BY number")
    return [number for (number,) in found]


def gapless(count):
    return [f"C-{number:04}" for number in range(1, count + 1)]


def half_sent(server, key, name):
    """A create whose body is not yet whole; return the connection and what is still to come."""
    body = json.dumps({"name": name}).encode()
    head = (
        f"POST {BASE_PATH}/clients HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    link = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    link.sendall(head + body[:5])
    return link, body[5:]


def test_requests_in_flight_are_finished_before_the_server_ends(disposable_server):
    agency = disposable_server.agency("North", "enterprise")
    open_requests = [half_sent(disposable_server, agency["key"], f"Client {number}") for number in range(8)]
    with disposable_server.client(agency["key"]) as client:
        assert client.get("/me").status == 200, "the requests before were taken"
    disposable_server.process.terminate()
    time.sleep(0.5)  # nothing tells from outside that the signal has arrived
    found = []
    for link, rest in open_requests:
        with link:
            link.sendall(rest)
            received, _ = drained(link)
            found += parsed(received)
    assert statuses([checked(answer) for answer in found]) == {201: 8}
    assert disposable_server.process.wait(timeout=PATIENCE) == 0
    assert numbers(disposable_server, agency["account_id"]) == gapless(8)


def test_a_stop_under_load_loses_nothing_that_was_acknowledged_and_says_no_half_word(disposable_server):
    agency = disposable_server.agency("North", "enterprise")
    keys = [disposable_server.new_key(agency) for _ in range(4)]
    acknowledged, refused = [], []

    def write(number):
        with disposable_server.client(keys[number % 4]) as client:
            for turn in range(2000):
                try:
                    acknowledged.append(client.post("/clients", {"name": f"{number}-{turn}"}).data["name"])
                except OSError as error:
                    refused.append(type(error))
                    return

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    until(lambda: len(acknowledged) > 100, "some writes are acknowledged")
    assert disposable_server.stop() == 0
    for thread in threads:
        thread.join(timeout=PATIENCE)
        assert not thread.is_alive()
    assert len(refused) == WRITERS, "no incomplete answer: only connections that are closed or refused"
    rows = Counter(name for (name,) in query(disposable_server.database, "SELECT name FROM clients"))
    assert set(acknowledged) <= set(rows)
    assert max(rows.values()) == 1
    assert unsound(disposable_server.database) == []


def test_the_log_is_one_json_line_for_each_request_to_the_last_and_holds_no_key(disposable_server):
    agency = disposable_server.agency("North", "enterprise")
    sent = [f"mine-{number}" for number in range(60)]

    def call(number):
        with disposable_server.client(agency["key"] if number % 3 else None) as client:
            answer = client.get(f"/clients?api_key={agency['key']}&q=secret", X_Request_Id=sent[number])
            assert answer.headers["x-request-id"] == sent[number]

    at_once(8, call, len(sent))
    assert disposable_server.stop() == 0, "at once: the last lines have had no time yet"
    text = disposable_server.log()
    lines = [json.loads(line) for line in text.splitlines()]
    noted = Counter(line["request_id"] for line in lines if line["event"] == "request")
    assert {name: noted[name] for name in sent} == dict.fromkeys(sent, 1)
    mine = [line for line in lines if line.get("request_id") in set(sent)]
    assert {line["status"] for line in mine} == {401, 422}
    assert {line["key"] for line in mine} == {None, agency["key"][:8]}
    assert not re.search(r"rtn_[0-9A-Za-z]{38}", text)
    assert "secret" not in text
    assert (disposable_server.folder / "out.txt").read_text().count("\n") <= 3, "only where the server is"


def test_a_log_line_cannot_be_forged(disposable_server):
    with disposable_server.client() as client:
        client.get("/clients/%0a%7b%22event%22:%22forged%22%7d", X_Request_Id="a b", User_Agent="x\ty")
    disposable_server.stop()
    lines = [json.loads(line) for line in disposable_server.log().splitlines()]
    assert not [line for line in lines if line["event"] == "forged"]


class Journal:
    """What writers sent and what was acknowledged, kept outside the server."""

    def __init__(self, port, key):
        self.port = port
        self.key = key
        self.open = {}
        self.acknowledged = {}
        self.wrong = []
        self._made = 0
        self._lock = threading.Lock()

    def next(self):
        with self._lock:
            self._made += 1
            name = f"Client {self._made}"
            self.open[name] = f"attempt-{self._made}"
            return name

    def write(self, client, name):
        answer = client.post("/clients", {"name": name}, Idempotency_Key=self.open[name])
        if answer.status == 201:
            self.acknowledged[name] = answer.data["id"]
            del self.open[name]
        elif answer.status != 409:
            self.wrong.append(answer)

    def writer(self, stopped):
        """Create clients until told to stop, whatever happens to the server."""
        with Client(self.port, self.key) as client:
            while not stopped.is_set():
                name = self.next()
                try:
                    self.write(client, name)
                except AssertionError as error:
                    self.wrong.append(error)
                except Exception:  # noqa: BLE001  # the server is dead: what became of the request is unknown
                    time.sleep(0.05)

    def retry(self):
        """Send again, with the same keys, what was not acknowledged."""
        with Client(self.port, self.key) as client:
            for name in list(self.open):
                self.write(client, name)


def crash(server, kind):
    """Kill processes of the server without warning: the main one, the one that serves, or all."""
    if kind == "all":
        server.kill()
    elif kind == "main":
        server.process.kill()
        server.process.wait(timeout=PATIENCE)
    else:
        for pid in children(server.process.pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("kind", first(["sqlite", "postgresql"]))
def test_killed_under_writes_nothing_acknowledged_is_lost_and_nothing_is_there_twice(tmp_path, request, kind):
    port, settings = free_port(), {}
    if kind == "postgresql":
        settings["RETAINER_DATABASE_URL"] = request.getfixturevalue("postgresql_databases").create()
    server = start(with_database(tmp_path), port=port, **settings)
    agency = server.agency("North", "enterprise")
    journal = Journal(port, agency["key"])
    try:
        for crashed in CRASHES:
            stopped = threading.Event()
            enough = len(journal.acknowledged) + 100
            threads = [threading.Thread(target=journal.writer, args=(stopped,)) for _ in range(WRITERS)]
            for thread in threads:
                thread.start()
            until(lambda enough=enough: len(journal.acknowledged) >= enough, "writes are acknowledged")
            crash(server, crashed)
            stopped.set()
            for thread in threads:
                thread.join(timeout=PATIENCE)
                assert not thread.is_alive(), (crashed, server.processes(), server.log()[-2000:])
            if crashed == "worker":
                until(lambda server=server: answers(server), "a killed worker is replaced")
            else:
                server.kill()
                server = start(tmp_path, port=port, **settings)
            journal.retry()
    finally:
        server.kill()
    assert journal.wrong == []
    assert journal.open == {}
    rows = dict(query(server.database, "SELECT name, id FROM clients"))
    assert rows == journal.acknowledged, "what was acknowledged is there, under the id that was told, and no more"
    assert numbers(server, agency["account_id"]) == gapless(len(rows))
    assert unsound(server.database) == []


def test_a_main_process_that_is_killed_leaves_no_orphan_behind(disposable_server):
    family = children(disposable_server.process.pid)
    crash(disposable_server, "main")
    until(lambda: not [pid for pid in family if alive(pid)], "the processes that it started have ended")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_second_server_on_the_same_database_is_refused_in_a_sentence(disposable_server):
    """Limits are counted in one process, so that one serves."""
    finished = command(disposable_server.folder, "serve", "--port", str(free_port()))
    assert finished.status == 1
    assert "Another server serves" in finished.err


def test_a_hundred_identical_posts_with_one_idempotency_key_have_one_effect(servers, agency):
    def post(_):
        with servers.client(agency["key"]) as client:
            return client.insist("POST", "/clients", {"name": "Once"}, Idempotency_Key="one-effect")

    found = at_once(32, post, 100)
    assert set(statuses(found)) <= {201, 409}
    made = [answer for answer in found if answer.status == 201]
    assert len({answer.body for answer in made}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in made) == 1
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in found if answer.status == 409)
    assert numbers(servers, agency["account_id"]) == ["C-0001"]
    again = post(0)
    assert (again.status, again.body) == (201, made[0].body)
    with servers.client(agency["key"]) as client:
        other = client.post("/clients", {"name": "Other"}, Idempotency_Key="one-effect")
    assert (other.status, other.code) == (422, "idempotency_key_reused")
    with servers.client(servers.new_key(agency)) as client:
        fresh = client.post("/clients", {"name": "Once"}, Idempotency_Key="one-effect")
    assert (fresh.status, fresh.data["number"]) == (201, "C-0002"), "another API key has attempts of its own"


def test_of_thirty_changes_to_the_same_state_exactly_one_wins(servers, agency):
    with servers.client(agency["key"]) as client:
        made = client.post("/clients", {"name": "First"}).data
        path = f"/clients/{made['id']}"
        for turn in range(3):
            state = client.get(path).headers["etag"]
            barrier = threading.Barrier(30)

            def change(number, barrier=barrier, state=state, turn=turn):
                with servers.client(agency["key"]) as mine:
                    barrier.wait(timeout=PATIENCE)
                    return mine.insist("PATCH", path, {"notes": f"by {turn}.{number}"}, If_Match=state)

            found = at_once(30, change)
            assert statuses(found) == {200: 1, 412: 29}
            (winner,) = [answer for answer in found if answer.status == 200]
            assert client.get(path).data["notes"] == winner.data["notes"]
            assert client.get(path).headers["etag"] != state


@only_full
def test_a_worker_that_dies_twice_within_seconds_is_replaced_twice(disposable_server):
    agency = disposable_server.agency("North", "enterprise")
    for name in ("First", "Second", "Third"):
        (worker,) = until(lambda: children(disposable_server.process.pid)[-1:], "there is a worker")
        os.kill(worker, signal.SIGKILL)
        until(lambda: answers(disposable_server), "a killed worker is replaced")
        with disposable_server.client(agency["key"]) as client:
            assert client.post("/clients", {"name": name}).status == 201
    assert disposable_server.stop() == 0
