import pytest
import time_machine

DESIGN = {"description": "Design", "unit_price": "100", "tax_rate": "19"}


def issued(api, *lines, **members):
    return api.make("/invoices", status="sent", lines=list(lines) or [DESIGN], **members)


def path_of(invoice):
    return f"/invoices/{invoice['id']}"


def credit(api, invoice, **members):
    return api.post(f"{path_of(invoice)}/credit-notes", members)


@pytest.mark.parametrize("members", [{"issue_date": "2099-01-01"}, {"currency": "USD"}, {"lines": []}])
def test_a_locked_field_is_reported_alone_and_once(api, members):
    refused = api.patch(path_of(issued(api)), members)
    assert refused.code == "locked"
    assert {name: len(messages) for name, messages in refused.errors.items()} == dict.fromkeys(members, 1)


def test_another_client_of_an_issued_invoice_causes_no_other_error(api):
    client = api.make("/clients")["id"]
    invoice = issued(api, client_id=client, project_id=api.make("/projects", client_id=client)["id"])
    refused = api.patch(path_of(invoice), {"client_id": api.make("/clients")["id"]})
    assert (refused.code, list(refused.errors)) == ("locked", ["client_id"])


def test_a_record_sent_back_with_another_status_takes_that_step(api):
    invoice = issued(api)
    void = api.put(path_of(invoice), invoice | {"status": "void"}).data
    assert (void["status"], void["balance_due"], void["lines"]) == ("void", "0.00", invoice["lines"])


def test_amounts_and_the_number_are_refused_unless_they_are_the_current_ones(api):
    invoice = issued(api)
    path = path_of(invoice)
    for name, value in (
        ("amount_paid", "5.00"),
        ("balance_due", "0.00"),
        ("amount_credited", "1"),
        ("refund_due", "1"),
        ("subtotal", "1"),
        ("tax_total", 5),
        ("total", None),
        ("tax_breakdown", []),
        ("number", "INV-1"),
        ("number", None),
    ):
        refused = api.patch(path, {"status": "paid", name: value})
        assert (list(refused.errors), refused.code) == ([name], "validation_failed"), (name, value)
    message = "Is 0.00: It follows from the payments. Record one with record_payment, and leave this out."
    assert api.patch(path, {"status": "paid", "amount_paid": "5.00"}).errors == {"amount_paid": [message]}
    assert api.patch(path, {"amount_paid": "nothing"}).errors.keys() == {"amount_paid"}
    line = invoice["lines"][0]
    draft = api.make("/invoices", lines=[DESIGN])
    changed = {"id": draft["lines"][0]["id"], "amount": "1.00"}
    for where, other in ((path, line | {"amount": "1.00"}), (path_of(draft), changed)):
        assert list(api.patch(where, {"lines": [other]}).errors) == ["lines.0.amount"]
    assert api.get(path).data == invoice
    paid = api.put(path, invoice | {"status": "paid", "amount_paid": 0, "total": float(invoice["total"])}).data
    assert (paid["status"], paid["amount_paid"]) == ("paid", invoice["total"])


def test_an_invoice_from_a_quote_stays_with_the_quotes_client(api):
    quote = api.make("/quotes", lines=[DESIGN], status="accepted")
    draft = api.post("/invoices", {"quote_id": quote["id"]}).data
    refused = api.patch(path_of(draft), {"client_id": api.make("/clients")["id"], "lines": []})
    assert list(refused.errors) == ["client_id"]
    assert f"with quote {quote['id']}" in refused.errors["client_id"][0]


def test_lines_that_go_in_the_same_change_fix_neither_client_nor_currency(api):
    client, other = (api.make("/clients", hourly_rate="60")["id"] for _ in range(2))
    entry = api.make("/time-entries", client_id=client)["id"]
    draft = api.make("/invoices", client_id=client, lines=[{"time_entry_ids": [entry]}, DESIGN])
    path, (work, design) = path_of(draft), draft["lines"]
    assert list(api.patch(path, {"client_id": other, "lines": [work]}).errors) == ["client_id"]
    assert list(api.patch(path, {"currency": "USD", "lines": [{"id": design["id"]}]}).errors) == ["currency"]
    moved = api.patch(path, {"client_id": other, "currency": "USD", "lines": [DESIGN]}).data
    assert (moved["client_id"], moved["currency"], moved["lines"][0]["currency"]) == (other, "USD", "USD")
    assert api.get(f"/time-entries/{entry}").data["billing_status"] == "unbilled"
    assert api.patch(path, {"currency": "JPY", "lines": []}).data["total"] == "0"
    quote = api.make("/quotes", lines=[DESIGN])
    assert api.patch(f"/quotes/{quote['id']}", {"currency": "USD", "lines": []}).data["currency"] == "USD"


def test_status_paid_with_a_known_reference_records_no_payment(api):
    path = path_of(issued(api))
    api.patch(path, {"record_payment": {"amount": "30", "reference": "x"}})
    refused = api.patch(path, {"status": "paid", "record_payment": {"reference": "x"}})
    assert "already recorded" in refused.errors["status"][0]
    assert api.patch(path, {"status": "paid"}).data["balance_due"] == "0.00"


def test_a_written_off_and_fully_credited_invoice_takes_no_payment(api):
    invoice = issued(api)
    api.patch(path_of(invoice), {"status": "written_off"})
    assert credit(api, invoice).data["applied_amount"] == invoice["total"]
    refused = api.patch(path_of(invoice), {"status": "paid"})
    assert list(refused.errors) == ["status"]


def test_a_quotes_prices_keep_their_currency(api):
    quote = api.make("/quotes", currency="USD", lines=[DESIGN], status="accepted")["id"]
    refused = api.post("/invoices", {"quote_id": quote, "currency": "EUR"})
    assert "USD" in refused.errors["currency"][0]
    assert api.post("/invoices", {"quote_id": quote}).data["currency"] == "USD"


def test_an_error_of_an_expired_quote_calls_it_expired(api):
    with time_machine.travel("2026-03-01T12:00:00Z", tick=False):
        quote = api.make("/quotes", lines=[DESIGN], status="sent", valid_until="2026-03-02")["id"]
    with time_machine.travel("2026-03-03T12:00:00Z", tick=False):
        assert "is expired" in api.post("/invoices", {"quote_id": quote}).errors["quote_id"][0]


def test_a_response_can_be_sent_back_whatever_the_positions(api):
    draft = api.make("/invoices", lines=[DESIGN] * 3)
    api.delete(f"{path_of(draft)}/lines/{draft['lines'][1]['id']}")
    read = api.get(path_of(draft)).data
    assert api.put(path_of(draft), read).data["lines"] == read["lines"]


def test_work_of_a_template_is_not_invoiced(api):
    client = api.make("/clients")["id"]
    template = api.make("/projects", client_id=client, is_template=True)["id"]
    lines = [DESIGN | {"project_id": template}]
    refused = api.post("/invoices", {"client_id": client, "project_id": template, "lines": lines})
    assert set(refused.errors) == {"project_id", "lines.0.project_id"}


@pytest.mark.parametrize(
    ("lines", "credited"),
    [
        ([("1", "100", "7"), ("-1", "84", "19")], {"invoice_line_id": 1}),
        ([("1", "100", "0"), ("-1", "50", "19")], {"description": "All", "unit_price": "40.5", "tax_rate": "0"}),
    ],
)
def test_a_credit_stays_within_the_invoice_also_with_a_negative_rate(api, lines, credited):
    names = ("quantity", "unit_price", "tax_rate")
    invoice = issued(api, *({"description": "A"} | dict(zip(names, line, strict=True)) for line in lines))
    refused = credit(api, invoice, lines=[credited])
    assert list(refused.errors) == ["lines"]
    assert credit(api, invoice).data["total"] == invoice["total"]


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"amount": "119.01"}, "amount"),
        ({"lines": [{"invoice_line_id": 1, "quantity": "2"}]}, "lines.0.quantity"),
        ({"lines": []}, "lines"),
        ({"lines": [{"invoice_line_id": 1, "unit_price": "1"}]}, "lines.0.unit_price"),
        ({"lines": [{"invoice_line_id": 1, "tax_rate": "7"}]}, "lines.0.tax_rate"),
    ],
)
def test_an_impossible_credit_is_refused_with_one_sentence(api, members, field):
    invoice = issued(api)
    refused = credit(api, invoice, **members)
    assert {name: len(messages) for name, messages in refused.errors.items()} == {field: 1}
    assert credit(api, invoice, lines=[{"invoice_line_id": 1, "unit_price": "100"}]).data["total"] == "119.00"


def test_an_invoice_dated_in_the_future_is_credited_on_its_issue_date(api):
    assert credit(api, issued(api, issue_date="2099-01-01")).data["issue_date"] == "2099-01-01"
