"""The demo looks like an agency in the middle of a good month, with a few worries."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from testing.agencies import new_store, open_app

from retainer import demo
from retainer.identity.actors import operator_of
from retainer.identity.keys import key_list
from retainer.outbound.leases import Places
from retainer.schema.migrations import migrate
from retainer.sites.monitor import schedule
from retainer.traffic import counts
from retainer.traffic.request_log import LogFilter, list_requests
from tests.conftest import CONTRACT_CHECKER
from tests.factories import ApiClient
from tests.length import length


@pytest.fixture(scope="module", params=["2026-02-11", "2026-11-20"][: length(2)])
def agency(request, fast_disk):
    """A client of the first agency of the demo, on a day in the middle of a month."""
    path = fast_disk / f"demo-{request.param}.db"
    with time_machine.travel(f"{request.param}T11:00:00Z", tick=False):
        store = new_store(path)
        migrate(store.engine)
        key = demo.fill(store).key
        store.engine.close()
        ids = dict.fromkeys(("account_id", "admin_id", "member_id", "key_id"), 0)
        yield ApiClient(open_app(path), CONTRACT_CHECKER, ids | {"key": key})


def month(**query):
    first = date.today().replace(day=1)  # noqa: DTZ011  # the traveller's
    return {"from": first.isoformat(), "to": date.today().isoformat(), **query}  # noqa: DTZ011


def moment(text):
    return datetime.fromisoformat(text)


def test_this_month_there_is_work_in_every_column_of_the_overview(agency):
    overview = agency.get("/reports/overview", month()).data
    assert overview["time"]["tracked_minutes"] > 60 * 100
    assert overview["tasks"]["completed"] > 0
    assert overview["quotes"]["sent"] > 0
    assert overview["clients"]["new"] > 0
    assert overview["tickets"]["resolved"] > 0


def test_a_few_things_are_late_and_most_are_not(agency):
    overview = agency.get("/reports/overview", month()).data
    tasks, sites = overview["tasks"], overview["sites"]
    assert 0 < tasks["overdue"] < tasks["open"] / 2
    assert 0 < sites["with_updates"] < sites["total"] * 0.7
    assert sites["down"] < sites["total"] / 4


def test_the_sites_were_checked_until_now_and_one_is_down_for_less_than_an_hour(agency):
    down = agency.get("/sites", {"status": "down"}).data
    assert [datetime.now(UTC) - moment(site["down_since"]) for site in down] == [timedelta(minutes=47)]
    assert [(site["uptime_percent_24h"] < 97, site["response_time_ms"]) for site in down] == [(True, None)]
    checked = [site["last_checked_at"] for site in agency.get("/sites", {"per_page": 100}).data]
    assert max(datetime.now(UTC) - moment(at) for at in checked if at) <= timedelta(minutes=5)


def test_no_site_is_ever_due_as_its_host_does_not_exist(agency):
    schedule.refresh(agency.store)
    assert schedule.DUE.claim(agency.store, Places(100, ()), timedelta(minutes=1)) == []


def test_no_currency_takes_back_more_than_a_part_of_what_it_bills(agency):
    year = {"from": str(date.today() - timedelta(days=364)), "to": str(date.today())}  # noqa: DTZ011
    for period in (year, month()):
        totals = agency.get("/reports/revenue-by-client", period).data["totals"]
        assert totals
        for row in totals:
            assert Decimal(row["credited"]) <= Decimal(row["invoiced"]) / 2, row


def test_every_invoice_has_lines_and_every_contact_a_telephone_number(agency):
    for query in ({}, {"status": "draft"}):
        assert all(Decimal(invoice["total"]) for invoice in agency.get("/invoices", {**query, "per_page": 100}).data)
    contacts = agency.get("/external-contacts", {"per_page": 100}).data
    assert contacts
    assert all(contact["phone"] for contact in contacts)


def test_no_hour_that_is_billable_lacks_a_rate(agency):
    assert agency.get("/time-entries", {"billing_status": "unpriced"}).data == []
    assert agency.get("/time-entries", {"billing_status": "covered"}).data != []


def test_the_request_log_has_a_month_a_limit_that_was_met_and_a_bad_minute(agency):
    with agency.store.begin(operator_of(agency.store, 1), write=False) as tx:
        tx.snapshot()
        month = counts.by_day(tx, 30)
        failed = list_requests(tx, LogFilter(status="5xx")).requests
        written = list_requests(tx, LogFilter(method="PATCH")).requests
    assert len([day for day in month.values() if day.requests]) >= 28
    assert 1500 < sum(day.requests for day in month.values()) < 6000
    assert max(day.busiest_minute for day in month.values()) > 600
    assert sum(day.limited for day in month.values()) == 40
    assert {request.status for request in failed} == {503}
    assert any(request.record for request in written)


def test_the_keys_were_last_used_when_the_request_log_says(agency):
    with agency.store.begin(operator_of(agency.store, 1), write=False) as tx:
        tx.snapshot()
        for key in key_list.list_keys(tx):
            newest = list_requests(tx, LogFilter(key_id=key.id), limit=1).requests
            if newest:
                assert (key.last_used_at, key.last_used_address) == (newest[0].answered_at, newest[0].address)
                assert key.created_at < newest[0].answered_at


def test_the_webhooks_have_delivered_the_payments_of_a_month(agency):
    payments = {event["id"]: event["at"] for event in agency.get("/events", {"types": "invoice.paid"}).data}
    for webhook in agency.get("/webhooks").data:
        log = agency.get(f"/webhooks/{webhook['id']}/deliveries").data
        assert {each["event_id"] for each in log} == payments.keys()
        assert {each["status"] for each in log} == {"delivered"}
        assert {each["attempts"] for each in log} == {1}
        for each in log:
            assert (
                timedelta(0) <= moment(each["attempted_at"]) - moment(payments[each["event_id"]]) < timedelta(minutes=1)
            )
        assert webhook["last_delivered_at"] == max(each["attempted_at"] for each in log)
        assert webhook["pending_count"] == 0
