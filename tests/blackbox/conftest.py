"""Fixtures: a server that many tests share, and agencies of its own for each test."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.blackbox.process import Server, prepared, running

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server; tests keep apart by agencies and source addresses of their own."""
    with running(prepared(tmp_path_factory.mktemp("server"))) as running_server:
        yield running_server


@pytest.fixture
def address() -> str:
    """A loopback address that no other test has, with a bucket of its own."""
    return f"127.0.1.{next(NUMBERS)}"


@pytest.fixture
def open_agency(server: Server) -> Callable[[str], dict[str, Any]]:
    """Opens agencies of a plan."""
    return lambda plan: server.agency(f"Agency{next(NUMBERS)}", plan)


@pytest.fixture
def agency(open_agency: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """An agency with room for 3,000 requests a minute for each key."""
    return open_agency("enterprise")
