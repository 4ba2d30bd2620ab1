import json
from decimal import Decimal

import pytest

LINE = {"description": "Design", "unit_price": "100"}
ISSUED = {
    "sent": {},
    "partially_paid": {"record_payment": {"amount": "1"}},
    "paid": {"status": "paid"},
    "void": {"status": "void"},
    "written_off": {"status": "written_off"},
}
FROZEN = (
    "client_id", "project_id", "quote_id", "number", "issue_date", "subject", "terms", "currency", "subtotal",
    "tax_total", "total", "tax_breakdown", "client_snapshot", "sent_at", "lines",
)  # fmt: skip
ADDRESS = {
    "name": "Optik Bergmann GmbH",
    "address_line1": "Lange Gasse 1",
    "address_line2": "Hof",
    "city": "Graz",
    "region": "Steiermark",
    "postal_code": "8010",
    "country": "AT",
    "vat_number": "ATU12345678",
}
TOTALS = ("id", "currency", "subtotal", "tax_total", "total", "tax_breakdown")


def draft_of(api, *lines, **members):
    return api.make("/invoices", lines=list(lines), **members)


def path_of(invoice):
    return f"/invoices/{invoice['id']}"


def again(api, invoice):
    return api.get(path_of(invoice)).data


def add(api, invoice, **members):
    return api.post(f"{path_of(invoice)}/lines", LINE | members)


def remove(api, invoice, line, **options):
    return api.delete(f"{path_of(invoice)}/lines/{line['id']}", **options)


def test_it_works(api):
    invoice = draft_of(api, LINE | {"tax_rate": "7"})
    project = api.make("/projects", client_id=invoice["client_id"])["id"]
    sent = {
        "description": "Texts",
        "quantity": "2.5",
        "unit": "pages",
        "unit_price": "33.3333",
        "discount_percent": "12.5",
        "tax_rate": "19",
        "project_id": project,
        "position": 7,
    }
    answer = api.post(f"{path_of(invoice)}/lines", sent)
    assert answer.status == 201
    line = answer.data
    assert line == sent | {
        **{name: line[name] for name in ("id", "created_at", "updated_at")},
        "invoice_id": invoice["id"],
        "kind": "item",
        "time_entry_ids": [],
        "expense_ids": [],
        "milestone_id": None,
        "fee_month": None,
        "recorded_quantity": None,
        "amount": "72.92",  # 2.5 x 33.3333 x 0.875 = 72.916...
        "currency": "EUR",
    }
    assert answer.headers["location"].endswith(f"{path_of(invoice)}/lines/{line['id']}")
    now = again(api, invoice)
    assert now["lines"] == [*invoice["lines"], line]
    assert answer.json["meta"]["invoice"] == {name: now[name] for name in TOTALS}
    assert [now[name] for name in ("subtotal", "tax_total", "total", "balance_due")] == [
        "172.92", "20.85", "193.77", "193.77",
    ]  # fmt: skip
    assert remove(api, invoice, line).status == 204
    now = again(api, invoice)
    assert {name: now[name] for name in now if name != "updated_at"} == {
        name: invoice[name] for name in invoice if name != "updated_at"
    }
    assert remove(api, invoice, line).status == 404


def test_a_description_and_a_price_are_enough(api):
    invoice = draft_of(api, currency="JPY")
    line = add(api, invoice).data
    defaults = {
        "quantity": "1",
        "unit": None,
        "discount_percent": "0",
        "tax_rate": "0",
        "project_id": None,
        "position": 1,
    }
    assert line == line | LINE | defaults | {"amount": "100", "currency": "JPY"}


@pytest.mark.parametrize(
    ("clients", "accounts_rate", "default_rate"),
    [("7.5", "19", "7.5"), ("0", "19", "0"), (None, "19", "19"), (None, "0", "0")],
)
def test_the_default_tax_rate_is_the_clients_or_else_the_accounts(api, clients, accounts_rate, default_rate):
    api.set_account({"tax_rate": Decimal(accounts_rate)})
    invoice = draft_of(api, LINE, client_id=api.make("/clients", tax_rate=clients)["id"])
    lines = [*invoice["lines"], add(api, invoice).data]
    assert [line["tax_rate"] for line in lines] == [default_rate, default_rate]
    for rate in ("3", "0"):
        assert add(api, invoice, tax_rate=rate).data["tax_rate"] == rate


FAULTS = [
    ({"description": None}, "description", "Is required"),
    ({"description": " "}, "description", "Is required"),
    ({"description": "x" * 2001}, "description", "this has 2001"),
    ({"unit_price": None}, "unit_price", "Is required"),
    ({"unit_price": -1}, "unit_price", "for a rebate, make the quantity negative."),
    ({"unit_price": "0.00001"}, "unit_price", "at most 4 decimal places"),
    ({"quantity": "1.23456"}, "quantity", "at most 4 decimal places"),
    ({"quantity": 10**9, "unit_price": 10**6}, "unit_price", "The maximum is"),
    ({"unit": "x" * 21}, "unit", "this has 21"),
    ({"discount_percent": "-1"}, "discount_percent", "from 0 to 100"),
    ({"discount_percent": "100.001"}, "discount_percent", "from 0 to 100"),
    ({"discount_percent": "1.0001"}, "discount_percent", "at most 3 decimal places"),
    ({"tax_rate": "101"}, "tax_rate", "from 0 to 100"),
    ({"project_id": 999}, "project_id", "no such project"),
    ({"project_id": "another client's"}, "project_id", "Choose one of the document's client"),
    ({"position": -1}, "position", "a whole number from 0"),
    ({"milestone": 1}, "milestone", "Did you mean milestone_id"),
]


@pytest.mark.parametrize(("members", "field", "message"), FAULTS)
def test_an_invalid_line_is_refused_alone_and_among_others(api, members, field, message):
    invoice = draft_of(api, LINE)
    other = api.make("/projects", client_id=api.make("/clients")["id"])["id"]
    line = LINE | {name: other if value == "another client's" else value for name, value in members.items()}
    alone = api.post(f"{path_of(invoice)}/lines", line).errors
    among = api.patch(path_of(invoice), {"lines": [LINE, line]}).errors
    assert set(alone) == {field}
    assert message in alone[field][0]
    assert among == {f"lines.1.{field}": alone[field]}
    assert again(api, invoice) == invoice


def test_all_errors_of_a_line_are_reported_together(api):
    invoice = draft_of(api)
    assert set(add(api, invoice, unit="x" * 21, quantity="x", project_id=999).errors) == {
        "unit", "quantity", "project_id",
    }  # fmt: skip
    assert set(api.post(f"{path_of(invoice)}/lines").errors) == {"description", "unit_price"}


def test_a_line_takes_its_position_or_comes_last(api):
    invoice = draft_of(api, LINE, LINE)
    for name, position in (
        ("last", None),
        ("first", 0),
        ("far", 1_000_000_000),
        ("behind the second", 2),
        ("end", None),
    ):
        add(api, invoice, description=name, **({} if position is None else {"position": position}))
    assert [(line["description"], line["position"]) for line in again(api, invoice)["lines"]] == [
        ("first", 0), ("Design", 1), ("Design", 2), ("behind the second", 2), ("last", 3),
        ("far", 1_000_000_000), ("end", 1_000_000_000),
    ]  # fmt: skip


def test_a_line_of_another_invoice_is_not_found(api):
    one, two = draft_of(api, LINE), draft_of(api, LINE)
    assert remove(api, one, two["lines"][0]).status == 404
    assert [again(api, one), again(api, two)] == [one, two]


@pytest.mark.parametrize("status", ISSUED)
def test_the_lines_of_an_issued_invoice_are_locked(api, status):
    invoice = draft_of(api, LINE, LINE, status="sent")
    api.patch(path_of(invoice), ISSUED[status])
    before = again(api, invoice)
    assert before["status"] == status
    for answer in (add(api, invoice), remove(api, invoice, invoice["lines"][1])):
        assert (answer.status, answer.code) == (422, "locked")
        assert "credit note" in answer.errors["invoice"][0]
    assert again(api, invoice) == before


def test_an_invoice_takes_200_lines(api):
    invoice = draft_of(api, *[LINE] * 199)
    assert add(api, invoice).json["meta"]["invoice"]["total"] == "20000.00"
    assert "200 lines" in add(api, invoice).errors["invoice"][0]
    full = again(api, invoice)
    assert len(full["lines"]) == 200
    assert api.patch(path_of(invoice), {"lines": [*full["lines"], LINE]}).status == 422
    assert again(api, invoice) == full
    assert remove(api, invoice, full["lines"][0]).status == 204
    assert add(api, invoice).status == 201


def test_a_set_of_lines_replaces_the_former_set(api):
    invoice = draft_of(api, LINE, LINE | {"description": "Build"}, LINE | {"description": "Test"})
    first, second, third = invoice["lines"]
    path = path_of(invoice)
    assert api.put(path, {"lines": invoice["lines"], "notes": "Same"}).data["lines"] == [first, second, third]
    changed = api.patch(path, {"lines": [second | {"quantity": "3", "position": 9}, first, third, LINE]}).data
    assert [line["id"] for line in changed["lines"][:3]] == [second["id"], first["id"], third["id"]]
    assert changed["lines"][3]["id"] not in {first["id"], second["id"], third["id"]}
    assert [(line["description"], line["amount"], line["position"]) for line in changed["lines"]] == [
        ("Build", "300.00", 1), ("Design", "100.00", 2), ("Test", "100.00", 3), ("Design", "100.00", 4),
    ]  # fmt: skip
    assert changed["lines"][2] == third
    assert [changed["total"], changed["balance_due"]] == ["600.00", "600.00"]
    fewer = api.patch(path, {"lines": [LINE | {"id": first["id"]}]}).data
    assert [line["id"] for line in fewer["lines"]] == [first["id"]]
    assert remove(api, invoice, third).status == 404
    assert api.patch(path, {"lines": []}).data["total"] == "0.00"


def test_a_changed_line_is_not_deleted_with_its_former_tag(api):
    invoice = draft_of(api)
    line = add(api, invoice)
    api.patch(path_of(invoice), {"lines": [LINE | {"id": line.data["id"], "quantity": "2"}]})
    assert remove(api, invoice, line.data, headers={"If-Match": line.headers["etag"]}).status == 412
    assert again(api, invoice)["total"] == "200.00"
    newest = add(api, invoice)
    assert remove(api, invoice, newest.data, headers={"If-Match": newest.headers["etag"]}).status == 204


def frozen(api, invoice):
    data = api.get(path_of(invoice)).json["data"]
    return {name: json.dumps(data[name]).encode() for name in FROZEN}


def test_an_issued_invoice_keeps_its_bytes_when_its_client_changes(api):
    new_address = {name: "DE" if name == "country" else f"New {value}" for name, value in ADDRESS.items()}
    client = api.make("/clients", tax_rate="19", hourly_rate="90", payment_terms_days=14, **ADDRESS)["id"]
    project = api.make("/projects", client_id=client, hourly_rate="100")["id"]
    members = {"client_id": client, "project_id": project, "subject": "Relaunch", "terms": "Net", "status": "sent"}
    invoice = draft_of(api, LINE, LINE | {"discount_percent": "2.5", "project_id": project}, **members)
    before, row = api.get(path_of(invoice)), api.get("/invoices").data
    assert invoice["client_snapshot"] == ADDRESS
    snapshot = frozen(api, invoice)
    changes = new_address | {"tax_rate": "7", "hourly_rate": "10", "payment_terms_days": 60, "notes": "Moved"}
    assert api.patch(f"/clients/{client}", changes).status == 200
    assert api.patch(f"/projects/{project}", {"name": "Other", "hourly_rate": "1"}).status == 200
    rates = {"name": "South", "hourly_rate": Decimal(1), "tax_rate": Decimal(3), "payment_terms_days": 1}
    api.set_account(rates | {"invoice_number_pattern": "X-{0}"})
    newer = draft_of(api, LINE, **members)
    assert [newer["client_snapshot"], newer["lines"][0]["tax_rate"], newer["number"]] == [new_address, "7", "X-1"]
    assert api.patch(f"/projects/{project}", {"status": "archived"}).status == 200
    assert api.patch(f"/clients/{client}", {"tax_rate": None, "status": "archived"}).status == 200
    after = api.get(path_of(invoice))
    assert (after.body, after.headers["etag"]) == (before.body, before.headers["etag"])
    assert api.get("/invoices", {"ids": invoice["id"]}).data == row
    for allowed in ({"notes": "N", "due_date": "2099-01-01"}, {"record_payment": {"amount": "1"}}, {"status": "paid"}):
        assert api.patch(path_of(invoice), allowed).status == 200
        assert frozen(api, invoice) == snapshot
    snapshot = frozen(api, newer)
    assert api.patch(path_of(newer), {"status": "void"}).status == 200
    assert frozen(api, newer) == snapshot


def test_a_project_shows_what_was_invoiced_for_it_before_tax(api):
    client = api.make("/clients", tax_rate="19")["id"]
    one, two = (api.make("/projects", client_id=client)["id"] for _ in range(2))

    def invoiced():
        return [api.get(f"/projects/{project}").data["invoiced_amount"] for project in (one, two)]

    lines = [LINE, LINE | {"project_id": two, "quantity": "-0.5"}]
    invoice = draft_of(api, *lines, client_id=client, project_id=one)
    assert invoiced() == ["0.00", "0.00"]
    api.patch(path_of(invoice), {"status": "sent"})
    assert invoiced() == ["100.00", "-50.00"]
    draft_of(api, LINE, client_id=client, project_id=two, status="sent")
    assert invoiced() == ["100.00", "50.00"]
    api.patch(path_of(invoice), {"status": "void"})
    assert invoiced() == ["0.00", "100.00"]


def quote_of(api, **members):
    return api.make("/quotes", **({"lines": [LINE], "status": "accepted"} | members))


def test_an_accepted_quote_becomes_an_invoice(api):
    client = api.make("/clients", tax_rate="19")["id"]
    contact = api.make("/external-contacts", client_id=client)["id"]
    project = api.make("/projects", client_id=client)["id"]
    lines = [
        LINE | {"quantity": "1.5", "unit": "days", "discount_percent": "12.5", "project_id": project},
        LINE | {"description": "Rebate", "quantity": "-1", "unit_price": "33.3333", "tax_rate": "7"},
    ]
    members = {"client_id": client, "contact_id": contact, "project_id": project, "currency": "USD"}
    quote = quote_of(api, **members, title="Relaunch", lines=lines)
    api.patch(f"/clients/{client}", {"tax_rate": "3"})
    tag = api.get(f"/quotes/{quote['id']}").headers["etag"]
    assert api.get("/quotes", {"converted": "true"}).data == []
    answer = api.post("/invoices", {"quote_id": quote["id"]})
    assert answer.status == 201
    invoice = answer.data
    totals = {name: quote[name] for name in ("subtotal", "tax_total", "total", "tax_breakdown")}
    assert invoice == invoice | members | totals | {"quote_id": quote["id"], "subject": "Relaunch", "status": "draft"}
    own_fields = {"id", "created_at", "updated_at", "quote_id", "is_optional"}
    assert [{name: made[name] for name in made if name in line and name not in own_fields}
            for made, line in zip(invoice["lines"], quote["lines"], strict=True)] == [
        {name: line[name] for name in line if name not in own_fields} for line in quote["lines"]
    ]  # fmt: skip
    assert [row["id"] for row in api.get("/invoices", {"quote_id": quote["id"]}).data] == [invoice["id"]]
    assert [row["invoice_id"] for row in api.get("/quotes", {"converted": "true"}).data] == [invoice["id"]]
    assert api.get(f"/quotes/{quote['id']}").headers["etag"] != tag


def test_fields_of_the_request_override_those_of_the_quote(api):
    client = api.make("/clients")["id"]
    contacts = [api.make("/external-contacts", client_id=client)["id"] for _ in range(2)]
    projects = [api.make("/projects", client_id=client)["id"] for _ in range(2)]
    quote = quote_of(api, client_id=client, contact_id=contacts[0], project_id=projects[0], title="Theirs")
    sent = {
        "client_id": client,
        "contact_id": contacts[1],
        "project_id": projects[1],
        "subject": "Ours",
        "terms": "Net",
    }
    invoice = api.post("/invoices", sent | {"quote_id": quote["id"], "status": "sent"}).data
    assert invoice == invoice | sent | {"status": "sent", "total": "100.00"}
    assert invoice["number"]


def test_lines_sent_with_a_quote_come_before_the_lines_of_the_quote(api):
    quote, line = quote_of(api, lines=[LINE] * 199)["id"], LINE | {"description": "Own"}
    assert "201" in api.post("/invoices", {"quote_id": quote, "lines": [line, line]}).errors["lines"][0]
    invoice = api.post("/invoices", {"quote_id": quote, "lines": [line]}).data
    assert [line["description"] for line in invoice["lines"]] == ["Own", *["Design"] * 199]


@pytest.mark.parametrize("status", ["draft", "sent", "declined", "cancelled", "expired"])
def test_only_an_accepted_quote_becomes_an_invoice(api, status):
    days = {"issue_date": "2020-01-01", "valid_until": "2099-01-01"}
    quote = quote_of(api, **days, status="sent" if status == "expired" else status)
    if status == "expired":
        api.patch(f"/quotes/{quote['id']}", {"valid_until": "2020-01-02"})
    answer = api.post("/invoices", {"quote_id": quote["id"]})
    assert list(answer.errors) == ["quote_id"]
    assert "only an accepted" in answer.errors["quote_id"][0]
    assert api.get("/invoices").data == []


def test_a_quote_of_another_or_an_archived_client_becomes_no_invoice(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    quote = {"quote_id": quote_of(api, client_id=client)["id"]}
    assert "Belongs to client" in api.post("/invoices", quote | {"client_id": other}).errors["quote_id"][0]
    api.patch(f"/clients/{client}", {"status": "archived"})
    assert "archived" in api.post("/invoices", quote).errors["client_id"][0]
    assert api.get("/invoices").data == []


def test_a_quote_becomes_one_invoice_and_is_locked_until_the_draft_is_deleted(api):
    quote = quote_of(api)
    path = f"/quotes/{quote['id']}"
    invoice = api.post("/invoices", {"quote_id": quote["id"]}).data
    again_sentence = f"Quote {quote['number']} has already become invoice {invoice['id']}."
    before = api.get(path).data
    assert before["invoice_id"] == invoice["id"]
    assert api.post("/invoices", {"quote_id": quote["id"]}).errors == {"quote_id": [again_sentence]}
    for members in ({"status": "draft"}, {"status": "declined"}, {"notes": "x"}, {"lines": []}, {"title": "x"}):
        assert set(api.patch(path, members).errors) == set(members)
    line = quote["lines"][0]["id"]
    for refused in (api.post(f"{path}/lines", LINE), api.delete(f"{path}/lines/{line}"), api.delete(path)):
        assert refused.code == "locked"
    assert api.put(path, before).status == 200
    assert api.delete(path_of(invoice)).status == 204
    assert api.get(path).data["invoice_id"] is None
    second = api.post("/invoices", {"quote_id": quote["id"], "status": "sent"}).data
    api.patch(path_of(second), {"status": "void"})
    assert api.get(path).data["invoice_id"] is None
    third = api.post("/invoices", {"quote_id": quote["id"]}).data
    assert api.get(path).data["invoice_id"] == third["id"]
    assert api.get(path_of(second)).data["quote_id"] == quote["id"]
    assert set(api.post("/invoices", {"quote_id": quote["id"]}).errors) == {"quote_id"}
    assert api.patch(path, {"status": "draft"}).status == 422
    assert api.patch(path, {"external_id": "crm-7"}).data["external_id"] == "crm-7"


def test_a_quote_can_be_billed_again_once_its_invoice_is_credited_in_full(api):
    quote = quote_of(api)
    path, again = f"/quotes/{quote['id']}", {"quote_id": quote["id"]}
    first = api.post("/invoices", again | {"status": "sent"}).data
    api.patch(path_of(first), {"status": "paid"})
    api.post(f"{path_of(first)}/credit-notes", {"amount": "1"})
    assert set(api.post("/invoices", again).errors) == {"quote_id"}
    events = api.get("/events").data
    api.post(f"{path_of(first)}/credit-notes")
    told = [(event["type"], event["fields"]) for event in api.get("/events", {"after": events[-1]["id"]}).data]
    assert ("quote.updated", ["invoice_id"]) in told
    assert api.get(path).data["invoice_id"] is None
    second = api.post("/invoices", again | {"status": "sent"}).data
    assert (second["total"], api.get(path).data["invoice_id"]) == (first["total"], second["id"])
    assert set(api.post("/invoices", again).errors) == {"quote_id"}
    project = api.make("/projects", **again, client_id=second["client_id"])["id"]
    assert [api.get(path_of(each)).data["project_id"] for each in (first, second)] == [None, project]


def test_an_invoice_of_nothing_keeps_its_quote(api):
    quote = quote_of(api, lines=[LINE | {"unit_price": "0"}])["id"]
    assert api.post("/invoices", {"quote_id": quote, "status": "sent"}).data["status"] == "paid"
    assert set(api.post("/invoices", {"quote_id": quote}).errors) == {"quote_id"}


@pytest.mark.parametrize("first", ["/projects", "/invoices"])
def test_a_quote_becomes_a_project_and_an_invoice(api, first):
    quote = {"quote_id": quote_of(api, title="Relaunch")["id"]}
    made = {path: api.post(path, quote).data["id"] for path in sorted(["/projects", "/invoices"], key=first.__ne__)}
    converted = api.get(f"/quotes/{quote['quote_id']}").data
    assert [converted["converted_project_id"], converted["invoice_id"]] == [made["/projects"], made["/invoices"]]
    for path in made:
        assert "already become" in api.post(path, quote).errors["quote_id"][0]
    assert api.delete(f"/invoices/{made['/invoices']}").status == 204
    assert api.patch(f"/quotes/{quote['quote_id']}", {"status": "draft"}).status == 422
