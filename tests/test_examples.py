"""The examples of the reference are what the API answers today."""

import json
from pathlib import Path

import pytest

from retainer.errors import STATUS
from retainer.reference.examples import FILE
from tests.blackbox.process import prepared
from tests.examples import record
from tests.examples.day import OPERATIONS


@pytest.fixture(scope="module")
def recorded(fast_disk: Path, request: pytest.FixtureRequest) -> str:
    """The examples of the code under test; they replace those of the package when that was asked for."""
    found = record(f"sqlite:///{prepared(fast_disk / 'examples') / 'data' / 'retainer.db'}")
    if request.config.getoption("--write-examples"):
        FILE.write_text(found, encoding="utf-8")
    return found


def test_the_examples_are_what_the_api_answers(recorded):
    assert json.loads(recorded) == json.loads(FILE.read_text(encoding="utf-8")), "make examples records them again"


def test_every_operation_and_every_refusal_has_an_example(recorded):
    examples = json.loads(recorded)
    assert examples["operations"].keys() == OPERATIONS.keys()
    assert list(examples["errors"]) == list(STATUS)
    assert [example["response"]["code"] for example in examples["errors"].values()] == list(STATUS)
