import json

import pytest
import time_machine
from sqlalchemy import select

from retainer.errors import Refusal
from retainer.reports import money
from retainer.reports.common import Period
from retainer.schema.identity import audit_entries
from retainer.values.exact import day_after
from tests.databases import only_sqlite

FIGURES = ("amount_paid", "amount_credited", "balance_due", "refund_due")
LINE = {"description": "Design", "unit_price": "100", "tax_rate": "19"}  # 119.00 with tax

REMOVED = audit_entries.c.action == "payment removed"


def issued(api, *lines, **members):
    return api.make("/invoices", status="sent", lines=list(lines or [LINE]), **members)


def credit(api, invoice, **members):
    return api.post(f"/invoices/{invoice['id']}/credit-notes", members)


def change(api, invoice, **members):
    return api.patch(f"/invoices/{invoice['id']}", members)


def pay(api, invoice, amount, **members):
    return change(api, invoice, record_payment={"amount": amount} | members)


def remove(api, invoice, place):
    return api.remove_payment(now(api, invoice)["payments"][place]["id"])


def now(api, invoice):
    return api.get(f"/invoices/{invoice['id']}").data


def pick(record, *names):
    return [record[name] for name in names]


@pytest.mark.parametrize(
    ("paid", "credited", "after", "status"),
    [
        ("0.00", "19.00", ["19.00", "0.00", "100.00"], "partially_paid"),
        ("0.00", "119.00", ["119.00", "0.00", "0.00"], "paid"),
        ("100.00", "18.99", ["18.99", "0.00", "0.01"], "partially_paid"),
        ("100.00", "19.00", ["19.00", "0.00", "0.00"], "paid"),
        ("100.00", "50.00", ["19.00", "31.00", "0.00"], "paid"),
        ("119.00", "119.00", ["0.00", "119.00", "0.00"], "paid"),
    ],
)
def test_a_credit_lowers_the_balance_and_the_rest_is_refundable(api, paid, credited, after, status):
    invoice = issued(api)
    paid_at = pay(api, invoice, paid).data["paid_at"] if paid != "0.00" else None
    note = credit(api, invoice, amount=credited).data
    after_credit = now(api, invoice)
    assert [*pick(note, "applied_amount", "refundable_amount"), after_credit["balance_due"]] == after
    figures = pick(after_credit, "status", "amount_credited", "amount_paid", "refund_due")
    assert figures == [status, credited, paid, after[1]]
    assert (after_credit["paid_at"] is not None) == (status == "paid")
    assert paid_at in {None, after_credit["paid_at"]}


def test_a_credited_amount_is_no_longer_due(api):
    invoice = issued(api)
    note = credit(api, invoice, amount="19").data
    assert change(api, invoice, status="void").code == "invalid_transition"
    assert "100.00" in pay(api, invoice, "100.01").errors["record_payment.amount"][0]
    assert pay(api, invoice, "60").data["balance_due"] == "40.00"
    paid = change(api, invoice, status="paid").data
    assert [payment["amount"] for payment in paid["payments"]] == ["60.00", "40.00"]
    assert pick(paid, "status", *FIGURES) == ["paid", "100.00", "19.00", "0.00", "0.00"]
    assert paid["credit_notes"] == [note]


def test_a_written_off_invoice_stays_so_after_a_credit_but_not_after_a_payment(api):
    invoice, other = issued(api), issued(api)
    for written_off in (invoice, other):
        written_off_at = change(api, written_off, status="written_off").data["written_off_at"]
        assert credit(api, written_off, amount="19").data["applied_amount"] == "19.00"
        after = now(api, written_off)
        assert pick(after, "status", "balance_due", "paid_at") == ["written_off", "100.00", None]
        assert after["written_off_at"] == written_off_at
    credit(api, invoice)
    assert pick(now(api, invoice), "status", "balance_due", "paid_at") == ["written_off", "0.00", None]
    assert pick(pay(api, other, "40").data, "status", "balance_due", "written_off_at") == [
        "partially_paid", "60.00", None,
    ]  # fmt: skip
    credit(api, other)
    assert pick(now(api, other), "status", "balance_due") == ["paid", "0.00"]


def test_the_amount_of_a_removed_payment_is_due_again(api):
    invoice = issued(api)
    pay(api, invoice, "40")
    first = pay(api, invoice, "79").data
    tag = api.get(f"/invoices/{invoice['id']}").headers["etag"]
    assert pick(first, "status", "balance_due") == ["paid", "0.00"]
    removed = remove(api, invoice, 1)
    after = now(api, invoice)
    told = pick(removed, "payment_id", "amount", "invoice_number", "invoice_status", "balance_due")
    assert told == [first["payments"][1]["id"], "79.00", invoice["number"], "partially_paid", "79.00"]
    assert after["payments"] == first["payments"][:1]
    assert pick(after, "status", *FIGURES, "paid_at") == ["partially_paid", "40.00", "0.00", "79.00", "0.00", None]
    assert after["updated_at"] > first["updated_at"]
    assert api.get(f"/invoices/{invoice['id']}").headers["etag"] != tag
    remove(api, invoice, 0)
    after = now(api, invoice)
    assert pick(after, "status", *FIGURES, "payments") == ["sent", "0.00", "0.00", "119.00", "0.00", []]
    assert change(api, invoice, status="void").data["status"] == "void"


@pytest.mark.parametrize(
    ("paid", "credited", "removed", "notes", "after"),
    [
        (["100"], ["50"], 0, [("50.00", "0.00")], ["partially_paid", "0.00", "50.00", "69.00", "0.00"]),
        (["100", "19"], ["50"], 0, [("50.00", "0.00")], ["partially_paid", "19.00", "50.00", "50.00", "0.00"]),
        (["100", "19"], ["50"], 1, [("19.00", "31.00")], ["paid", "100.00", "50.00", "0.00", "31.00"]),
        (["119"], ["60", "59"], 0, [("60.00", "0.00"), ("59.00", "0.00")], ["paid", "0.00", "119.00", "0.00", "0.00"]),
        (
            ["60", "59"], ["50", "30"], 1, [("50.00", "0.00"), ("9.00", "21.00")],
            ["paid", "60.00", "80.00", "0.00", "21.00"],
        ),
        (["60", "59"], ["9"], 1, [("9.00", "0.00")], ["partially_paid", "60.00", "9.00", "50.00", "0.00"]),
    ],
)  # fmt: skip
def test_a_refundable_amount_is_applied_when_a_payment_is_removed(api, paid, credited, removed, notes, after):
    invoice = issued(api)
    for amount in paid:
        paid_at = pay(api, invoice, amount).data["paid_at"]
    for amount in credited:
        credit(api, invoice, amount=amount)
    paid_at = now(api, invoice)["paid_at"] or paid_at
    remove(api, invoice, removed)
    current = now(api, invoice)
    assert [(note["applied_amount"], note["refundable_amount"]) for note in current["credit_notes"]] == notes
    assert pick(current, "status", *FIGURES) == after
    assert current["paid_at"] == (paid_at if after[0] == "paid" else None)
    assert [api.get(f"/credit-notes/{note['id']}").data for note in current["credit_notes"]] == current["credit_notes"]


def test_after_a_removal_the_same_reference_can_pay_again(api):
    with time_machine.travel("2026-05-01T10:00:00Z", tick=False):
        invoice = issued(api)
        pay(api, invoice, "119", reference="r-1")
    remove(api, invoice, 0)
    with time_machine.travel("2026-05-03T10:00:00Z", tick=False):
        paid = pay(api, invoice, "119", reference="r-1").data
    assert pick(paid, "status", "amount_paid", "paid_at") == ["paid", "119.00", "2026-05-03T10:00:00.000000Z"]
    assert [payment["reference"] for payment in paid["payments"]] == ["r-1"]


def test_a_written_off_invoice_stays_so_when_a_payment_is_removed(api):
    invoice = issued(api)
    pay(api, invoice, "40")
    written_off_at = change(api, invoice, status="written_off").data["written_off_at"]
    remove(api, invoice, 0)
    current = now(api, invoice)
    assert pick(current, "status", *FIGURES, "payments") == ["written_off", "0.00", "0.00", "119.00", "0.00", []]
    assert current["written_off_at"] == written_off_at


def test_the_audit_keeps_all_fields_of_a_removed_payment(api, other_tenant):
    expected = {"paid_date": "2026-05-01", "method": "card", "reference": "r-1", "notes": "By mistake"}
    foreign = issued(other_tenant)
    theirs = pay(other_tenant, foreign, "1").data["payments"]
    invoice = issued(api)
    known = pay(api, invoice, "119", **expected).data["payments"][0]
    remove(api, invoice, 0)
    wanted = audit_entries.c["account_id", "before", "created_at"]
    with api.store.unscoped() as tx:
        rows = tx.all(select(*wanted).where(REMOVED))
    ((account_id, before, created_at),) = rows
    assert account_id == api.account_id
    assert json.loads(before) == known
    assert created_at == now(api, invoice)["updated_at"]
    assert now(other_tenant, foreign)["payments"] == theirs


def test_removing_an_unknown_payment_is_not_found(api):
    invoice = issued(api)
    payment = pay(api, invoice, "40").data["payments"][0]["id"]
    api.remove_payment(payment)
    before = now(api, invoice)
    for unknown in (payment, 10**15):
        with pytest.raises(Refusal, match="no such payment") as refusal:
            api.remove_payment(unknown)
        assert refusal.value.code == "not_found"
    assert now(api, invoice) == before
    with api.store.unscoped() as tx:
        assert len(tx.all(select(audit_entries.c.id).where(REMOVED))) == 1


@only_sqlite
def test_the_balance_of_a_client_on_a_past_day_reads_no_payments_of_others(api):
    client, other = api.make("/clients"), api.make("/clients")
    issued(api, client_id=client["id"])
    pay(api, issued(api, client_id=other["id"]), "119.00")

    def steps() -> int:
        with api.operating() as tx:
            yesterday = Period(None, day_after(tx.today, -1), "UTC")
            money.balances(tx, yesterday, ("currency",), client_id=client["id"])
            taken = []
            tx.connection.set_progress_handler(lambda: taken.append(1), 1)
            money.balances(tx, yesterday, ("currency",), client_id=client["id"])
            tx.connection.set_progress_handler(None, 0)
        return len(taken)

    before = steps()
    for _ in range(5):
        pay(api, issued(api, client_id=other["id"]), "119.00")
    assert steps() == before
