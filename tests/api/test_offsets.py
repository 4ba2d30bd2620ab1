"""Offsets: what is to be refunded on an invoice pays another one of its client."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.databases import each_database
from tests.factories import SENT

from retainer.doctor import documents
from retainer.errors import Refusal

FIGURES = ("status", "amount_paid", "balance_due", "refund_due")


def figures(api, path):
    row = api.get(path).data
    return [row[name] for name in FIGURES]


def path_of(invoice):
    return f"/invoices/{invoice['id']}"


@pytest.fixture
def owed(api):
    """An invoice on which 60.00 is to be refunded, since January."""
    invoice = api.make("/invoices", **SENT)
    api.pay(invoice["id"], amount="560", allow_surplus=True, paid_date="2026-01-15", reference="SEPA 7")
    return invoice


@pytest.fixture
def unpaid(api, owed):
    return api.make("/invoices", client_id=owed["client_id"], **SENT)


def offset(api, unpaid, owed, **fields):
    sent = {"method": "offset", "offset_invoice_id": owed["id"]} | fields
    return api.patch(path_of(unpaid), {"record_payment": sent})


def found_by_doctor(api):
    with api.operating() as tx:
        return [finding.what for finding in documents.find(tx)]


def test_an_offset_is_a_payment_here_and_a_refund_there(api, owed, unpaid):
    (newest,) = api.get("/events").data[-1:]
    answer = offset(api, unpaid, owed, paid_date="2026-02-01", reference="O1", notes="As agreed").data
    assert figures(api, path_of(unpaid)) == ["partially_paid", "60.00", "440.00", "0.00"]
    assert figures(api, path_of(owed)) == ["paid", "500.00", "0.00", "0.00"]
    (payment,), (_, refund) = answer["payments"], api.get(path_of(owed)).data["payments"]
    both = {"method": "offset", "paid_date": "2026-02-01", "reference": "O1", "notes": "As agreed"}
    assert payment == payment | both | {"kind": "payment", "amount": "60.00", "offset_invoice_id": owed["id"]}
    assert refund == refund | both | {"kind": "refund", "amount": "-60.00", "offset_invoice_id": unpaid["id"]}
    assert [row["id"] for row in api.get("/payments", {"method": "offset"}).data] == [refund["id"], payment["id"]]
    events = api.get("/events", {"after": newest["id"]}).data
    assert {event["record_id"] for event in events if "payments" in event["fields"]} == {owed["id"], unpaid["id"]}
    (row,) = api.get("/reports/revenue-by-client", {"from": "2026-01-01", "to": api.today}).data["rows"]
    assert (row["collected"], row["outstanding"], row["refund_due"]) == ("560.00", "440.00", "0.00")
    assert found_by_doctor(api) == []


def test_an_offset_with_the_same_reference_is_recorded_once(api, owed, unpaid):
    fields = {"amount": "25", "paid_date": "2026-02-01", "reference": "O1"}
    first = offset(api, unpaid, owed, **fields).data
    assert offset(api, unpaid, owed, **fields).data == first
    assert figures(api, path_of(owed))[3] == "35.00"
    other = api.make("/invoices", client_id=owed["client_id"], **SENT)
    assert offset(api, unpaid, other, **fields).errors.keys() == {"record_payment.reference"}
    taken = offset(api, unpaid, owed, reference="sepa 7")
    message = f"{owed['number']} has this reference already. Give the offset another reference."
    assert taken.errors == {"record_payment.reference": [message]}


def test_an_offset_is_at_most_what_is_due_and_what_is_to_be_refunded(api, owed, unpaid):
    refused = offset(api, unpaid, owed, amount="60.01", allow_surplus=True)
    message = f"Must be from 0.01 to 60.00 EUR, what is to be refunded on {owed['number']}."
    assert refused.errors == {"record_payment.amount": [message]}
    assert offset(api, unpaid, owed, paid_date="2026-01-14").errors == {
        "record_payment.paid_date": [f"Less had been paid on {owed['number']} by then. Send a later day."]
    }
    api.pay(unpaid["id"], amount="490")
    refused = offset(api, unpaid, owed, amount="10.01", allow_surplus=True)
    assert refused.errors == {"record_payment.amount": ["Must be from 0.01 to 10.00 EUR, the balance due."]}
    body = {"status": "paid", "record_payment": {"method": "offset", "offset_invoice_id": owed["id"]}}
    assert api.patch(path_of(unpaid), body).status == 200
    assert (figures(api, path_of(unpaid))[0], figures(api, path_of(owed))[3]) == ("paid", "50.00")


def test_an_offset_needs_another_invoice_of_the_client_with_money_to_refund(api, owed, unpaid):
    foreign = api.make("/invoices", **SENT, client_id=api.make("/clients")["id"])
    in_dollars = api.make("/invoices", **SENT, client_id=owed["client_id"], currency="USD")
    draft = api.make("/invoices", client_id=owed["client_id"])
    number = unpaid["number"]
    for invoice, message in (
        ({"id": 999_999}, "There is no such invoice"),
        (unpaid, "Must be another invoice."),
        (foreign, f"Is an invoice of client {foreign['client_id']}; this one is of client {owed['client_id']}."),
        (in_dollars, "Is in USD; this one is in EUR."),
        (draft, "Has no refund_due: nothing of a draft is to be refunded."),
    ):
        ((field, (said,)),) = offset(api, unpaid, invoice).errors.items()
        assert field == "record_payment.offset_invoice_id", "what follows from it is no second error"
        assert message in said, invoice
    assert offset(api, owed, unpaid).errors["record_payment"] == ["Nothing is due: the invoice is paid."]
    other = api.make("/invoices", client_id=owed["client_id"], **SENT)
    (said,) = offset(api, other, unpaid).errors["record_payment.offset_invoice_id"]
    assert said == f"Has no refund_due: nothing of {number} is to be refunded."
    assert offset(api, unpaid, owed, method="card").errors.keys() == {"record_payment.method"}
    alone = api.patch(path_of(unpaid), {"record_payment": {"method": "offset"}})
    assert alone.errors.keys() == {"record_payment.offset_invoice_id"}
    refund = api.patch(path_of(owed), {"record_refund": {"method": "offset"}})
    assert refund.errors.keys() == {"record_refund.method"}
    assert figures(api, path_of(owed)) == ["paid", "560.00", "0.00", "60.00"]


def test_an_offset_is_removed_on_both_invoices_unless_its_payment_was_refunded(api, owed, unpaid):
    for place in (0, -1):
        offset(api, unpaid, owed, amount="20")
        offset(api, unpaid, owed, amount="40")
        api.remove_payment(api.get(path_of([unpaid, owed][place])).data["payments"][-1]["id"])
        assert figures(api, path_of(unpaid)) == ["partially_paid", "20.00", "480.00", "0.00"]
        assert figures(api, path_of(owed)) == ["paid", "540.00", "0.00", "40.00"]
        api.remove_payment(api.get(path_of(unpaid)).data["payments"][0]["id"])
        assert found_by_doctor(api) == []
    offset(api, unpaid, owed)
    api.post(f"{path_of(unpaid)}/credit-notes")
    api.patch(path_of(unpaid), {"record_refund": {}})
    rows = [api.get(path_of(unpaid)).data["payments"][0], api.get(path_of(owed)).data["payments"][1]]
    for row in rows:
        with pytest.raises(Refusal, match="Remove the refund first"):
            api.remove_payment(row["id"])


def test_the_doctor_finds_half_an_offset(api, owed, unpaid):
    offset(api, unpaid, owed)
    api.sql("DELETE FROM payments WHERE invoice_id = $1 AND amount < 0", owed["id"])
    assert f"Invoice {owed['id']} has no other half of this offset." in found_by_doctor(api)


@each_database
def test_money_to_refund_is_used_once_by_many_offsets_at_once(api):
    owed = api.make("/invoices", **SENT)
    api.pay(owed["id"], amount="560", allow_surplus=True)
    others = [api.make("/invoices", client_id=owed["client_id"], **SENT) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        answers = [*pool.map(lambda each: offset(api, each, owed, amount="20"), others)]
    assert sorted(answer.status for answer in answers) == [200] * 3 + [422] * 3
    assert figures(api, path_of(owed)) == ["paid", "500.00", "0.00", "0.00"]
