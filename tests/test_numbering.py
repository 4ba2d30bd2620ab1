"""Numbers that people read: series go on where another program stopped, and no two records print one number."""

import pytest

from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.audit import AuditFilter
from retainer.shared import numbering
from retainer.values.collation import number_key
from tests.databases import each_database
from tests.factories import ApiClient

LINES = [{"description": "Design", "unit_price": "100"}]
TAKEN = "Is already taken by client 1. Choose another."


def set_next(api: ApiClient, **numbers: int | None) -> None:
    with api.operating() as tx:
        numbering.set_next_numbers(tx, numbers)


def upcoming(api: ApiClient) -> dict[str, int]:
    with api.operating() as tx:
        return numbering.upcoming_numbers(tx)


@each_database
def test_every_series_goes_on_with_the_number_that_is_set(api):
    year = api.today[:4]
    api.make("/tickets")
    set_next(
        api,
        next_client_number=88,
        next_quote_number=17,
        next_invoice_number=124,
        next_credit_note_number=9,
        next_ticket_number=5000,
    )
    invoices = [api.make("/invoices", status="sent", lines=LINES) for _ in range(2)]
    notes = [api.post(f"/invoices/{invoice['id']}/credit-notes", {}).data for invoice in invoices]
    assert [each["number"] for each in invoices] == [f"INV-{year}-0124", f"INV-{year}-0125"]
    assert [each["number"] for each in notes] == [f"CN-{year}-0009", f"CN-{year}-0010"]
    assert api.make("/quotes")["number"] == f"Q-{year}-0017"
    assert [api.make("/tickets")["number"] for _ in range(2)] == [5000, 5001]
    numbers = [client["number"] for client in api.get("/clients", {"sort": "number"}).data]
    assert numbers[0] == "C-0088"
    assert upcoming(api)["next_ticket_number"] == 5002


@each_database
def test_a_series_only_goes_up(api):
    api.make("/invoices", status="sent", lines=LINES)
    set_next(api, next_invoice_number=124, next_ticket_number=None)
    set_next(api, next_invoice_number=124)
    before = upcoming(api)
    with pytest.raises(Refusal) as refusal:
        set_next(api, next_quote_number=50, next_invoice_number=123, next_ticket_number=1000)
    assert refusal.value.members["errors"] == {
        "next_invoice_number": ["Must be at least 124, the next number now: numbers only go up."],
        "next_ticket_number": ["Must be at least 1001, the next number now: numbers only go up."],
    }
    assert upcoming(api) == before
    assert api.make("/invoices", status="sent", lines=LINES)["number"].endswith("-0124")


def test_a_next_number_is_in_the_audit_log_once(api):
    set_next(api, next_invoice_number=124)
    set_next(api, next_invoice_number=124)
    with api.operating() as tx:
        (entry,) = audit.list_entries(tx, AuditFilter(action="account changed")).entries
    assert (entry.before, entry.after) == ({"next_invoice_number": 1}, {"next_invoice_number": 124})


@each_database
def test_numbers_that_differ_in_case_or_width_are_one_number(api):
    client = api.make("/clients", number="K3")["id"]
    for same in ("k3", "Ｋ３", " K3 "):  # noqa: RUF001
        assert api.create("/clients", name="Other", number=same).errors == {
            "number": [TAKEN.replace("client 1", f"client {client}")]
        }
        assert [each["id"] for each in api.get("/clients", {"number": same}).data] == [client]
    api.make("/clients", number="c-0001")
    assert api.make("/clients")["number"] == "C-0002"


@each_database
def test_numbers_that_print_alike_are_one_number(api):
    api.make("/clients", number="K 3-1")
    for same in ("K  3-1", "k\u00a03\u20101", "K \u2009 3\u20111"):
        assert set(api.create("/clients", name="Other", number=same).errors) == {"number"}, same
    assert api.create("/clients", name="Other", number="K3-1").status == 201


@each_database
def test_a_project_code_is_unique_found_and_sorted_as_a_number_is(api):
    project = api.make("/projects", code="WEB-9")["id"]
    for same in ("web-9", "ＷＥＢ-9", "Web\u20109"):  # noqa: RUF001
        errors = api.create("/projects", code=same).errors
        assert errors == {"code": [f"Is already taken by project {project}. Choose another."]}, same
        assert [each["id"] for each in api.get("/projects", {"code": same}).data] == [project]
    assert api.patch(f"/projects/{project}", {"code": "Web-9"}).data["code"] == "Web-9"
    other = api.make("/projects", code="web-10")["id"]
    assert [each["id"] for each in api.get("/projects", {"sort": "code"}).data] == [project, other]


@each_database
def test_numbers_sort_as_numbers(api):
    numbers = ["A1", "K2", "k3", "K10", "K010-2", "K010-10", "K9999", "K10000", "Z"]
    for number in reversed(numbers):
        api.make("/clients", number=number)
    assert [each["number"] for each in api.get("/clients", {"sort": "number"}).data] == numbers
    assert [each["number"] for each in api.get("/clients", {"sort": "-number"}).data] == numbers[::-1]


def test_a_number_of_many_digits_sorts_after_a_shorter_one():
    assert number_key("9" * 9) < number_key("1" + "0" * 9) < number_key("9" * 49)
    assert number_key("K007") == number_key("k7")


@each_database
def test_invoices_sort_by_number_beyond_the_digits_of_the_pattern(api):
    set_next(api, next_invoice_number=9999)
    for _ in range(2):
        api.make("/invoices", status="sent", lines=LINES)
    year = api.today[:4]
    found = [each["number"] for each in api.get("/invoices", {"sort": "number"}).data]
    assert found == [f"INV-{year}-9999", f"INV-{year}-10000"]


@pytest.mark.parametrize("pattern", ["INV-{YYYY}-{0000}", "inv-{YYYY}-{0000}", "INV-{YYYY}-{00}"])
def test_two_series_do_not_have_the_same_pattern(api, pattern):
    with pytest.raises(Refusal) as refusal:
        api.set_account({"credit_note_number_pattern": pattern})
    message = "Gives the numbers of invoices, whose pattern is INV-{YYYY}-{0000}. Choose another."
    assert refusal.value.members["errors"] == {"credit_note_number_pattern": [message]}
    api.set_account({"credit_note_number_pattern": pattern, "invoice_number_pattern": "R{YYYY}-{0000}"})


@pytest.mark.parametrize(
    "character", ["\u200b", "\u00ad", "\u034f", "\u115f", "\u2800", "\u3164", "\ufe0f", "\U000e0101"]
)
def test_a_number_has_no_character_that_documents_do_not_print(api, character):
    errors = api.create("/clients", name="Optik", number=f"K{character}3").errors
    assert errors.keys() == {"number"}
    assert "character 2 is" in errors["number"][0]
    assert errors["number"][0].endswith("Remove it.")
