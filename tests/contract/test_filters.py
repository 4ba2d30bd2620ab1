"""Every filter alone and with others, every order and every page, held against a model in plain Python.

The account of `tests/contract/filled_lists.py` is only read.
"""

import itertools
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Any

import pytest
import time_machine

from retainer.kernel.resource import Operation
from tests.contract import filled_lists
from tests.contract.filled_lists import LISTS, Agency
from tests.contract.filler import NOW
from tests.length import IS_FULL, by_turns, length, sampled
from tests.reference.lists import Row, filters_of, sorts_of, takes_me

PAGE_SIZE = 7 if IS_FULL else 25
agency = filled_lists.agency


@pytest.fixture(autouse=True)
def _now() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


def finds(agency: Agency, operation: Operation, query: dict[str, str]) -> None:
    """A list answers what passes its filters, in its default order, and how many they are."""
    model = agency.lists[operation]
    query = model.complete(query)
    if wrong := refused(query):
        assert list(agency.send(operation, query).errors) == wrong, f"{operation} {query}"
        return
    expected = model.ordered(model.found(query), model.default_sort)
    rows, total = agency.ask(operation, query | {"per_page": "100"})
    assert ids(rows) == ids(expected[:100]), f"{operation} {query}"
    assert total == len(expected), f"{operation} {query}"


def refused(query: dict[str, str]) -> list[str]:
    """The ends of ranges that lie before their starts, and the version of several plugins."""
    if "plugin_version_lt" in query and "," in query["plugin"]:
        return ["plugin_version_lt"]
    ends = {"_to": "_from", "_before": "_since", "_max": "_min"}
    found = []
    for name, text in query.items():
        start = next((query.get(name.removesuffix(end) + ends[end]) for end in ends if name.endswith(end)), None)
        if start is not None and comparable(name, text) < comparable(name, start):
            found.append(name)
    return found


def comparable(name: str, text: str) -> Any:
    """The end of a range as it is compared."""
    return Decimal(text) if name.endswith("_max") else text if name.endswith("_to") else datetime.fromisoformat(text)


def turns(agency: Agency, operation: Operation, query: dict[str, str], sort: str) -> None:
    """The pages of a list, in this order, are those of the records that pass its filters."""
    model = agency.lists[operation]
    query = model.complete(query)
    expected = model.ordered(model.found(query), sort)
    for start in range(0, len(expected), PAGE_SIZE):
        page = query | {"sort": sort, "per_page": PAGE_SIZE, "page": start // PAGE_SIZE + 1}
        rows, total = agency.ask(operation, page)
        assert ids(rows) == ids(expected[start : start + PAGE_SIZE]), f"{operation} {page}"
        assert total == len(expected), f"{operation} {page}"


def ids(rows: list[Row]) -> list[int]:
    return [row["id"] for row in rows]


def filter_holds(agency: Agency, operation: Operation, name: str) -> None:
    """A filter finds what it says: alone on every page, and together with some that come after it."""
    model, random = agency.lists[operation], Random(f"{operation} {name}")
    texts = model.tried(name, random)
    for text in texts:
        finds(agency, operation, {name: text})
    counts = {text: len(model.found({name: text})) for text in texts}
    selective = {text: count for text, count in counts.items() if 0 < count < len(model.rows)}
    assert selective, f"{name} of {operation} tells no records apart, only {counts}: let Filler draw others"
    turns(agency, operation, {name: max(selective, key=selective.get)}, random.choice(sorts_of(operation)))
    names = list(model.filters)
    later = names[names.index(name) + 1 :]
    for other in random.sample(later, min(len(later), length(5))):
        pairs = list(itertools.product(texts, model.tried(other, random)))
        passed = [pair for pair in pairs if model.found({name: pair[0], other: pair[1]})]
        drawn = [*random.sample(passed, min(1, len(passed))), random.choice(pairs)]
        for one, two in dict.fromkeys(drawn):
            finds(agency, operation, {name: one, other: two})


def order_holds(agency: Agency, operation: Operation, sort: str) -> None:
    """A list is in the order that is asked for, both ways, alone and before another key; on every page."""
    second = Random(f"{operation} {sort}").choice([name for name in sorts_of(operation) if name != sort])
    for keys in (sort, f"-{sort}", f"{sort},-{second}", f"-{sort},{second}"):
        turns(agency, operation, {}, keys)


FILTERS = [(operation, name) for operation in LISTS for name in filters_of(operation)]
SORTS = [(operation, sort) for operation in LISTS for sort in sorts_of(operation)]


@pytest.mark.parametrize(("operation", "name"), by_turns(FILTERS) if IS_FULL else sampled(FILTERS, 3), ids=str)
def test_a_filter_finds_what_it_says_alone_and_with_others(agency, operation, name):
    filter_holds(agency, operation, name)


@pytest.mark.parametrize(("operation", "sort"), by_turns(SORTS) if IS_FULL else sampled(SORTS), ids=str)
def test_an_order_holds_on_every_page_from_the_front_and_from_the_end(agency, operation, sort):
    order_holds(agency, operation, sort)


@pytest.mark.parametrize(
    ("operation", "name"),
    [(operation, name) for operation in LISTS for name, schema in filters_of(operation).items() if takes_me(schema)],
    ids=str,
)
def test_me_is_the_user_of_the_key(agency, operation, name):
    api, rows = agency.api, agency.lists[operation].found({})
    for user_id in (api.admin_id, api.member_id):
        answer = api.get(agency.paths[operation], {name: "me", "per_page": 100}, key=api.new_key(user_id=user_id))
        assert sorted(ids(answer.data)) == sorted(ids([row for row in rows if row[name] == user_id])) != []
