"""What an operation reads is found through an index, however many rows the account has."""

import re

import pytest

from retainer.identity import accounts
from retainer.schema import metadata
from tests.contract.cases import OPERATIONS, sample, send, statements_of, succeeds
from tests.databases import each_database, only_sqlite
from tests.traffic.common import listed

pytestmark = each_database

FILTERS = [
    ("/clients", {"name": "Berg"}, "clients_by_account_id_name"),
    ("/clients", {"vat_number": "DE1,DE2"}, "clients_by_vat_number"),
    ("/tickets", {"requester_email": "lea@lenz.example"}, "tickets_by_requester_email_folded"),
    ("/invoices", {"paid_date_from": "2026-01-01"}, "payments_by_day"),
    ("/invoices", {"sort": "due_date"}, "invoices_by_account_id_due_date_id"),
    ("/invoices", {"sort": "-due_date"}, "invoices_by_account_id_due_date_id"),
    ("/time-entries", {"has_rate": "false"}, "time_entries_without_rate"),
    ("/time-entries", {"billing_status": "unbilled"}, "time_entries_unbilled"),
    ("/time-entries", {"billing_status": "covered,unpriced"}, "time_entries_unbilled"),
]
LOG_FILTERS = [
    ({"key_id": 1}, "requests_by_key_id"),
    ({"key_id": 1, "status": "2xx"}, "requests_by_key_id"),
    ({"key_id": 1, "status": "4xx"}, "requests_by_failure"),
    ({"status": "5xx", "method": "GET"}, "requests_by_failure"),
    ({"request_id": "import-7"}, "requests_by_request_id"),
    ({"record": "/clients/17"}, "requests_by_record"),
    ({"code": "validation_failed"}, "requests_by_failure"),
]


@only_sqlite
@pytest.mark.parametrize("table", ["clients", "projects", "time_entries"])
def test_the_search_for_an_amount_reads_no_row_without_one(api, table):
    def search():
        with api.operating() as tx:
            assert not accounts.has_amounts(tx)

    (step, *_) = plan_of(api, search, f"FROM {table} ")
    assert f"INDEX {table}_with_amount (account_id=?)" in step


WALKS_ACCOUNT = re.compile(r"SEARCH .*\(account_id=\?\)$")
READS_LAST = ("SEARCH events ", "ORDER BY events.id DESC LIMIT 1")
"""The step of a statement that reads only the last event."""
SUMS_FILES = "SEARCH files USING COVERING INDEX files_by_size (account_id=?)"
"""The step that adds up what the files of an account take, before another one comes."""
READS_ALL = {f"SCAN {table}" for table in metadata.tables}
LISTS_AND_REPORTS = r"GET /[a-z-]+|GET /reports/.*|GET /clients/\{client_id\}/unbilled-work"
"""A list walks an index in its order, up to the end of the page; a report finds its first and last bucket so."""


@only_sqlite
@pytest.mark.parametrize("operation", [each for each in OPERATIONS if not re.fullmatch(LISTS_AND_REPORTS, str(each))])
def test_an_operation_on_one_record_walks_no_table(api, operation):
    request = sample(api, operation)
    with statements_of(api) as ran:
        succeeds(send(api, request))
    connection = api.store.engine.connect()
    walks = []
    for text in ran:
        values = [None] * max((int(place) for place in re.findall(r"\?(\d+)", text)), default=0)
        steps = [row[-1] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
        if READS_LAST[1] in text:
            steps = [step for step in steps if not step.startswith(READS_LAST[0])]
        steps = [step for step in steps if step != SUMS_FILES]
        walks += [(step, text) for step in steps if WALKS_ACCOUNT.match(step) or step in READS_ALL]
    connection.close()
    assert walks == []


def plan_of(api, run, part):
    """The plan of the statement with a part, of those that a block runs."""
    engine, asked = api.store.engine, []
    original = engine.run
    engine.run = lambda connection, text, values: asked.append((text, values)) or original(connection, text, values)
    try:
        run()
    finally:
        del engine.run
    ((text, values),) = ((text, values) for text, values in asked if part in text)
    connection = engine.connection()
    try:
        return [row[-1] for row in engine.run(connection, f"EXPLAIN QUERY PLAN {text}", values).fetchall()]
    finally:
        engine.give_back(connection)


@only_sqlite
@pytest.mark.parametrize(("path", "query", "index"), FILTERS)
def test_a_filter_that_finds_few_or_an_order_follows_its_index(api, path, query, index):
    plan = plan_of(api, lambda: api.get(path, query), "LIMIT 25")
    assert any(f"INDEX {index} " in step for step in plan[:4]), plan


@only_sqlite
@pytest.mark.parametrize("after", [None, "2026-03-10T12:00:00.000000Z.5"])
@pytest.mark.parametrize(("wanted", "index"), LOG_FILTERS, ids=str)
def test_a_page_of_the_request_log_follows_the_index_of_its_filter(api, wanted, index, after):
    plan = plan_of(api, lambda: listed(api, after=after, **wanted), "requests.path")
    of_log = [step for step in plan if "SEARCH requests " in step or "SCAN" in step]
    assert len(of_log) == 1
    assert f" USING INDEX {index} (account_id=? AND " in of_log[0]
    of_refusals = [step for step in plan if "SEARCH refusals " in step]
    assert of_refusals
    assert all("USING PRIMARY KEY (account_id=? AND answered_at=? AND number=?)" in step for step in of_refusals)


@only_sqlite
def test_the_time_of_a_day_is_added_up_in_its_index(api):
    api.usual("/clients")
    plan = plan_of(api, lambda: api.make("/time-entries"), "sum(time_entries.duration_minutes)")
    assert any("COVERING INDEX time_entries_by_user (account_id=? AND user_id=? AND date=?)" in step for step in plan)
    assert any("clients USING INTEGER PRIMARY KEY" in step for step in plan)
