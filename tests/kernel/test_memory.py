"""Memory: what a request brings is gone once it is answered, so that a flood of large bodies leaves nothing behind."""

import gc
import tracemalloc

import pytest

from tests.databases import each_database
from tests.factories import ApiClient

BODY = b'{"name": "A%%d"%s}' % (b" " * 900_000)


@pytest.fixture
def uncollected():
    """No collection of cycles, as between two of them."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@each_database
@pytest.mark.parametrize(("path", "status"), [("/clients", 201), ("/sites", 422), ("/nowhere", 404)])
def test_the_body_of_a_request_does_not_wait_for_a_collection(api: ApiClient, uncollected: None, path, status):
    api.call("POST", path, raw=BODY % 0)  # which fills caches
    tracemalloc.start()
    try:
        for number in range(1, 5):
            assert api.call("POST", path, raw=BODY % number).status == status
        assert tracemalloc.get_traced_memory()[0] < len(BODY)
    finally:
        tracemalloc.stop()
