from collections import Counter
from fractions import Fraction

import pytest
import time_machine
from sqlalchemy import select
from tests.databases import each_database

from retainer.schema.billing import credit_note_shares

LINE = {"description": "Design", "quantity": "10", "unit_price": "10", "tax_rate": "19"}  # 119.00 with tax
SECOND = {"description": "Books", "quantity": "5", "unit_price": "10", "tax_rate": "7"}  # 53.50 with tax


def issued(api, *lines, **members):
    return api.make("/invoices", status="sent", lines=list(lines or [LINE]), **members)


def credit(api, invoice, **members):
    return api.post(f"/invoices/{invoice['id']}/credit-notes", members)


def part(invoice, place, quantity=None):
    line = {"invoice_line_id": invoice["lines"][place]["id"]}
    return line if quantity is None else line | {"quantity": quantity}


def free(price, **members):
    return {"description": "Rebate for the delay", "unit_price": price} | members


def change(api, invoice, **members):
    return api.patch(f"/invoices/{invoice['id']}", members)


def pay(api, invoice, amount):
    return change(api, invoice, record_payment={"amount": amount})


def now(api, invoice):
    return api.get(f"/invoices/{invoice['id']}").data


def pick(record, *names):
    return [record[name] for name in names]


def by_rate(*documents):
    found = Counter()
    for share in (share for document in documents for share in document["tax_breakdown"]):
        found["net", share["tax_rate"]] += Fraction(share["taxable_amount"])
        found["tax", share["tax_rate"]] += Fraction(share["tax_amount"])
    return {key: amount for key, amount in found.items() if amount}


def is_consistent(note):
    net, tax, total = (Fraction(note[name]) for name in ("subtotal", "tax_total", "total"))
    at_rate = Counter()
    for line in note["lines"]:
        at_rate[line["tax_rate"]] += Fraction(line["amount"])
    return (
        total == net + tax == Fraction(note["applied_amount"]) + Fraction(note["refundable_amount"])
        and net == sum(at_rate.values())
        and tax == sum(Fraction(share["tax_amount"]) for share in note["tax_breakdown"])
        and {share["tax_rate"]: Fraction(share["taxable_amount"]) for share in note["tax_breakdown"]} == at_rate
    )


def test_it_works(api):
    client = api.make("/clients", currency="USD")["id"]
    invoice = issued(api, LINE, SECOND, client_id=client, issue_date="2026-03-01")
    sent = {"issue_date": "2026-03-30", "reason": "goodwill", "description": "For the delay", "amount": "17.25"}
    assert credit(api, invoice, **sent, number="X", total="1").errors.keys() == {"number", "total"}
    answer = credit(api, invoice, **sent)
    note = answer.data
    assert answer.status == 201
    assert answer.headers["location"] == f"http://agency.example/api/public/v1/credit-notes/{note['id']}"
    assert pick(note, "number", "invoice_id", "client_id", "currency") == ["CN-2026-0001", invoice["id"], client, "USD"]
    assert pick(note, "issue_date", "reason", "description") == ["2026-03-30", "goodwill", "For the delay"]
    # a tenth of the invoice: 5.35 of 53.50 at 7 %, 11.90 of 119.00 at 19 %
    assert note["tax_breakdown"] == [
        {"tax_rate": "7", "taxable_amount": "5.00", "tax_amount": "0.35"},
        {"tax_rate": "19", "taxable_amount": "10.00", "tax_amount": "1.90"},
    ]
    assert pick(note, "subtotal", "tax_total", "total") == ["15.00", "2.25", "17.25"]
    assert pick(note, "applied_amount", "refundable_amount") == ["17.25", "0.00"]
    assert "amount" not in note
    assert is_consistent(note)
    assert api.get(f"/credit-notes/{note['id']}").data == note
    assert api.get("/credit-notes").data == [note]
    after = now(api, invoice)
    assert after["credit_notes"] == [note]
    assert pick(after, "status", "amount_credited", "balance_due") == ["partially_paid", "17.25", "155.25"]
    assert pick(after, "total", "tax_breakdown", "lines") == pick(invoice, "total", "tax_breakdown", "lines")
    other = credit(api, invoice).data
    assert pick(other, "reason", "description") == ["correction", None]
    assert now(api, invoice)["credit_notes"] == [note, other]


def test_numbers_have_no_gaps_and_restart_each_year(api, other_tenant):
    invoice = issued(api, issue_date="2025-06-01")
    numbers = []
    for day in ("2025-12-31", "2026-01-01", "2025-06-01", "2026-05-05"):
        numbers.append(credit(api, invoice, amount="1", issue_date=day).data["number"])
        assert credit(api, invoice, amount="1000", issue_date=day).status == 422
    assert numbers == ["CN-2025-0001", "CN-2026-0001", "CN-2025-0002", "CN-2026-0002"]
    assert credit(other_tenant, issued(other_tenant), issue_date="2099-01-01").data["number"] == "CN-2099-0001"
    api.set_account({"credit_note_number_pattern": "Credit {00}"})
    assert credit(api, invoice, amount="1").data["number"] == "Credit 01"


def test_the_day_is_today_in_the_accounts_zone_and_not_before_the_invoices(api):
    with time_machine.travel("2026-12-31T23:30:00Z", tick=False):  # the new year in Berlin
        invoice = issued(api)
        note = credit(api, invoice, amount="1").data
        assert pick(note, "issue_date", "number") == ["2027-01-01", "CN-2027-0001"]
        assert "2027-01-01" in credit(api, invoice, issue_date="2026-12-31").errors["issue_date"][0]


@pytest.mark.parametrize(
    ("members", "field", "message"),
    [
        ({"reason": "because"}, "reason", "goodwill"),
        ({"description": "x" * 2001}, "description", "2001"),
        ({"issue_date": "2026-01-09"}, "issue_date", "2026-01-10"),
        ({"amount": "172.51"}, "amount", "172.50 EUR"),
        ({"amount": "0"}, "amount", "more than 0"),
        ({"amount": "-1"}, "amount", "from 0"),
        ({"amount": "1.001"}, "amount", "2 decimal places"),
        ({"amount": "1", "lines": [free("1", tax_rate="7")]}, "amount", "either an amount or lines"),
        ({"lines": [free("50.01", tax_rate="7")]}, "lines", "50.00 EUR"),
        ({"lines": [free("50", tax_rate="7"), free("0.01", tax_rate="7")]}, "lines", "50.00 EUR"),
        ({"lines": [free("1", tax_rate="7", quantity="-1"), free("9", tax_rate="19")]}, "lines", "at 7 %"),
        ({"lines": [free("0", tax_rate="7")]}, "lines", "more than 0"),
        ({"lines": [free("1", tax_rate="7")] * 201}, "lines", "201"),
        ({"lines": [free("1", tax_rate="8")]}, "lines.0.tax_rate", "7, 19"),
        ({"lines": [free("1")]}, "lines.0.tax_rate", "7, 19"),
        ({"lines": [{"unit_price": "1", "tax_rate": "7"}]}, "lines.0.description", "Is required"),
        ({"lines": [{"description": "A", "tax_rate": "7"}]}, "lines.0.unit_price", "Is required"),
        ({"lines": [free("1", tax_rate="7", unitprice="1")]}, "lines.0.unitprice", "Did you mean"),
        ({"lines": [(0,), (1, "11")]}, "lines.1.quantity", "more than 0 and at most 5, what is left"),
        ({"lines": [(1, "3")] * 2}, "lines.1.quantity", "at most 2, what is left"),
        ({"lines": [(1,)] * 2}, "lines.1.quantity", "Nothing is left of the line"),
        ({"lines": [(1, "-1")]}, "lines.0.quantity", "more than 0 and at most 5, what is left"),
        ({"lines": [(1, "0")]}, "lines.0.quantity", "Must be more than 0"),
        ({"lines": [(0,), {"invoice_line_id": 999}]}, "lines.1.invoice_line_id", "no such invoice line"),
    ],
)  # fmt: skip
def test_a_refusal_names_path_and_reason_and_writes_nothing(api, members, field, message):
    invoice = issued(api, LINE, SECOND, issue_date="2026-01-10")
    before = now(api, invoice)
    if set(members) == {"lines"}:
        members = {"lines": [part(invoice, *item) if isinstance(item, tuple) else item for item in members["lines"]]}
    answer = credit(api, invoice, **members)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert message in answer.errors[field][0]
    assert now(api, invoice) == before
    assert api.get("/credit-notes").data == []
    assert credit(api, invoice).data["number"].endswith("-0001")


def test_the_lines_are_those_of_the_invoice(api, other_tenant):
    invoice, other, foreign = issued(api), issued(api), issued(other_tenant)
    answer = credit(api, invoice, lines=[part(other, 0), part(foreign, 0)])
    assert f"invoice {other['id']}, not of this one" in answer.errors["lines.0.invoice_line_id"][0]
    assert answer.errors["lines.1.invoice_line_id"] == ["There is no such invoice line in this account."]
    assert credit(api, foreign).status == 404


def test_drafts_and_void_invoices_have_nothing_to_credit(api):
    draft = api.make("/invoices", lines=[LINE])
    void = change(api, issued(api), status="void").data
    for invoice, advice in ((draft, "change its lines"), (void, "void")):
        answer = credit(api, invoice)
        assert (answer.code, set(answer.errors)) == ("locked", {"invoice"})
        assert advice in answer.errors["invoice"][0]
        assert credit(api, invoice, amount="1000", reason="x").status == 422
    assert api.get("/credit-notes").data == []


def test_an_invoice_of_zero_has_nothing_to_credit(api):
    invoice = issued(api, LINE | {"unit_price": "0"})
    for members in ({}, {"amount": "0.01"}, {"lines": [part(invoice, 0)]}):
        assert credit(api, invoice, **members).status == 422
    assert "Nothing is left" in credit(api, invoice).errors["amount"][0]


def test_it_is_final(api):
    note = api.make("/credit-notes")
    for method in ("PUT", "PATCH", "DELETE"):
        answer = api.call(method, f"/credit-notes/{note['id']}", {})
        assert (answer.status, answer.code) == (405, "method_not_allowed")
        assert "GET" in answer.headers["allow"]
        assert method not in answer.headers["allow"]
    assert api.post("/credit-notes", {"amount": "1"}).status == 405
    assert api.get(f"/credit-notes/{note['id']}").data == note


def test_a_line_is_credited_in_parts_until_nothing_is_left_of_it(api):
    invoice = issued(api, LINE | {"quantity": "3", "unit_price": "33.3333"}, SECOND)  # 99.9999: 100.00
    notes = [credit(api, invoice, lines=[part(invoice, 0, quantity)]).data for quantity in ("1", "1", None)]
    assert [pick(note["lines"][0], "quantity", "amount") for note in notes] == [
        ["1", "33.33"], ["1", "33.33"], ["1", "33.34"],
    ]  # fmt: skip
    assert [note["tax_total"] for note in notes] == ["6.33", "6.33", "6.34"]  # 6.3327, what is left of 19.00
    line = notes[0]["lines"][0]
    assert pick(line, "description", "unit_price", "tax_rate") == ["Design", "33.3333", "19"]
    assert line["invoice_line_id"] == invoice["lines"][0]["id"]
    assert "Nothing is left of the line" in credit(api, invoice, lines=[part(invoice, 0)]).errors["lines.0.quantity"][0]


@pytest.mark.parametrize(
    ("lines", "parts", "amounts"),
    [
        ([LINE | {"discount_percent": "12.5"}], [(0, "3")], ["26.25"]),  # 87.50 x 3/10
        ([LINE, LINE | {"quantity": "-2", "unit_price": "20"}], [(0, "5"), (1, "-1")], ["50.00", "-20.00"]),
        ([LINE, LINE | {"quantity": "-2", "unit_price": "20"}], [(1, None), (0, "5")], ["-40.00", "50.00"]),
        ([LINE | {"quantity": "0.0003", "unit_price": "3000"}], [(0, "0.0001")], ["0.30"]),
        # 0.02 in all: 0.013 and 0.003; 0.01 in all: 0.007 and the rest; 0.03 in all: 0.005 each
        ([LINE | {"quantity": "3", "unit_price": "0.005"}], [(0, "2"), (0, "0.5")], ["0.01", "0.00"]),
        ([LINE | {"quantity": "3", "unit_price": "0.003"}], [(0, "2"), (0, "1")], ["0.01", "0.00"]),
        ([LINE | {"quantity": "6", "unit_price": "0.005"}, LINE], [(0, "1")] * 5, ["0.01"] * 3 + ["0.00"] * 2),
    ],
)  # fmt: skip
def test_a_part_of_a_line_gets_its_share_of_the_lines_amount(api, lines, parts, amounts):
    invoice = issued(api, *lines, SECOND)
    note = credit(api, invoice, lines=[part(invoice, *item) for item in parts]).data
    assert [line["amount"] for line in note["lines"]] == amounts
    assert is_consistent(note)


def test_a_credit_of_a_rebate_does_not_exceed_it(api):
    invoice = issued(api, LINE, LINE | {"quantity": "-2", "unit_price": "20"})
    for quantity in ("1", "-2.5"):
        answer = credit(api, invoice, lines=[part(invoice, 0), part(invoice, 1, quantity)])
        assert "less than 0 and at least -2, what is left" in answer.errors["lines.1.quantity"][0]
    answer = credit(api, invoice, lines=[part(invoice, 0)])
    assert "60.00 EUR" in answer.errors["lines"][0]
    alone = credit(api, invoice, lines=[part(invoice, 1)])
    assert set(alone.errors) == {"lines"}


def test_a_part_of_a_time_line_gets_its_share_of_the_amount_of_its_hours(api):
    client = api.make("/clients", hourly_rate="100", tax_rate="19")["id"]
    entries = [api.make("/time-entries", client_id=client, duration_minutes=10)["id"] for _ in range(7)]
    invoice = issued(api, {"time_entry_ids": entries}, client_id=client)
    assert pick(invoice["lines"][0], "quantity", "amount") == ["1.1667", "116.69"]  # 7 x 16.67
    notes = [credit(api, invoice, lines=[part(invoice, 0, quantity)]).data for quantity in ("0.5", None)]
    assert [pick(note["lines"][0], "quantity", "amount") for note in notes] == [
        ["0.5", "50.01"], ["0.6667", "66.68"],  # 116.69 x 0.5 / 1.1667 = 50.0086
    ]  # fmt: skip


def test_a_line_without_an_invoice_line_has_its_own_description_and_price(api):
    invoice = issued(api)
    sent = free("3.335", quantity="2.5", invoice_line_id=None)
    traps = {"discount_percent": "50", "amount": "99"}
    refused = credit(api, invoice, lines=[sent | traps]).errors
    assert refused.keys() == {f"lines.0.{name}" for name in traps}
    note = credit(api, invoice, lines=[sent, free("1", tax_rate="19.0")]).data
    first, second = note["lines"]
    assert pick(first, "description", "quantity", "unit_price", "tax_rate", "amount") == [
        "Rebate for the delay", "2.5", "3.335", "19", "8.34",
    ]  # fmt: skip
    assert pick(first, "invoice_line_id", "discount_percent") == [None, "0"]
    assert pick(second, "quantity", "unit_price", "amount") == ["1", "1.00", "1.00"]
    assert pick(note, "subtotal", "tax_total", "total") == ["9.34", "1.77", "11.11"]  # 9.34 x 19 % = 1.7746


def test_all_that_is_left_is_credited_without_an_amount(api):
    rebate = LINE | {"quantity": "-1", "discount_percent": "50"}
    invoice = issued(api, LINE, SECOND, rebate, LINE | {"quantity": "0"})
    whole = credit(api, invoice).data
    wanted = ("description", "quantity", "unit_price", "discount_percent", "tax_rate", "amount")
    assert [pick(line, *wanted) for line in whole["lines"]] == [pick(line, *wanted) for line in invoice["lines"][:3]]
    assert [line["invoice_line_id"] for line in whole["lines"]] == [line["id"] for line in invoice["lines"][:3]]
    assert pick(whole, "total", "tax_breakdown") == pick(invoice, "total", "tax_breakdown")
    other = issued(api, LINE, SECOND)
    credit(api, other, lines=[part(other, 0, "4")])
    rest = credit(api, other).data
    assert [pick(line, "invoice_line_id", "tax_rate", "amount") for line in rest["lines"]] == [
        [None, "7", "50.00"], [None, "19", "60.00"],
    ]  # fmt: skip
    assert is_consistent(rest)
    for members in ({}, {"amount": "0.01"}, {"lines": [free("0.01", tax_rate="7")]}):
        assert credit(api, other, **members).status == 422


TINY = LINE | {"quantity": "1", "unit_price": "0.01"}
SMALL_LINE = LINE | {"quantity": "1", "unit_price": "0.03"}


@pytest.mark.parametrize(
    ("currency", "lines", "steps", "shares"),
    [
        # 17/1.19 = 14.2857; the last takes what is left of 100.00 and 19.00
        ("EUR", [LINE], [{"amount": "17"}] * 7, [("14.29", "2.71")] * 6 + [("14.26", "2.74")]),
        ("EUR", [LINE | {"quantity": "7", "unit_price": "14.2857"}], [[(0, "1")]] * 7,
         [("14.29", "2.72")] * 6 + [("14.26", "2.68")]),
        # tax of 0.03 is 0.01, that of each 0.01 nothing
        ("EUR", [TINY] * 3, [[(0, None)], [(1, None)], [(2, None)]], [("0.01", "0.00")] * 2 + [("0.01", "0.01")]),
        # tax of 0.12 is 0.02, that of each 0.03 would be 0.01
        ("EUR", [SMALL_LINE] * 4, [[(0, None)], [(1, None)], [(2, None)], [(3, None)]],
         [("0.03", "0.01")] * 2 + [("0.03", "0.00")] * 2),
        # 0.06 without tax is left: 0.05/1.19 = 0.042 would leave 0.01 of tax
        ("EUR", [SMALL_LINE] * 4, [[(0, None)], [(1, None)], {"amount": "0.05"}, {}],
         [("0.03", "0.01")] * 2 + [("0.05", "0.00"), ("0.01", "0.00")]),
        # 0.10 and 0.02: when the net is gone, tax is left
        ("EUR", [LINE | {"unit_price": "0.01"}], [{"amount": "0.01"}] * 12,
         [("0.01", "0.00")] * 10 + [("0.00", "0.01")] * 2),
        # 100 x 107/345 = 31.0145 and 68.9855; 31.01/1.07 = 28.981, 68.99/1.19 = 57.975
        ("EUR", [SECOND | {"unit_price": "20"}, LINE | {"unit_price": "20"}], [{"amount": "100"}, {}],
         [("86.95", "13.05"), ("213.05", "31.95")]),
        # 107.00 at both: the odd cent goes to the first, 0 %; 0.07/1.07 = 0.065 is all net
        ("EUR", [SECOND | {"unit_price": "20"}, LINE | {"quantity": "1", "unit_price": "107", "tax_rate": "0"}],
         [{"amount": "0.15"}, {}], [("0.15", "0.00"), ("206.85", "7.00")]),
        # 1/1.1 = 0.909, 2/1.1 = 1.818, 366/1.1 = 332.7
        ("JPY", [LINE | {"quantity": "1", "unit_price": "335", "tax_rate": "10"}],
         [{"amount": "1"}, {"amount": "2"}, {"amount": "366"}], [("1", "0"), ("2", "0"), ("332", "34")]),
        # 10.001 and 0.500: 3.3337 and 0.1667; 3.5/1.05 = 3.3333
        ("KWD", [LINE | {"quantity": "3", "unit_price": "3.3337", "tax_rate": "5"}],
         [[(0, "1")], {"amount": "3.5"}, {}],
         [("3.334", "0.167"), ("3.333", "0.167"), ("3.334", "0.166")]),
    ],
)  # fmt: skip
def test_parts_that_do_not_divide_evenly_add_up_to_the_invoice(api, currency, lines, steps, shares):
    invoice = issued(api, *lines, currency=currency)
    notes = []
    for step in steps:
        members = {"lines": [part(invoice, *item) for item in step]} if isinstance(step, list) else step
        notes.append(credit(api, invoice, **members).data)
    assert [(note["subtotal"], note["tax_total"]) for note in notes] == shares
    assert all(map(is_consistent, notes))
    assert by_rate(*notes) == by_rate(invoice)
    after = now(api, invoice)
    assert pick(after, "status", "amount_credited") == ["paid", invoice["total"]]
    assert set(credit(api, invoice).errors) == {"amount"}


def test_amounts_are_spread_over_a_rate_that_lowers_the_invoice_as_well(api):
    invoice = issued(api, LINE | {"unit_price": "140"}, SECOND | {"quantity": "-1", "unit_price": "33.33"})
    notes = [credit(api, invoice, amount="400").data for _ in range(4)]
    # 400 x -35.66/1630.34 = -8.7491 at 7 %, 408.7491 at 19 %
    assert notes[0]["tax_breakdown"] == [
        {"tax_rate": "7", "taxable_amount": "-8.18", "tax_amount": "-0.57"},
        {"tax_rate": "19", "taxable_amount": "343.49", "tax_amount": "65.26"},
    ]
    assert [pick(line, "quantity", "unit_price", "amount") for line in notes[0]["lines"]] == [
        ["-1", "8.18", "-8.18"], ["1", "343.49", "343.49"],
    ]  # fmt: skip
    notes.append(credit(api, invoice).data)
    assert all(map(is_consistent, notes))
    assert by_rate(*notes) == by_rate(invoice)


@pytest.mark.parametrize("steps", [[{}], [{"amount": "200"}, {}], [{"amount": "1"}, {"amount": "356"}]])
@pytest.mark.parametrize("status", ["sent", "paid", "written_off"])
def test_the_work_of_a_fully_credited_invoice_can_be_billed_again(api, steps, status):
    client = api.make("/clients", hourly_rate="100", tax_rate="19")["id"]
    project = api.make("/projects", client_id=client)["id"]
    entry = api.make("/time-entries", project_id=project, client_id=client, duration_minutes=90)["id"]
    expense = api.make("/expenses", project_id=project, client_id=client, amount="100", tax_rate="0")["id"]
    fixed = api.make("/projects", client_id=client, billing_type="fixed_fee", fixed_fee="50")["id"]
    milestone = api.make(f"/projects/{fixed}/milestones", amount="50")["id"]
    work = [{"time_entry_ids": [entry]}, {"expense_ids": [expense]}, {"milestone_id": milestone}]
    invoice = issued(api, *work, client_id=client)  # 150 + 100 + 50, and 57 tax
    if status != "sent":
        change(api, invoice, status=status)
    invoiced = api.get(f"/projects/{project}").data
    assert pick(invoiced, "invoiced_amount", "unbilled_amount", "unbilled_minutes") == ["250.00", "0.00", 0]
    for step in steps:
        assert api.get(f"/time-entries/{entry}").data["billing_status"] == "billed"
        assert api.create("/invoices", client_id=client, lines=[work[1]]).code == "already_billed"
        assert credit(api, invoice, **step).status == 201
    assert pick(api.get(f"/time-entries/{entry}").data, "billing_status", "invoice_id") == ["unbilled", None]
    assert pick(api.get(f"/expenses/{expense}").data, "billing_status", "invoice_id") == ["unbilled", None]
    freed = api.get(f"/projects/{project}").data
    assert pick(freed, "invoiced_amount", "unbilled_amount", "unbilled_minutes") == ["0.00", "150.00", 90]
    assert now(api, invoice)["lines"] == invoice["lines"]
    again = issued(api, *work, client_id=client)
    assert again["total"] == invoice["total"] == "357.00"


@each_database
@pytest.mark.parametrize("freed", ["credited", "void"])
def test_a_line_names_the_work_that_it_has_billed_also_when_that_was_deleted(api, freed):
    client = api.make("/clients", hourly_rate="100")["id"]
    entries = [api.make("/time-entries", client_id=client)["id"] for _ in range(2)]
    expense = api.make("/expenses", client_id=client, amount="100")["id"]
    project = api.make("/projects", client_id=client, billing_type="fixed_fee", fixed_fee="50")["id"]
    milestone = api.make(f"/projects/{project}/milestones", amount="50")["id"]
    work = [{"time_entry_ids": entries}, {"expense_ids": [expense]}, {"milestone_id": milestone}]
    made = [f"/time-entries/{entries[0]}", f"/expenses/{expense}", f"/projects/{project}/milestones/{milestone}"]
    invoice = issued(api, *work, client_id=client)
    assert {api.delete(each).status for each in made} == {422}, "an invoice bills it"
    if freed == "void":
        change(api, invoice, status="void")
    else:
        credit(api, invoice)
    path = f"/invoices/{invoice['id']}"
    before = api.get(path)
    last = api.get("/events").json["meta"]["latest"]
    assert [api.delete(each).status for each in made] == [204] * 3
    after = api.get(path)
    assert (after.data["lines"], after.headers["etag"]) == (invoice["lines"], before.headers["etag"])
    assert "invoice.updated" not in {event["type"] for event in api.get("/events", {"after": last}).data}
    assert api.patch(path, {"lines": after.data["lines"]}).status == 200, "equal lines change nothing"
    again = issued(api, {"time_entry_ids": entries[1:]}, client_id=client)
    assert again["lines"][0]["time_entry_ids"] == entries[1:]


def credited_of_projects(api, note):
    query = select(*credit_note_shares.c["project_id", "amount"])
    with api.operating() as tx:
        rows = tx.all(query.where(credit_note_shares.c.credit_note_id == note["id"]))
    return {project: amount for project, amount in rows if amount}


def test_a_credit_is_divided_among_the_projects(api):
    client = api.make("/clients")["id"]
    shop, blog = (api.make("/projects", client_id=client)["id"] for _ in range(2))
    lines = [
        LINE | {"unit_price": price, "project_id": project}
        for price, project in (("6", shop), ("3", blog), ("1", None))
    ]
    invoice = issued(api, *lines, client_id=client)
    note = credit(api, invoice, lines=[part(invoice, 1, "5")]).data
    assert credited_of_projects(api, note) == {blog: 1500}
    note = credit(api, invoice, amount="11.90").data
    # 10.00 over 60.00, 15.00 and 10.00: 7.0588, 1.7647, 1.1765; two cents are left for 0.88 and 0.65
    assert credited_of_projects(api, note) == {shop: 706, blog: 176, None: 118}
    note = credit(api, invoice, lines=[part(invoice, 2, "2"), free("8.18")]).data
    # 8.18 over 52.94, 13.24 and 8.82 - 2.00: 5.9322, 1.4836, 0.7642
    assert credited_of_projects(api, note) == {shop: 593, blog: 148, None: 277}
    note = credit(api, invoice).data
    assert credited_of_projects(api, note) == {shop: 4701, blog: 1176, None: 605}


def test_the_last_credit_of_a_line_takes_what_rounding_has_left(api):
    invoice = issued(api, LINE | {"quantity": "3", "unit_price": "0.1667", "tax_rate": "0"})  # 0.50
    amounts = [credit(api, invoice, lines=[part(invoice, 0, "1")]).data["total"] for _ in range(3)]
    assert amounts == ["0.17", "0.17", "0.16"]
    assert now(api, invoice)["amount_credited"] == invoice["total"] == "0.50"


def test_the_last_credit_takes_all_that_is_left_of_each_rate_and_each_project(api):
    client = api.make("/clients")["id"]
    projects = [api.make("/projects", client_id=client)["id"] for _ in range(3)]
    lines = [
        LINE | {"quantity": "1", "unit_price": price, "tax_rate": rate, "project_id": project}
        for price, rate, project in zip(("0.05", "0.04", "0.02"), ("19", "7", "0"), projects, strict=True)
    ]
    invoice = issued(api, *lines, client_id=client)
    taken = Counter()
    notes = [credit(api, invoice, **members).data for members in ({"amount": "0.04"}, {"amount": "0.03"}, {})]
    for note in notes:
        taken.update(credited_of_projects(api, note))
    assert taken == dict(zip(projects, (5, 4, 2), strict=True))
    assert by_rate(*notes) == by_rate(invoice)


def test_the_last_credit_takes_the_rest_of_each_project_whichever_lines_it_names(api):
    client = api.make("/clients")["id"]
    shop, blog = (api.make("/projects", client_id=client)["id"] for _ in range(2))
    invoice = issued(api, LINE | {"project_id": shop}, LINE | {"project_id": blog}, client_id=client)  # 100.00 each
    assert credited_of_projects(api, credit(api, invoice, amount="119").data) == {shop: 5000, blog: 5000}
    last = credit(api, invoice, lines=[part(invoice, 0, "10")]).data
    assert now(api, invoice)["amount_credited"] == invoice["total"]
    assert credited_of_projects(api, last) == {shop: 5000, blog: 5000}, "the line alone would be 100.00 of the shop"


def test_lines_that_credit_all_that_is_left_leave_nothing_at_any_rate(api):
    raising = free("100", quantity="1", tax_rate="10")
    invoice = issued(api, LINE, raising, free("91.67", quantity="-1", tax_rate="20"))  # 119.00 + 110 - 110
    answer = credit(api, invoice, lines=[part(invoice, 0)])
    assert answer.errors == {
        "lines": ["The total is all 119.00 that is left, but not at each tax rate. Omit lines to credit all."]
    }
    assert by_rate(credit(api, invoice).data) == by_rate(invoice)


def test_lines_without_a_project_count_for_the_invoices_project(api):
    client = api.make("/clients")["id"]
    shop, blog = (api.make("/projects", client_id=client)["id"] for _ in range(2))
    invoice = issued(api, LINE, LINE | {"project_id": blog}, client_id=client, project_id=shop)
    assert credited_of_projects(api, credit(api, invoice, lines=[part(invoice, 0, "1")]).data) == {shop: 1000}
    assert credited_of_projects(api, credit(api, invoice).data) == {shop: 9000, blog: 10000}


def test_the_project_that_a_quote_becomes_takes_over_no_credit_of_another(api):
    client = api.make("/clients")["id"]
    shop = api.make("/projects", client_id=client)["id"]
    lines = [LINE, LINE | {"project_id": shop}]
    quote = {"quote_id": api.make("/quotes", client_id=client, status="accepted", lines=lines)["id"]}
    note = credit(api, api.post("/invoices", quote | {"status": "sent"}).data, amount="119").data
    assert credited_of_projects(api, note) == {None: 5000, shop: 5000}
    project = api.post("/projects", quote | {"name": "Relaunch"}).data["id"]
    assert credited_of_projects(api, note) == {project: 5000, shop: 5000}


def test_a_credit_changes_the_tag_of_its_invoice(api):
    invoice = issued(api)
    path = f"/invoices/{invoice['id']}"
    tag = api.get(path).headers["etag"]
    credit(api, invoice, amount="1")
    assert api.get(path, headers={"If-None-Match": tag}).status == 200
    assert api.patch(path, {"notes": "x"}, headers={"If-Match": tag}).code == "precondition_failed"


def test_a_retried_request_credits_once(api):
    invoice = issued(api)
    path, headers = f"/invoices/{invoice['id']}/credit-notes", {"Idempotency-Key": "k"}
    first, again = (api.post(path, {"amount": "19"}, headers=headers) for _ in range(2))
    assert (again.status, again.json) == (201, first.json)
    assert again.headers["idempotency-replayed"] == "true"
    assert api.post(path, {"amount": "20"}, headers=headers).code == "idempotency_key_reused"
    assert now(api, invoice)["credit_notes"] == [first.data]
