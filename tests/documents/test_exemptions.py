"""Documents print why they charge no tax, and the e-invoice says the same."""

import pytest
from msgspec.structs import replace

from retainer.documents.einvoice import build_einvoice, missing_facts
from retainer.documents.layout import build_layout
from retainer.documents.tax_categories import exemption_reason, with_reasons
from tests.documents.made import CUSTOMER, ISSUER, document, line, priced
from tests.documents.parties import CATEGORY
from tests.documents.validators import broken_rules, texts

UNTAXED = priced([line("Work", "1", "10.00", "0")], "EUR")
CODE, REASON = (f"ApplicableTradeTax/ram:ExemptionReason{part}" for part in ("Code", ""))
AUSTRIAN = replace(CUSTOMER, country="AT", vat_number="ATU86091390")
AMERICAN = replace(CUSTOMER, country="US", vat_number=None)
OWN = "Steuerfrei nach § 4 Nr. 21 UStG"


def said(**facts):
    """Return the category and the reason of an untaxed document, after checking that PDF and e-invoice agree."""
    made = document(**UNTAXED, **facts)
    xml = build_einvoice(made)
    assert broken_rules(xml) == []
    (reason,), (category,) = texts(xml, REASON), texts(xml, CATEGORY)
    remarks = build_layout(made)["remarks"]
    assert isinstance(remarks, list)
    assert reason in remarks
    return category, reason, texts(xml, CODE)


@pytest.mark.parametrize(
    ("chosen", "category", "code", "words"),
    [
        ("not_subject", "O", ["VATEX-EU-O"], "Im Inland nicht steuerbar"),
        ("exempt", "E", [], "Umsatzsteuerfrei"),
        ("export", "G", ["VATEX-EU-G"], "Steuerfreie Ausfuhr"),
    ],
)
def test_service_to_a_client_outside_the_eu_is_what_the_account_chose(chosen, category, code, words) -> None:
    found = said(issuer=replace(ISSUER, tax_outside_eu=chosen), customer=AMERICAN)
    assert (found[0], found[2]) == (category, code)
    assert found[1].startswith(words)


def test_export_needs_a_vat_number() -> None:
    issuer = replace(ISSUER, tax_outside_eu="export", vat_number="12/345/67890")
    assert said(issuer=issuer, customer=AMERICAN)[0] == "E"


@pytest.mark.parametrize("chosen", ["export", "not_subject"])
def test_issuer_outside_the_eu_has_no_rule_of_the_eu(chosen) -> None:
    issuer = replace(ISSUER, country="CH", vat_number="CHE-123.456.788 MWST", tax_outside_eu=chosen)
    for customer in (AUSTRIAN, AMERICAN):
        assert said(issuer=issuer, customer=customer)[0] == "E"


def test_lines_with_and_without_tax_for_a_client_outside_the_eu_have_no_einvoice() -> None:
    facts = priced([line("Workshop", "1", "10.00", "19"), line("Work", "1", "10.00", "0")], "EUR")
    (missing,) = missing_facts(document(customer=AMERICAN, **facts))
    assert missing.field == "lines"
    assert missing.message.endswith("bill them with two invoices.")


@pytest.mark.parametrize(
    ("country", "language", "words"),
    [
        ("DE", "de", "Steuerbefreiung für Kleinunternehmer (§ 19 UStG)"),
        ("DE", "en", "small businesses applies to this service (§ 19 of the German VAT Act, UStG)"),
        ("AT", "de", "Kleinunternehmer gemäß § 6 Abs. 1 Z 27 UStG"),
        ("FR", "en", "TVA non applicable, art. 293 B du CGI"),
        ("FR", "de", "TVA non applicable, art. 293 B du CGI"),
        ("IT", "de", "art. 1, commi da 54 a 89, della legge n. 190/2014"),
        ("NL", "en", "artikel 25 van de Wet op de omzetbelasting 1968"),
        ("BE", "en", "Régime particulier de franchise des petites entreprises / Bijzondere vrijstellingsregeling"),
        ("PL", "de", "art. 113 ust. 1 i 9 ustawy o podatku od towarów i usług"),
        ("ES", "en", "article 284 of Directive 2006/112/EC"),
        ("CH", "de", "Es wird keine Umsatzsteuer berechnet."),
    ],
)
def test_small_business_says_the_sentence_of_its_country(country, language, words) -> None:
    issuer = replace(ISSUER, country=country, vat_number="12/345/67890", is_small_business=True)
    customer = replace(CUSTOMER, country=country, vat_number=None)
    category, reason, _ = said(issuer=issuer, customer=customer, language=language)
    assert category == "E"
    assert words in reason
    own = said(issuer=issuer, customer=customer, language=language, tax_exemption_reason="By law.")
    assert own[1] == "By law.", "an own reason takes the place of the general sentence"


def test_small_business_without_a_tax_number_has_no_einvoice() -> None:
    issuer = replace(ISSUER, vat_number=None, is_small_business=True)
    (missing,) = missing_facts(document(issuer=issuer, **UNTAXED))
    assert missing.message.startswith("The agency's VAT number is missing")


def test_own_reason_says_why_lines_are_exempt() -> None:
    assert said(tax_exemption_reason=OWN)[:2] == ("E", OWN)
    assert said()[:2] == ("E", "Umsatzsteuerfrei")


def test_own_reason_is_added_to_the_words_that_the_law_prescribes() -> None:
    sentence = said(customer=AUSTRIAN)[1]
    assert said(customer=AUSTRIAN, tax_exemption_reason="Auftrag 7")[:2] == ("AE", f"{sentence} Auftrag 7")


def test_own_reason_takes_the_place_of_the_general_sentence_abroad() -> None:
    assert said(customer=AMERICAN, tax_exemption_reason="§ 3a UStG")[:2] == ("O", "§ 3a UStG")


@pytest.mark.parametrize("customer", [AUSTRIAN, AMERICAN])
def test_reason_of_the_account_is_only_about_exempt_lines(customer) -> None:
    issuer = replace(ISSUER, tax_exemption_reason=OWN)
    assert said(customer=customer, issuer=issuer, tax_exemption_reason=OWN)[1] == said(customer=customer)[1]


def test_reasons_stay_as_they_were_when_the_facts_were_made() -> None:
    made = with_reasons(document(**UNTAXED))
    later = replace(made, issuer=replace(ISSUER, is_small_business=True))
    assert exemption_reason(later, "E") == "Umsatzsteuerfrei"
    assert exemption_reason(replace(later, exemption_reasons=None), "E").startswith("Für die Leistung gilt")
