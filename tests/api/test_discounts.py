"""Early-payment discounts that clients take: the rest of the invoice, which lowers revenue and tax on that day."""

from decimal import Decimal

import pytest
import time_machine
from tests.databases import each_database

from retainer.billing import payments
from retainer.doctor import documents, sums
from retainer.errors import Refusal
from retainer.identity.actors import operator_of

pytestmark = each_database
LAST_DAY = "2026-03-16"
TAKEN = {"early_payment_discount": True}


@pytest.fixture(autouse=True)
def clock(api):
    with time_machine.travel("2026-03-10T12:00:00.000000Z", tick=False) as traveller:
        api.set_account({"early_payment_discount_percent": Decimal(2), "early_payment_discount_days": 14})
        yield traveller


def line(price, rate, **more):
    return {"description": "Design", "unit_price": price, "tax_rate": rate, **more}


def issue(api, *lines, **more):
    client = api.make("/clients", currency="EUR")["id"]
    fields = {"client_id": client, "issue_date": "2026-03-02", "status": "sent", "lines": lines} | more
    return api.make("/invoices", **fields)


def pay(api, invoice, **payment):
    return api.patch(f"/invoices/{invoice['id']}", {"record_payment": TAKEN | payment})


def amounts(invoice):
    names = ("status", "amount_paid", "amount_credited", "balance_due", "refund_due")
    return tuple(invoice[name] for name in names)


def recorded(invoice):
    return [(each["kind"], each["amount"], each["paid_date"]) for each in invoice["payments"]]


def shares(record):
    return [tuple(share.values()) for share in record["tax_breakdown"]]


def findings(api):
    with api.store.begin(operator_of(api.store, api.account_id), write=False) as tx:
        tx.snapshot()
        return [*documents.find(tx), *sums.find(tx)]


def report(api, name, **query):
    return api.get(f"/reports/{name}", {"from": "2026-03-01", "to": "2026-03-31"} | query).data


def test_the_rest_of_the_invoice_is_a_discount_with_its_tax(api):
    invoice = issue(api, line("100", "19"), line("50", "7"), line("10", "0"))
    paid = pay(api, invoice, paid_date="2026-03-09", reference="TX-1").data
    assert amounts(paid) == ("paid", "178.85", "3.65", "0.00", "0.00")
    assert recorded(paid) == [("payment", "178.85", "2026-03-09"), ("discount", "3.65", "2026-03-09")]
    payment, discount = paid["payments"]
    assert (payment["tax_breakdown"], payment["payment_id"]) == (None, None)
    assert (discount["payment_id"], discount["reference"]) == (payment["id"], None)
    assert shares(discount) == [("0", "0.20", "0.00"), ("7", "1.00", "0.07"), ("19", "2.00", "0.38")]
    again = pay(api, invoice, paid_date="2026-03-09", reference="TX-1", amount="178.85").data
    assert recorded(again) == recorded(paid), "the retry adds nothing"
    listed = api.get("/payments", {"kind": "discount"}).data
    assert [each["id"] for each in listed] == [discount["id"]]
    assert findings(api) == []


def test_reports_count_it_as_credited_on_the_day_of_its_payment(api):
    project = api.make("/projects", client_id=api.make("/clients", currency="EUR")["id"])
    invoice = issue(api, line("100", "19"), client_id=project["client_id"], project_id=project["id"])
    paid = pay(api, invoice, paid_date="2026-03-09").data
    expected = {"invoiced": "100.00", "credited": "2.00", "discounts": "2.00", "revenue": "98.00", "tax": "18.62"}
    (overview,) = report(api, "overview")["money"]
    assert expected | {"collected": "116.62", "outstanding": "0.00", "refund_due": "0.00"} == {
        name: overview[name] for name in (*expected, "collected", "outstanding", "refund_due")
    }
    (client,) = report(api, "revenue-by-client")["rows"]
    (month,) = (row for row in report(api, "revenue-by-month")["rows"] if row["month"] == "2026-03")
    assert all({name: row[name] for name in expected} == expected for row in (client, month))
    (row,) = report(api, "project-profitability")["rows"]
    assert row["revenue"] == api.get(f"/projects/{project['id']}").data["invoiced_amount"] == "98.00"
    (issued,), (collected,) = (report(api, "tax", by=by)["rows"] for by in ("issue", "payment"))
    assert (issued["net"], issued["tax"], issued["discounts"], issued["discounts_tax"]) == (
        *("98.00", "18.62"),
        *("2.00", "0.38"),
    )
    assert (collected["net"], collected["tax"], collected["discounts"]) == ("98.00", "18.62", "0.00")
    (before,) = report(api, "revenue-by-client", to="2026-03-08")["rows"]
    assert (before["revenue"], before["outstanding"], before["discounts"]) == ("100.00", "119.00", "0.00")
    with api.store.begin(operator_of(api.store, api.account_id), write=True) as tx:
        payments.remove(tx, paid["payments"][0]["id"])
    invoice = api.get(f"/invoices/{invoice['id']}").data
    assert (amounts(invoice), invoice["payments"]) == (("sent", "0.00", "0.00", "119.00", "0.00"), [])
    (row,) = report(api, "project-profitability")["rows"]
    assert row["revenue"] == api.get(f"/projects/{project['id']}").data["invoiced_amount"] == "100.00"
    assert findings(api) == []


@pytest.mark.parametrize("amount", ["116.62", "117", "118.99", "119"])
def test_a_client_may_take_less_than_the_discount(api, amount):
    paid = pay(api, issue(api, line("100", "19")), amount=amount).data
    assert (paid["status"], paid["balance_due"]) == ("paid", "0.00")
    assert sum(int(each["amount"].replace(".", "")) for each in paid["payments"]) == 11900
    assert len(paid["payments"]) == (1 if amount == "119" else 2)


@pytest.mark.parametrize(
    ("payment", "field", "words"),
    [
        ({"amount": "116.61"}, "amount", "from 116.62 EUR to 119.00 EUR: the discount is at most 2.38 EUR"),
        ({"amount": "119.01"}, "amount", "from 116.62 EUR to 119.00 EUR"),
        ({"amount": "120", "allow_surplus": True}, "amount", "from 116.62 EUR to 119.00 EUR"),
        ({"paid_date": "2026-03-17"}, "early_payment_discount", f"Its last day was {LAST_DAY}. Send force: true"),
        ({"method": "offset", "offset_invoice_id": 1}, "early_payment_discount", "not with an offset"),
    ],
)
def test_what_is_no_early_payment_is_refused(api, clock, payment, field, words):
    clock.move_to("2026-03-20T12:00:00.000000Z")
    invoice = issue(api, line("100", "19"))
    payment = {"paid_date": LAST_DAY} | payment
    refused = pay(api, invoice, **payment)
    assert refused.status == 422
    assert words in refused.errors[f"record_payment.{field}"][0]
    assert api.get(f"/invoices/{invoice['id']}").data["payments"] == []


def test_after_its_last_day_it_can_be_granted_all_the_same(api, clock):
    clock.move_to("2026-03-20T12:00:00.000000Z")
    invoice = issue(api, line("100", "19"))
    assert recorded(pay(api, invoice, force=True).data) == [
        ("payment", "116.62", "2026-03-20"),
        ("discount", "2.38", "2026-03-20"),
    ]


def test_an_invoice_without_terms_has_no_discount(api):
    api.set_account({"early_payment_discount_percent": None, "early_payment_discount_days": None})
    invoice = issue(api, line("100", "19"))
    api.set_account({"early_payment_discount_percent": Decimal(3), "early_payment_discount_days": 30})
    refused = pay(api, invoice, force=True)
    assert "has no early-payment discount" in refused.errors["record_payment.early_payment_discount"][0]


def test_it_is_that_of_what_was_not_credited_and_follows_earlier_payments(api):
    invoice = issue(api, line("100", "19"))
    api.make(f"/invoices/{invoice['id']}/credit-notes", amount="59.50")
    api.patch(f"/invoices/{invoice['id']}", {"record_payment": {"amount": "20"}})
    paid = pay(api, invoice).data
    assert amounts(paid) == ("paid", "58.31", "60.69", "0.00", "0.00")
    assert recorded(paid)[1:] == [("payment", "38.31", "2026-03-10"), ("discount", "1.19", "2026-03-10")]
    assert shares(paid["payments"][-1]) == [("19", "1.00", "0.19")]
    assert findings(api) == []


def test_what_is_credited_afterwards_is_what_was_paid(api):
    invoice = issue(api, line("100", "19"), line("50", "7"))
    path = f"/invoices/{invoice['id']}"
    pay(api, invoice)
    note = api.make(f"{path}/credit-notes")
    assert (note["total"], note["refundable_amount"]) == ("169.05", "169.05")
    assert shares(note) == [("7", "49.00", "3.43"), ("19", "98.00", "18.62")]
    whole = api.get(path).data
    assert amounts(whole) == ("paid", "169.05", "172.50", "0.00", "169.05")
    refunded = api.patch(path, {"record_refund": {}}).data
    assert amounts(refunded) == ("paid", "0.00", "172.50", "0.00", "0.00")
    (row,) = report(api, "overview")["money"]
    assert [row[name] for name in ("revenue", "tax", "collected", "refund_due")] == ["0.00"] * 4
    assert all((row["net"], row["tax"]) == ("0.00", "0.00") for row in report(api, "tax")["totals"])
    assert findings(api) == []
    more = api.patch(path, {"record_refund": {"amount": "0.01"}})
    assert more.status == 422, "a discount is no money to refund"


def test_only_its_payment_can_be_removed(api):
    paid = pay(api, issue(api, line("100", "19"))).data
    with (
        pytest.raises(Refusal, match=f"remove payment {paid['payments'][0]['id']}"),
        api.store.begin(operator_of(api.store, api.account_id), write=True) as tx,
    ):
        payments.remove(tx, paid["payments"][1]["id"])


def test_an_invoice_of_a_quote_that_is_discounted_and_credited_frees_the_quote(api):
    client = api.make("/clients", currency="EUR")["id"]
    quote = api.make("/quotes", client_id=client, status="accepted", lines=[line("100", "19")])
    invoice = api.post("/invoices", {"quote_id": quote["id"], "status": "sent", "issue_date": "2026-03-02"}).data
    pay(api, invoice)
    project = api.post("/projects", {"quote_id": quote["id"], "name": "Shop"}).data
    assert project["invoiced_amount"] == "98.00", "the share without a project gets it, too"
    assert api.post("/invoices", {"quote_id": quote["id"]}).status == 422
    api.make(f"/invoices/{invoice['id']}/credit-notes")
    assert api.get(f"/projects/{project['id']}").data["invoiced_amount"] == "0.00"
    assert api.post("/invoices", {"quote_id": quote["id"]}).status == 201
    assert findings(api) == []


def test_work_of_a_discounted_invoice_is_free_again_once_the_rest_is_credited(api):
    client = api.make("/clients", currency="EUR", hourly_rate="100")["id"]
    entry = api.make("/time-entries", client_id=client, duration_minutes=60, date="2026-03-01")["id"]
    invoice = issue(api, {"time_entry_ids": [entry], "tax_rate": "19"}, line("10", "19"), client_id=client)
    pay(api, invoice)
    assert api.get(f"/time-entries/{entry}").data["billing_status"] == "billed"
    api.make(f"/invoices/{invoice['id']}/credit-notes")
    assert api.get(f"/time-entries/{entry}").data["billing_status"] == "unbilled"


def test_a_discount_is_no_money_that_a_refund_could_have_come_from(api):
    invoice = issue(api, line("100", "19"))
    path = f"/invoices/{invoice['id']}"
    api.patch(path, {"record_payment": {"amount": "50", "paid_date": "2026-03-05"}})
    first, *_ = pay(api, invoice, paid_date="2026-03-09").data["payments"]
    api.make(f"{path}/credit-notes")
    assert api.patch(path, {"record_refund": {"amount": "68"}}).status == 200
    with (
        pytest.raises(Refusal, match="It was refunded"),
        api.store.begin(operator_of(api.store, api.account_id), write=True) as tx,
    ):
        payments.remove(tx, first["id"])
