import re
from decimal import Decimal

import pytest
import time_machine

from retainer.rollups import doctor

LINE = {"description": "Design", "quantity": "2", "unit": "days", "unit_price": "800", "tax_rate": "19"}
"""Totals: 1600.00, tax of 304.00, 1904.00 in all."""
STATES = ("draft", "sent", "partially_paid", "paid", "void", "written_off")
ISSUED = STATES[1:]
LEGAL = {
    "draft": {"sent"},
    "sent": {"paid", "void", "written_off"},
    "partially_paid": {"paid", "written_off"},
    "written_off": {"paid"},
    "paid": set(),
    "void": set(),
}
STAMPS = {"sent_at", "paid_at", "voided_at", "written_off_at"}
SNAPSHOT = dict.fromkeys(("address_line1", "address_line2", "city", "region", "postal_code", "vat_number")) | {
    "name": "Optik Bergmann",
    "country": "AT",
}


def invoice_of(api, status="draft", **members):
    """An invoice of one line, 1904.00, in this state; 904.00 of it are paid when it is partially_paid."""
    issued = "draft" if status == "draft" else "sent"
    invoice = api.make("/invoices", **({"lines": [LINE], "status": issued} | members))
    asked = {"partially_paid": {"record_payment": {"amount": "904"}}}.get(status, {"status": status})
    return invoice if status == issued else api.patch(path_of(invoice), asked).data


def path_of(invoice):
    return f"/invoices/{invoice['id']}"


def again(api, invoice):
    return api.get(path_of(invoice)).data


def sent_back(invoice):
    return {name: value for name, value in invoice.items() if name != "updated_at"}


def test_it_works(api):
    client = api.make("/clients", tax_rate="7")["id"]
    contact = api.make("/external-contacts", client_id=client)["id"]
    project = api.make("/projects", client_id=client)["id"]
    sent = {
        "client_id": client,
        "project_id": project,
        "contact_id": contact,
        "status": "draft",
        "issue_date": "2026-03-30",
        "due_date": "2026-05-01",
        "service_from": "2026-03-01",
        "service_to": "2026-03-29",
        "purchase_order": "PO 7",
        "subject": "Relaunch",
        "notes": "Thank you",
        "terms": "30 days",
        "currency": "EUR",
        "external_id": "i-1",
        "lines": [
            LINE | {"discount_percent": "12.5", "project_id": project},
            {"description": "Rebate", "quantity": -1, "unit_price": 33.3333},
        ],
    }
    answer = api.post("/invoices", sent)
    assert answer.status == 201
    invoice = answer.data
    null_fields = ("quote_id", "number", "client_snapshot", "sent_at", "paid_at", "voided_at", "written_off_at")
    null_fields += ("tax_exemption_reason", "document_version")
    design, rebate = invoice["lines"]
    item = {"invoice_id": invoice["id"], "kind": "item", "time_entry_ids": [], "expense_ids": []}
    item |= {"milestone_id": None, "fee_month": None, "recorded_quantity": None}
    assert design == LINE | item | {
        **{name: design[name] for name in ("id", "created_at", "updated_at")},
        "unit_price": "800.00",
        "discount_percent": "12.5",
        "project_id": project,
        "amount": "1400.00",
        "currency": "EUR",
        "position": 1,
    }
    assert rebate == rebate | item | {
        "quantity": "-1",
        "unit": None,
        "unit_price": "33.3333",
        "discount_percent": "0",
        "tax_rate": "7",
        "project_id": None,
        "amount": "-33.33",
        "position": 2,
    }
    assert invoice == sent | dict.fromkeys(null_fields) | {
        **{name: invoice[name] for name in ("id", "created_at", "updated_at")},
        "is_overdue": False,
        "days_overdue": 0,
        "reminders": True,
        "is_imported": False,
        "subtotal": "1366.67",
        "tax_total": "263.67",
        "total": "1630.34",
        "tax_breakdown": [
            {"tax_rate": "7", "taxable_amount": "-33.33", "tax_amount": "-2.33"},
            {"tax_rate": "19", "taxable_amount": "1400.00", "tax_amount": "266.00"},
        ],
        "amount_paid": "0.00",
        "amount_credited": "0.00",
        "balance_due": "1630.34",
        "refund_due": "0.00",
        "payments": [],
        "credit_notes": [],
        "lines": [design, rebate],
    }
    assert answer.headers["location"].endswith(path_of(invoice))
    assert again(api, invoice) == invoice
    (row,) = api.get("/invoices").data
    assert row == {name: value for name, value in invoice.items() if name not in {"lines", "payments", "credit_notes"}}


def test_a_client_is_enough(api):
    client = api.make("/clients", currency="JPY")["id"]
    invoice = api.post("/invoices", {"client_id": client}).data
    assert [invoice[name] for name in ("status", "currency", "total", "lines")] == ["draft", "JPY", "0", []]
    assert [invoice[name] for name in ("number", "issue_date", "due_date")] == [None, None, None]
    assert set(api.post("/invoices").errors) == {"client_id"}


@pytest.mark.parametrize("status", STATES)
def test_an_invoice_can_be_sent_back_as_it_was_read(api, status):
    invoice = invoice_of(api, status, lines=[LINE, LINE | {"description": "Rebate", "quantity": "-0.5"}])
    assert sent_back(api.put(path_of(invoice), again(api, invoice)).data) == sent_back(invoice)


@pytest.mark.parametrize(
    ("members", "field", "message"),
    [
        ({"client_id": None}, "client_id", "null"),
        ({"client_id": 999}, "client_id", "no such client"),
        ({"quote_id": 999}, "quote_id", "no such quote"),
        ({"purchase_order": "x" * 101}, "purchase_order", "this has 101"),
        ({"subject": "x" * 256}, "subject", "this has 256"),
        ({"issue_date": "2026-02-29"}, "issue_date", "a date"),
        ({"issue_date": "2026-03-02", "due_date": "2026-03-01"}, "due_date", "Must not be before issue_date"),
        ({"currency": "EURO"}, "currency", "ISO 4217"),
        ({"lines": [LINE] * 201}, "lines", "this has 201"),
        ({"lines": [LINE, LINE | {"amunt": 1}]}, "lines.1.amunt", "Did you mean"),
        ({"subjct": "x"}, "subjct", "Did you mean subject"),
        ({"record_payment": {"amount": "1"}}, "record_payment", "when a record is changed"),
        ({"status": "sent", "lines": []}, "status", "Add a line first"),
        (
            {"status": "sent", "lines": [{"description": "A", "quantity": -1, "unit_price": "0.01"}]},
            "status",
            "cannot be negative",
        ),
        ({"status": "sent", "due_date": "2020-01-01", "lines": [LINE]}, "due_date", "Must not be before issue_date"),
        ({"status": "paid", "lines": [LINE]}, "status", "It can become: sent."),
        ({"status": "overdue"}, "status", "one of: draft, sent, partially_paid, paid, void, written_off"),
    ],
)
def test_a_refused_invoice_is_not_written_and_takes_no_number(api, members, field, message):
    answer = api.create("/invoices", **members)
    assert set(answer.errors) == {field}
    assert message in answer.errors[field][0]
    assert api.get("/invoices").data == []
    assert invoice_of(api, "sent")["number"].endswith("-0001")


def test_contact_and_projects_are_those_of_the_client(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    contact = api.make("/external-contacts", client_id=other)["id"]
    project = api.make("/projects", client_id=other)["id"]
    members = {"contact_id": contact, "project_id": project, "lines": [LINE, LINE | {"project_id": project}]}
    fields = {"contact_id", "project_id", "lines.1.project_id"}
    assert set(api.create("/invoices", client_id=client, **members).errors) == fields
    invoice = api.make("/invoices", client_id=other, **members)
    assert set(api.patch(path_of(invoice), {"client_id": client}).errors) == fields
    assert again(api, invoice) == invoice
    internal = api.make("/projects", client_id=None)["id"]
    assert "no client" in api.patch(path_of(invoice), {"project_id": internal}).errors["project_id"][0]
    assert set(api.patch(path_of(invoice), {"contact_id": 999, "project_id": 999}).errors) == fields - {
        "lines.1.project_id"
    }


def test_changes_sent_with_the_status_are_issued(api):
    client = api.make("/clients", currency="USD", **SNAPSHOT)["id"]
    members = {"client_id": client, "subject": "All", "issue_date": "2026-03-01", "status": "sent"}
    invoice = invoice_of(api)
    moved = api.patch(path_of(invoice), members | {"lines": [LINE, LINE | {"quantity": "-0.5"}]}).data
    assert moved == moved | members | {"number": "INV-2026-0001", "currency": "EUR", "client_snapshot": SNAPSHOT}
    assert [line["quantity"] for line in moved["lines"]] == ["2", "-0.5"]
    assert [moved["total"], moved["balance_due"]] == ["1428.00", "1428.00"]
    at_once = api.make("/invoices", **members, lines=[LINE])
    assert at_once == at_once | members | {"number": "INV-2026-0002", "currency": "USD", "client_snapshot": SNAPSHOT}
    assert at_once["sent_at"] == at_once["created_at"]


def test_archived_clients_get_no_new_invoices_and_their_drafts_stay_editable(api):
    client = api.make("/clients")["id"]
    kept, others = invoice_of(api, client_id=client), invoice_of(api)
    api.patch(f"/clients/{client}", {"status": "archived"})
    assert "archived" in api.create("/invoices", client_id=client).errors["client_id"][0]
    assert "archived" in api.patch(path_of(others), {"client_id": client}).errors["client_id"][0]
    assert api.patch(path_of(kept), {"subject": "Last", "status": "sent"}).data["status"] == "sent"
    assert api.patch(path_of(kept), {"status": "paid"}).data["balance_due"] == "0.00"


def test_the_currency_is_the_clients_and_stays_while_there_are_lines(api):
    client = api.make("/clients", currency="KWD")["id"]
    assert invoice_of(api, client_id=client)["total"] == "1904.000"
    invoice = invoice_of(api, client_id=client, currency="JPY")
    assert [invoice["currency"], invoice["total"], invoice["lines"][0]["currency"]] == ["JPY", "1904", "JPY"]
    fixed = api.patch(path_of(invoice), {"currency": "EUR"})
    assert "Stays JPY" in fixed.errors["currency"][0]
    api.patch(path_of(invoice), {"lines": []})
    assert api.patch(path_of(invoice), {"currency": "EUR", "lines": [LINE]}).data["total"] == "1904.00"


@pytest.mark.parametrize(
    ("terms", "issued", "due"),
    [
        (0, "2026-03-30", "2026-03-30"),
        (14, "2026-12-24", "2027-01-07"),
        (30, "2026-01-31", "2026-03-02"),
        (28, "2028-02-01", "2028-02-29"),
        (365, "2026-07-01", "2027-07-01"),
    ],
)
def test_an_issued_invoice_is_due_when_the_clients_terms_say(api, terms, issued, due):
    client = api.make("/clients", payment_terms_days=terms)["id"]
    draft = invoice_of(api, client_id=client, issue_date=issued)
    assert draft["due_date"] is None
    assert api.patch(path_of(draft), {"status": "sent"}).data["due_date"] == due
    explicit = invoice_of(api, "sent", client_id=client, issue_date=issued, due_date="2099-12-31")
    assert explicit["due_date"] == "2099-12-31"


def test_number_and_dates_follow_the_accounts_time_zone(both):
    with time_machine.travel("2025-12-31T23:30:00Z", tick=False):
        issued = [invoice_of(api, "sent", client_id=api.make("/clients", payment_terms_days=10)["id"])
                  for api in both]  # fmt: skip
    berlin, utc = ([row[name] for name in ("number", "issue_date", "due_date", "sent_at")] for row in issued)
    assert berlin == ["INV-2026-0001", "2026-01-01", "2026-01-11", "2025-12-31T23:30:00.000000Z"]
    assert utc == ["INV-2025-0001", "2025-12-31", "2026-01-10", "2025-12-31T23:30:00.000000Z"]


def test_numbers_have_no_gaps_and_restart_each_year(api, other_tenant):
    early = invoice_of(api, issue_date="2026-01-01")
    late = invoice_of(api, due_date="2026-01-01")

    def number(day, of=api):
        return invoice_of(of, "sent", issue_date=day)["number"]

    numbers = [number("2026-12-31"), number("2027-01-01"), number("2026-06-01")]
    assert api.patch(path_of(late), {"status": "sent"}).status == 422
    assert api.patch(path_of(early), {"status": "sent", "lines": []}).status == 422
    assert api.delete(path_of(late)).status == 204
    numbers += [api.patch(path_of(early), {"status": "sent"}).data["number"], number("2027-05-05")]
    assert numbers == ["INV-2026-0001", "INV-2027-0001", "INV-2026-0002", "INV-2026-0003", "INV-2027-0002"]
    assert number("2026-07-01", other_tenant) == "INV-2026-0001"


def test_numbers_follow_the_accounts_pattern(api):
    first = invoice_of(api, "sent")["number"]
    api.set_account({"invoice_number_pattern": "Bill {00}"})
    numbers = [invoice_of(api, "sent")["number"] for _ in range(2)]
    assert list(api.create("/invoices", number="Mine").errors) == ["number"]
    assert [first[-5:], *numbers] == ["-0001", "Bill 01", "Bill 02"]


@pytest.mark.parametrize("before", STATES)
@pytest.mark.parametrize("after", STATES)
def test_an_invoice_takes_only_the_steps_of_its_table(api, before, after):
    invoice = invoice_of(api, before)
    answer = api.patch(path_of(invoice), {"status": after, "notes": "Moved"})
    if after == before or after in LEGAL[before]:
        moved = answer.data
        due = {"sent": "1904.00", "paid": "0.00", "void": "0.00"}.get(after, invoice["balance_due"])
        paid = {"paid": "1904.00"}.get(after, invoice["amount_paid"])
        assert [moved[name] for name in ("status", "balance_due", "amount_paid")] == [after, due, paid]
        stamps = set() if after == "draft" else {"sent_at", after.replace("void", "voided") + "_at"} & STAMPS
        assert {name for name in STAMPS if moved[name]} == stamps
        assert moved == again(api, invoice)
    else:
        assert answer.code == "invalid_transition"
        first, _, advice = answer.errors["status"][0].partition(". ")
        assert {"status"} == set(answer.errors)
        assert first == f"Cannot become {after} from {before}"
        assert set(re.findall(r"\w+", advice)) & set(STATES) - {before} == LEGAL[before]
        assert before == "draft" or advice.endswith("with a credit note: POST /invoices/{invoice_id}/credit-notes.")
        assert again(api, invoice) == invoice


@pytest.mark.parametrize("lines", [[LINE, LINE | {"quantity": "-2"}], [LINE | {"discount_percent": "100"}]])
def test_an_invoice_of_zero_is_paid_immediately(api, lines):
    with time_machine.travel("2026-03-10T12:00:00Z", tick=False):
        invoice = invoice_of(api, lines=lines)
        paid = api.patch(path_of(invoice), {"status": "sent"}).data
    assert [paid[name] for name in ("number", "status", "total")] == ["INV-2026-0001", "paid", "0.00"]
    assert paid["sent_at"] == paid["paid_at"] == "2026-03-10T12:00:00.000000Z"
    assert paid["payments"] == []


def test_a_written_off_invoice_that_is_paid_in_part_is_open_again(api):
    invoice = invoice_of(api, "written_off")
    assert [invoice[name] for name in ("status", "balance_due")] == ["written_off", "1904.00"]
    paid = api.patch(path_of(invoice), {"record_payment": {"amount": "900"}}).data
    assert [paid[name] for name in ("status", "balance_due", "written_off_at")] == ["partially_paid", "1004.00", None]
    api.patch(path_of(invoice), {"status": "written_off"})
    paid = api.patch(path_of(invoice), {"record_payment": {}}).data
    assert [paid[name] for name in ("status", "balance_due", "written_off_at")] == ["paid", "0.00", None]
    assert paid["paid_at"]


def test_an_invoice_is_overdue_from_the_next_day_in_the_accounts_time_zone(api, other_tenant):
    berlin, utc = (
        {"client_id": tenant.make("/clients")["id"], "issue_date": "2026-03-01"} for tenant in (api, other_tenant)
    )
    with time_machine.travel("2026-03-01T12:00:00Z", tick=False):
        late = {status: invoice_of(api, status, **berlin, due_date="2026-03-27") for status in STATES}
        theirs = invoice_of(other_tenant, "sent", **utc, due_date="2026-03-27")

    def days(tenant, invoice):
        record = again(tenant, invoice)
        overdue = record["is_overdue"]
        clients = tenant.get("/clients", {"has_overdue": "true"}).data
        assert [row["id"] for row in clients] == [record["client_id"]] * overdue
        assert overdue == (invoice["id"] in [row["id"] for row in tenant.get("/invoices", {"status": "overdue"}).data])
        return record["days_overdue"] if overdue else None

    for moment, of_sent, of_theirs in (
        ("2026-03-27T22:59:59Z", None, None),
        ("2026-03-27T23:00:00Z", 1, None),
        ("2026-03-28T00:00:00Z", 1, 1),
        ("2026-03-29T21:59:59Z", 2, 2),  # summer time began this night
        ("2026-03-29T22:00:00Z", 3, 2),
        ("2027-03-27T12:00:00Z", 365, 365),
    ):
        with time_machine.travel(moment, tick=False):
            assert [days(api, late["sent"]), days(other_tenant, theirs)] == [of_sent, of_theirs], moment
            days_overdue = {status: again(api, late_invoice)["days_overdue"] for status, late_invoice in late.items()}
            assert days_overdue == dict.fromkeys(STATES, 0) | dict.fromkeys(("sent", "partially_paid"), of_sent or 0)
    with time_machine.travel("2027-03-27T12:00:00Z", tick=False):
        for status in ("sent", "partially_paid"):
            api.patch(path_of(late[status]), {"status": "paid"})
        assert days(api, late["sent"]) is None


@pytest.mark.parametrize("status", ISSUED)
def test_an_issued_invoice_accepts_changes_that_leave_its_amounts(api, status):
    invoice = invoice_of(api, status)
    contact = api.make("/external-contacts", client_id=invoice["client_id"])["id"]
    allowed = {"notes": "N", "due_date": "2099-01-01", "purchase_order": "P", "contact_id": contact, "external_id": "E"}
    changed = api.patch(path_of(invoice), allowed).data
    assert sent_back(changed) == sent_back(invoice | allowed | {"document_version": 2})
    cleared = dict.fromkeys(allowed.keys() - {"due_date"})
    assert sent_back(api.patch(path_of(invoice), cleared).data) == sent_back(
        changed | cleared | {"document_version": 3}
    )
    before = again(api, invoice)
    assert "null" in api.patch(path_of(invoice), {"due_date": None}).errors["due_date"][0]
    assert "before issue_date" in api.patch(path_of(invoice), {"due_date": "2020-01-01"}).errors["due_date"][0]
    assert again(api, invoice) == before


def locked_members(api, invoice):
    """A changed value for each field that only a draft can change."""
    first = invoice["lines"][0]
    project = api.make("/projects", client_id=invoice["client_id"])["id"]
    return [
        {"client_id": api.make("/clients")["id"]},
        {"project_id": project},
        {"issue_date": "2020-01-01"},
        {"issue_date": None},
        {"subject": "Other"},
        {"terms": "Other"},
        {"lines": []},
        {"lines": [first, first]},
        *({"lines": [first | {name: value}]} for name, value in (
            ("description", "Other"), ("quantity", "3"), ("unit", None), ("unit_price", "1"),
            ("discount_percent", "1"), ("tax_rate", "7"), ("project_id", project),
        )),
        {"unbilled_work": {"time": {}}},
    ]  # fmt: skip


@pytest.mark.parametrize("status", ISSUED)
def test_an_issued_invoice_is_locked(api, status):
    invoice = invoice_of(api, status, subject="Relaunch", terms="30 days")
    for members in locked_members(api, invoice):
        answer = api.patch(path_of(invoice), members | {"notes": "New"})
        assert (answer.status, answer.code) == (422, "locked"), members
        assert set(answer.errors) == set(members)
        locked = f"Cannot be changed any more: this one is {status}."
        assert "unbilled_work" in members or all(each.startswith(locked) for (each,) in answer.errors.values())
    assert again(api, invoice) == invoice


def test_locked_and_invalid_fields_are_reported_together(api):
    invoice = invoice_of(api, "sent", subject="Relaunch", terms="30 days")
    members = {name: value for group in locked_members(api, invoice) for name, value in group.items()}
    members |= {
        "currency": "USD",
        "status": "draft",
        "contact_id": 999,
        "due_date": None,
        "record_payment": {"amount": "0"},
    }
    answer = api.patch(path_of(invoice), members)
    assert set(answer.errors) == members.keys() - {"record_payment"} | {"record_payment.amount"}
    assert again(api, invoice) == invoice


def pay(api, invoice, **payment):
    return api.patch(path_of(invoice), {"record_payment": payment})


def test_a_payment_is_kept_as_it_was_sent(api):
    invoice = invoice_of(api, "sent")
    sent = {"amount": "904.5", "paid_date": "2026-01-02", "method": "card", "reference": " SEPA 1 ", "notes": "Thanks"}
    updated = api.put(path_of(invoice), {"record_payment": sent}).data
    (first,) = updated["payments"]
    assert first == sent | {
        **{name: first[name] for name in ("id", "created_at", "updated_at")},
        "invoice_id": invoice["id"],
        "client_id": invoice["client_id"],
        "kind": "payment",
        "amount": "904.50",
        "currency": "EUR",
        "reference": "SEPA 1",
        **dict.fromkeys(("offset_invoice_id", "payment_id", "tax_breakdown")),
    }
    left = ("status", "amount_paid", "balance_due", "paid_at")
    assert [updated[name] for name in left] == ["partially_paid", "904.50", "999.50", None]
    with time_machine.travel("2099-05-01T22:30:00Z", tick=False):
        updated = pay(api, invoice).data
    defaults = {
        "amount": "999.50",
        "paid_date": "2099-05-02",
        "method": "bank_transfer",
        "reference": None,
        "notes": None,
    }
    assert updated["payments"] == [first, updated["payments"][1] | defaults]
    assert [updated[name] for name in left] == ["paid", "1904.00", "0.00", "2099-05-01T22:30:00.000000Z"]
    assert again(api, invoice) == updated


def test_the_status_paid_records_a_payment_of_the_balance_today(api):
    invoice = invoice_of(api, "partially_paid")
    with time_machine.travel("2099-05-01T22:30:00Z", tick=False):
        paid = api.patch(path_of(invoice), {"status": "paid"}).data
    assert [payment["amount"] for payment in paid["payments"]] == ["904.00", "1000.00"]
    assert [paid["payments"][1]["paid_date"], paid["payments"][1]["method"]] == ["2099-05-02", "bank_transfer"]
    assert api.patch(path_of(invoice), {"status": "paid"}).data["payments"] == paid["payments"]


@pytest.mark.parametrize("method", ["bank_transfer", "card", "direct_debit", "cash", "cheque", "other"])
def test_a_payment_has_one_of_these_methods(api, method):
    assert pay(api, invoice_of(api, "sent"), method=method).data["payments"][0]["method"] == method


@pytest.mark.parametrize(
    ("payment", "field", "message"),
    [
        ({"amount": "0"}, "amount", "Must be from 0.01 to"),
        ({"amount": "-1"}, "amount", "Must be from 0.01 to"),
        ({"amount": "1000.01"}, "amount", "to 1000.00 EUR, the balance due. To record more, send allow_surplus: true"),
        ({"amount": "0.001"}, "amount", "EUR has 2 decimal places"),
        ({"amount": True}, "amount", "an amount"),
        ({"paid_date": "2026-13-01"}, "paid_date", "a date"),
        ({"method": "paypal"}, "method", "one of: bank_transfer"),
        ({"reference": "x" * 192}, "reference", "this has 192"),
        ({"notes": "x" * 10001}, "notes", "this has 10001"),
        ({"amonut": "1"}, "amonut", "Did you mean amount"),
    ],
)
def test_an_invalid_payment_is_refused(api, payment, field, message):
    invoice = invoice_of(api, "partially_paid")
    answer = pay(api, invoice, **payment)
    assert set(answer.errors) == {f"record_payment.{field}"}
    assert message in answer.errors[f"record_payment.{field}"][0]
    assert again(api, invoice) == invoice


def test_a_payment_is_not_in_the_future_of_the_accounts_time_zone(both):
    made = [(tenant, invoice_of(tenant, "sent", issue_date="2026-03-01")) for tenant in both]
    with time_machine.travel("2026-03-10T23:00:00Z", tick=False):
        berlin, utc = (pay(tenant, invoice, paid_date="2026-03-11") for tenant, invoice in made)
    assert berlin.data["payments"][0]["paid_date"] == "2026-03-11"
    assert "today is 2026-03-10" in utc.errors["record_payment.paid_date"][0]


@pytest.mark.parametrize(
    ("currency", "least", "too_little"), [("EUR", "0.01", "0.001"), ("JPY", "1", "0.1"), ("KWD", "0.001", "0.0001")]
)
def test_a_payment_has_the_digits_of_the_currency(api, currency, least, too_little):
    invoice = invoice_of(api, "sent", currency=currency)
    assert set(pay(api, invoice, amount=too_little).errors) == {"record_payment.amount"}
    paid = pay(api, invoice, amount=str(1904 - Decimal(least))).data
    assert [paid["status"], paid["balance_due"], paid["payments"][0]["currency"]] == ["partially_paid", least, currency]
    paid = pay(api, invoice, amount=least).data
    assert [paid["status"], Decimal(paid["amount_paid"]), Decimal(paid["balance_due"])] == ["paid", 1904, 0]


def test_an_invoice_is_not_paid_by_a_part_of_its_balance(api):
    invoice = invoice_of(api, "sent")
    answer = api.patch(path_of(invoice), {"status": "paid", "record_payment": {"amount": "1903.99"}})
    assert answer.errors == {"status": ["Is not paid with 1903.99: 1904.00 is due. Leave status out."]}
    assert api.get(path_of(invoice)).data["payments"] == []


def test_a_payment_with_a_known_reference_is_recorded_once(api):
    invoice, other = invoice_of(api, "sent"), invoice_of(api, "sent")
    first = pay(api, invoice, amount="900", reference="A").data
    assert sent_back(pay(api, invoice, amount="900", reference="A").data) == sent_back(first)
    assert sent_back(pay(api, invoice, reference=" A ").data) == sent_back(first)
    paid_date = first["payments"][0]["paid_date"]
    message = f"Is that of payment {first['payments'][0]['id']}: 900.00 EUR on {paid_date}."
    for other_payment in ({"amount": "899"}, {"paid_date": "2026-01-02"}, {"amount": "900", "paid_date": "2026-01-02"}):
        answer = pay(api, invoice, reference="A", **other_payment)
        assert answer.errors == {"record_payment.reference": [f"{message} Give another payment another reference."]}
    full = pay(api, invoice, reference="B").data
    assert [payment["amount"] for payment in full["payments"]] == ["900.00", "1004.00"]
    assert sent_back(pay(api, invoice, reference="B").data) == sent_back(full)
    assert sent_back(api.patch(path_of(invoice), {"status": "paid", "record_payment": {"reference": "A"}}).data) == (
        sent_back(full)
    )
    assert pay(api, other, amount="1", reference="A").data["amount_paid"] == "1.00"
    pay(api, other, amount="1")
    assert pay(api, other, amount="1").data["amount_paid"] == "3.00"


@pytest.mark.parametrize("status", ["draft", "void", "paid"])
def test_an_invoice_without_a_balance_takes_no_payment(api, status):
    invoice = invoice_of(api, status)
    assert status in pay(api, invoice, amount="1", reference="New").errors["record_payment"][0]
    assert again(api, invoice) == invoice


@pytest.mark.parametrize(
    ("before", "asked", "payment", "result"),
    [
        ("draft", "sent", {"amount": "904"}, ["partially_paid", "904.00", "1000.00"]),
        ("draft", "sent", {}, ["paid", "1904.00", "0.00"]),
        ("sent", "paid", {"method": "cash"}, ["paid", "1904.00", "0.00"]),
        ("partially_paid", "paid", {"amount": "1000"}, ["paid", "1904.00", "0.00"]),
        ("written_off", "paid", {"amount": "1904"}, ["paid", "1904.00", "0.00"]),
        ("sent", "paid", {"amount": "1903.99"}, "status"),
        ("draft", "sent", {"amount": "1904.01"}, "record_payment.amount"),
        ("sent", "void", {"amount": "1"}, "record_payment"),
        ("sent", "written_off", {"amount": "1"}, "record_payment"),
        ("sent", "written_off", {}, "record_payment"),
    ],
)
def test_a_payment_can_be_sent_with_a_status_that_agrees(api, before, asked, payment, result):
    invoice = invoice_of(api, before)
    answer = api.patch(path_of(invoice), {"status": asked, "record_payment": payment})
    if isinstance(result, list):
        assert [answer.data[name] for name in ("status", "amount_paid", "balance_due")] == result
        assert answer.data["number"]
        assert len(answer.data["payments"]) == 1 + (before == "partially_paid")
    else:
        assert set(answer.errors) == {result}
        assert again(api, invoice) == invoice


def test_the_clients_currency_is_fixed_once_an_invoice_was_issued(api):
    client = api.make("/clients")["id"]
    invoice = invoice_of(api, client_id=client)
    assert api.patch(f"/clients/{client}", {"currency": "USD"}).data["currency"] == "USD"
    issued = api.patch(path_of(invoice), {"status": "sent"}).data
    api.patch(path_of(invoice), {"status": "void"})
    assert issued["number"] in api.patch(f"/clients/{client}", {"currency": "EUR"}).errors["currency"][0]
    assert api.patch(f"/clients/{client}", {"currency": "USD", "name": "Same"}).status == 200


@pytest.mark.parametrize("status", STATES)
def test_only_a_draft_can_be_deleted(api, status):
    invoice = invoice_of(api, status)
    answer = api.delete(path_of(invoice))
    if status == "draft":
        assert answer.status == 204
        assert api.get(path_of(invoice)).status == 404
        assert api.delete(f"/clients/{invoice['client_id']}").status == 204
    else:
        assert answer.code == "locked"
        assert "credit note" in answer.errors["status"][0]
        assert again(api, invoice) == invoice
        assert set(api.delete(f"/clients/{invoice['client_id']}").errors) == {"invoices"}


def test_lines_and_payments_change_the_tag_and_another_tag_is_412(api):
    invoice = invoice_of(api)
    path = path_of(invoice)
    tags = [api.get(path).headers["etag"]]
    line = api.post(f"{path}/lines", LINE).data["id"]
    for step in (
        lambda: None,
        lambda: api.delete(f"{path}/lines/{line}"),
        lambda: api.patch(path, {"lines": [LINE, LINE | {"quantity": "0"}]}),
        lambda: api.patch(path, {"lines": [LINE, LINE | {"quantity": "0", "description": "Free"}]}),
        lambda: api.patch(path, {"status": "sent"}),
        lambda: pay(api, invoice, amount="1"),
    ):
        step()
        tags.append(api.get(path).headers["etag"])
        assert api.get(path).headers["etag"] == tags[-1]
        before = again(api, invoice)
        for stale in tags[:-1]:
            headers = {"If-Match": stale}
            refused = [api.patch(path, {"notes": "Late"}, headers=headers), api.delete(path, headers=headers)]
            refused.append(api.put(path, {"record_payment": {}}, headers=headers))
            assert {answer.code for answer in refused} == {"precondition_failed"}
        assert again(api, invoice) == before
    assert len(set(tags)) == len(tags)
    assert api.patch(path, {"notes": "In time"}, headers={"If-Match": tags[-1]}).status == 200


@pytest.mark.parametrize("status", ["draft", "sent", "paid", "credited"])
def test_the_project_that_a_quote_becomes_later_is_set_on_its_invoice(api, status):
    client = api.make("/clients")["id"]
    other = api.make("/projects", client_id=client)["id"]
    design, extra = {"description": "Design", "unit_price": "300"}, {"description": "Extra", "unit_price": "100"}
    quote = api.make("/quotes", client_id=client, lines=[design, extra | {"project_id": other}], status="accepted")
    invoice = api.post("/invoices", {"quote_id": quote["id"]}).data
    path = path_of(invoice)
    assert invoice["project_id"] is None
    if status != "draft":
        api.patch(path, {"status": "sent"})
    if status == "paid":
        api.patch(path, {"status": "paid"})
    if status == "credited":
        part = {"invoice_line_id": invoice["lines"][0]["id"], "quantity": "0.5"}
        assert api.post(f"{path}/credit-notes", {"lines": [part]}).status == 201
    before = api.get(path).data
    project = api.post("/projects", {"quote_id": quote["id"]}).data
    after = api.get(path).data
    assert after == before | {"project_id": project["id"], "updated_at": after["updated_at"]}
    assert after["updated_at"] > before["updated_at"]

    def invoiced():
        return [api.get(f"/projects/{record}").data["invoiced_amount"] for record in (project["id"], other)]

    expected = {"draft": ["0.00", "0.00"], "credited": ["150.00", "100.00"]}.get(status, ["300.00", "100.00"])
    assert (project["invoiced_amount"], invoiced()) == (expected[0], expected)
    if status == "draft":
        api.patch(path, {"status": "sent"})
        assert invoiced() == ["300.00", "100.00"]
    assert api.post(f"{path}/credit-notes", {}).status == 201
    assert invoiced() == ["0.00", "0.00"]
    assert doctor.inspect(api.store, repair=False) == []


def test_an_invoice_with_a_project_keeps_it_when_its_quote_becomes_another(api):
    client = api.make("/clients")["id"]
    chosen = api.make("/projects", client_id=client)["id"]
    quote = api.make("/quotes", client_id=client, lines=[LINE], status="accepted")["id"]
    void = api.post("/invoices", {"quote_id": quote, "status": "sent"}).data
    api.patch(path_of(void), {"status": "void"})
    invoice = api.post("/invoices", {"quote_id": quote, "project_id": chosen}).data
    assert api.post("/projects", {"quote_id": quote}).status == 201
    assert api.get(path_of(invoice)).data["project_id"] == chosen
    assert api.get(path_of(void)).data["project_id"] is None


@pytest.mark.parametrize("empty", [None, "", " "])
def test_an_empty_quote_id_does_not_stand_for_the_client(api, empty):
    assert api.post("/invoices", {"quote_id": empty}).errors == {"client_id": ["Is required."]}
