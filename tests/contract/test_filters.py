"""Every filter alone and with others, every order and every page, held against a model in plain Python.

One account is filled through the API with drawn records, beside another one as noise; then it is only read.
"""

import itertools
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
import time_machine
from testing.agencies import open_app

from retainer.kernel.limits import SlidingWindow
from retainer.kernel.resource import Operation
from tests.contract.cases import BUSINESS
from tests.contract.filler import NOW, TODAY, Filler, is_in
from tests.contract_checker import SCOPED, NoChecks
from tests.factories import Answer, ApiClient
from tests.length import IS_FULL, by_turns, length, sampled
from tests.reference.lists import DEFAULT_FILTERS, ListModel, Row, filters_of, sorts_of, takes_me

LISTS = [operation for operation in BUSINESS if operation.paged]
FREE_TEXT = {"vendor", "name"}
PAGE_SIZE = 7 if IS_FULL else 25


class Agency(NamedTuple):
    """A client of the account that was filled, where its lists are, and what they should answer."""

    api: ApiClient
    paths: dict[Operation, str]
    lists: dict[Operation, ListModel]

    def ask(self, operation: Operation, query: dict[str, Any]) -> tuple[list[Row], int]:
        """A page of records, and the total."""
        answer = self.send(operation, query)
        return answer.data, answer.json["meta"]["total"]

    def send(self, operation: Operation, query: dict[str, Any]) -> Answer:
        """Ask for a list; of free text, whose commas are its own, several values are several parameters."""
        self.api.app.pipeline.limiter = SlidingWindow()
        repeated = {name: text.split(",") for name, text in query.items() if name in FREE_TEXT}
        return self.api.get(self.paths[operation], urlencode(query | repeated, doseq=True))


@pytest.fixture(scope="module")
def agency(prototype: tuple[Path, dict[str, Any]], fast_disk: Path) -> Iterator[Agency]:
    template, agencies = prototype
    database = Path(mkdtemp(dir=fast_disk)) / "filters.db"  # another module may have one open
    shutil.copy(template, database)
    app = open_app(database)
    api, other_tenant = (ApiClient(app, NoChecks(), agencies[name]) for name in ("north", "south"))
    filled = Agency(api, {}, {})
    with time_machine.travel(NOW - timedelta(days=60), tick=False) as clock:
        ours, theirs = Filler(api, clock), Filler(other_tenant, clock)
        for filler, seed in ((ours, "one"), (theirs, "one"), (ours, "two")):
            filler.fill(22 if IS_FULL else 12, seed)
        ours.add_edges()
        ours.add_care()
        ours.add_payments()
        ours.add_people()
        ours.find_unposted()
        ours.observe()
        assert datetime.now(UTC) < NOW - timedelta(days=1), "the records must be older than the day they are read on"
        clock.move_to(NOW)
        rows: dict[str, list[Row]] = {}
        for operation in LISTS:
            made = [path for paths in ours.made.values() for path in paths if is_in(path, operation)]
            collections = [path.rpartition("/")[0] for path in made]
            here = filled.paths[operation] = max(collections, key=collections.count)
            records = rows[operation.path] = list(everything(filled, operation))
            if operation.path == "/tasks":
                records += in_templates(filled, operation)
            assert {f"{here}/{row['id']}" for row in records} == {path for path in made if path.startswith(f"{here}/")}
        link(rows)
        link_sites(api, rows["/sites"])
        link_payments(api, rows["/invoices"])
        for operation in LISTS:
            filled.lists[operation] = ListModel(operation, rows[operation.path], api.admin_id, TODAY, NOW)
    yield filled
    SCOPED.check()


def everything(agency: Agency, operation: Operation) -> Iterator[Row]:
    """Every record of a list, also those that are left out unless they are asked for."""
    defaults = DEFAULT_FILTERS.keys() & filters_of(operation).keys()
    for values in itertools.product(("true", "false"), repeat=len(defaults)):
        query = dict(zip(defaults, values, strict=True)) | {"per_page": 100}
        first, total = agency.ask(operation, query)
        pages = [first, *(agency.ask(operation, query | {"page": page})[0] for page in range(2, -(-total // 100) + 1))]
        assert sum(map(len, pages)) == total
        yield from itertools.chain(*pages)


def in_templates(agency: Agency, operation: Operation) -> Iterator[Row]:
    """The tasks of templates, which a list shows when it is asked for them by their project."""
    agency.api.app.pipeline.limiter = SlidingWindow()
    templates = agency.api.get("/projects", {"is_template": "true", "per_page": 100}).data
    ids = ",".join(str(template["id"]) for template in templates)
    rows, total = agency.ask(operation, {"project_id": ids, "per_page": 100})
    assert len(rows) == total > 2
    return (row | {"in_template": True} for row in rows)


def link(rows: dict[str, list[Row]]) -> None:
    """Let records say what lists know of others: the name of their client, time whether a fee covers it, and a client
    which invoices it has."""
    clients = {row["id"]: row for row in rows["/clients"]}
    for client in clients.values():
        client["invoices"] = []
    for row in itertools.chain(*rows.values()):
        row["client"] = clients.get(row.get("client_id"), {}).get("name")
    covered = {row["id"] for row in rows["/projects"] if row["billing_type"] in {"fixed_fee", "retainer"}}
    for entry in rows["/time-entries"]:
        entry["is_covered"] = entry["project_id"] in covered
    for invoice in rows["/invoices"]:
        clients[invoice["client_id"]]["invoices"].append(invoice)


def link_sites(api: ApiClient, sites: list[Row]) -> None:
    """Let sites say what was observed, and what only the single record tells: their plugins."""
    observed = dict(api.sql("SELECT id, observed FROM sites"))
    for site in sites:
        api.app.pipeline.limiter = SlidingWindow()
        site["observed"] = observed[site["id"]]
        site["plugins"] = api.get(f"/sites/{site['id']}").data["plugins"]


def link_payments(api: ApiClient, invoices: list[Row]) -> None:
    """Let invoices say on which days they were paid; a few are paid once more, on other days."""
    paid = {invoice["id"]: [] for invoice in invoices}
    for invoice_id, day in api.sql("SELECT invoice_id, paid_date FROM payments"):
        paid.setdefault(invoice_id, []).append(day)
    for invoice in invoices:
        invoice["paid_dates"] = paid[invoice["id"]]
    assert any(map(len, paid.values()))


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
