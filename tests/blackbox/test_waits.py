"""Every wait of a request meets every time limit, directly and behind a proxy: each request ends with an answer."""

import contextlib
import http.client
import json
import socket
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from testing.ports import free_port
from testing.process import running, until, with_database

from retainer.kernel.waiting import MAX_SECONDS, SHARE
from retainer.server.http.bodies import BODY_SECONDS
from retainer.server.http.gate import REQUEST_SECONDS
from retainer.settings import BASE_PATH
from retainer.store.engines.base import WAIT_SECONDS
from tests.deploy.test_proxies import nginx, started
from tests.length import by_turns, only_full
from tests.skips import find_program

LOCKED_FROM, LOCKED_SECONDS = 17, WAIT_SECONDS - 0.6
"""When another process holds the only writer's lock, in seconds from the begin."""
PATIENCE = 3 * REQUEST_SECONDS


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = with_database(tmp_path_factory.mktemp("server"))
    settings = {"RETAINER_TRUSTED_PROXIES": "127.0.0.1/32", "RETAINER_THREADS": "4"}
    with running(folder, "--no-monitor", **settings) as running_server:
        yield running_server


@pytest.fixture(params=by_turns(["directly", "nginx"]))
def port(request, server, tmp_path):
    """The port that clients connect to."""
    if request.param == "directly":
        yield server.port
        return
    find_program("nginx")
    chosen = free_port()
    with started("nginx", nginx(tmp_path, chosen, server.port), chosen, tmp_path):
        yield chosen


class Caller:
    """Sends requests of a key over one connection, and notes which tags were acknowledged, and which refused."""

    def __init__(self, port, key):
        self.port, self.key, self.began = port, key, time.monotonic()
        self.written, self.refused = set(), set()

    @contextlib.contextmanager
    def connection(self):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE, source_address=("127.0.0.5", 0))
        with contextlib.closing(link):
            yield link

    def ask(self, link, method, path, body=None, **headers):
        headers = {"Authorization": f"Bearer {self.key}", "Host": "agency.example", **headers}
        if body is not None:
            headers |= {"Content-Type": "application/json"}
        link.request(method, BASE_PATH + path, body, headers)
        answer = link.getresponse()
        answer.read()
        return answer.status

    def write(self, link, name):
        status = self.ask(link, "POST", "/tags", json.dumps({"name": name}))
        (self.written if status == 201 else self.refused).add(name)
        return status

    def at(self, seconds):
        """Sleep until so many seconds from the begin."""
        time.sleep(max(0, self.began + seconds - time.monotonic()))

    def wait_for_an_event_on_an_idle_connection(self):
        """Without events, the wait ends later than every limit of a connection that is not answered."""
        with self.connection() as link:
            statuses = [self.ask(link, "GET", "/me")]
            self.at(LOCKED_FROM - 1)
            return [*statuses, self.ask(link, "GET", "/events?after=0", Prefer="wait=20")]

    def write_on_an_idle_connection_while_the_writer_is_busy(self):
        with self.connection() as link:
            statuses = [self.ask(link, "GET", "/me")]
            self.at(LOCKED_FROM + 0.5)
            return [*statuses, self.write(link, "after an idle time")]

    def write_with_many_at_once(self):
        self.at(LOCKED_FROM + 0.5)

        def one(number):
            with self.connection() as link:
                return self.write(link, f"one of many, {number}")

        with ThreadPoolExecutor(20) as pool:
            return list(pool.map(one, range(20)))

    def read_a_document_meanwhile(self):
        self.at(LOCKED_FROM + 1)
        with self.connection() as link:
            return [self.ask(link, "GET", "/invoices/1", Accept="application/pdf")]

    def send_a_body_slowly(self):
        with self.connection() as link:
            body = b'{"name":"slow"}'
            link.putrequest("POST", f"{BASE_PATH}/tags", skip_host=True)
            for name, value in {"Host": "agency.example", "Authorization": f"Bearer {self.key}"}.items():
                link.putheader(name, value)
            link.putheader("Content-Type", "application/json")
            link.putheader("Content-Length", str(len(body)))
            link.endheaders()
            link.send(body[:5])
            self.at(BODY_SECONDS - 3)
            link.send(body[5:])
            status = link.getresponse().status
            self.written.add("slow")
            return [status]


@contextlib.contextmanager
def waiting_for_events(server, key):
    """Connections whose requests wait for events, in all places of the account; and a client of it."""
    head = (
        f"GET {BASE_PATH}/events?after=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nPrefer: wait=20\r\n\r\n"
    )
    links = []
    with contextlib.ExitStack() as stack, server.client(key) as client:

        def wait_too():
            links.append(stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE)))
            links[-1].sendall(head.encode())

        def all_wait():
            wait_too()
            return not has_place(client)

        for _ in range(SHARE):
            wait_too()
        until(all_wait, "all places are taken")
        yield links, client


def has_place(client):
    return "preference-applied" in client.get("/events?after=0", Prefer="wait=1").headers


def test_clients_that_hang_up_give_their_places_to_wait_back(server):
    key = server.agency("Hangs up", "enterprise")["key"]
    with waiting_for_events(server, key):
        pass
    with server.client(key) as client:
        until(lambda: has_place(client), "they are free again", MAX_SECONDS / 2)


def test_a_server_that_stops_answers_the_requests_that_wait(tmp_path):
    with running(with_database(tmp_path), "--no-monitor") as server:
        key = server.agency("Waits", "enterprise")["key"]
        with waiting_for_events(server, key) as (links, _):
            server.process.terminate()
            assert {link.recv(12) for link in links} == {b"HTTP/1.1 200"}
        assert server.process.wait(PATIENCE) == 0
        assert "exceeded its time limit" not in server.log()


@only_full
def test_every_wait_ends_with_an_answer_and_no_refused_write_is_executed(server, port):
    agency = server.agency(f"Waits {port}", "enterprise")
    with server.client(agency["key"]) as client:
        customer = client.post("/clients", {"name": "Nordwind"}).data["id"]
        lines = [{"description": "Work", "unit_price": "1"}]
        client.post("/invoices", {"client_id": customer, "lines": lines})
    caller = Caller(port, agency["key"])
    quiet = Caller(port, server.agency(f"Quiet {port}", "enterprise")["key"])
    works = [
        quiet.wait_for_an_event_on_an_idle_connection,
        caller.write_on_an_idle_connection_while_the_writer_is_busy,
        caller.write_with_many_at_once,
        caller.read_a_document_meanwhile,
        caller.send_a_body_slowly,
    ]
    with ThreadPoolExecutor(len(works)) as pool, contextlib.closing(sqlite3.connect(server.database)) as other:
        answers = [pool.submit(work) for work in works]
        caller.at(LOCKED_FROM)
        locked = time.monotonic()
        other.execute("BEGIN IMMEDIATE")
        caller.at(LOCKED_FROM + LOCKED_SECONDS)
        other.rollback()
        is_too_long = time.monotonic() - locked > WAIT_SECONDS  # as this process did not run meanwhile
        waited, written, many, document, slow = [answer.result(PATIENCE) for answer in answers]
    assert (waited, slow) == ([200, 200], [201])
    assert written == [200, 201] or is_too_long
    assert document[0] in {200, 404}, "the first invoice of the server may be of another account"
    assert set(many) <= {201, 503}
    time.sleep(REQUEST_SECONDS - BODY_SECONDS)  # nothing is executed any more
    with server.client(agency["key"]) as client:
        names = {tag["name"] for tag in client.get("/tags?per_page=100").json["data"]}
    assert (caller.written - names, caller.refused & names) == (set(), set())
