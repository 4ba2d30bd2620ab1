"""An account that is filled through the API with drawn records, beside another one as noise, and what its lists answer.

To fill it takes many seconds, so the tests of lists share one, each file a copy.
"""

import itertools
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
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
from tests.databases import path_of
from tests.factories import Answer, ApiClient
from tests.length import IS_FULL
from tests.reference.lists import DEFAULT_FILTERS, ListModel, Row, filters_of

LISTS = [operation for operation in BUSINESS if operation.paged]
FREE_TEXT = {"vendor", "name"}


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
def agency(filled_lists: Agency, fast_disk: Path) -> Iterator[Agency]:
    """The account in a copy of its database; files with these tests take this fixture from here."""
    with TemporaryDirectory(dir=fast_disk) as folder:
        database = Path(shutil.copy(path_of(filled_lists.api.app.settings.database), folder))
        app = open_app(database)
        yield filled_lists._replace(api=filled_lists.api.on(app))
        app.store.engine.close()
    SCOPED.check()


def fill(database: Path, agencies: dict[str, Any]) -> Agency:
    """Fill the accounts of a database with both agencies; return the first, closed."""
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
    app.store.engine.close()
    return filled


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
