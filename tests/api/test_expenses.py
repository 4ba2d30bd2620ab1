from decimal import Decimal
from fractions import Fraction

import pytest
from tests.reference.arithmetic import rounded


def test_it_works(api):
    client = api.make("/clients")["id"]
    project = api.make("/projects", client_id=client)["id"]
    sent = {
        "amount": "119",
        "project_id": project,
        "date": "2026-03-31",
        "category": "Travel",
        "vendor": "Railway",
        "description": "To the workshop",
        "tax_rate": "19",
        "markup_percent": "12.5",
        "reimbursable": True,
        "receipt_url": "https://agency.example/receipts/1",
        "external_id": "e-1",
    }
    answer = api.post("/expenses", sent)
    assert answer.status == 201
    expense = answer.data
    assert expense == sent | {
        "id": expense["id"],
        "created_at": expense["created_at"],
        "updated_at": expense["created_at"],
        "amount": "119.00",
        "client_id": client,
        "user_id": api.admin_id,
        "currency": "EUR",
        "amount_includes_tax": True,
        "net_amount": "100.00",
        "billable": True,
        "billable_amount": "112.50",
        "billing_status": "unbilled",
        "is_settled": False,
        "invoice_id": None,
        "invoice_line_id": None,
    }
    assert api.get(f"/expenses/{expense['id']}").data == expense
    assert api.get("/expenses").data == [expense]
    assert api.get(f"/projects/{project}").data["expense_amount"] == "100.00"


def test_omitted_fields_get_their_defaults(api):
    expense = api.post("/expenses", {"amount": 5}).data
    assert [expense[name] for name in ("client_id", "category", "currency", "billable", "billing_status")] == [
        None, "other", "EUR", False, "non_billable",
    ]  # fmt: skip
    assert [expense[name] for name in ("net_amount", "billable_amount", "tax_rate")] == ["5.00", "0.00", "0"]
    dollars = api.make("/clients", currency="USD")["id"]
    assert api.make("/expenses", client_id=dollars)["currency"] == "USD"
    assert api.make("/expenses", client_id=dollars, currency="JPY")["currency"] == "JPY"
    free = api.make("/projects", billing_type="non_billable")
    assert api.make("/expenses", client_id=None, project_id=free["id"])["billable"] is False


@pytest.mark.parametrize(("currency", "digits"), [("EUR", 2), ("JPY", 0), ("KWD", 3)])
def test_net_and_billable_amounts_are_exact_and_round_half_up(api, currency, digits):
    for n in range(1, 60):
        text = f"{Decimal(n * n * 7919 * (-1) ** n).scaleb(-digits):f}"
        rate, markup, includes = ("0", "7", "19", "8.125")[n % 4], ("0", "15", "33.333")[n % 3], n % 5 != 0
        members = {"tax_rate": rate, "markup_percent": markup, "amount_includes_tax": includes}
        expense = api.make("/expenses", amount=text, currency=currency, **members)
        net = rounded(Fraction(text) / (1 + Fraction(rate) / 100), digits) if includes else Fraction(text)
        assert Fraction(expense["net_amount"]) == net
        assert Fraction(expense["billable_amount"]) == rounded(net * (1 + Fraction(markup) / 100), digits)


@pytest.mark.parametrize(
    ("members", "field", "message"),
    [
        ({"amount": 0}, "amount", "Must not be 0"),
        ({"amount": "1.001"}, "amount", "EUR has 2 decimal places"),
        ({"amount": None}, "amount", "this is null"),
        ({"markup_percent": 1001}, "markup_percent", "from 0 to 1000"),
        ({"tax_rate": "-1"}, "tax_rate", "from 0 to 100"),
        ({"receipt_url": "file:///etc"}, "receipt_url", "http or https"),
        ({"date": "2026-13-01"}, "date", "a date"),
        ({"client_id": None, "billable": True}, "billable", "without a client"),
        ({"user_id": 999}, "user_id", "no such user"),
        ({"category": "x" * 51}, "category", "this has 51"),
    ],
)
def test_an_invalid_field_is_reported_in_a_sentence(api, members, field, message):
    answer = api.create("/expenses", **members)
    assert set(answer.errors) == {field}
    assert message in answer.errors[field][0]
    expense = api.make("/expenses", client_id=None)
    assert set(api.patch(f"/expenses/{expense['id']}", members).errors) >= {field}
    assert api.get(f"/expenses/{expense['id']}").data == expense


def test_project_and_client_agree(api):
    a, b = api.make("/clients")["id"], api.make("/clients")["id"]
    project = api.make("/projects", client_id=a)["id"]
    assert set(api.create("/expenses", client_id=b, project_id=project).errors) == {"project_id"}
    expense = api.make("/expenses", client_id=b)
    path = f"/expenses/{expense['id']}"
    assert api.patch(path, {"project_id": project}).data["client_id"] == a
    assert set(api.patch(path, {"client_id": b}).errors) == {"project_id"}
    assert api.patch(path, {"client_id": b, "project_id": None}).data["client_id"] == b
    inside = api.make("/projects", client_id=None)["id"]
    assert set(api.patch(path, {"project_id": inside}).errors) == {"billable"}
    moved = api.patch(path, {"project_id": inside, "billable": False}).data
    assert (moved["client_id"], moved["billable"], moved["billable_amount"]) == (None, False, "0.00")


def test_an_expense_that_loses_its_client_does_not_silently_become_non_billable(api):
    expense = api.make("/expenses")
    path = f"/expenses/{expense['id']}"
    refused = api.patch(path, {"client_id": None})
    message = "Must be false without a client. Send false, or name a client."
    assert refused.errors == {"billable": [message]}
    assert api.get(path).data == expense
    assert api.patch(path, {"client_id": None, "billable": None}).data["billable"] is False


def test_archived_records_and_templates_take_no_new_expenses(api):
    client = api.make("/clients")["id"]
    project = api.make("/projects", client_id=client)["id"]
    template = api.make("/projects", client_id=client, is_template=True)["id"]
    kept = api.make("/expenses", client_id=None, project_id=project)["id"]
    assert "template" in api.create("/expenses", client_id=None, project_id=template).errors["project_id"][0]
    api.patch(f"/projects/{project}", {"status": "archived"})
    assert "archived" in api.create("/expenses", client_id=None, project_id=project).errors["project_id"][0]
    api.patch(f"/clients/{client}", {"status": "archived"})
    assert "archived" in api.create("/expenses", client_id=client).errors["client_id"][0]
    assert api.patch(f"/expenses/{kept}", {"amount": 7}).data["amount"] == "7.00"


def test_only_an_admin_records_expenses_of_other_users(api):
    member = api.new_key(user_id=api.member_id)
    body = {"amount": 5, "user_id": api.admin_id}
    assert set(api.post("/expenses", body, key=member).errors) == {"user_id"}
    expense = api.post("/expenses", {"amount": 5, "user_id": "me"}, key=member).data
    assert expense["user_id"] == api.member_id
    assert [row["id"] for row in api.get("/expenses", {"user_id": "me"}, key=member).data] == [expense["id"]]
    assert api.post("/expenses", body | {"user_id": api.member_id}).data["user_id"] == api.member_id


def test_expenses_fix_the_client_of_their_project_and_block_what_they_belong_to(api):
    project = api.make("/projects")
    expense = api.make("/expenses", client_id=None, project_id=project["id"])["id"]
    assert set(api.delete(f"/projects/{project['id']}").errors) == {"expenses"}
    assert set(api.delete(f"/clients/{project['client_id']}").errors) == {"projects", "expenses"}
    other = api.make("/clients")["id"]
    assert set(api.patch(f"/projects/{project['id']}", {"client_id": other}).errors) == {"client_id"}
    assert api.delete(f"/expenses/{expense}").status == 204
    assert api.patch(f"/projects/{project['id']}", {"client_id": other}).status == 200
    assert api.delete(f"/projects/{project['id']}").status == 204
