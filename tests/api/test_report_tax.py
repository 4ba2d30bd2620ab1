"""The tax report: net and tax by category and rate, by the dates of documents and by payment."""

import re
from decimal import Decimal

import pytest
import time_machine
from tests.contract.cases import statements_of
from tests.databases import any_database, each_database, only_sqlite

pytestmark = each_database
NOW = "2026-03-17T12:00:00.000000Z"


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


def report(api, first, last, **query):
    return api.get("/reports/tax", {"from": first, "to": last} | query).data


LOSSES = ("discounts", "discounts_tax", "written_off", "written_off_tax")


def rows(found, part="rows"):
    """The rows without their names and without losses; each in a line."""
    return [" ".join(str(value) for name, value in row.items() if name not in LOSSES) for row in found[part]]


def losses(found, part="rows"):
    return [" ".join(row[name] for name in LOSSES) for row in found[part]]


def bill(api, client, day, *prices, **members):
    """Issue an invoice; each price is before tax, with a rate after a slash."""
    lines = []
    for price in prices:
        net, rate = price.split("/")
        lines.append({"description": "Design", "unit_price": net.lstrip("-"), "tax_rate": rate})
        lines[-1]["quantity"] = "-1" if net.startswith("-") else "1"
    sent = {"client_id": client, "issue_date": day, "status": "sent", "lines": lines} | members
    return api.make("/invoices", **sent)["id"]


def pay(api, invoice, amount, day, kind="payment"):
    body = {f"record_{kind}": {"amount": amount, "paid_date": day}}
    answer = api.patch(f"/invoices/{invoice}", body)
    assert answer.status == 200, answer


def credit(api, invoice, day, **body):
    answer = api.post(f"/invoices/{invoice}/credit-notes", {"issue_date": day} | body)
    assert answer.status == 201, answer


def test_invoices_and_credit_notes_count_at_each_rate_on_their_dates(api):
    client = api.make("/clients")["id"]
    first = bill(api, client, "2026-01-31", "100/19", "50/7", "10/0")
    bill(api, client, "2026-02-01", "1.03/7", "200/19")
    bill(api, client, "2026-02-28", "5/19", currency="USD")
    bill(api, client, "2026-02-10", "9000/19", status="draft")
    void = bill(api, client, "2026-02-10", "7000/19")
    api.patch(f"/invoices/{void}", {"status": "void"})
    credit(api, first, "2026-02-15", lines=[{"description": "Sorry", "unit_price": "10", "tax_rate": "7"}])
    found = report(api, "2026-02-01", "2026-02-28")
    assert list(found) == ["period", "rows", "totals", "input_rows", "input_totals"]
    fields = "tax_category tax_rate document_count credited_count currency net tax credited credited_tax"
    assert " ".join(found["rows"][0]) == " ".join((fields, *LOSSES))
    assert rows(found) == [
        "S 19 1 0 EUR 200.00 38.00 0.00 0.00",
        "S 7 1 1 EUR -8.97 -0.63 10.00 0.70",
        "S 19 1 0 USD 5.00 0.95 0.00 0.00",
    ]
    assert rows(found, "totals") == ["EUR 191.03 37.37 10.00 0.70", "USD 5.00 0.95 0.00 0.00"]
    assert rows(report(api, "2026-02-01", "2026-02-28", currency="USD")) == ["S 19 1 0 USD 5.00 0.95 0.00 0.00"]
    other = api.make("/clients")["id"]
    assert report(api, "2026-02-01", "2026-02-28", client_id=other)["rows"] == []
    assert len(report(api, "2026-02-01", "2026-02-28", client_id=client)["rows"]) == 3


@any_database
def test_without_days_it_is_about_the_last_full_month_in_the_zone_of_the_account(api, clock):
    def period(**query):
        found = api.get("/reports/tax", query).data["period"]
        return found["from"], found["to"]

    assert period() == ("2026-02-01", "2026-02-28")
    assert period(to="2026-02-10") == ("2026-02-01", "2026-02-10")
    assert period(**{"from": "2026-01-05"}) == ("2026-01-05", "2026-03-17")
    clock.move_to("2026-03-31T22:30:00Z")  # 1 April in Berlin
    assert period() == ("2026-03-01", "2026-03-31")


def test_a_category_is_that_of_the_invoice_as_it_was_issued(api):
    api.set_account({"country": "DE", "vat_number": "DE136695976"})
    abroad = {"country": "AT", "vat_number": "ATU13585627"}
    clients = [api.make("/clients", **where)["id"] for where in (abroad, {"country": "CH"}, {"country": "DE"})]
    austrian, swiss, german = clients
    first = bill(api, austrian, "2026-02-01", "100/0", "50/19")
    bill(api, swiss, "2026-02-02", "200/0")
    bill(api, german, "2026-02-03", "300/0")
    pay(api, first, "159.50", "2026-02-20")
    expected = [
        "S 19 1 0 EUR 50.00 9.50 0.00 0.00",
        "AE 0 1 0 EUR 100.00 0.00 0.00 0.00",
        "O 0 1 0 EUR 200.00 0.00 0.00 0.00",
        "E 0 1 0 EUR 300.00 0.00 0.00 0.00",
    ]
    assert rows(report(api, "2026-02-01", "2026-02-28")) == expected
    api.set_account({"country": "CH", "vat_number": None})
    for client in clients:
        api.patch(f"/clients/{client}", {"country": "FR", "vat_number": None})
    assert rows(report(api, "2026-02-01", "2026-02-28")) == expected
    assert rows(report(api, "2026-02-01", "2026-02-28", by="payment")) == expected[:2]
    credit(api, first, "2026-03-02")
    assert rows(report(api, "2026-03-01", "2026-03-31")) == [
        "S 19 0 1 EUR -50.00 -9.50 50.00 9.50",
        "AE 0 0 1 EUR -100.00 0.00 100.00 0.00",
    ]


def test_an_invoice_without_a_stored_issuer_has_the_category_of_the_account_now(api):
    api.set_account({"country": "DE", "vat_number": "DE136695976"})
    client = api.make("/clients", country="CH")["id"]
    bill(api, client, "2026-02-02", "200/0")
    api.sql("UPDATE invoices SET issuer_snapshot = NULL")
    for chosen, category in (("export", "G"), ("exempt", "E")):
        api.set_account({"tax_outside_eu": chosen})
        (row,) = report(api, "2026-02-01", "2026-02-28")["rows"]
        assert row["tax_category"] == category


def test_the_payments_of_an_invoice_add_up_to_it_at_each_rate(api):
    client = api.make("/clients")["id"]
    invoice = bill(api, client, "2026-01-15", "100/19", "33.33/7", "0.01/0")  # 119 + 35.66 + 0.01 = 154.67
    for amount, day in (
        ("51.55", "2026-01-20"),
        ("0.01", "2026-01-20"),
        ("51.56", "2026-02-20"),
        ("51.55", "2026-03-01"),
    ):
        pay(api, invoice, amount, day)
    january, february, march = (
        report(api, f"2026-{month}-01", f"2026-{month}-{last}", by="payment")
        for month, last in (("01", "31"), ("02", "28"), ("03", "31"))
    )
    assert rows(january) == [
        "S 19 2 0 EUR 33.34 6.33 0.00 0.00",
        "S 7 1 0 EUR 11.11 0.78 0.00 0.00",  # the payment of a cent is for one rate
    ]
    whole = report(api, "2026-01-01", "2026-03-31", by="payment")
    assert [(row["tax_rate"], row["net"], row["tax"]) for row in whole["rows"]] == [
        ("19", "100.00", "19.00"),
        ("7", "33.33", "2.33"),
        ("0", "0.01", "0.00"),
    ]
    parts = [Decimal(each["totals"][0]["net"]) for each in (january, february, march)]
    assert sum(parts) == Decimal("133.34")


def test_a_refund_takes_back_what_was_credited(api):
    client = api.make("/clients")["id"]
    invoice = bill(api, client, "2026-01-15", "100/19", "100/7")
    pay(api, invoice, "226", "2026-01-20")
    credit(api, invoice, "2026-02-01", lines=[{"description": "Sorry", "unit_price": "50", "tax_rate": "7"}])
    assert report(api, "2026-02-01", "2026-02-28", by="payment")["rows"] == []
    pay(api, invoice, "20", "2026-03-01", "refund")
    pay(api, invoice, "33.50", "2026-03-02", "refund")
    assert rows(report(api, "2026-03-01", "2026-03-31", by="payment")) == ["S 7 0 2 EUR -50.00 -3.50 50.00 3.50"]
    assert rows(report(api, "2026-01-01", "2026-03-31", by="payment"), "totals") == ["EUR 150.00 22.50 50.00 3.50"]


def test_a_refund_on_the_day_of_the_credit_is_of_what_was_credited(api):
    client = api.make("/clients")["id"]
    invoice = bill(api, client, "2026-01-15", "100/19", "100/7")
    pay(api, invoice, "226", "2026-01-20")
    credit(api, invoice, "2026-02-01", lines=[{"description": "Sorry", "unit_price": "50", "tax_rate": "7"}])
    pay(api, invoice, "53.50", "2026-02-01", "refund")
    assert rows(report(api, "2026-02-01", "2026-02-28", by="payment")) == ["S 7 0 1 EUR -50.00 -3.50 50.00 3.50"]


def test_a_surplus_counts_in_proportion_to_the_invoice_until_it_is_refunded(api):
    client = api.make("/clients")["id"]
    invoice = bill(api, client, "2026-01-15", "100/19", "100/7")
    payment = {"amount": "248.60", "paid_date": "2026-01-20", "allow_surplus": True}
    assert api.patch(f"/invoices/{invoice}", {"record_payment": payment}).status == 200
    assert rows(report(api, "2026-01-01", "2026-01-31", by="payment")) == [
        "S 19 1 0 EUR 110.00 20.90 0.00 0.00",
        "S 7 1 0 EUR 110.00 7.70 0.00 0.00",
    ]
    pay(api, invoice, "22.60", "2026-02-01", "refund")
    assert rows(report(api, "2026-02-01", "2026-02-28", by="payment"), "totals") == ["EUR -20.00 -2.60 20.00 2.60"]


def test_a_credit_of_what_was_not_paid_moves_what_was_paid_on_its_own_day(api):
    client = api.make("/clients")["id"]
    invoice = bill(api, client, "2026-01-15", "100/19", "100/7")
    pay(api, invoice, "119", "2026-01-20")
    before = report(api, "2026-01-01", "2026-01-31", by="payment")
    credit(api, invoice, "2026-02-01", lines=[{"description": "Sorry", "unit_price": "100", "tax_rate": "7"}])
    assert report(api, "2026-01-01", "2026-01-31", by="payment") == before
    (moved,) = report(api, "2026-02-01", "2026-02-28", by="payment")["totals"]
    assert Decimal(moved["net"]) == -Decimal(moved["tax"]) != 0
    assert rows(report(api, "2026-01-01", "2026-02-28", by="payment"), "totals") == ["EUR 100.00 19.00 0.00 0.00"]


def test_expenses_have_their_input_tax_by_rate_whatever_documents_count_by(api):
    client = api.make("/clients")["id"]
    expense = {"date": "2026-02-05", "client_id": client}
    for amount, rate, is_gross in (
        *(("119", "19", True), ("0.03", "19", False), ("0.03", "19", False), ("-1.07", "7", True)),
        *(("10", "0", True), ("10.70", "7.0", True)),
    ):
        sent = expense | {"amount": amount, "tax_rate": rate, "amount_includes_tax": is_gross}
        assert api.post("/expenses", sent).status == 201
    api.make("/expenses", date="2026-02-05", amount="5", currency="USD", tax_rate="0")
    api.make("/expenses", date="2026-03-01", amount="5")
    for by in ("issue", "payment"):
        found = report(api, "2026-02-01", "2026-02-28", by=by)
        assert rows(found, "input_rows") == [
            "19 EUR 3 100.06 19.02",  # 0.0057 each is rounded up twice
            "7 EUR 2 9.00 0.63",
            "0 EUR 1 10.00 0.00",
            "0 USD 1 5.00 0.00",
        ]
        assert rows(found, "input_totals") == ["EUR 6 119.06 19.65", "USD 1 5.00 0.00"]
    assert rows(report(api, "2026-02-01", "2026-02-28", client_id=client), "input_totals") == ["EUR 6 119.06 19.65"]


@any_database
def test_it_counts_by_issue_or_by_payment_alone(api):
    answer = api.get("/reports/tax", {"by": "cash"})
    assert (answer.code, set(answer.errors)) == ("validation_failed", {"by"})


@only_sqlite
@pytest.mark.parametrize("by", ["issue", "payment"])
def test_it_finds_the_documents_of_a_period_in_indexes_with_few_statements(api, by):
    client = api.make("/clients")["id"]
    for _ in range(3):
        pay(api, bill(api, client, "2026-02-01", "100/0"), "100", "2026-02-01")
    with statements_of(api) as ran:
        report(api, "2026-02-01", "2026-02-28", by=by)
    plans = []
    for text in (text for text in ran if "BETWEEN" in text):
        places = [None] * max(map(int, re.findall(r"\?(\d+)", text)))
        plans += [step for *_, step in api.sql(f"EXPLAIN QUERY PLAN {text}", *places)]
    walks = [step for step in plans if re.fullmatch(r"SEARCH .*\(account_id=\?\)", step)]
    assert (walks, [step for step in plans if step.startswith("SCAN") and "SUBQUERY" not in step]) == ([], [])
    assert len(ran) <= 7
