"""The months of retainers are billed with all unbilled work of a client, each once."""

import io
import threading

import pypdf
import pytest
from tests.databases import each_database

from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.kinds.fees import FEES
from retainer.errors import Refusal
from retainer.identity.actors import operator_of

pytestmark = pytest.mark.usefixtures("clock")
ALL = {"fees": {}}


@pytest.fixture
def project(api, client):
    return retainer(api, client)


def retainer(api, client, amount="900", start_date="2026-09-15", **fields):
    fields |= {"billing_type": "retainer", "retainer_amount": amount, "start_date": start_date}
    return api.make("/projects", client_id=client, **fields)["id"]


def bill(api, client, **work):
    return api.create("/invoices", client_id=client, unbilled_work={"fees": work})


def months(invoice):
    return [line["fee_month"] for line in invoice["lines"]]


def void(api, invoice):
    for status in ("sent", "void"):
        assert api.patch(f"/invoices/{invoice['id']}", {"status": status}).status == 200


def test_each_month_that_has_begun_becomes_a_line_at_the_monthly_price(api, client, project):
    invoice = bill(api, client).data
    assert months(invoice) == ["2026-09", "2026-10", "2026-11"]
    line = invoice["lines"][0]
    names = ("description", "kind", "quantity", "unit", "unit_price", "amount", "tax_rate", "project_id")
    assert [line[name] for name in names] == [
        *("Retainer September 2026", "fee", "1", "months", "900.00", "900.00", "19", project)
    ]
    assert (invoice["subtotal"], invoice["total"]) == ("2700.00", "3213.00")
    sent = api.patch(f"/invoices/{invoice['id']}", {"status": "sent"}).data
    assert sent["status"] == "sent"
    assert api.get(f"/projects/{project}").data["invoiced_amount"] == "2700.00"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"start_date": None}, ["2026-11"]),
        ({"start_date": "2026-12-01"}, []),
        ({"due_date": "2026-10-01"}, ["2026-09", "2026-10"]),
        ({"status": "completed", "due_date": "2026-12-31"}, ["2026-09", "2026-10", "2026-11"]),
        ({"status": "on_hold", "start_date": "2026-11-01"}, ["2026-11"]),
        ({"status": "planned"}, []),
        ({"is_template": True}, []),
        ({"amount": "0"}, []),
        ({"amount": None}, []),
    ],
)
def test_a_retainer_is_due_from_its_start_to_its_end(api, client, fields, expected):
    retainer(api, client, **fields)
    found = bill(api, client)
    assert (months(found.data) if expected else found.code) == (expected or "nothing_to_bill")


def test_a_retainer_ends_in_the_month_in_which_it_was_completed_or_archived(api, client, clock):
    completed, archived = (retainer(api, client, name=name) for name in ("A", "B"))
    clock.move_to("2026-11-30T22:30:00Z")
    api.patch(f"/projects/{completed}", {"status": "completed"})
    clock.move_to("2026-12-31T22:30:00Z")
    api.patch(f"/projects/{archived}", {"status": "archived"})
    clock.move_to("2027-06-01T12:00:00Z")
    last = {line["project_id"]: line["fee_month"] for line in bill(api, client).data["lines"]}
    assert last == {completed: "2026-11", archived: "2026-12"}


def test_days_and_projects_limit_what_is_billed(api, client, project):
    other, foreign = retainer(api, client, "50"), retainer(api, api.make("/clients")["id"])
    inside = bill(api, client, **{"from": "2026-10-31", "to": "2027-12-31", "project_ids": [other]}).data
    assert [(line["project_id"], line["fee_month"]) for line in inside["lines"]] == [
        (other, "2026-10"),
        (other, "2026-11"),
    ]
    until = bill(api, client, to="2026-09-01").data
    assert {line["project_id"] for line in until["lines"]} == {project, other}
    assert set(months(until)) == {"2026-09"}
    refused = bill(api, client, project_ids=[foreign, 99999], **{"from": "2026-10-01", "to": "2026-09-30"})
    assert refused.errors.keys() == {f"unbilled_work.fees.{name}" for name in ("project_ids.0", "project_ids.1", "to")}


def test_a_line_is_in_the_clients_language_and_names_the_project_among_several(api):
    client = api.make("/clients", language="de")["id"]
    retainer(api, client, name="Pflege", start_date="2026-11-01")
    (line,) = bill(api, client).data["lines"]
    assert line["description"] == "Monatspauschale November 2026"
    other = api.make("/clients", language="en")["id"]
    for name in ("Support", "Hosting"):
        retainer(api, other, name=name, start_date="2026-11-01")
    lines = bill(api, other).data["lines"]
    assert [each["description"] for each in lines] == [
        *("Retainer November 2026, Hosting", "Retainer November 2026, Support")
    ]


def test_a_month_is_billed_again_when_its_invoice_is_gone(api, client, project):
    draft = bill(api, client).data
    assert bill(api, client).code == "nothing_to_bill"
    named = {"lines": [{"project_id": project, "fee_month": "2026-10"}]}
    refused = api.create("/invoices", client_id=client, **named)
    assert (refused.status, refused.code) == (422, "already_billed")
    assert refused.errors == {
        "lines.0.fee_month": [f"2026-10 of project {project} is already on invoice {draft['id']}. Leave it out."]
    }
    api.delete(f"/invoices/{draft['id']}")
    second = bill(api, client).data
    void(api, second)
    assert months(api.get(f"/invoices/{second['id']}").data) == ["2026-09", "2026-10", "2026-11"], "stays as history"
    third = bill(api, client).data
    assert months(third) == months(second)
    api.patch(f"/invoices/{third['id']}", {"status": "sent"})
    line = third["lines"][1]
    api.make(f"/invoices/{third['id']}/credit-notes", reason="correction", lines=[{"invoice_line_id": line["id"]}])
    assert months(bill(api, client).data) == ["2026-10"]


def test_a_deleted_line_frees_its_month(api, client, project):
    draft = bill(api, client).data
    api.delete(f"/invoices/{draft['id']}/lines/{draft['lines'][1]['id']}")
    assert months(bill(api, client).data) == ["2026-10"]


def test_a_draft_keeps_its_months_and_their_price(api, client, project):
    draft = bill(api, client, to="2026-09-30").data
    api.patch(f"/projects/{project}", {"retainer_amount": "1200"})
    path, kept = f"/invoices/{draft['id']}", {"id": draft["lines"][0]["id"]}
    changed = api.patch(path, {"lines": [kept], "unbilled_work": ALL}).data
    assert [(line["fee_month"], line["amount"]) for line in changed["lines"]] == [
        *(("2026-09", "900.00"), ("2026-10", "1200.00"), ("2026-11", "1200.00"))
    ]
    assert changed["lines"][0]["id"] == kept["id"]
    api.patch(f"/projects/{project}", {"billing_type": "time_and_materials", "retainer_amount": None})
    assert api.patch(path, {"subject": "Autumn"}).status == 200
    first, second, _ = (line["id"] for line in changed["lines"])
    swapped = [{"id": first, "fee_month": "2026-10"}, {"id": second, "fee_month": "2026-09"}]
    api.patch(f"/projects/{project}", {"billing_type": "retainer", "retainer_amount": "1200"})
    assert months(api.patch(path, {"lines": swapped}).data) == ["2026-10", "2026-09"]
    assert months(bill(api, client).data) == ["2026-11"]
    assert months(api.patch(path, {"lines": [], "unbilled_work": ALL}).data) == ["2026-09", "2026-10"]


def test_a_line_bills_a_month_by_hand_in_advance_or_at_another_price(api, client, project):
    lines = [
        {"project_id": project, "fee_month": "2027-01"},
        {"project_id": project, "fee_month": "2026-09", "quantity": "0.5", "description": "Half of September"},
    ]
    invoice = api.make("/invoices", client_id=client, lines=lines)
    assert [(line["kind"], line["description"], line["amount"]) for line in invoice["lines"]] == [
        ("fee", "Retainer January 2027", "900.00"),
        ("fee", "Half of September", "450.00"),
    ]
    assert months(bill(api, client).data) == ["2026-10", "2026-11"]


@pytest.mark.parametrize(
    ("line", "field", "part"),
    [
        ({"fee_month": "2026-09"}, "project_id", "Is required with fee_month"),
        ({"fee_month": "2026-09", "project": "other"}, "fee_month", "billing_type is time_and_materials"),
        ({"fee_month": "2026-08", "project": "retainer"}, "fee_month", "begins on 2026-09-15. Choose a later month"),
        ({"fee_month": "2026-09", "project": "retainer", "quantity": "0"}, "quantity", "Must be more than 0"),
        ({"fee_month": "2026-09", "project": "retainer", "quantity": "-1"}, "quantity", "Credit it with a credit note"),
        ({"fee_month": "2026-09", "project_id": 99999}, "project_id", "There is no such project"),
        ({"fee_month": "2026-09", "project": "foreign"}, "project_id", "Belongs to client"),
        ({"fee_month": "2026-09", "project": "unpriced"}, "unit_price", "has no retainer_amount"),
        ({"fee_month": "2026-09-01", "project": "retainer"}, "fee_month", "this has a day"),
        ({"fee_month": "2026-13", "project": "retainer"}, "fee_month", "Must be a month like 2026-03"),
        ({"fee_month": "1926-09", "project": "retainer"}, "fee_month", "Check the year"),
        ({"fee_month": "2026-09", "project": "retainer", "milestone_id": 1}, "fee_month", "bills one kind of work"),
    ],
)
def test_a_month_that_cannot_be_billed_is_refused(api, client, project, line, field, part):
    named = {
        "retainer": lambda: project,
        "unpriced": lambda: retainer(api, client, None),
        "other": lambda: api.make("/projects", client_id=client)["id"],
        "foreign": lambda: retainer(api, api.make("/clients", currency="USD")["id"]),
    }
    sent = {name: value for name, value in line.items() if name != "project"}
    if "project" in line:
        sent["project_id"] = named[line["project"]]()
    refused = api.create("/invoices", client_id=client, lines=[sent])
    assert part in refused.errors[f"lines.0.{field}"][0]
    assert refused.errors.keys() - {"lines.0.milestone_id"} == {f"lines.0.{field}"}


def test_a_month_stands_once_on_an_invoice_and_needs_a_price_in_its_currency(api, client, project):
    line = {"project_id": project, "fee_month": "2026-09"}
    twice = api.create("/invoices", client_id=client, lines=[line, line])
    assert "Is listed twice" in twice.errors["lines.1.fee_month"][0]
    foreign = api.create("/invoices", client_id=client, currency="JPY", lines=[line])
    assert "the fee is in" in foreign.errors["lines.0.unit_price"][0]
    assert api.create("/invoices", client_id=client, currency="JPY", unbilled_work=ALL).code == "nothing_to_bill"
    priced = api.make("/invoices", client_id=client, currency="JPY", lines=[{**line, "unit_price": "100000"}])
    assert months(priced) == ["2026-09"]
    again = api.create(f"/invoices/{priced['id']}/lines", **line, unit_price="1")
    assert again.code == "already_billed"


def test_more_months_than_lines_are_refused(api, client):
    retainer(api, client, start_date="1990-01-01")
    assert "at most 200" in bill(api, client).errors["lines"][0]
    assert len(bill(api, client, to="2006-08-31").data["lines"]) == 200


def test_fees_of_another_account_are_not_seen(api, client, project, other_tenant):
    theirs = other_tenant.make("/clients")["id"]
    refused = bill(other_tenant, theirs, project_ids=[project])
    assert refused.errors.keys() == {"unbilled_work.fees.project_ids.0"}


def test_the_period_of_service_is_that_of_the_months(api, client, project):
    invoice = bill(api, client, to="2026-10-01").data
    answer = api.get(f"/invoices/{invoice['id']}", headers={"Accept": "application/pdf"})
    text = " ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(answer.body)).pages)
    assert "1 September \u2013 31 October 2026" in text.replace("\u00a0", " ")


@each_database
def test_the_database_itself_refuses_a_second_live_line_for_the_same_month(api, client, project):
    former = bill(api, client).data
    void(api, former)
    bill(api, client)
    live = "UPDATE invoice_lines SET fee_is_live = 1 WHERE id = $1"
    with pytest.raises(api.store.engine.conflict, match="fee"):
        api.sql(live, former["lines"][0]["id"])
    actor = operator_of(api.store, api.account_id)
    with (
        pytest.raises(Refusal, match="Another request has billed") as refused,
        api.store.begin(actor, write=True) as tx,
    ):
        FEES.attach(tx, former["id"], load_invoice(tx, former["id"]).lines)
    assert refused.value.code == "already_billed"


@each_database
def test_two_runs_at_once_bill_a_month_once(api, client, project):
    found = []
    barrier = threading.Barrier(2)

    def run():
        barrier.wait()
        found.append(bill(api, client))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.status for each in found) == [201, 422]
    assert {each.code for each in found if each.status == 422} == {"nothing_to_bill"}


def test_a_draft_with_a_month_keeps_its_client(api, client, project):
    invoice = bill(api, client).data
    refused = api.patch(f"/invoices/{invoice['id']}", {"client_id": api.make("/clients")["id"]})
    assert refused.errors.keys() == {"client_id"}
    assert "while work is attached" in refused.errors["client_id"][0]
