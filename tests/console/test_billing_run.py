"""The billing run: three clicks from what is to bill of all clients to issued invoices."""

import re

import pytest

from retainer.billing.invoices.unbilled import SELECTIONS
from retainer.job_kinds import KINDS
from retainer.jobs.loop import Jobs
from tests.contract.cases import statements_of
from tests.databases import any_database

pytestmark = any_database


@pytest.fixture
def clients(api):
    warm_up(api)
    made = [api.make("/clients", name=f"Client {letter}", currency="EUR", country="DE")["id"] for letter in "ABC"]
    for client in made:
        api.make("/time-entries", client_id=client, project_id=None, duration_minutes=90, hourly_rate="100")
    return made


def warm_up(api):
    """Bill and issue once: compiling the statements takes longer than a form may write on a busy machine."""
    client = api.make("/clients", currency="EUR")["id"]
    api.make("/time-entries", client_id=client, project_id=None, hourly_rate="1")
    made = api.make("/invoices", client_id=client, currency="EUR", unbilled_work={"time": {}})["id"]
    api.patch(f"/invoices/{made}", {"status": "sent"})
    api.patch(f"/invoices/{made}", {"status": "void"})
    api.delete(f"/time-entries/{api.get('/time-entries').data[0]['id']}")


def run(visitor, **fields):
    """Create drafts of all that is checked; return the page that shows them."""
    return visitor.follow(visitor.submit("/console/billing-run", **fields))


def live(api):
    return [invoice for invoice in api.get("/invoices").data if invoice["status"] != "void"]


def names_in_archive(visitor, page):
    (link,) = [link for link in page.links if "/pdfs" in link]
    page = visitor.get(link)
    assert page.headers["content-type"] == "application/zip"
    return re.findall(r"(INV-\d{4}-\d{4}\.pdf)%PDF-", page.html)


def test_what_is_to_bill_of_all_clients_becomes_issued_invoices_in_three_clicks(api, visitor, clients):
    today = visitor.get("/console")
    assert "/console/billing-run" in today.links
    page = run(visitor)
    drafts = api.get("/invoices", {"status": "draft"}).data
    assert sorted(draft["client_id"] for draft in drafts) == clients
    assert {draft["subtotal"] for draft in drafts} == {"150.00"}
    assert "3 drafts ready" in page.text
    path = f"/console/billing-run/invoices?ids={','.join(str(draft['id']) for draft in drafts)}"
    page = visitor.follow(visitor.submit(path))
    assert "3 invoices issued" in page.text
    numbers = [invoice["number"] for invoice in api.get("/invoices", {"status": "sent"}).data]
    assert len(numbers) == len(clients)
    assert sorted(names_in_archive(visitor, page)) == sorted(f"{number}.pdf" for number in numbers)
    assert not page.all("meta", **{"http-equiv": "refresh"}), "nothing is downloaded that was not asked for"
    assert "Nothing to bill." in visitor.get("/console/billing-run").text


def test_only_the_clients_that_are_checked_are_billed(api, visitor, clients):
    run(visitor, row=f"{clients[1]}-EUR")
    assert [invoice["client_id"] for invoice in live(api)] == [clients[1]]
    nothing = visitor.post("/console/billing-run", {"once": "1"})
    assert "Choose at least one client." in nothing.text


def test_work_until_a_day_is_billed(api, visitor, clients):
    api.make("/time-entries", client_id=clients[0], project_id=None, date="2026-01-31", hourly_rate="10")
    page = visitor.get("/console/billing-run?to=2026-01-31")
    assert [box["value"] for box in page.all("input", name="row")] == [f"{clients[0]}-EUR"]
    run(visitor, to="2026-01-31", row=f"{clients[0]}-EUR")
    (invoice,) = live(api)
    assert api.get(f"/invoices/{invoice['id']}").data["service_to"] in {None, "2026-01-31"}
    assert visitor.get("/console/billing-run?to=x").status == 422


def test_work_goes_into_the_newest_draft_of_a_client_on_request(api, visitor, clients):
    line = {"description": "Hosting", "unit_price": "20"}
    draft = api.make("/invoices", client_id=clients[0], currency="EUR", lines=[line])["id"]
    run(visitor, into_drafts="yes")
    assert api.get(f"/invoices/{draft}").data["subtotal"] == "170.00"
    assert len(live(api)) == len(clients)


def test_archived_clients_are_shown_and_not_billed(api, visitor, clients):
    api.patch(f"/clients/{clients[1]}", {"status": "archived"})
    assert "Archived , so not billed" in visitor.get("/console/billing-run").text
    run(visitor)
    assert sorted(invoice["client_id"] for invoice in live(api)) == [clients[0], clients[2]]


def test_if_one_client_cannot_be_billed_nothing_is_done_and_the_page_says_whose(api, visitor, clients):
    api.patch(f"/clients/{clients[1]}", {"status": "archived"})
    page = visitor.post("/console/billing-run", {"row": [f"{client}-EUR" for client in clients], "once": "1"})
    assert "Nothing was done, because of Client B: This client is archived." in page.text
    assert live(api) == []


def test_work_that_was_billed_meanwhile_is_not_billed_again(api, visitor, clients):
    api.make("/invoices", client_id=clients[2], currency="EUR", unbilled_work={"time": {}})
    page = visitor.post("/console/billing-run", {"row": f"{clients[2]}-EUR", "once": "1"})
    assert "Some of this work has been billed meanwhile." in page.text


def test_a_draft_takes_later_work_in(api, visitor, clients):
    draft = api.make("/invoices", client_id=clients[0], currency="EUR", unbilled_work={"time": {}})["id"]
    api.make("/time-entries", client_id=clients[0], project_id=None, duration_minutes=60, hourly_rate="80")
    assert f"/console/records/invoices/{draft}/add-work" in visitor.get(f"/console/records/invoices/{draft}").links
    visitor.submit(f"/console/records/invoices/{draft}/add-work")
    assert api.get(f"/invoices/{draft}").data["subtotal"] == "230.00"


def test_the_run_says_if_invoices_will_round_its_hours(api, visitor, clients):
    said = "before tax and before hours are rounded."
    assert said not in visitor.get("/console/billing-run").text
    api.set_account({"time_rounding_minutes": 60})
    assert said in visitor.get("/console/billing-run").text
    run(visitor)
    assert {invoice["subtotal"] for invoice in live(api)} == {"200.00"}


def test_members_do_not_bill(person, clients):
    assert person("member").get("/console/billing-run").status == 403


def test_the_run_reads_its_invoices_in_one_statement_in_the_order_of_the_address(api, visitor, clients):
    run(visitor)
    drafts = [invoice["id"] for invoice in api.get("/invoices", {"status": "draft"}).data]
    path = "/console/billing-run/invoices?ids={}"
    visitor.get(path.format(drafts[0]))
    counts = []
    for ids in (drafts[:1], drafts):
        with statements_of(api) as ran:
            page = visitor.get(path.format(",".join(map(str, reversed(ids)))))
        counts.append(sum("FROM invoice_lines" in statement or "FROM invoices" in statement for statement in ran))
        assert [field["value"] for field in page.all("input", name="invoice")] == [*map(str, reversed(ids))]
    assert counts[0] == counts[1]
    assert visitor.get(path.format(f"{drafts[0]},{10**9}")).status == 404


def test_the_page_of_no_invoices_leads_to_the_run(visitor):
    assert visitor.get("/console/billing-run/invoices").location == "/console/billing-run"


def test_each_kind_of_unbilled_work_can_be_chosen_in_the_form_that_bills(visitor, clients):
    page = visitor.get(f"/console/records/clients/{clients[0]}/bill")
    names = {field["name"] for field in page.all("input")}
    assert SELECTIONS.keys() <= names


def test_the_chosen_drafts_are_issued_and_sent_by_mail(api, visitor, clients):
    for client in clients:
        api.patch(f"/clients/{client}", {"email": f"office{client}@ahorn.example"})
    page = run(visitor)
    drafts = [draft["id"] for draft in api.get("/invoices", {"status": "draft"}).data]
    assert "send" in {button["value"] for button in page.all("button", name="step")}
    path = f"/console/billing-run/invoices?ids={','.join(map(str, drafts))}"
    started = visitor.post(path, {"once": "1", "step": "send", "invoice": [str(each) for each in drafts[:2]]})
    assert started.location.startswith("/console/jobs/"), started.text
    Jobs(api.store, KINDS, lambda *_: None).run_once()
    assert sorted(each["record_id"] for each in api.get("/messages").data) == sorted(drafts[:2])
    assert {api.get(f"/invoices/{each}").data["status"] for each in drafts[:2]} == {"sent"}
    assert api.get(f"/invoices/{drafts[2]}").data["status"] == "draft"
    again = visitor.post(path, {"once": "2", "step": "send", "invoice": [str(drafts[0])]})
    assert "issued or deleted meanwhile" in again.text
    visitor.submit(path, invoice=str(drafts[2]))
    assert visitor.get("/console/audit").text.count("invoice issued invoice INV-") == 3
