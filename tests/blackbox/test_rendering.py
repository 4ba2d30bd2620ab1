"""Documents are made in processes of their own: what happens to these concerns no other request."""

import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from testing.process import running, until, with_database

from retainer.settings import BASE_PATH
from tests.length import only_full
from tests.monitor.test_probe import FakeSite

LINE = {"description": "Design", "quantity": "2", "unit_price": "100", "tax_rate": "19"}
DRAFT = f"{BASE_PATH}/invoices/1"
MEGABYTES = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that runs one request at a time, with a draft of its agency."""
    folder = with_database(tmp_path_factory.mktemp("rendering"))
    with running(folder, RETAINER_THREADS="1") as started:
        started.account = started.agency("North", "agency")
        with started.client(started.account["key"]) as client:
            client.post("/clients", {"name": "Bergmann"})
            client.post("/invoices", {"client_id": 1, "lines": [LINE] * 40})
        yield started


@pytest.fixture
def client(server):
    with server.client(server.account["key"]) as found:
        yield found


def pdf_of(server, account=None, path=DRAFT):
    with server.client((account or server.account)["key"]) as own:
        return own.send("GET", path, Accept="application/pdf")


def renderers_of(server):
    commands = {pid: command_of(pid) for pid in server.processes()}
    return [pid for pid, command in commands.items() if "retainer.server.renderer" in command]


def command_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:  # noqa: PTH123
        return file.read()
    return ""


@contextlib.contextmanager
def held(server):
    """A request for a PDF whose renderer is stopped during the block; its response follows."""
    assert pdf_of(server).status == 200
    (pid,) = renderers_of(server)
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(pdf_of, server)
        try:
            time.sleep(1)  # the request arrives; if it took longer, the test would only prove less
            assert not answer.done()
            yield answer, pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def test_a_request_that_waits_for_its_pdf_holds_no_slot(server, client):
    with held(server) as (answer, _):
        assert [client.send("GET", f"{BASE_PATH}/me").status for _ in range(5)] == [200] * 5
        assert client.post("/clients", {"name": "Another"}).status == 201
        assert not answer.done()
    assert answer.result().body.startswith(b"%PDF")


def test_a_renderer_that_is_killed_fails_one_request_in_plain_words(server, client):
    with held(server) as (answer, pid):
        os.kill(pid, signal.SIGKILL)
        failed = answer.result()
    assert (failed.status, failed.json["code"], failed.headers["retry-after"]) == (503, "unavailable", "5")
    assert failed.json["message"] == "The document could not be made. Try again in 5 seconds."
    until(lambda: "The renderer ended with status -9." in server.log(), "the log says so")
    assert pdf_of(server).status == 200
    assert client.send("GET", f"{BASE_PATH}/me").status == 200


def test_a_keyword_is_searched_while_documents_have_all_renderers(tmp_path):
    site = FakeSite()
    with (
        running(with_database(tmp_path), RETAINER_MONITOR_ALLOW="127.0.0.0/8") as server,
        ThreadPoolExecutor(2) as pool,
    ):
        accounts = [server.agency(name, "agency") for name in ("East", "West")]
        asked = []
        for account in accounts:
            with server.client(account["key"]) as client:
                own = client.post("/clients", {"name": "Bergmann"}).json["data"]["id"]
                made = client.post("/invoices", {"client_id": own, "lines": [LINE] * 40}).json["data"]["id"]
            asked.append(pool.submit(pdf_of, server, account, f"{BASE_PATH}/invoices/{made}"))
            until(lambda: len(renderers_of(server)) == len(asked) or asked[-1].done(), "a renderer begins")
            for pid in renderers_of(server):
                os.kill(pid, signal.SIGSTOP)
        try:
            with server.client(accounts[0]["key"]) as client:
                path = client.post("/sites", {"url": site.url, "keyword": "ok"}).headers["location"]
                until(
                    lambda: client.send("GET", path).json.get("data", {}).get("status") == "up", "the site is checked"
                )
            assert not any(each.done() for each in asked)  # they are ended after 19 seconds only
        finally:
            for pid in renderers_of(server):
                os.kill(pid, signal.SIGCONT)
        assert {each.result().status for each in asked} <= {200, 503}
    site.close()


@only_full
def test_memory_falls_back_after_many_documents(server):
    assert pdf_of(server).status == 200
    until(lambda: not renderers_of(server), "the renderers end")
    before = server.resident()
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: pdf_of(server).status, range(96)))
    assert 200 in answers
    assert set(answers) <= {200, 503}
    until(lambda: not renderers_of(server), "the renderers end")
    assert server.resident() - before < 100 * MEGABYTES
