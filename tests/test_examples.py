"""The examples of the reference are what the API answers today."""

import json
from pathlib import Path

import pytest
from testing.process import with_database

from retainer.api import ROUTES
from retainer.errors import STATUS
from retainer.reference.examples import FILE
from retainer.reference.pages import pages_of
from tests.examples import record


@pytest.fixture(scope="module")
def recorded(fast_disk: Path, request: pytest.FixtureRequest) -> str:
    """The examples of the code under test; they replace those of the package when that was asked for."""
    found = record(f"sqlite:///{with_database(fast_disk / 'examples') / 'data' / 'retainer.db'}")
    if request.config.getoption("--write-examples"):
        FILE.write_text(found, encoding="utf-8")
    return found


def test_the_examples_are_what_the_api_answers(recorded):
    assert json.loads(recorded) == json.loads(FILE.read_text(encoding="utf-8")), "make examples records them again"


def test_every_operation_and_every_refusal_has_an_example(recorded):
    examples = json.loads(recorded)
    tags = [page.title for page in pages_of(ROUTES).values() if page.group == "Resources"]
    in_order = sorted(ROUTES.operations, key=lambda operation: tags.index(operation.resource.tag))
    assert list(examples["operations"]) == [operation.id for operation in in_order]
    assert list(examples["errors"]) == list(STATUS)
    assert [example["response"]["code"] for example in examples["errors"].values()] == list(STATUS)
