"""Payments across all invoices."""

import pytest
from tests.factories import SENT


@pytest.fixture
def paid(api):
    """Two payments of one client and a later one of another."""
    first, second = (api.make("/invoices", client_id=api.make("/clients")["id"], **SENT) for _ in range(2))
    api.pay(first["id"], amount="100", paid_date="2026-01-15", reference="SEPA 1", notes="Straße 4", method="card")
    api.pay(first["id"], amount="50", paid_date="2026-02-28")
    api.pay(second["id"], amount="75.50", paid_date="2026-03-01", reference="SEPA 3")
    return first, second


def amounts(api, **query):
    answer = api.get("/payments", query)
    assert answer.json["meta"]["total"] == len(answer.data)
    return [payment["amount"] for payment in answer.data]


def test_payments_are_listed_newest_day_first_with_invoice_and_client(api, paid):
    newest, *_ = api.get("/payments").data
    assert amounts(api) == ["75.50", "50.00", "100.00"]
    assert (newest["invoice_id"], newest["client_id"]) == (paid[1]["id"], paid[1]["client_id"])
    assert api.get(f"/payments/{newest['id']}").data == newest
    assert api.get(f"/invoices/{paid[1]['id']}").data["payments"] == [newest]


def test_payments_are_found_by_day_invoice_client_method_and_text(api, paid):
    first, second = paid
    assert amounts(api, paid_date_from="2026-02-28", paid_date_to="2026-02-28") == ["50.00"]
    assert amounts(api, invoice_id=second["id"]) == ["75.50"]
    assert amounts(api, client_id=first["client_id"]) == ["50.00", "100.00"]
    assert amounts(api, method="card") == ["100.00"]
    assert amounts(api, q="STRASSE") == ["100.00"]
    assert amounts(api, amount_min="75.5", sort="amount") == ["75.50", "100.00"]
    assert amounts(api, client_id=first["client_id"], paid_date_to="2026-01-31") == ["100.00"]


def test_a_removed_payment_is_gone(api, paid):
    newest, *_ = api.get("/payments").data
    api.remove_payment(newest["id"])
    assert amounts(api) == ["50.00", "100.00"]
    assert api.get(f"/payments/{newest['id']}").status == 404


def test_payments_need_the_scope_of_invoices_and_stay_in_their_account(api, other_tenant, paid):
    assert api.get("/payments", key=api.new_key(["clients:read"])).json["required_scope"] == "invoices:read"
    (newest, *_) = api.get("/payments").data
    assert other_tenant.get("/payments").data == []
    assert other_tenant.get(f"/payments/{newest['id']}").status == 404
    assert other_tenant.get("/payments", {"client_id": newest["client_id"]}).data == []
