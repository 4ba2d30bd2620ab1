"""E-invoices follow the schema and the rules of EN 16931, and have the amounts of the API."""

import random
from decimal import Decimal
from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from retainer.documents.einvoice import NAMESPACES, build_einvoice, clean, missing_facts
from tests.documents.made import CUSTOMER, ISSUER, document, hostile_texts, line, priced, random_document
from tests.documents.validators import broken_rules, texts, values
from tests.length import by_turns, length, sampled


def test_thousand_documents_break_no_rule() -> None:
    mixed, seeds = 0, by_turns(range(length(1000)))
    for seed in seeds:
        made = random_document(random.Random(seed))
        if missing := missing_facts(made):  # lines with and without tax for a client outside the EU
            assert [fact.field for fact in missing] == ["lines"]
            mixed += 1
            continue
        xml = build_einvoice(made)
        assert broken_rules(xml) == [], f"seed {seed}"
        assert values(xml, "GrandTotalAmount") == values(xml, "DuePayableAmount") == [made.total]
        assert values(xml, "TaxTotalAmount") == [made.tax_total]
        assert values(xml, "LineTotalAmount") == [*(ln.amount for ln in made.lines), made.subtotal]
        assert values(xml, "CalculatedAmount") == [tax.tax_amount for tax in made.tax_breakdown]
    assert 0 < mixed < len(seeds) // 10


def test_rules_notice_a_wrong_total() -> None:
    xml = build_einvoice(document()).replace(b"<ram:GrandTotalAmount>", b"<ram:GrandTotalAmount>1")
    assert {broken.split("]")[0].strip("[").split(":")[0] for broken in broken_rules(xml)} >= {"BR-CO-15"}


def test_rules_notice_a_code_that_is_in_no_list() -> None:
    xml = build_einvoice(document()).replace(b"<ram:CountryID>DE<", b"<ram:CountryID>XX<")
    assert "Value of 'ram:CountryID' is not allowed." in broken_rules(xml)


def test_line_amount_that_differs_from_quantity_times_price_is_exact() -> None:
    rounded = replace(line("Work", "0.3333", "100.00", "19", is_time=True), amount=Decimal("33.34"))
    xml = build_einvoice(document(**priced([rounded], "EUR")))
    (price,), (base,), (quantity,) = (values(xml, name) for name in ("ChargeAmount", "BasisQuantity", "BilledQuantity"))
    assert quantity * price / base == Decimal("33.34")
    assert broken_rules(xml) == []


def test_discount_on_a_rebate_is_a_charge() -> None:
    made = document(**priced([line("Work", "2", "100.00", "19"), line("Rebate", "-1", "50.00", "19", "10")], "EUR"))
    xml = build_einvoice(made)
    assert texts(xml, "ChargeIndicator/udt:Indicator") == ["true"]
    assert values(xml, "ActualAmount") == [Decimal("5.00")]
    assert broken_rules(xml) == []


def test_negative_amounts_have_a_negative_quantity_and_no_negative_price() -> None:
    refund = line("Refund", "1", "-20.00", "19")  # of an expense, whose price is its amount
    rest = replace(line("Rebate", "-1", "0.1667", "19"), amount=Decimal("-0.16"))
    xml = build_einvoice(document(**priced([line("Work", "1", "100.00", "19"), refund, rest], "EUR")))
    assert values(xml, "BilledQuantity") == [1, -1, -1]
    assert values(xml, "ChargeAmount") == [Decimal("100.00"), Decimal("20.00"), Decimal("0.16")]
    assert broken_rules(xml) == []


@pytest.mark.parametrize("text", sampled(hostile_texts(), 10), ids=lambda text: ascii(text)[:30])
def test_hostile_text_in_every_field(text: str) -> None:
    fields = ("name", "address_line1", "address_line2", "city", "region", "postal_code")
    everywhere = dict.fromkeys(fields, text)
    made = document(
        issuer=replace(ISSUER, **everywhere, phone=text, email=text, registration_number=text, bank_name=text),
        customer=replace(CUSTOMER, **everywhere, contact_name=text, email=text),
        **dict.fromkeys(("subject", "notes", "terms", "purchase_order", "number"), text),
        **priced([line(text, "1", "10.00", "19", unit=text)], "EUR"),
    )
    xml = build_einvoice(made)
    assert broken_rules(xml) == []
    (name,) = ET.fromstring(xml).iterfind(".//ram:SellerTradeParty/ram:Name", NAMESPACES)
    assert name.text == clean(text) or (name.text == "-" and not clean(text))
    assert all(character in "\t\n" or ord(character) >= 32 for character in xml.decode())


def test_day_of_delivery_is_the_last_day_of_the_work() -> None:
    xml = build_einvoice(document(service_from="2026-02-02", service_to="2026-02-27"))
    assert texts(xml, "ActualDeliverySupplyChainEvent//udt:DateTimeString") == ["20260227"]


def test_tax_number_stands_for_a_missing_vat_identifier() -> None:
    xml = build_einvoice(document(issuer=replace(ISSUER, vat_number="12/345/67890")))
    (number,) = ET.fromstring(xml).iterfind(".//ram:SellerTradeParty/ram:SpecifiedTaxRegistration/ram:ID", NAMESPACES)
    assert (number.text, number.get("schemeID")) == ("12/345/67890", "FC")
    assert broken_rules(xml) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"issuer": replace(ISSUER, country=None)}, "The agency has no country"),
        ({"customer": replace(CUSTOMER, country=None)}, "The client has no country"),
        ({"issuer": replace(ISSUER, vat_number=None)}, "The agency's VAT number is missing"),
        ({"issuer": replace(ISSUER, vat_number=" ")}, "The agency's VAT number is missing"),
        ({"is_draft": True}, "A draft has no e-invoice"),
        ({"kind": "quote"}, "A quote has no e-invoice"),
        (priced([line("Work", "1", "10.000", "19", currency="KWD")], "KWD"), "EN 16931 allows two decimal places"),
    ],
)
def test_missing_fact_is_named(changes: dict[str, object], sentence: str) -> None:
    made = document(**changes)
    (reason,) = missing_facts(made)
    assert reason.message.startswith(sentence)


CATEGORIES: list[tuple[str, str | None, str]] = [
    ("DE", "DE987654321", "E"),
    ("AT", "ATU12345678", "AE"),
    ("AT", None, "E"),
    ("US", None, "O"),
]


@pytest.mark.parametrize(("country", "vat_number", "category"), CATEGORIES)
def test_category_without_tax(country: str, vat_number: str | None, category: str) -> None:
    customer = replace(CUSTOMER, country=country, vat_number=vat_number)
    xml = build_einvoice(document(customer=customer, **priced([line("Work", "1", "10.00", "0")], "EUR")))
    codes = {code.text for code in ET.fromstring(xml).iterfind(".//ram:CategoryCode", NAMESPACES)}
    assert codes == {category}
    assert broken_rules(xml) == []
