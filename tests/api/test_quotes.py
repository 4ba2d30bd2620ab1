from fractions import Fraction

import pytest
import time_machine
from tests.reference.arithmetic import rounded

LINE = {"description": "Design", "quantity": "2", "unit": "days", "unit_price": "800", "tax_rate": "19"}
STATES = ("draft", "sent", "accepted", "declined", "cancelled")
LEGAL = {
    "draft": {"sent", "accepted", "declined", "cancelled"},
    "sent": {"accepted", "declined", "cancelled"},
    "accepted": {"draft"},
    "declined": {"draft"},
    "cancelled": {"draft"},
}


def quote_of(api, **members):
    return api.make("/quotes", **({"lines": [LINE]} | members))


def test_it_works(api):
    client = api.make("/clients", tax_rate="7")["id"]
    contact = api.make("/external-contacts", client_id=client)["id"]
    project = api.make("/projects", client_id=client)["id"]
    sent = {
        "client_id": client,
        "contact_id": contact,
        "project_id": project,
        "title": "Relaunch",
        "issue_date": "2026-03-30",
        "currency": "EUR",
        "notes": "Thank you",
        "terms": "30 days",
        "external_id": "q-1",
        "lines": [
            LINE | {"discount_percent": "12.5", "project_id": project},
            {"description": "Rebate", "quantity": "-1", "unit_price": "33.3333"},
        ],
    }
    answer = api.post("/quotes", sent)
    assert answer.status == 201
    quote = answer.data
    assert [quote[name] for name in ("number", "status", "valid_until")] == ["Q-2026-0001", "draft", "2026-04-29"]
    assert [line["amount"] for line in quote["lines"]] == ["1400.00", "-33.33"]
    assert [line["unit_price"] for line in quote["lines"]] == ["800.00", "33.3333"]
    assert [line["tax_rate"] for line in quote["lines"]] == ["19", "7"]
    assert [line["position"] for line in quote["lines"]] == [1, 2]
    assert quote["tax_breakdown"] == [
        {"tax_rate": "7", "taxable_amount": "-33.33", "tax_amount": "-2.33"},
        {"tax_rate": "19", "taxable_amount": "1400.00", "tax_amount": "266.00"},
    ]
    assert [quote[name] for name in ("subtotal", "tax_total", "total")] == ["1366.67", "263.67", "1630.34"]
    assert {name: quote[name] for name in sent if name != "lines"} == {
        name: sent[name] for name in sent if name != "lines"
    }
    assert api.get(f"/quotes/{quote['id']}").data == quote
    (row,) = api.get("/quotes").data
    assert row == {name: value for name, value in quote.items() if name != "lines"}


@pytest.mark.parametrize(("currency", "digits"), [("EUR", 2), ("JPY", 0), ("KWD", 3)])
def test_the_total_of_a_quote_is_exact_and_tax_is_rounded_once_for_each_rate(api, currency, digits):
    lines = [
        {"description": "A", "quantity": str(n / 8), "unit_price": f"{n}.{n * 37 % 10000:04}",
         "discount_percent": str(n % 5 * 2.5), "tax_rate": ("0", "7", "19", "8.125")[n % 4]}
        for n in range(1, 41)
    ]  # fmt: skip
    quote = quote_of(api, currency=currency, lines=[*lines, {"description": "B", "quantity": -3, "unit_price": 1}])
    taxable = {}
    for line, made in zip([*lines, {"quantity": "-3", "unit_price": "1"}], quote["lines"], strict=True):
        exact = Fraction(line["quantity"]) * Fraction(line["unit_price"])
        amount = rounded(exact * (1 - Fraction(line.get("discount_percent", "0")) / 100), digits)
        assert Fraction(made["amount"]) == amount
        rate = Fraction(line.get("tax_rate", "0"))
        taxable[rate] = taxable.get(rate, 0) + amount
    tax = {rate: rounded(amount * rate / 100, digits) for rate, amount in taxable.items()}
    shares = {
        Fraction(share["tax_rate"]): (Fraction(share["taxable_amount"]), Fraction(share["tax_amount"]))
        for share in quote["tax_breakdown"]
    }
    assert shares == {rate: (taxable[rate], tax[rate]) for rate in taxable}
    assert Fraction(quote["subtotal"]) == sum(taxable.values())
    assert Fraction(quote["total"]) == sum(taxable.values()) + sum(tax.values())


@pytest.mark.parametrize(
    ("members", "field", "message"),
    [
        ({"client_id": None}, "client_id", "null"),
        ({"title": "x" * 256}, "title", "this has 256"),
        ({"issue_date": "2026-02-30"}, "issue_date", "a date"),
        ({"issue_date": "2026-03-01", "valid_until": "2026-02-28"}, "valid_until", "Must not be before issue_date"),
        ({"lines": [{"unit_price": 1}]}, "lines.0.description", "Is required."),
        ({"lines": [LINE, LINE | {"quantity": "1.23456"}]}, "lines.1.quantity", "at most 4 decimal places"),
        ({"lines": [LINE | {"unit_price": -1}]}, "lines.0.unit_price", "a price from 0"),
        ({"lines": [LINE | {"discount_percent": "100.5"}]}, "lines.0.discount_percent", "from 0 to 100"),
        ({"lines": [LINE | {"project_id": 999}]}, "lines.0.project_id", "no such project"),
        ({"lines": [LINE | {"quantity": 10**9, "unit_price": 10**6}]}, "lines.0.unit_price", "The maximum is"),
        ({"lines": [LINE] * 201}, "lines", "this has 201"),
        ({"lines": [LINE | {"amunt": 1}]}, "lines.0.amunt", "Did you mean"),
        ({"status": "sent", "lines": []}, "status", "Add a line first"),
        ({"status": "expired"}, "status", "Cannot become expired from draft"),
    ],
)
def test_an_invalid_field_is_reported_at_its_path(api, members, field, message):
    answer = api.create("/quotes", **members)
    assert set(answer.errors) == {field}
    assert message in answer.errors[field][0]
    assert api.get("/quotes").data == []
    assert api.make("/quotes")["number"].endswith("-0001"), "a refused quote takes no number"


def test_contact_and_projects_are_those_of_the_client(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    contact, project = (
        api.make("/external-contacts", client_id=other)["id"],
        api.make("/projects", client_id=other)["id"],
    )
    members = {"contact_id": contact, "project_id": project, "lines": [LINE | {"project_id": project}]}
    answer = api.create("/quotes", client_id=client, **members)
    assert set(answer.errors) == {"contact_id", "project_id", "lines.0.project_id"}
    assert api.create("/quotes", client_id=other, **members).status == 201


def test_archived_clients_get_no_new_quotes_and_prospects_do(api):
    client = api.make("/clients", status="prospect")["id"]
    kept = quote_of(api, client_id=client)["id"]
    api.patch(f"/clients/{client}", {"status": "archived"})
    assert "archived" in api.create("/quotes", client_id=client).errors["client_id"][0]
    assert api.patch(f"/quotes/{kept}", {"title": "Still"}).status == 200


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_a_quote_takes_only_the_steps_of_its_table(api, before, after):
    quote = quote_of(api, status=before)
    answer = api.patch(f"/quotes/{quote['id']}", {"status": after})
    if after == before or after in LEGAL[before]:
        moved = answer.data
        stamps = {name for name in ("sent_at", "accepted_at", "declined_at") if moved[name]}
        expected = set() if after == "draft" else {f"{name}_at" for name in (before, after)}
        assert stamps == expected & {"sent_at", "accepted_at", "declined_at"}
    else:
        assert answer.code == "invalid_transition"
        assert all(word in answer.errors["status"][0] for word in LEGAL[before])


def test_a_sent_quote_expires_after_its_last_day(api):
    with time_machine.travel("2026-03-01T12:00:00Z", tick=False):
        quote = quote_of(api, status="sent", valid_until="2026-03-10")["id"]
    path = f"/quotes/{quote}"
    with time_machine.travel("2026-03-10T22:59:00Z", tick=False):
        assert api.get(path).data["status"] == "sent"
    with time_machine.travel("2026-03-10T23:01:00Z", tick=False):  # the next day in Berlin
        assert api.get(path).data["status"] == "expired"
        assert [row["id"] for row in api.get("/quotes", {"status": "expired"}).data] == [quote]
        assert api.get("/quotes", {"status": "sent"}).data == []
        assert "draft" in api.patch(path, {"status": "accepted"}).errors["status"][0]
        assert api.patch(path, {"notes": "Seen"}).data["status"] == "expired"
        assert api.patch(path, {"valid_until": "2026-04-01"}).data["status"] == "sent"


def test_only_a_draft_changes_its_lines(api):
    quote = quote_of(api)
    path = f"/quotes/{quote['id']}"
    line = api.post(f"{path}/lines", {"description": "More", "unit_price": "100", "tax_rate": "0"})
    assert line.json["meta"]["quote"]["total"] == "2004.00"
    assert line.json["meta"]["quote"] == {name: api.get(path).data[name] for name in line.json["meta"]["quote"]}
    assert api.patch(path, {"status": "sent"}).status == 200
    other = api.make("/clients")["id"]
    refused = api.patch(path, {"lines": [], "client_id": other, "currency": "USD", "issue_date": "2026-01-01"})
    assert set(refused.errors) >= {"lines", "client_id", "issue_date"}
    assert api.post(f"{path}/lines", {"description": "No", "unit_price": 1}).code == "locked"
    assert api.delete(f"{path}/lines/{line.data['id']}").code == "locked"
    assert api.put(path, api.get(path).data).status == 200
    api.patch(path, {"status": "cancelled"})
    api.patch(path, {"status": "draft"})
    assert api.delete(f"{path}/lines/{line.data['id']}").status == 204
    assert api.get(path).data["total"] == quote["total"] == "1904.00"


def test_lines_replace_the_whole_set(api):
    quote = quote_of(api, lines=[LINE, LINE | {"description": "Build"}, LINE | {"description": "Test"}])
    first, second, _ = quote["lines"]
    path = f"/quotes/{quote['id']}"
    same = api.patch(path, {"lines": quote["lines"], "title": "New"}).data
    assert same["lines"] == quote["lines"]
    changed = api.patch(path, {"lines": [second | {"quantity": "1"}, first]}).data
    assert [line["id"] for line in changed["lines"]] == [second["id"], first["id"]]
    assert [line["description"] for line in changed["lines"]] == ["Build", "Design"]
    assert changed["total"] == "2856.00"
    assert api.patch(path, {"lines": []}).data["total"] == "0.00"


def test_the_currency_stays_while_there_are_lines(api):
    quote = quote_of(api)
    path = f"/quotes/{quote['id']}"
    assert "while the document keeps lines" in api.patch(path, {"currency": "USD"}).errors["currency"][0]
    api.patch(path, {"lines": []})
    assert api.patch(path, {"currency": "USD"}).data["currency"] == "USD"


def test_an_accepted_quote_becomes_a_project_once_and_is_then_locked(api):
    quote = quote_of(api, title="Relaunch")
    path = f"/quotes/{quote['id']}"
    assert "accepted" in api.post("/projects", {"quote_id": quote["id"]}).errors["quote_id"][0]
    api.patch(path, {"status": "accepted", "accepted_by": "Jana"})
    project = api.post("/projects", {"quote_id": quote["id"]}).data
    assert [project[name] for name in ("name", "client_id", "fixed_fee", "quote_id")] == [
        "Relaunch", quote["client_id"], "1600.00", quote["id"],
    ]  # fmt: skip
    assert api.get(path).data["converted_project_id"] == project["id"]
    again = api.post("/projects", {"quote_id": quote["id"], "name": "Again"})
    assert again.errors["quote_id"] == [f"Quote {quote['number']} has already become project {project['id']}."]
    for members in ({"status": "draft"}, {"notes": "x"}, {"lines": []}):
        assert api.patch(path, members).code in {"locked", "validation_failed"}
    assert api.delete(path).code == "locked"
    assert set(api.delete(f"/projects/{project['id']}").errors) == {"quotes"}
    other = quote_of(api, status="accepted", client_id=api.make("/clients")["id"])["id"]
    assert set(api.create("/projects", quote_id=other).errors) == {"quote_id"}


@pytest.mark.parametrize(
    ("currency", "quantity", "price"), [("EUR", "2", "1600.00"), ("USD", "2", None), ("EUR", "-2", None)]
)
def test_a_project_gets_its_fee_or_budget_from_a_quote_in_the_currency_of_its_client(api, currency, quantity, price):
    line = LINE | {"quantity": quantity}
    for fields, found in (({}, (price, None)), ({"billing_type": "time_and_materials"}, (None, price))):
        quote = quote_of(api, status="accepted", currency=currency, lines=[line])
        project = api.post("/projects", {"quote_id": quote["id"], "name": "Relaunch", **fields}).data
        assert (project["fixed_fee"], project["budget_amount"]) == found


def test_numbers_have_no_gaps_and_restart_each_year(api):
    numbers = [quote_of(api, issue_date=day)["number"] for day in ("2026-12-31", "2027-01-01", "2026-06-01")]
    assert api.create("/quotes", title=5).status == 422
    assert [*numbers, quote_of(api, issue_date="2027-05-05")["number"]] == [
        "Q-2026-0001", "Q-2027-0001", "Q-2026-0002", "Q-2027-0002",
    ]  # fmt: skip


def test_any_quote_but_an_accepted_one_is_deleted_with_its_lines(api):
    quote = quote_of(api, status="accepted")
    path = f"/quotes/{quote['id']}"
    assert api.delete(path).code == "locked"
    api.patch(path, {"status": "draft"})
    assert api.delete(path).status == 204
    assert api.get(path).status == 404


def test_a_quote_is_sent_while_it_is_valid(api):
    past = {"issue_date": "2026-03-01", "valid_until": "2026-03-31"}
    with time_machine.travel("2026-04-01T09:00:00Z", tick=False):
        draft = f"/quotes/{quote_of(api, **past)['id']}"
        message = "Cannot be sent: it was valid until 2026-03-31. Move valid_until to 2026-04-01 or later."
        for refused in (
            api.patch(draft, {"status": "sent"}),
            api.create("/quotes", **past, lines=[LINE], status="sent"),
        ):
            assert (refused.code, refused.errors) == ("invalid_transition", {"status": [message]})
        sent = api.patch(draft, {"status": "sent", "valid_until": "2026-04-01"}).data
        assert (sent["status"], sent["sent_at"]) == ("sent", "2026-04-01T09:00:00.000000Z")
        assert api.patch(draft, {"valid_until": "2026-03-31"}).data["status"] == "expired", "it was sent before"


def test_an_error_of_a_line_is_reported_once(api):
    path = api.at("/quotes/{quote_id}/lines")
    answer = api.create(path, project_id=999)
    assert answer.errors == {"project_id": ["There is no such project in this account."]}


def test_a_quantity_of_minus_zero_is_zero(api):
    (line,) = quote_of(api, lines=[LINE | {"quantity": "-0.00"}])["lines"]
    assert (line["quantity"], line["amount"]) == ("0", "0.00")


def test_numbers_follow_the_accounts_pattern(api):
    first = quote_of(api)["number"]
    api.set_account({"quote_number_pattern": "Offer {00}"})
    assert [first, quote_of(api)["number"], quote_of(api)["number"]] == [first, "Offer 01", "Offer 02"]
