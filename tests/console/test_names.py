"""What records without a name of their own are called: people never read the id of a row as a name."""

import pytest

from tests.databases import any_database

pytestmark = any_database
LINE = {"lines.0.description": "Design", "lines.0.unit_price": "100"}
LINES = [{"description": "Design", "unit_price": "450", "tax_rate": "19"}]


@pytest.fixture
def client(api):
    return api.make("/clients", name="Bergmann Optik", currency="EUR")


def test_a_draft_is_called_by_its_client_on_all_pages(api, visitor, client):
    """On its page and form, in notices and actions, and in the audit log, which says what kind of record it is."""
    page = visitor.submit("/console/records/invoices/new", client_id=str(client["id"]), **LINE)
    assert page.title.startswith("Draft for Bergmann Optik")
    assert "Draft for Bergmann Optik created." in page.text
    (draft,) = api.get("/invoices").data
    path = f"/console/records/invoices/{draft['id']}"
    assert visitor.get(f"{path}/edit").title.startswith("Edit Draft for Bergmann Optik")
    assert visitor.get(f"{path}/issue").title.startswith("Issue: Draft for Bergmann Optik")
    assert "Draft for Bergmann Optik deleted." in visitor.submit(f"{path}/delete").text
    log = [each.text for each in visitor.get("/console/audit").all("ol", "audit")[0].all("li") if "record" in each.text]
    assert len(log) == 2
    assert all("invoice Draft for Bergmann Optik" in each for each in log)


def test_time_names_the_draft_that_bills_it_by_its_client(api, visitor, client):
    at = {"client_id": client["id"]}
    entry = api.make("/time-entries", **at, description="Sketches", duration_minutes=60, hourly_rate="60")
    api.make("/invoices", **at, unbilled_work={"time": {}})
    assert "Draft for Bergmann Optik" in visitor.get(f"/console/records/time-entries/{entry['id']}").text


def test_a_draft_of_billed_work_is_called_by_its_client_in_the_audit_log(api, visitor, client):
    api.make("/time-entries", client_id=client["id"], duration_minutes=60, hourly_rate="60")
    page = visitor.submit(f"/console/records/clients/{client['id']}/bill")
    assert page.title.startswith("Draft for Bergmann Optik")
    assert "record created invoice Draft for Bergmann Optik" in visitor.get("/console/audit").text
    assert visitor.get(f"/console/records/clients/{client['id']}/bill").title.startswith("Bill Bergmann Optik")


def test_the_subject_of_a_draft_is_its_name(api, visitor, client):
    draft = api.make("/invoices", client_id=client["id"], subject="Relaunch", lines=LINES)
    assert visitor.get(f"/console/records/invoices/{draft['id']}").title.startswith("Relaunch")


def test_time_without_a_note_is_called_by_its_hours_day_and_work(api, visitor, client):
    project = api.make("/projects", client_id=client["id"], name="Shop")
    task = api.make("/tasks", project_id=project["id"], title="Design")
    at = {"client_id": client["id"]}
    work = [at, at | {"project_id": project["id"]}, at | {"project_id": project["id"], "task_id": task["id"]}]
    made = [api.make("/time-entries", duration_minutes=120, date="2026-03-28", **each) for each in work]
    titles = [visitor.get(f"/console/records/time-entries/{each['id']}").title.partition(" ·")[0] for each in made]
    assert titles == [f"2:00 h on 28 Mar 2026, {place}" for place in ("Bergmann Optik", "Shop", "Design")]
    deletion = visitor.get(f"/console/records/time-entries/{made[0]['id']}/delete")
    assert deletion.title.startswith("Delete 2:00 h on 28 Mar 2026, Bergmann Optik"), (
        "it is rehearsed after it is named"
    )


def test_a_payment_is_called_by_its_amount_and_invoice(api, visitor, client):
    invoice = api.make("/invoices", client_id=client["id"], lines=LINES, status="sent")
    paid = {"record_payment": {"amount": "535.50", "reference": "TX-1"}}
    number = api.patch(f"/invoices/{invoice['id']}", paid).data["number"]
    (payment,) = api.get("/payments").data
    assert f"Payment of 535.50 EUR on {number}" in visitor.get(f"/console/records/payments/{payment['id']}").title


def test_an_expense_without_words_is_called_by_its_amount_and_day(api, visitor):
    expense = api.make("/expenses", amount="1119", date="2026-03-28")
    assert "1,119.00 EUR on 28 Mar 2026" in visitor.get(f"/console/records/expenses/{expense['id']}").title


def test_a_draft_that_a_search_finds_by_its_order_number_is_called_by_its_client(api, visitor, client):
    api.make("/invoices", client_id=client["id"], purchase_order="PO-7781", lines=LINES)
    assert "Draft for Bergmann Optik" in visitor.get("/console/search?q=PO-7781").text
