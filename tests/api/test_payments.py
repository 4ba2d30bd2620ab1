"""Payments across all invoices."""

import pytest
from tests.factories import SENT

from retainer.doctor import documents
from retainer.errors import Refusal

FIGURES = ("status", "amount_paid", "amount_credited", "balance_due", "refund_due")


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


@pytest.fixture
def credited(api):
    """An invoice of 500.00 that was paid in January, and credited in full."""
    invoice = api.make("/invoices", **SENT)
    path = f"/invoices/{invoice['id']}"
    api.pay(invoice["id"], paid_date="2026-01-15", reference="SEPA 1")
    api.post(f"{path}/credit-notes")
    return path


def refund(api, path, **fields):
    return api.patch(path, {"record_refund": fields})


def figures(api, path):
    row = api.get(path).data
    return [row[name] for name in FIGURES]


def test_a_refund_settles_what_was_paid_and_then_credited(api, credited):
    assert figures(api, credited) == ["paid", "500.00", "500.00", "0.00", "500.00"]
    paid_at = api.get(credited).data["paid_at"]
    part = refund(api, credited, amount="120.5", paid_date="2026-02-01", method="card", reference="R1", notes="By mail")
    recorded = part.data["payments"][-1]
    assert recorded == recorded | {
        "kind": "refund",
        "amount": "-120.50",
        "paid_date": "2026-02-01",
        "method": "card",
        "reference": "R1",
        "notes": "By mail",
        "client_id": part.data["client_id"],
    }
    assert figures(api, credited) == ["paid", "379.50", "500.00", "0.00", "379.50"]
    (note,) = part.data["credit_notes"]
    assert (note["applied_amount"], note["refundable_amount"]) == ("120.50", "379.50")
    rest = refund(api, credited).data["payments"][-1]
    assert (rest["amount"], rest["paid_date"]) == ("-379.50", api.today)
    assert figures(api, credited) == ["paid", "0.00", "500.00", "0.00", "0.00"]
    assert api.get(credited).data["paid_at"] == paid_at
    assert [payment["kind"] for payment in api.get(credited).data["payments"]] == ["payment", "refund", "refund"]
    assert amounts(api, kind="refund", sort="amount") == ["-379.50", "-120.50"]
    assert amounts(api, kind="payment") == amounts(api, amount_min="0") == ["500.00"]


def test_a_refund_is_told_as_a_change_of_its_invoice_and_credit_note(api, credited):
    (newest,) = api.get("/events").data[-1:]
    refund(api, credited, amount="1")
    found = api.get("/events", {"after": newest["id"]}).data
    told = {event["type"]: set(event["fields"]) for event in found}
    assert told["invoice.updated"] >= {"payments", "amount_paid"}
    assert told["credit_note.updated"] == {"applied_amount", "refundable_amount"}


def test_a_refund_with_the_same_reference_is_recorded_once(api, credited):
    fields = {"amount": "100", "paid_date": "2026-02-01", "reference": "R1"}
    first = refund(api, credited, **fields).data
    assert refund(api, credited, **fields).data == refund(api, credited, reference="R1").data == first
    for other in ({"amount": "99"}, {"paid_date": "2026-02-02"}):
        (message,) = refund(api, credited, **fields | other).errors["record_refund.reference"]
        last = first["payments"][-1]["id"]
        text = f"refund {last}: -100.00 EUR on 2026-02-01. Give another refund another reference."
        assert message == f"Is that of {text}"
    assert "Is that of payment" in refund(api, credited, reference="SEPA 1").errors["record_refund.reference"][0]


def test_a_reference_that_prints_like_another_is_that_payment(api):
    path = f"/invoices/{api.make('/invoices', **SENT)['id']}"
    for reference in ("SEPA 1", "sepa  1", "ＳＥＰＡ 1"):  # noqa: RUF001
        answer = api.patch(path, {"record_payment": {"amount": "100", "reference": reference}})
        assert answer.data["balance_due"] == "400.00", reference
    refused = api.patch(path, {"record_payment": {"amount": "99", "reference": "sepa 1"}})
    assert set(refused.errors) == {"record_payment.reference"}


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"amount": "500.01"}, "amount", "Must be from 0.01 to 500.00 EUR, which is what is to be refunded."),
        ({"amount": "0"}, "amount", "Must be from 0.01 to"),
        ({"amount": "-5"}, "amount", "Must be from 0.01 to"),
        ({"amount": "1.001"}, "amount", "EUR has 2 decimal places"),
        ({"paid_date": "2100-01-01"}, "paid_date", "Must not be in the future"),
        ({"paid_date": "2026-01-14"}, "paid_date", "Less had been paid by then"),
        ({"method": "paypal"}, "method", "one of: bank_transfer"),
    ],
)
def test_an_impossible_refund_is_refused_alone(api, credited, fields, field, message):
    before = api.get(credited).data
    answer = refund(api, credited, **fields)
    assert answer.errors.keys() == {f"record_refund.{field}"}
    assert message in answer.errors[f"record_refund.{field}"][0]
    assert api.get(credited).data == before


def test_nothing_is_refunded_that_was_not_paid_and_credited(api, paid):
    for members in (SENT, {}):
        path = f"/invoices/{api.make('/invoices', **members)['id']}"
        advice = "Credit what was paid first, with a credit note: POST /invoices/{invoice_id}/credit-notes."
        message = f"Nothing is to be refunded. {advice}"
        assert refund(api, path).errors == {"record_refund": [message]}
    assert set(refund(api, f"/invoices/{paid[0]['id']}").errors) == {"record_refund"}
    assert set(api.create("/invoices", record_refund={}).errors) == {"record_refund"}


def test_a_written_off_invoice_stays_so_after_a_refund(api):
    path = f"/invoices/{api.make('/invoices', **SENT)['id']}"
    api.patch(path, {"record_payment": {"amount": "200"}})
    api.patch(path, {"status": "written_off"})
    api.post(f"{path}/credit-notes")
    assert figures(api, path) == ["written_off", "200.00", "500.00", "0.00", "200.00"]
    refund(api, path)
    assert figures(api, path) == ["written_off", "0.00", "500.00", "0.00", "0.00"]


def test_a_removed_refund_is_due_again_and_a_refunded_payment_stays(api, credited):
    refunded = refund(api, credited, amount="400").data["payments"]
    with pytest.raises(Refusal, match="Remove the refund first") as refusal:
        api.remove_payment(refunded[0]["id"])
    assert refusal.value.code == "in_use"
    assert figures(api, credited) == ["paid", "100.00", "500.00", "0.00", "100.00"]
    removed = api.remove_payment(refunded[1]["id"])
    assert (removed["amount"], removed["invoice_status"]) == ("-400.00", "paid")
    assert figures(api, credited) == ["paid", "500.00", "500.00", "0.00", "500.00"]
    api.remove_payment(refunded[0]["id"])
    assert figures(api, credited) == ["paid", "0.00", "500.00", "0.00", "0.00"]


def surplus(api, path, amount, **fields):
    return api.patch(path, {"record_payment": {"amount": amount, "allow_surplus": True} | fields})


def test_a_payment_above_the_balance_is_refused_unless_its_surplus_is_allowed(api):
    path = f"/invoices/{api.make('/invoices', **SENT)['id']}"
    message = (
        "Must be from 0.01 to 500.00 EUR, the balance due. "
        "To record more, send allow_surplus: true: what is above the balance becomes refund_due."
    )
    for sent in ({}, {"allow_surplus": False}, {"allow_surplus": None}):
        refused = api.patch(path, {"record_payment": {"amount": "560"} | sent})
        assert refused.errors == {"record_payment.amount": [message]}
    assert surplus(api, path, "0").errors == {"record_payment.amount": [message.partition(" To")[0]]}
    paid = surplus(api, path, "560", reference="SEPA 7", paid_date="2026-01-15")
    assert figures(api, path) == ["paid", "560.00", "0.00", "0.00", "60.00"]
    assert "allow_surplus" not in paid.data["payments"][0]
    assert [row["id"] for row in api.get("/invoices", {"has_refund_due": "true"}).data] == [paid.data["id"]]
    again = {"amount": "560", "reference": "SEPA 7"}
    assert api.patch(path, {"record_payment": again}).data["payments"] == paid.data["payments"]
    refused = surplus(api, path, "1")
    assert refused.errors == {"record_payment": ["Nothing is due: the invoice is paid."]}
    assert set(refund(api, path, amount="60.01").errors) == {"record_refund.amount"}
    assert refund(api, path, allow_surplus=True).errors.keys() == {"record_refund.allow_surplus"}
    assert refund(api, path, paid_date="2026-01-15").data["payments"][1]["amount"] == "-60.00"
    assert figures(api, path) == ["paid", "500.00", "0.00", "0.00", "0.00"]


def test_the_status_paid_takes_a_payment_above_the_balance_as_a_payment_alone_does(api):
    path = f"/invoices/{api.make('/invoices', **SENT)['id']}"
    body = {"status": "paid", "record_payment": {"amount": "500.01"}}
    assert api.patch(path, body).errors.keys() == {"record_payment.amount"}
    body["record_payment"]["allow_surplus"] = True
    api.patch(path, body)
    assert figures(api, path) == ["paid", "500.01", "0.00", "0.00", "0.01"]
    written_off = f"/invoices/{api.make('/invoices', **SENT)['id']}"
    api.patch(written_off, {"status": "written_off"})
    surplus(api, written_off, "501")
    assert figures(api, written_off) == ["paid", "501.00", "0.00", "0.00", "1.00"]


def test_a_surplus_stays_right_when_credits_and_removals_follow(api):
    path = f"/invoices/{api.make('/invoices', **SENT)['id']}"
    api.post(f"{path}/credit-notes", {"amount": "100"})
    api.pay(int(path.rpartition("/")[2]), amount="150", paid_date="2026-01-01")
    paid = surplus(api, path, "300", paid_date="2026-02-01").data
    assert figures(api, path) == ["paid", "450.00", "100.00", "0.00", "50.00"]
    api.post(f"{path}/credit-notes")
    assert figures(api, path) == ["paid", "450.00", "500.00", "0.00", "450.00"]
    assert [note["refundable_amount"] for note in api.get(path).data["credit_notes"]] == ["50.00", "400.00"]
    refund(api, path, amount="440", paid_date="2026-02-01")
    with pytest.raises(Refusal, match="Remove the refund first"):
        api.remove_payment(paid["payments"][1]["id"])
    api.remove_payment(api.get(path).data["payments"][2]["id"])
    api.remove_payment(paid["payments"][1]["id"])
    assert figures(api, path) == ["paid", "150.00", "500.00", "0.00", "150.00"]
    with api.operating() as tx:
        assert [*documents.find(tx)] == []


def test_reports_count_a_surplus_as_collected_and_to_be_refunded(api):
    invoice = api.make("/invoices", **SENT, issue_date="2026-01-01")
    surplus(api, f"/invoices/{invoice['id']}", "560", paid_date="2026-02-10")
    wanted = {"2026-02-09": ("0.00", "500.00", "0.00"), "2026-02-10": ("560.00", "0.00", "60.00")}
    for until, expected in wanted.items():
        (row,) = api.get("/reports/revenue-by-client", {"from": "2026-01-01", "to": until}).data["rows"]
        assert (row["collected"], row["outstanding"], row["refund_due"]) == expected, until


def test_a_surplus_is_told_as_a_change_of_its_invoice(api):
    path = f"/invoices/{api.make('/invoices', **SENT)['id']}"
    (newest,) = api.get("/events").data[-1:]
    surplus(api, path, "560")
    (event,) = api.get("/events", {"after": newest["id"]}).data
    assert set(event["fields"]) >= {"payments", "amount_paid", "balance_due", "status", "paid_at"}
