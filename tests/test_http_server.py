"""The HTTP server: what the worker takes from it, and under which names."""

from types import SimpleNamespace

import pytest
from granian import _granian
from testing.wsgi import Headers

from retainer.processes import worker
from retainer.server.http.scope import environ_of


def scope(headers=(), **changes):
    """A request as the server tells of it."""
    told = {"method": "GET", "path": "/", "query_string": "", "http_version": "1.1", "client": "192.0.2.1:4711"}
    return SimpleNamespace(**{**told, "scheme": "http", "authority": None, "headers": Repeated(headers), **changes})


class Repeated(Headers):
    """Headers of which some have several values."""

    def __init__(self, pairs):
        super().__init__(pairs)
        self.pairs = pairs

    def items(self):
        return [(name, value) for name, value in self.pairs if value.isascii()]


def test_the_private_names_of_the_server_that_a_worker_uses_are_what_they_were():
    """They may change with each version of Granian, which pyproject.toml pins.

    If one has, compare `worker.serve` with `MPServer._spawn_rsgi_worker` (granian/server/mp.py) and with
    `_cbsched_schedule` (granian/_futures.py), where Granian does the same for itself.
    """
    signal, called = _granian.WorkerSignal(), []
    signal.add_cb(lambda: called.append("ended"))
    scheduler = _granian.CallbackScheduler(worker.Loop(), None, None, None, None)
    scheduler._schedule_fn = called.append  # noqa: SLF001
    holder = _granian.SocketHolder(0, False, 1)
    served = _granian.RSGIWorker(0, (None, holder), None, threads=1, blocking_threads=1, py_threads=1)
    assert callable(served.serve_mtr)
    assert callable(signal.set)


def test_a_callback_runs_at_once_with_what_it_waited_for():
    called = []
    worker.Loop().call_soon_threadsafe(called.append, 7, context=None)
    assert called == [7]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("x-api-key", "a"), ("content-type", "b")], {"HTTP_X_API_KEY": "a", "CONTENT_TYPE": "b"}),
        ([("accept", "a"), ("accept", "b")], {"HTTP_ACCEPT": "a,b"}),
        ([("cookie", "a=1"), ("cookie", "b=2")], {"HTTP_COOKIE": "a=1;b=2"}),
        ([("if-match", '"\xe9"')], {"HTTP_IF_MATCH": ""}),
        ([("x_forwarded_for", "203.0.113.9")], {}),
        ([("x_forwarded_for", "203.0.113.9"), ("x-forwarded-for", "192.0.2.9")], {"HTTP_X_FORWARDED_FOR": "192.0.2.9"}),
    ],
    ids=["names", "repeated", "cookies", "no text", "underscored", "underscored and not"],
)
def test_headers_are_joined_none_vanishes_and_none_has_an_underscore(headers, expected):
    environ = environ_of(scope(headers))
    found = {name: value for name, value in environ.items() if name.startswith(("HTTP_", "CONTENT_"))}
    assert found == expected


@pytest.mark.parametrize(
    ("client", "address"), [("192.0.2.1:4711", "192.0.2.1"), ("[2001:db8::1]:4711", "2001:db8::1")]
)
def test_the_address_of_a_client_has_no_port_and_no_brackets(client, address):
    assert environ_of(scope(client=client))["REMOTE_ADDR"] == address


@pytest.mark.parametrize(
    ("path", "seen"), [("/caf\xe9", b"/caf\xc3\xa9"), ("/a\ufffdb", b"/a\xffb"), ("/plain", b"/plain")]
)
def test_bytes_of_a_path_that_are_no_text_stay_none(path, seen):
    assert environ_of(scope(path=path))["PATH_INFO"].encode("latin-1") == seen


def test_a_request_without_a_host_has_that_of_its_address():
    assert environ_of(scope(authority="agency.example"))["HTTP_HOST"] == "agency.example"
    assert environ_of(scope([("host", "x")], authority="agency.example"))["HTTP_HOST"] == "x"
