"""E-invoices are valid for every issuer and client, or say which fact is missing; only VAT numbers count as such."""

import pytest
from msgspec.structs import replace

from retainer.documents.einvoice import build_einvoice, missing_facts
from retainer.documents.facts import CreditedDocument
from retainer.values.vat_numbers import VatNumber, read_vat_number
from tests.documents.made import CUSTOMER, ISSUER, document, line, priced
from tests.documents.parties import BUYER, CATEGORY, VALID, WORDS, cases, mistyped, numbers_of
from tests.documents.validators import broken_rules, texts
from tests.length import IS_FULL, TIMES, TURN, by_turns

UNTAXED = priced([line("Work", "1", "10.00", "0")], "EUR")
SELLER = "SellerTradeParty"
REGISTRATIONS = f"{SELLER}/ram:SpecifiedTaxRegistration/ram:ID"


def test_einvoice_is_valid_or_names_what_is_missing() -> None:
    one_in = max(1, 5 // TIMES) if IS_FULL else 164
    for case in by_turns(list(cases())[TURN // 2 % one_in :: one_in]):  # within ten days, each
        for kind, made in case.documents():
            if reasons := missing_facts(made):
                starts = {" ".join(reason.message.split()[:2]) for reason in reasons}
                assert starts <= {"The agency", "The agency's", "The client"}
                continue
            xml = build_einvoice(made)
            assert broken_rules(xml) == [], (case, kind)
            expected = [case.vat_number] if case.vat_number and texts(xml, CATEGORY) != ["O"] else []
            assert texts(xml, BUYER) == expected, (case, kind)


@pytest.mark.parametrize("kind", ["invoice", "credit_note"])
@pytest.mark.parametrize("facts", [UNTAXED, {}], ids=["untaxed", "taxed"])
@pytest.mark.parametrize(
    ("number", "registration", "seller"),
    [
        ("12/345/67890", None, (["12/345/67890"], [], ["12/345/67890"])),
        ("12/345/67890", "HRB 1", ([], ["HRB 1"], ["12/345/67890"])),
        ("DE123456788", None, ([], [], ["DE123456788"])),
    ],
)
def test_clients_know_the_seller_by_one_of_three_numbers(kind, facts, number, registration, seller) -> None:
    issuer = replace(ISSUER, vat_number=number, registration_number=registration)
    xml = build_einvoice(document(kind=kind, credited=CreditedDocument("RE-1", "2026-01-31"), issuer=issuer, **facts))
    paths = (f"{SELLER}/ram:ID", f"{SELLER}/ram:SpecifiedLegalOrganization/ram:ID", REGISTRATIONS)
    assert tuple(texts(xml, path) for path in paths) == seller  # BT-29, BT-30, BT-31 or BT-32
    assert broken_rules(xml) == []


@pytest.mark.parametrize("text", [*WORDS, "applied for on 1/3/2026", "expected 2026-04-01", "since 2026"])
def test_seller_without_any_number_is_named(text) -> None:
    made = document(issuer=replace(ISSUER, vat_number=text, registration_number=None), **UNTAXED)
    (reason,) = missing_facts(made)
    assert reason.message.startswith("The agency has no VAT number, tax number or registration number")
    numbered = replace(made, issuer=replace(made.issuer, registration_number="HRB 1"))
    assert broken_rules(build_einvoice(numbered)) == []


@pytest.mark.parametrize("state", sorted(VALID))
def test_vat_numbers_of_a_member_state(state: str) -> None:
    valid = VALID[state]
    for text, expected in numbers_of(state, valid):
        found = read_vat_number(text, state)
        assert (found and found.text) == expected, text
    assert read_vat_number(valid) == VatNumber(valid, state, is_consistent=True)
    assert not read_vat_number(mistyped(valid)).is_consistent
    assert read_vat_number(valid[2:]) is None, "only a country can tell its prefix"


@pytest.mark.parametrize(
    ("country", "text", "number"),
    [
        *(("FR", text, []) for text in (*WORDS, "FR none", "GB980780684", "CHE-123.456.788", "US123456789")),
        ("BE", "VAT BE0246770968", ["BE0246770968"]),
        ("FR", "TVA FR 25 064 285 364", ["FR25064285364"]),
        ("GR", "GR278272466", ["EL278272466"]),
        ("NL", "123456789B01", ["NL123456789B01"]),
        ("AT", "DE751571259", ["DE751571259"]),
    ],
)
def test_only_a_vat_number_of_another_state_makes_reverse_charge(country, text, number) -> None:
    xml = build_einvoice(document(customer=replace(CUSTOMER, country=country, vat_number=text), **UNTAXED))
    assert texts(xml, BUYER) == number
    assert texts(xml, CATEGORY) == ["AE" if number and not number[0].startswith("DE") else "E"]
    assert broken_rules(xml) == []


def test_tax_number_of_the_issuer_is_no_vat_number() -> None:
    xml = build_einvoice(document(issuer=replace(ISSUER, vat_number="St.-Nr. 12/345/67890")))
    assert texts(xml, REGISTRATIONS) == ["St.-Nr. 12/345/67890"]
    assert b'schemeID="FC"' in xml
    assert b'schemeID="VA">DE751571259' in xml
