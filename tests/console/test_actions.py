"""Actions of the console: each does exactly what the API's operation does, once, and says what is impossible."""

import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
import time_machine

from retainer.console.words import short_day
from retainer.values.exact import day_after, utcnow
from tests.console.visitor import Fields, Visitor, WebPage
from tests.databases import each_database, slow_on_each, today
from tests.factories import ApiClient
from tests.length import TURN, sampled

LINES = [
    {"description": "Design", "unit_price": "100", "quantity": "10", "tax_rate": "19"},
    {"description": "Hosting", "unit_price": "50", "tax_rate": "7"},
]
OWN = re.compile(r"(^|_)(id|number|reference)$")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT.*Z")
HOST = re.compile(r"site-\d+")
NUMBER = re.compile(r"INV-\d{4}-\d+")
HOSTS = map("site-{}".format, itertools.count())
DONE = {
    *("invoice issued", "invoice voided", "invoice written off", "payment recorded", "refund recorded"),
    "payment removed",
    *("credit note issued", "quote accepted", "quote declined", "ticket answered", "record changed"),
}


def shape(value: Any) -> Any:
    """Return a record without what differs between twins: ids, numbers and the microseconds of instants."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items() if not OWN.search(name) and not name.endswith("_ids")}
    if isinstance(value, list):
        return [shape(each) for each in value]
    if isinstance(value, str) and INSTANT.fullmatch(value):
        return "instant"
    return NUMBER.sub("number", HOST.sub("host", str(value)))


def issued(api: ApiClient, **fields: Any) -> dict[str, Any]:
    return api.make("/invoices", status="sent", lines=LINES, **fields)


def path_of(collection: str, record: dict[str, Any], action: str = "") -> str:
    return f"/console/records/{collection}/{record['id']}{action}"


def read(api: ApiClient, collection: str, record: dict[str, Any]) -> dict[str, Any]:
    return api.get(f"/{collection}/{record['id']}").data


def actions_of(api: ApiClient) -> list[str]:
    """The actions on records in the audit log, newest first."""
    rows = api.sql("SELECT action FROM audit_entries WHERE account_id = $1 ORDER BY id DESC", api.account_id)
    return [action for (action,) in rows if action in DONE]


def ready(api: ApiClient, collection: str, status: str) -> dict[str, Any]:
    """Make a record in a state, for an action."""
    if collection == "tickets":
        return api.make("/tickets", subject="The shop is slow")
    if collection == "sites":
        return api.make("/sites", url=f"https://{next(HOSTS)}.example", monitoring_enabled=status == "monitored")
    record = api.make(f"/{collection}", lines=LINES)
    if status in {"paid", "credited"}:
        api.patch(f"/invoices/{record['id']}", {"status": "sent"})
        api.patch(f"/invoices/{record['id']}", {"record_payment": {"amount": "300", "reference": "A1"}})
        if status == "credited":
            assert api.post(f"/invoices/{record['id']}/credit-notes", {}).status == 201
    elif status != "draft":
        steps = ["sent", status] if status in {"void", "written_off"} else [status]
        for step in steps:
            assert api.patch(f"/{collection}/{record['id']}", {"status": step}).status == 200
    return record


TWINS: list[tuple[str, str, dict[str, str], str, dict[str, Any]]] = [
    ("invoices draft", "/issue", {}, "", {"status": "sent"}),
    ("invoices sent", "/void", {}, "", {"status": "void"}),
    ("invoices sent", "/write-off", {}, "", {"status": "written_off"}),
    ("invoices sent", "/payment", {}, "", {"status": "paid"}),
    (
        "invoices written_off",
        "/payment",
        {"amount": "100.50", "method": "card", "reference": "X", "notes": "half"},
        "",
        {"record_payment": {"amount": "100.50", "method": "card", "reference": "X", "notes": "half"}},
    ),
    ("invoices credited", "/refund", {}, "", {"record_refund": {}}),
    (
        "invoices credited",
        "/refund",
        {"amount": "100.50", "method": "card", "reference": "X", "notes": "half"},
        "",
        {"record_refund": {"amount": "100.50", "method": "card", "reference": "X", "notes": "half"}},
    ),
    ("invoices sent", "/credit", {"reason": "goodwill"}, "/credit-notes", {"reason": "goodwill"}),
    (
        "invoices paid",
        "/credit",
        {"what": "amount", "amount": "1200", "description": "Late"},
        "/credit-notes",
        {"amount": "1200", "description": "Late"},
    ),
    ("quotes draft", "/accept", {"accepted_by": "Eva"}, "", {"status": "accepted", "accepted_by": "Eva"}),
    ("quotes sent", "/decline", {"decline_reason": "Fee"}, "", {"status": "declined", "decline_reason": "Fee"}),
    ("tickets open", "/reply", {"body": "A", "status": "closed"}, "/replies", {"body": "A", "status": "closed"}),
    ("quotes draft", "/send", {}, "", {"status": "sent"}),
    ("quotes accepted", "/draft", {}, "", {"status": "draft"}),
    ("tickets open", "/reply", {"body": "A", "is_internal": "yes"}, "/replies", {"body": "A", "is_internal": True}),
    (
        "tickets open",
        "/handle",
        {"status": "closed", "priority": "urgent", "due_at": "2030-05-06T07:30"},
        "",
        {"status": "closed", "priority": "urgent", "due_at": "2030-05-06T05:30:00Z"},
    ),
    ("sites monitored", "/pause", {}, "", {"monitoring_enabled": False}),
    ("sites paused", "/resume", {}, "", {"monitoring_enabled": True}),
    (
        "sites monitored",
        "/maintenance",
        {"maintenance_until": "2030-01-01T01:00"},
        "",
        {"maintenance_until": "2030-01-01T00:00:00Z"},
    ),
]
"""A record, the action with its form, and the operation below the record's path with its body; without one, a PATCH."""


def do(visitor: Visitor, path: str, **fields: Any) -> WebPage:
    """Do an action as a browser without script does; one that is final is confirmed as its preview shows it."""
    page = visitor.submit(path, **fields)
    if "check it, then confirm" in page.text:
        page = visitor.follow(visitor.post(path, Fields(page.html).forms[path]))
    return page


def previewed(visitor: Visitor, path: str, **fields: Any) -> WebPage:
    """Return the page with what its form leads to."""
    return visitor.submit(path, **fields, step="preview")


def filled(visitor: Visitor, path: str, fields: dict[str, str]) -> dict[str, str]:
    """Return the form of an action, filled in and previewed."""
    return dict(Fields(previewed(visitor, path, **fields).html).forms[path])


@slow_on_each
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: f"{twin[0]} {twin[1]}")
def test_an_action_does_what_the_operation_does(api, visitor, twin):
    record, action, form, below, body = twin
    collection, status = record.split()
    by_api, by_console = (ready(api, collection, status) for _ in range(2))
    answer = api.call("POST" if below else "PATCH", f"/{collection}/{by_api['id']}{below}", body)
    assert answer.status < 300, answer
    page = do(visitor, path_of(collection, by_console, action), **form)
    assert page.status == 200, page.text
    assert 'role="status"' in page.html
    assert shape(read(api, collection, by_console)) == shape(read(api, collection, by_api))
    if collection == "tickets":
        replies = [api.get(f"/tickets/{each['id']}/replies").data for each in (by_api, by_console)]
        assert shape(replies[0]) == shape(replies[1])
    assert len(actions_of(api)) == 1


@each_database
def test_removing_a_payment_does_what_the_command_does(api, visitor):
    by_command, by_console = (ready(api, "invoices", "paid") for _ in range(2))
    api.remove_payment(read(api, "invoices", by_command)["payments"][0]["id"])
    page = visitor.get(path_of("invoices", by_console, "/remove-payment"))
    assert "Status Partially paid Open" in page.text
    assert "Balance due 943.50 EUR 1,243.50 EUR" in page.text
    page = visitor.submit(path_of("invoices", by_console, "/remove-payment"))
    assert "300.00 EUR removed. INV-" in page.text
    assert shape(read(api, "invoices", by_console)) == shape(read(api, "invoices", by_command))
    assert actions_of(api) == ["payment removed"] * 2
    assert path_of("invoices", by_console) in visitor.get("/console/audit").links


def test_the_chosen_one_of_several_payments_is_removed(api, visitor):
    invoice = issued(api)
    for reference in ("A1", "A2", "A3"):
        api.patch(f"/invoices/{invoice['id']}", {"record_payment": {"amount": "10", "reference": reference}})
    payments = read(api, "invoices", invoice)["payments"]
    chosen = next(payment for payment in payments if payment["reference"] == "A2")
    visitor.submit(path_of("invoices", invoice, "/remove-payment"), payments=str(chosen["id"]))
    left = {payment["reference"] for payment in read(api, "invoices", invoice)["payments"]}
    assert left == {"A1", "A3"}


def test_part_of_a_line_is_credited_as_it_was_previewed(api, visitor):
    by_api, by_console = (issued(api) for _ in range(2))
    parts = [{"invoice_line_id": by_api["lines"][0]["id"], "quantity": "2.5"}]
    note = api.post(f"/invoices/{by_api['id']}/credit-notes", {"lines": parts}).data
    path = path_of("invoices", by_console, "/credit")
    page = visitor.submit(path, what="lines", **{f"line_{by_console['lines'][0]['id']}": "2,5"})
    assert "This is what the form leads to" in page.text, "what was not seen is not issued"
    assert "297.50 EUR reduces the amount due." in page.text
    assert "Balance due 1,243.50 EUR 946.00 EUR" in page.text
    assert 'value="2,5"' in page.html
    assert api.get("/credit-notes").json["meta"]["total"] == 1, "a preview writes nothing"
    assert "CN-" in visitor.follow(visitor.post(path, Fields(page.html).forms[path])).text
    assert shape(read(api, "invoices", by_console)) == shape(read(api, "invoices", by_api))
    (other,) = read(api, "invoices", by_console)["credit_notes"]
    assert shape(other) == shape(note)


def test_the_form_of_a_credit_says_what_is_left_of_a_line_that_was_credited_in_part(api, visitor):
    invoice = api.make(
        "/invoices", status="sent", lines=[{"description": "Photo", "quantity": "3", "unit_price": "100"}]
    )
    assert "Quantity, of 3 left (300.00 EUR before tax)." in visitor.get(path_of("invoices", invoice, "/credit")).text
    part = {"invoice_line_id": invoice["lines"][0]["id"], "quantity": "1"}
    assert api.post(f"/invoices/{invoice['id']}/credit-notes", {"lines": [part]}).status == 201
    assert "Quantity, of 2 left (200.00 EUR before tax)." in visitor.get(path_of("invoices", invoice, "/credit")).text


@pytest.mark.parametrize("becomes", ["projects", "invoices"])
def test_a_quote_that_became_something_is_not_offered_to_go_back_to_draft(api, visitor, becomes):
    quote = ready(api, "quotes", "accepted")
    path = path_of("quotes", quote, "/draft")
    assert path in visitor.get(path_of("quotes", quote)).links
    api.make(f"/{becomes}", quote_id=quote["id"], client_id=quote["client_id"])
    assert path not in visitor.get(path_of("quotes", quote)).links


@each_database
def test_a_page_and_its_preview_write_nothing(api, visitor):
    invoice, draft = issued(api), api.make("/invoices", lines=LINES)
    events = api.get("/events").json
    pages = [(invoice, "/payment"), (invoice, "/credit"), (invoice, "/void"), (draft, "/issue")]
    for record, action in pages:
        before = read(api, "invoices", record)
        path = path_of("invoices", record, action)
        assert "Afterwards" in visitor.get(path).text
        if action not in {"/issue", "/void"}:
            assert "Afterwards" in previewed(visitor, path).text
        assert read(api, "invoices", record) == before
    assert api.get("/events").json == events
    number = api.patch(f"/invoices/{draft['id']}", {"status": "sent"}).data["number"]
    assert int(number.rpartition("-")[2]) == int(invoice["number"].rpartition("-")[2]) + 1, "no number was used up"


def test_a_preview_follows_what_is_typed(api, visitor):
    invoice = issued(api)
    path = path_of("invoices", invoice, "/payment")
    assert "Balance due 1,243.50 EUR 0.00 EUR" in visitor.get(path).text
    page = previewed(visitor, path, amount="1,000.50", method="card")
    assert "Balance due 1,243.50 EUR 243.00 EUR" in page.text
    assert "Status Open Partially paid" in page.text
    assert '<option value="card" selected>' in page.html


def test_voiding_shows_the_work_that_it_frees_and_what_the_client_owes(api, visitor):
    client = api.make("/clients", name="Optik")["id"]
    issued(api, client_id=client)
    issued(api, client_id=client, currency="AUD")  # comes before EUR
    for minutes in (720, 30):
        api.make("/time-entries", client_id=client, duration_minutes=minutes, hourly_rate="60")
    invoice = api.make("/invoices", client_id=client, unbilled_work={"time": {}}, status="sent")
    text = visitor.get(path_of("invoices", invoice, "/void")).text
    assert "Becomes billable again: 12:30 h of time (2 entries)." in text
    assert "The number is not reused." in text
    owed = api.get("/reports/revenue-by-client", {"client_id": client}).data["totals"][-1]["outstanding"]
    assert f"Outstanding of Optik {owed.replace('1993', '1,993')} EUR 1,243.50 EUR" in text
    visitor.submit(path_of("invoices", invoice, "/void"))
    assert api.get("/reports/revenue-by-client", {"client_id": client}).data["totals"][-1]["outstanding"] == "1243.50"


def test_a_written_off_invoice_is_not_among_the_open_ones(api, visitor):
    invoice = ready(api, "invoices", "paid")
    api.patch(f"/invoices/{invoice['id']}", {"status": "written_off"})
    text = visitor.get(path_of("invoices", invoice, "/remove-payment")).text
    assert "Balance due 943.50 EUR 1,243.50 EUR" in text
    assert "Outstanding" not in text
    assert f"was written off on {short_day(api.today)}." in visitor.get(path_of("invoices", invoice, "/payment")).text


def test_issuing_shows_the_number_that_the_invoice_then_has(api, visitor):
    draft = api.make("/invoices", lines=LINES, issue_date=f"{today().year - 1}-05-06")
    text = visitor.get(path_of("invoices", draft, "/issue")).text
    visitor.submit(path_of("invoices", draft, "/issue"))
    invoice = read(api, "invoices", draft)
    assert re.search(f"Number \\W {invoice['number']}", text)
    assert invoice["number"].startswith(f"INV-{today().year - 1}-")


IMPOSSIBLE = [
    ("sent", "/issue", "This invoice was already sent on"),
    ("empty", "/issue", "An invoice without lines cannot be sent. Add a line first."),
    ("negative", "/issue", "An invoice cannot be negative. Credit the original invoice, or change the lines."),
    ("draft", "/void", "This invoice is a draft, so it cannot become void."),
    ("paid", "/void", "This invoice is partially paid, so it cannot become void."),
    ("void", "/void", "This invoice was already voided on"),
    ("draft", "/write-off", "This invoice is a draft, so it cannot become written off."),
    ("void", "/write-off", "This invoice is voided, so it cannot become written off."),
    ("draft", "/payment", "Nothing is due: the invoice is a draft"),
    ("void", "/payment", "Nothing is due: the invoice is void."),
    ("sent", "/refund", "Nothing is to be refunded. Credit what was paid first, with a credit note."),
    ("paid", "/refund", "Nothing is to be refunded."),
    ("credited", "/void", "This invoice is credited, so it cannot become void."),
    ("credited", "/payment", "Nothing is due: the invoice is credited in full."),
    ("sent", "/remove-payment", "This invoice has no payments."),
    ("draft", "/credit", "this invoice is a draft: change its lines instead."),
    ("void", "/credit", "this invoice is void: nothing is left of it."),
]


@pytest.mark.parametrize(("status", "action", "sentence"), IMPOSSIBLE)
def test_an_impossible_action_is_explained_not_offered_and_refused(api, visitor, status, action, sentence):
    lines = {"empty": [], "negative": [{"description": "Back", "unit_price": "5", "quantity": "-1"}]}
    invoice = api.make("/invoices", lines=lines[status]) if status in lines else ready(api, "invoices", status)
    path = path_of("invoices", invoice, action)
    page = visitor.get(path)
    assert sentence in page.text
    assert 'name="state"' not in page.html
    assert (f'"{path}"' in visitor.get(path_of("invoices", invoice)).html) is (status == "negative")
    before, other = read(api, "invoices", invoice), path_of("invoices", invoice, "/issue")
    state = dict(Fields(visitor.get(other).html).forms.get(other, [])).get("state", "")
    form = {"state": state, "amount": "1", "paid_date": str(today()), "what": "everything", "payments": "1"}
    assert visitor.post(path, form).status in {412, 422}
    assert read(api, "invoices", invoice) == before


def test_a_quote_that_was_answered_or_has_expired_is_not_answered_again(api, visitor):
    accepted = ready(api, "quotes", "accepted")
    expired = ready(api, "quotes", "sent")
    api.sql("UPDATE quotes SET valid_until = '2020-01-31', issue_date = '2020-01-01' WHERE id = $1", expired["id"])
    assert "This quote was already accepted on" in visitor.get(path_of("quotes", accepted, "/accept")).text
    assert (
        "This quote is accepted, so it cannot become declined."
        in visitor.get(path_of("quotes", accepted, "/decline")).text
    )
    assert (
        "This quote is expired, so it cannot become accepted."
        in visitor.get(path_of("quotes", expired, "/accept")).text
    )
    for quote in (accepted, expired):
        assert "/accept" not in visitor.get(path_of("quotes", quote)).html


PAYMENTS = [
    ({"amount": "2000"}, "allow_surplus", "757.50 EUR is above the balance due. Tick this to keep it"),
    ({"amount": "2000", "reference": "A1"}, "reference", "Give another payment another reference."),
    ({"amount": "0"}, "amount", "Must be from 0.01 to 1,242.50 EUR, the balance due."),
    ({"amount": "1.234"}, "amount", "Can be read in two ways. Write"),
    ({"amount": ""}, "amount", "Enter an amount."),
    ({"amount": "1.0011"}, "amount", "decimal places"),
    ({"paid_date": "2999-01-01"}, "paid_date", ""),
    ({"paid_date": "2020-01-01"}, "is_other_day", "1 Jan 2020 is in another year. Tick this if it is right"),
    ({"method": "barter"}, "method", "Is no longer offered."),
    ({"amount": "5", "reference": "A1"}, "reference", "Give another payment another reference."),
]


@pytest.mark.parametrize(("fields", "name", "sentence"), PAYMENTS)
def test_a_refused_payment_says_why_beside_the_field_and_keeps_what_was_typed(api, visitor, fields, name, sentence):
    invoice = issued(api)
    api.patch(f"/invoices/{invoice['id']}", {"record_payment": {"amount": "1", "reference": "A1"}})
    page = visitor.submit(path_of("invoices", invoice, "/payment"), **fields, notes="typed before")
    assert page.status == 422
    assert sentence in page.error_of(name), page.text
    assert "typed before" in page.html
    assert read(api, "invoices", invoice)["amount_paid"] == "1.00"


def test_a_payment_above_the_balance_is_kept_to_refund_once_that_is_ticked(api, visitor):
    invoice = issued(api)
    path = path_of("invoices", invoice, "/payment")
    assert "Keep the surplus" not in visitor.get(path).text
    asked = visitor.submit(path, amount="1253.50")
    assert asked.error_of("allow_surplus").startswith("10.00 EUR is above the balance due.")
    form = [*Fields(asked.html).forms[path], ("allow_surplus", "yes")]
    assert "To refund 0.00 EUR 10.00 EUR" in visitor.post(path, [*form, ("step", "preview")]).text
    assert read(api, "invoices", invoice)["amount_paid"] == "0.00"
    text = visitor.follow(visitor.post(path, form)).text
    assert "1,253.50 EUR recorded on" in text
    assert "10.00 EUR is to be refunded." in text
    assert (read(api, "invoices", invoice)["status"], read(api, "invoices", invoice)["refund_due"]) == ("paid", "10.00")
    assert "10.00 EUR recorded" in visitor.submit(path_of("invoices", invoice, "/refund")).text


def test_a_payment_settles_an_invoice_with_its_early_payment_discount(api, visitor):
    api.set_account({"early_payment_discount_percent": Decimal(2), "early_payment_discount_days": 14})
    with time_machine.travel("2026-06-20T10:00:00Z"):
        invoice = issued(api, issue_date="2026-06-01")
        path = path_of("invoices", invoice, "/payment")
        text = visitor.get(path).text
        assert "Settle with 2% early-payment discount (24.87 EUR)" in text
        assert "For 1,218.63 EUR by 15 Jun 2026." in text
        taken = {"early_payment_discount": "yes"}
        refused = visitor.submit(path, **taken, paid_date="2026-06-15", amount="1218.62")
        assert "Must be from 1,218.63 EUR to 1,243.50 EUR: the discount is at most 24.87 EUR." in refused.error_of(
            "amount"
        )
        asked = visitor.submit(path, **taken)
        assert asked.error_of("force").startswith("The discount ended on 15 Jun 2026. Tick this to grant it")
        assert read(api, "invoices", invoice)["amount_paid"] == "0.00"
        form = [*Fields(asked.html).forms[path], ("force", "yes")]
        text = visitor.follow(visitor.post(path, form)).text
        assert "1,218.63 EUR recorded on" in text
        assert "24.87 EUR is its early-payment discount." in text
        assert re.search(r"Discount .24\.87 EUR", text)
        payments = visitor.get("/console/records/payments").text
        assert "1,218.63 EUR Collected" in payments, payments
        assert "Payment Bank transfer 1,218.63 EUR" in payments, payments
        assert re.search(r"Discount (\u2013 )?24\.87 EUR", payments), "no money was transferred"
        page = visitor.get(path_of("invoices", invoice, "/remove-payment"))
        assert "A discount is removed with its payment." in page.text
        visitor.submit(path_of("invoices", invoice, "/remove-payment"))
        assert read(api, "invoices", invoice)["payments"] == []
        assert "discount" not in visitor.get(path_of("invoices", issued(api), "/refund")).text


def test_money_to_refund_on_another_invoice_pays_this_one_and_both_are_undone(api, visitor):
    owed, unpaid = issued(api), issued(api)
    foreign = issued(api, client_id=api.make("/clients")["id"])
    for invoice in (owed, foreign):
        api.pay(invoice["id"], amount="1253.50", allow_surplus=True)
    path = path_of("invoices", unpaid, "/payment")
    page = visitor.get(path)
    assert f"{owed['number']}: 10.00 EUR to refund" in page.text
    assert foreign["number"] not in page.text
    chosen = {"offset_invoice_id": str(owed["id"])}
    refused = visitor.submit(path, **chosen, amount="11")
    assert refused.error_of("amount") == f"Must be from 0.01 to 10.00 EUR, what is to be refunded on {owed['number']}."
    assert "10.00 EUR recorded on" in visitor.submit(path, **chosen, amount="10").text
    assert read(api, "invoices", owed)["refund_due"] == "0.00"
    assert "Paid with" not in visitor.get(path).text
    page = visitor.get(path_of("invoices", unpaid, "/remove-payment"))
    assert "An offset is removed on both invoices." in page.text
    visitor.submit(path_of("invoices", unpaid, "/remove-payment"))
    assert read(api, "invoices", owed)["refund_due"] == "10.00"
    assert read(api, "invoices", unpaid)["amount_paid"] == "0.00"


def test_a_date_before_the_issue_or_in_another_year_is_asked_back(api, visitor):
    with time_machine.travel("2026-06-10T10:00:00Z"):
        invoice = issued(api, issue_date="2026-06-05")
        path = path_of("invoices", invoice, "/payment")
        assert "recorded on" in visitor.submit(path, amount="300", paid_date="2026-06-05").text
        for day, question in {
            "2026-06-04": "4 Jun 2026 is before the invoice's issue date.",
            "2025-06-10": "10 Jun 2025 is in another year.",
        }.items():
            asked = visitor.submit(path, amount="300", paid_date=day)
            assert asked.error_of("is_other_day").startswith(question)
            form = [*Fields(asked.html).forms[path], ("is_other_day", "yes")]
            assert "300.00 EUR recorded on" in visitor.follow(visitor.post(path, form)).text
        assert api.post(f"/invoices/{invoice['id']}/credit-notes").status == 201
        refund = path_of("invoices", invoice, "/refund")
        asked = visitor.submit(refund, amount="300", paid_date="2025-06-11")
        assert asked.error_of("is_other_day").startswith("11 Jun 2025 is in another year.")
        assert read(api, "invoices", invoice)["amount_paid"] == "900.00"


def test_a_refund_says_what_is_left_and_a_repeated_one_adds_nothing(api, visitor):
    invoice = ready(api, "invoices", "credited")
    path = path_of("invoices", invoice, "/refund")
    text = visitor.get(path).text
    assert ("300.00 EUR is to be refunded." in text, "Refund date" in text) == (True, True)
    refund = {"amount": "100", "reference": "B1"}
    page = visitor.submit(path, **refund)
    assert "Refund of 100.00 EUR recorded" in page.text
    assert "200.00 EUR is still to be refunded." in page.text
    assert (
        "A refund with this reference was recorded before, so nothing was added." in visitor.submit(path, **refund).text
    )
    page = visitor.submit(path, amount="200.01")
    assert page.error_of("amount").startswith("Must be from 0.01 to 200.00 EUR, ")
    assert "to be refunded" not in visitor.submit(path).text
    assert read(api, "invoices", invoice)["refund_due"] == "0.00"
    assert path not in visitor.get(path_of("invoices", invoice)).links


def test_a_payment_that_was_refunded_is_removed_after_its_refund(api, visitor):
    invoice = ready(api, "invoices", "credited")
    visitor.submit(path_of("invoices", invoice, "/refund"))
    refund, payment = sorted(read(api, "invoices", invoice)["payments"], key=lambda each: Decimal(each["amount"]))
    path = path_of("invoices", invoice, "/remove-payment")
    assert "Refund of 300.00 EUR on" in visitor.get(path).text
    page = visitor.submit(path, payments=str(payment["id"]))
    assert 'id="payments-error">It was refunded, at least in part. Remove the refund first' in page.html
    assert "300.00 EUR removed. INV-" in visitor.submit(path, payments=str(refund["id"])).text
    assert "300.00 EUR removed. INV-" in visitor.submit(path).text


CREDITS = [
    ({"what": "lines"}, "what", "Enter a quantity for at least one line."),
    ({"what": "amount", "amount": ""}, "amount", "Enter an amount."),
    ({"what": "everything", "amount": "50"}, "what", "Select “An amount”, or leave the amount blank."),
    ({"what": "lines", "line_0": "1", "amount": "50"}, "what", "Select “An amount”, or leave the amount blank."),
    ({"what": "amount", "line_0": "1", "amount": "50"}, "what", "Select “Selected lines”, or leave the lines blank."),
    ({"what": "amount", "amount": "9999"}, "amount", "but only 1,243.50 EUR is left to credit"),
    ({"what": "lines", "line_0": "11"}, "line_0", "at most 10, what is left of the line."),
    ({"what": "lines", "line_0": "ten"}, "line_0", "Must be"),
    ({"what": "everything", "issue_date": "2001-01-01"}, "issue_date", "Must not be before the invoice"),
]


@pytest.mark.parametrize(("fields", "name", "sentence"), CREDITS)
def test_a_refused_credit_says_why_beside_the_field(api, visitor, fields, name, sentence):
    invoice = issued(api)
    named = {"line_0": f"line_{invoice['lines'][0]['id']}"}
    page = visitor.submit(
        path_of("invoices", invoice, "/credit"), **{named.get(key, key): text for key, text in fields.items()}
    )
    assert page.status == 422
    assert sentence in page.error_of(named.get(name, name)), page.text


def test_a_payment_with_a_recorded_reference_adds_nothing_and_says_so(api, visitor):
    invoice = issued(api)
    payment = {"amount": "10", "reference": "A1", "paid_date": "2020-01-02"}
    api.patch(f"/invoices/{invoice['id']}", {"record_payment": payment})
    page = visitor.submit(path_of("invoices", invoice, "/payment"), **payment)
    assert "A payment with this reference was recorded before, so nothing was added." in page.text
    assert len(read(api, "invoices", invoice)["payments"]) == 1
    assert actions_of(api) == []


def test_a_reply_needs_a_text_and_keeps_its_status(api, visitor):
    ticket = ready(api, "tickets", "open")
    page = visitor.submit(path_of("tickets", ticket, "/reply"), body=" ", status="resolved", is_internal="yes")
    assert page.status == 422
    assert 'id="body-error"' in page.html
    assert '<option value="resolved" selected>' in page.html
    assert read(api, "tickets", ticket)["status"] == "open"
    assert "Nothing was changed." in visitor.submit(path_of("tickets", ticket, "/handle"), status="open").text


def test_a_reply_is_written_at_the_foot_of_the_thread(api, visitor):
    ticket = ready(api, "tickets", "open")
    path = path_of("tickets", ticket)
    page = visitor.submit(path, action=f"{path}/reply", body="We are on it.", status="pending")
    assert "Added to the ticket. It is pending now." in page.text
    assert re.search("The shop is slow.*We are on it.*Add reply", page.text)
    blank = visitor.submit(path, action=f"{path}/reply", body=" ", is_internal="yes")
    assert blank.status == 422
    assert 'id="body-error"' in blank.html
    assert len(api.get(f"/tickets/{ticket['id']}/replies").data) == 1


def test_an_issued_invoice_says_why_it_has_no_e_invoice(api, visitor):
    invoice, draft = issued(api, currency="KWD"), api.make("/invoices", lines=LINES, currency="KWD")
    text = visitor.get(path_of("invoices", invoice)).text.partition("No e-invoice")[2]
    assert "EN 16931 allows two decimal places; amounts in KWD have more." in text
    assert "No e-invoice" not in visitor.get(path_of("invoices", draft)).text


def test_payments_are_listed_by_day_with_their_invoice_and_a_file(api, visitor):
    invoice = issued(api, subject="Relaunch")
    for day, amount in (("2026-01-05", "10"), ("2026-02-06", "20.50")):
        body = {"amount": amount, "paid_date": day, "reference": f"TX {day}", "notes": "by Eva"}
        assert api.patch(f"/invoices/{invoice['id']}", {"record_payment": body}).status == 200
    page = visitor.get("/console/records/payments?paid_date_from=2026-02-01&paid_date_to=2026-02-28")
    assert page.status == 200
    for text in ("6 Feb 2026", "TX 2026-02-06", f"{invoice['number']} · Relaunch", "Bank transfer", "by Eva"):
        assert text in page.text, text
    assert "TX 2026-01-05" not in page.text
    assert path_of("invoices", invoice) in page.links
    file = visitor.get("/console/records/payments/csv?paid_date_from=2026-02-01").html
    assert "20.50" in file
    assert "10.00" not in file
    assert "TX 2026-01-05" in visitor.get(path_of("invoices", invoice)).text


def test_a_ticket_is_assigned_on_its_page(api, visitor):
    ticket = ready(api, "tickets", "open")
    path = path_of("tickets", ticket)
    fields = {"assignee_id": str(api.member_id), "priority": "urgent", "due_at": "2030-05-06T09:00"}
    page = visitor.get(f"{path}/handle")
    assert [heading.text for heading in page.all("h1")] == [f"Status and priority: #{ticket['number']}"]
    assert "Ticket saved." in visitor.submit(path, action=f"{path}/handle", **fields).text
    after = read(api, "tickets", ticket)
    assert (after["assignee_id"], after["priority"], after["due_at"]) == (
        api.member_id,
        "urgent",
        "2030-05-06T07:00:00.000000Z",
    )


def test_a_site_is_checked_now_unless_it_is_paused(api, visitor):
    site, paused = ready(api, "sites", "monitored"), ready(api, "sites", "paused")
    due = "SELECT next_check_at FROM sites WHERE id = $1"
    api.sql("UPDATE sites SET next_check_at = '2999-01-01T00:00:00.000000Z' WHERE id = $1", site["id"])
    path = path_of("sites", site, "/check")
    assert "The monitor checks the site within a few seconds" in visitor.get(path).text
    assert api.sql(due, site["id"])[0][0].startswith("2999"), "a page writes nothing"
    assert "is checked now." in visitor.submit(path).text
    assert api.sql(due, site["id"])[0][0] <= utcnow()
    assert "This site is not monitored now." in visitor.get(path_of("sites", paused, "/check")).text
    refused = visitor.submit(path_of("sites", site, "/maintenance"), maintenance_until="2020-01-01T10:00")
    assert refused.error_of("maintenance_until") == "Must be in the future. If blank, maintenance ends now."
    assert "/check" not in visitor.get(path_of("sites", paused)).html


def test_an_invoice_shows_the_next_step_and_its_pdf_before_a_menu(api, visitor):
    path = path_of("invoices", issued(api))
    (buttons,) = visitor.get(path).all("div", "buttons")
    assert [link["href"] for link in buttons.all("a", "button")] == ["#payment", f"{path}/pdf"]
    menu = {link["href"] for link in buttons.all("details", "additions")[0].all("a")}
    assert {f"{path}/{action}" for action in ("credit", "write-off", "void", "edit")} <= menu


def test_a_draft_quote_shows_how_to_send_it_and_a_warning_names_its_day_in_words(api, visitor):
    quote = ready(api, "quotes", "draft")
    api.patch(f"/quotes/{quote['id']}", {"issue_date": "2020-01-05", "valid_until": "2030-01-05"})
    page = visitor.get(path_of("quotes", quote))
    assert [link["href"] for link in page.all("a", "primary")] == [path_of("quotes", quote, "/issue-and-send")]
    assert "The date of the document is 5 Jan 2020" in page.text


def test_a_warning_has_the_name_of_a_client_as_it_is(api, visitor):
    name = "Käse ⟨today⟩ & {due}, 1234.50"
    api.patch("/clients/" + str(api.usual("/clients")), {"name": name, "country": None})
    quote = api.make("/quotes", lines=[{"description": "Cheese", "unit_price": "9"}])
    assert f"{name} has no country" in visitor.get(path_of("quotes", quote)).text
    sent = api.patch(f"/quotes/{quote['id']}", {"status": "sent"}).json["meta"]["warnings"]
    assert f"{name} has no country" in sent[0]["message"]


def test_a_quote_that_is_no_longer_valid_says_what_to_change_before_it_is_sent(api, visitor):
    quote = ready(api, "quotes", "draft")
    api.patch(f"/quotes/{quote['id']}", {"issue_date": "2020-01-05", "valid_until": "2020-02-05"})
    page = visitor.get(path_of("quotes", quote, "/send"))
    assert "Cannot be sent: it was valid until" in page.text


STALE = [
    ("invoices", "sent", "/void", {}, {"notes": "Changed meanwhile"}),
    ("invoices", "sent", "/payment", {"amount": "7"}, {"record_payment": {"amount": "7"}}),
    ("invoices", "sent", "/credit", {"what": "everything"}, {"record_payment": {"amount": "7"}}),
    ("quotes", "sent", "/accept", {"accepted_by": "Eva"}, {"title": "Other offer"}),
    ("tickets", "open", "/reply", {"body": "Hello there"}, {"priority": "urgent"}),
]


@pytest.mark.parametrize("stale", STALE)
def test_a_changed_record_is_shown_again_with_what_was_typed(api, visitor, stale):
    collection, status, action, form, change = stale
    record = ready(api, collection, status)
    path = path_of(collection, record, action)
    old = dict(Fields(visitor.get(path).html).forms[path]) | form
    assert api.patch(f"/{collection}/{record['id']}", change).status == 200
    before = read(api, collection, record)
    page = visitor.post(path, old)
    assert page.status == 412
    assert "Nothing was done this time" in page.text
    assert read(api, collection, record) == before
    new = dict(Fields(page.html).forms[path])
    assert new["state"] != old["state"]
    assert form.items() <= new.items()
    assert visitor.post(path, new).status in {200, 303}, "the page that was shown again works"


@each_database
@pytest.mark.parametrize("twin", sampled(TWINS, start=TURN), ids=lambda twin: f"{twin[0]} {twin[1]}")
def test_two_presses_at_once_do_it_once(api, visitor, twin):
    named, action, form, *_ = twin
    collection, status = named.split()
    record = ready(api, collection, status)
    path = path_of(collection, record, action)
    fields = {"amount": "1", "reference": ""} if action == "/payment" else {}
    sent = filled(visitor, path, form | fields)
    with ThreadPoolExecutor(2) as pool:
        statuses = sorted(page.status for page in pool.map(lambda _: visitor.post(path, sent), range(2)))
    assert statuses == [303, 303]
    assert len(actions_of(api)) == 1


def test_a_form_without_a_state_does_nothing(api, visitor):
    invoice = issued(api)
    page = visitor.post(path_of("invoices", invoice, "/void"))
    assert page.status == 412
    assert read(api, "invoices", invoice)["status"] == "sent"


def test_another_site_cannot_act_and_a_member_has_no_page(api, visitor):
    invoice = issued(api)
    path = path_of("invoices", invoice, "/void")
    form = dict(Fields(visitor.get(path).html).forms[path])
    assert visitor.post(path, form, HTTP_SEC_FETCH_SITE="cross-site").status == 403
    asked = Visitor(api.app).post(path, form)
    assert (asked.status, asked.title) == (403, "Sign in · Retainer")
    api.set_user(api.member_id, {"role": "admin"})
    api.set_user(api.admin_id, {"role": "member"})
    assert visitor.post(path, form).status == 404
    assert read(api, "invoices", invoice)["status"] == "sent"


def test_accepting_a_quote_takes_the_optional_lines_that_were_chosen(api, visitor):
    client = api.make("/clients", name="North Star", currency="EUR")["id"]
    lines = [("Website", "1000", "no"), ("Texts", "200", "yes")]
    typed = {
        f"lines.{place}.{name}": value
        for place, line in enumerate(lines)
        for name, value in zip(("description", "unit_price", "is_optional"), line, strict=True)
    }
    visitor.submit("/console/records/quotes/new", client_id=str(client), **typed)
    (quote,) = api.get("/quotes").data
    assert quote["total"] == "1000.00"
    path = path_of("quotes", quote, "/accept")
    (chosen,) = [line["id"] for line in read(api, "quotes", quote)["lines"] if line["is_optional"]]
    preview = previewed(visitor, path, accepted_line_ids=str(chosen))
    assert "Texts, 200.00 EUR before tax" in preview.text
    assert "1,200.00 EUR" in preview.text
    assert do(visitor, path, accepted_line_ids=str(chosen)).status == 200
    accepted = read(api, "quotes", quote)
    assert (accepted["status"], accepted["total"]) == ("accepted", "1200.00")
    assert "accepted_line_ids" not in visitor.get(path_of("quotes", quote, "/accept")).html


def test_payments_of_several_invoices_are_recorded_together(api, visitor):
    first, second, third = (issued(api) for _ in range(3))
    page = visitor.get("/console/records/invoices?status=open")
    assert "/console/records/payments/new" in page.links
    assert "/console/records/payments/new" in visitor.get("/console/records/payments").links
    path = "/console/records/payments/new"
    names = {f"invoice_{first['id']}": "yes", f"invoice_{third['id']}": "yes", f"amount_{third['id']}": "43.50"}
    page = visitor.submit(path, **names, paid_date=api.today)
    assert "2 payments recorded." in page.text, page.text
    after = [read(api, "invoices", each) for each in (first, second, third)]
    assert [(each["status"], each["amount_paid"]) for each in after] == [
        *(("paid", "1243.50"), ("sent", "0.00")),
        ("partially_paid", "43.50"),
    ]
    assert visitor.get("/console/audit").text.count("payment recorded invoice") == 2
    assert first["number"] not in visitor.get(path).text


def test_all_errors_of_several_payments_are_told_and_nothing_is_recorded(api, visitor):
    found = [issued(api) for _ in range(4)]
    path, ids = "/console/records/payments/new", [each["id"] for each in found]
    form = dict(Fields(visitor.get(path).html).forms[path]) | {f"invoice_{id_}": "yes" for id_ in ids}
    amounts = {f"amount_{ids[0]}": "9999", f"amount_{ids[1]}": "many"}
    api.pay(ids[2])
    wrong = visitor.post(path, [*(form | amounts).items()])
    assert wrong.status == 422
    assert "Must be from 0.01 to 1,243.50 EUR" in wrong.error_of(f"amount_{ids[0]}")
    assert "Record a surplus on the page of the invoice." in wrong.error_of(f"amount_{ids[0]}")
    assert wrong.error_of(f"amount_{ids[1]}")
    assert "Nothing is due: the invoice is paid." in wrong.text
    late = visitor.post(path, [*(form | {"paid_date": day_after(api.today, 9)}).items()])
    assert "in the future" in late.error_of("paid_date")
    assert "Select at least one invoice." in visitor.submit(path, paid_date=api.today).text
    old = visitor.submit(path, **{f"invoice_{ids[0]}": "yes"}, paid_date="2020-01-01")
    assert "1 Jan 2020 is in another year." in old.error_of("is_other_day")
    assert [read(api, "invoices", each)["amount_paid"] for each in found] == ["0.00", "0.00", "1243.50", "0.00"]


def test_payments_of_a_client_begin_at_its_invoices(api, visitor):
    own, other = issued(api), issued(api, client_id=api.make("/clients")["id"])
    page = visitor.get(f"/console/records/invoices?status=open&client_id={other['client_id']}")
    (path,) = [link for link in page.links if link.startswith("/console/records/payments/new")]
    text = visitor.get(path).text
    assert (other["number"] in text, own["number"] in text) == (True, False)
