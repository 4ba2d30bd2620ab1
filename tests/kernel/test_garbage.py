"""A request that was answered is gone at once: nothing of it waits for the garbage collector.

Of a page, only the body is, since templates of Jinja refer to themselves.
"""

import gc
import time
import tracemalloc

import pytest

from retainer.kernel.http import Request
from tests.client_pages.links import answer, link, send_quote
from tests.console.visitor import Visitor, admin_of
from tests.databases import each_database

pytestmark = each_database
PATIENCE_SECONDS = 1
LARGE = b'{"name": "A%%d"%s}' % (b" " * 900_000)
BILL = {"client_id": 1, "lines": [{"description": "Design", "unit_price": "500"}]}
TAG, WRONG = ({"method": "POST", "path": "/tags", "body": {"name": name}} for name in ("New", 7))


@pytest.fixture
def requests_left(api):
    """Let nothing be collected that is not gone by itself; a function that returns the requests that are left."""
    gc.collect()
    before = find_requests()  # of other tests
    gc.disable()

    def find_new():
        end = time.monotonic() + PATIENCE_SECONDS
        while (left := [each for each in find_requests() if each not in before]) and time.monotonic() < end:
            time.sleep(0.01)  # until the threads that have answered them are done
        return left

    yield find_new
    gc.enable()


def find_requests():
    return [each for each in gc.get_objects() if isinstance(each, Request)]


@pytest.mark.parametrize(
    ("status", "method", "path", "body"),
    [
        (200, "GET", "/clients", None),
        (404, "GET", "/clients/999", None),
        (404, "GET", "/nothing", None),
        (405, "DELETE", "/clients", None),
        (201, "POST", "/tags", {"name": "Web"}),
        (422, "POST", "/tags", {"name": 5, **{f"field{number}": 1 for number in range(50)}}),
        (422, "POST", "/invoices", BILL),
        (200, "POST", "/batch", {"operations": [TAG, WRONG]}),
        (200, "POST", "/batch", {"atomic": True, "operations": [TAG]}),
        (422, "POST", "/batch", {"atomic": True, "operations": [TAG, WRONG]}),
        (200, "GET", "/events", None),
    ],
)
def test_nothing_is_left_of_a_request_of_a_key(api, requests_left, status, method, path, body):
    assert api.call(method, path, body).status == status
    assert requests_left() == []


def test_nothing_is_left_of_a_body_that_is_not_json_or_without_a_key(api, requests_left):
    assert api.call("POST", "/tags", raw=b"{").status == 400
    assert api.call("POST", "/tags", {"name": "Web"}, key=None).status == 401
    assert requests_left() == []


def test_no_body_is_left_of_pages_and_forms_of_the_console(api, requests_left):
    visitor = admin_of(api)
    assert visitor.get("/console/records/tags").status == 200
    assert visitor.get("/console/records/tags/999").status == 404
    assert visitor.submit("/console/records/tags/new", name="").status == 422
    assert visitor.submit("/console/records/tags/new", name="Web").status == 200
    assert not any(request.body for request in requests_left())


def test_no_body_is_left_of_the_pages_of_clients(api, requests_left):
    client, quote = Visitor(api.app, "198.51.100.4"), send_quote(api)
    path = link(api, quote)
    assert answer(client, path, answer="accept", name="").status == 422
    assert answer(client, path, answer="accept", name="Jo").status == 200
    assert client.get("/client?token=unknown").status == 404
    assert not any(request.body for request in requests_left())


@pytest.mark.parametrize(("path", "status"), [("/clients", 201), ("/sites", 422), ("/nowhere", 404)])
def test_large_bodies_leave_no_memory_behind(api, requests_left, path, status):
    assert api.call("POST", path, raw=LARGE % 0).status == status, "which fills caches"
    tracemalloc.start()
    try:
        for number in range(1, 5):
            assert api.call("POST", path, raw=LARGE % number).status == status
        assert requests_left() == []
        assert tracemalloc.get_traced_memory()[0] < len(LARGE)
    finally:
        tracemalloc.stop()
