"""Workers: replaced after a death, renewed without a refused request, and stopped in order."""

import contextlib
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from testing.ports import free_port
from testing.process import (
    COMMAND,
    PATIENCE,
    Client,
    Server,
    answers,
    children,
    command,
    environment,
    query,
    running,
    until,
    with_database,
)

from retainer.settings import BASE_PATH
from tests.blackbox.test_life import alive
from tests.length import first, length, only_full

CALLERS = 8


@pytest.fixture
def addresses(postgresql_databases, valkey_process):
    """A database of its own and the Valkey, as settings."""
    url = postgresql_databases.copy(postgresql_databases.prototype)
    yield {"RETAINER_DATABASE_URL": url, "RETAINER_VALKEY_URL": valkey_process.url}
    postgresql_databases.discard(url)


@pytest.fixture
def two_workers(tmp_path, addresses):
    """A server with two workers."""
    with running(tmp_path, "--no-monitor", "--workers", 2, **addresses) as server:
        until(lambda: len(children(server.process.pid)) == 2, "there are two workers")
        yield server


@pytest.fixture
def one_worker(tmp_path):
    """A server of the embedded database."""
    with running(with_database(tmp_path), "--no-monitor") as server:
        yield server


@pytest.fixture(params=first(["one_worker", "two_workers"]))
def any_server(request):
    return request.getfixturevalue(request.param)


class Load:
    """Callers with a key each, half of them with a new connection for each request; none ever tries again."""

    def __init__(self, server, agency):
        self.server = server
        self.keys = [server.new_key(agency) for _ in range(CALLERS)]
        self.outcomes = Counter()
        self.created = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(number,)) for number in range(CALLERS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        self.until_more()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join(timeout=PATIENCE)

    def _call(self, number):
        client = Client(self.server.port, self.keys[number])
        turn = 0
        while not self._ended.wait(0.02):
            turn += 1
            try:
                if turn % 4:
                    outcome = client.get("/me").status
                else:
                    answer = client.post("/clients", {"name": f"{number}-{turn}"})
                    outcome = answer.status
                    if outcome == 201:
                        self.created.append(answer.data["number"])
            except (OSError, http.client.HTTPException) as error:
                outcome = repr(error)
            self.outcomes[outcome] += 1
            if number % 2:
                client.close()
        client.close()

    def until_more(self):
        before = self.outcomes.total()
        until(lambda: self.outcomes.total() > before + CALLERS * 10, "there is load")


def workers(server):
    return set(children(server.process.pid))


def log_of(server, event):
    return [
        line for line in map(json.loads, re.findall(r"^\{.*\}$", server.log(), re.MULTILINE)) if line["event"] == event
    ]


def renewals(server):
    return [line["message"] for line in log_of(server, "notice")].count("All workers were renewed.")


def renew(server):
    before = renewals(server)
    server.process.send_signal(signal.SIGHUP)
    until(lambda: renewals(server) > before, "all workers were renewed")


def warned(server, text):
    return until(lambda: [line for line in log_of(server, "warning") if text in line["message"]], text)


def test_the_embedded_database_takes_one_worker_and_says_what_to_set(tmp_path):
    result = command(tmp_path, "serve", "--workers", 2)
    assert result.status == 1
    assert "The embedded database allows only one worker" in result.err
    assert "RETAINER_DATABASE_URL" in result.err
    assert "RETAINER_VALKEY_URL" in result.err
    assert not (tmp_path / "data").exists(), "nothing was made"


def test_several_workers_need_a_valkey_and_say_so(tmp_path, addresses):
    result = command(tmp_path, "serve", "--workers", 2, RETAINER_DATABASE_URL=addresses["RETAINER_DATABASE_URL"])
    assert result.status == 1
    assert "Set RETAINER_VALKEY_URL" in result.err


def until_state(process_id, states):
    """Wait until all threads of a process are in a state, after a signal; those of one that is gone are in any."""

    def found():
        with contextlib.suppress(OSError):
            threads = Path(f"/proc/{process_id}/task").iterdir()
            stats = [(thread / "stat").read_text(encoding="utf-8").rpartition(")")[2] for thread in threads]
            return all(stat.split()[0] in states for stat in stats)
        return True

    until(found, f"a process is in state {states}")


def test_each_worker_answers_while_the_other_hangs(two_workers):
    for worker in workers(two_workers):
        os.kill(worker, signal.SIGSTOP)
        until_state(worker, "T")
        try:
            assert [answers(two_workers) for _ in range(20)] == [True] * 20
        finally:
            os.kill(worker, signal.SIGCONT)


def test_a_killed_worker_is_replaced_while_the_other_serves(two_workers):
    for _ in range(3):
        before = workers(two_workers)
        victim = min(before)
        os.kill(victim, signal.SIGKILL)
        until_state(victim, "ZX")
        found = [answers(two_workers) for _ in range(20)]
        assert found == [True] * 20, "new connections do not wait"
        after = until(lambda b=before: len(workers(two_workers) - b) == 1 and workers(two_workers), "it is replaced")
        assert after & before == before - {victim}
    assert len(warned(two_workers, "ended with status -9. A new worker replaces it.")) == 3


def test_workers_are_renewed_under_load_without_a_refused_request(any_server):
    agency = any_server.agency("Busy", "enterprise")
    with Load(any_server, agency) as load:
        for _ in range(length(10)):
            before = workers(any_server)
            renew(any_server)
            assert workers(any_server) & before == set()
            load.until_more()
    assert set(load.outcomes) == {200, 201}, load.outcomes
    assert len(load.created) == load.outcomes[201] > 0
    numbers = query(any_server.database, f"SELECT number FROM clients WHERE account_id = {agency['account_id']}")
    assert sorted(number for (number,) in numbers) == sorted(load.created)


@only_full
def test_a_renewed_worker_waits_for_its_clients(two_workers):
    """A client that sends something from time to time is asked to close its connection, and never loses it."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(two_workers.client()) for _ in range(20)]
        for client in clients:
            assert client.send("GET", "/livez").status == 200
        two_workers.process.send_signal(signal.SIGHUP)
        turns, found = itertools.cycle(clients), []

        def is_asked_to_close():
            time.sleep(0.1)
            found.append(next(turns).send("GET", f"{BASE_PATH}/me"))
            return found[-1].headers.get("connection") == "close"

        until(is_asked_to_close, "a successor is ready, and its predecessor waits")
        found += [client.send("GET", f"{BASE_PATH}/me") for client in clients]
    assert {answer.status for answer in found} == {401}
    until(lambda: renewals(two_workers) == 1, "all workers were renewed")


@only_full
def test_new_workers_take_new_settings_and_bad_ones_renew_nobody(two_workers):
    file = two_workers.folder / ".env"
    file.write_text("RETAINER_BASE_URL=https://agency.example\n", encoding="utf-8")
    renew(two_workers)
    with two_workers.client() as client:
        document = client.send("GET", "/openapi.json").json
    assert document["servers"][0]["url"] == f"https://agency.example{BASE_PATH}"
    before = workers(two_workers)
    for line, message in (
        ("RETAINER_BASE_URI=https://agency.example", "Did you mean RETAINER_BASE_URL?"),
        ("RETAINER_METRICS=127.0.0.1:9090", "Restart the server to change metrics."),
    ):
        file.write_text(line + "\n", encoding="utf-8")
        two_workers.process.send_signal(signal.SIGHUP)
        warned(two_workers, message)
        assert workers(two_workers) == before
        assert answers(two_workers)


@only_full
def test_a_new_worker_that_dies_before_it_is_ready_cancels_the_renewal(two_workers):
    before = workers(two_workers)
    two_workers.process.send_signal(signal.SIGHUP)
    (new,) = until(lambda: workers(two_workers) - before, "a new worker starts")
    os.kill(new, signal.SIGKILL)
    warned(two_workers, "before it was ready. The renewal was cancelled.")
    assert workers(two_workers) == before
    assert answers(two_workers)
    renew(two_workers)
    assert workers(two_workers) & before == set()


@only_full
def test_a_stop_in_the_middle_of_renewals_ends_all(two_workers):
    before = workers(two_workers)
    with two_workers.client() as idle:
        idle.send("GET", "/livez")
        two_workers.process.send_signal(signal.SIGHUP)
        until(lambda: workers(two_workers) - before, "a new worker starts")
        assert two_workers.stop() == 0
    assert "exceeded its time limit" not in two_workers.log()


IGNORING = """
import os, signal, threading, time
from retainer.processes.worker import end_with
main = os.getpid()
if os.fork():
    time.sleep(60)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.Thread(target=end_with, args=(main, 0), daemon=True).start()
print(os.getpid(), flush=True)
time.sleep(60)
"""


@only_full
def test_a_worker_that_ignores_sigterm_does_not_outlive_its_main_process():
    with subprocess.Popen([sys.executable, "-c", IGNORING], stdout=subprocess.PIPE) as main:
        worker = int(main.stdout.readline())
        assert alive(worker)
        main.kill()
        until(lambda: not alive(worker), "the worker was killed")


def ready(server):
    with server.client() as client:
        return client.send("GET", "/readyz")


@only_full
def test_after_sigterm_a_server_is_not_ready_and_answers_until_its_delay_ends(tmp_path, addresses):
    with running(tmp_path, "--no-monitor", "--workers", 2, RETAINER_STOP_DELAY="300", **addresses) as server:
        until(lambda: ready(server).status == 200, "both workers and their database answer in time")
        agency = server.agency("Busy", "enterprise")
        with Load(server, agency) as load:
            server.process.terminate()
            until(lambda: ready(server).status == 503, "it is not ready")
            load.until_more()
            assert ready(server).json == {"status": "stopping"}
        assert set(load.outcomes) <= {200, 201}, load.outcomes
        with server.client(agency["key"]) as client:
            assert client.get("/me").headers["connection"] == "close"
        assert server.stop() == 0


def test_the_delay_of_a_stop_ends(tmp_path):
    with running(with_database(tmp_path), "--no-monitor", RETAINER_STOP_DELAY="1") as server:
        began = time.monotonic()
        server.process.terminate()
        assert server.process.wait(timeout=PATIENCE) == 0
        assert time.monotonic() - began >= 1


@only_full
def test_a_stop_waits_for_silent_hosts_together_and_for_requests_at_the_same_time(tmp_path):
    """One after the other, they would take longer than a worker has, and it would be killed."""
    with contextlib.ExitStack() as stack:
        site, receiver, mail = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3))
        address = [f"127.0.0.1:{each.getsockname()[1]}" for each in (site, receiver, mail)]
        settings = {"RETAINER_MONITOR_ALLOW": "127.0.0.0/8", "RETAINER_SMTP_URL": f"smtp://{address[2]}?tls=none"}
        server = stack.enter_context(
            running(with_database(tmp_path), RETAINER_MAIL_FROM="post@agency.example", **settings)
        )
        key = server.agency("Stops", "enterprise")["key"]
        client = stack.enter_context(server.client(key))
        client.post("/sites", {"url": f"http://{address[0]}/"})
        client.post("/webhooks", {"url": f"http://{address[1]}/"})
        lines = [{"description": "Design", "unit_price": "500"}]
        invoice = client.post(
            "/invoices", {"client_id": client.post("/clients", {"name": "X"}).data["id"]} | {"lines": lines}
        )
        assert client.post(f"/invoices/{invoice.data['id']}/send", {"to": ["ana@lindner.example"]}).status == 201
        for host in (site, receiver, mail):
            host.settimeout(PATIENCE)
            stack.enter_context(host.accept()[0])
        sender = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), PATIENCE))
        head = f"POST {BASE_PATH}/clients HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: 9"
        sender.sendall(f"{head}\r\n\r\n{{".encode())
        client.get("/me")  # the server has taken the other request, too
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 13, "the seconds of a body, which are more than those of the hosts"
        assert "exceeded its time limit" not in server.log()


@only_full
def test_systemd_hands_over_a_socket_and_is_told_when_the_server_is_ready(tmp_path):
    """While the server restarts, connections wait in the socket, which is systemd's."""
    port = free_port()
    with_database(tmp_path)
    with (
        socket.create_server(("127.0.0.1", port)) as listener,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told,
        tempfile.TemporaryDirectory() as folder,  # a short path: that of an address has at most 107 bytes
        (tmp_path / "err.txt").open("ab") as err,
    ):
        told.bind(f"{folder}/notify")
        told.settimeout(PATIENCE)
        settings = {"NOTIFY_SOCKET": f"{folder}/notify", "LISTEN_FDS": "1"}
        script = 'exec env LISTEN_PID=$$ "$@" 3<&0'
        arguments = ["sh", "-c", script, "sh", *COMMAND, "serve", "--no-monitor", "--port", str(free_port())]
        for _ in range(2):
            process = subprocess.Popen(
                arguments, cwd=tmp_path, env=environment(tmp_path, **settings), stdin=listener, stdout=err, stderr=err
            )
            server = Server(tmp_path, port, process)
            with server.client() as client:
                assert client.send("GET", "/livez").status == 200
            assert told.recv(100) == b"READY=1"
            process.terminate()
            assert told.recv(100) == b"STOPPING=1"
            assert process.wait(timeout=PATIENCE) == 0


@only_full
def test_a_server_whose_workers_cannot_live_ends(tmp_path):
    with running(with_database(tmp_path), "--no-monitor") as server:
        end = time.monotonic() + PATIENCE
        while server.process.poll() is None and time.monotonic() < end:
            for worker in workers(server):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            time.sleep(0.05)
        assert server.process.wait(timeout=PATIENCE) == 1
        warned(server, "10 workers died within a minute. The server stops.")


def test_a_plan_that_does_not_exist_is_refused_once_and_before_any_worker_starts(tmp_path):
    result = command(with_database(tmp_path), "serve", "--port", free_port(), RETAINER_MAX_SITES="10,gold=2")
    assert (result.status, result.out) == (1, "")
    assert result.err.count("RETAINER_MAX_SITES names the plan gold. Plans: ") == 1
    assert "orker" not in result.err


@pytest.mark.parametrize("place", ["data", "data/backups", "data/../data/backups"])
def test_backups_within_the_data_folder_are_refused(tmp_path, place):
    folder = str(with_database(tmp_path) / place)
    result = command(tmp_path, "serve", "--port", free_port(), RETAINER_BACKUP_DIR=folder)
    assert (result.status, result.out) == (1, "")
    assert "within the data folder" in result.err
    assert not (tmp_path / "data/backups").exists()
