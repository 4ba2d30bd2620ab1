"""Drafts are warned about what is allowed and probably not meant."""

from decimal import Decimal
from importlib.resources import files
from typing import get_args, get_type_hints

import pytest
from msgspec.structs import replace

from retainer.documents.facts import Document
from retainer.documents.warnings import DocumentWarning, warnings_of
from tests.documents.made import CUSTOMER, ISSUER, document, line, priced
from tests.documents.parties import VALID

TODAY = "2026-03-03"
TAXED = priced([line("Work", "1", "10.00", "0"), line("Work", "1", "10.00", "19")], "EUR")
UNTAXED = priced([line("Work", "1", "10.00", "19"), line("Work", "1", "10.00", "0")], "EUR")
EXEMPT = {**priced([line("Work", "1", "10.00", "0")], "EUR"), "tax_exemption_reason": "By law"}
SMALL = replace(ISSUER, is_small_business=True)


def client(country: str | None, vat_number: str | None = None):
    return replace(CUSTOMER, country=country, vat_number=vat_number)


def found(made: Document) -> dict[str, tuple[str | None, str]]:
    """Return field and message of each warning about a draft, of several with one code the first, by its code."""
    warnings = warnings_of(replace(made, is_draft=True, number=None), TODAY)
    assert len({(warning.code, warning.field) for warning in warnings}) == len(warnings)
    return {warning.code: (warning.field, warning.message) for warning in reversed(warnings)}


@pytest.mark.parametrize("kind", ["quote", "invoice"])
@pytest.mark.parametrize(
    ("code", "field", "words", "facts"),
    [
        ("client_without_country", "client_id", "Set the client's `country`", {"customer": client(None)}),
        ("wrong_check_digits", "client_id", "ATU86091391", {"customer": client("AT", "ATU86091391")} | EXEMPT),
        (
            "zero_rate_without_vat_number",
            "lines.0.tax_rate",
            "in Austria is billed without tax, and there is no VAT number",
            {"customer": client("AT")} | EXEMPT,
        ),
        (
            "zero_rate_without_vat_number",
            "lines.0.tax_rate",
            "`none` is no VAT number",
            {"customer": client("AT", "none")} | EXEMPT,
        ),
        ("zero_rate_without_reason", "tax_exemption_reason", "does not say why", UNTAXED),
        (
            "zero_rate_without_reason",
            "tax_exemption_reason",
            "does not say why",
            {"customer": client("GB"), "issuer": replace(ISSUER, country="GB")} | UNTAXED,
        ),
        (
            "tax_for_business_abroad",
            "lines.0.tax_rate",
            "19% tax is charged to Bäckerei Sommer & Söhne KG in Austria, a business that owes the tax itself",
            {"customer": client("AT", VALID["AT"])},
        ),
        (
            "tax_for_business_abroad",
            "lines.0.tax_rate",
            "in Switzerland, a business that is outside the EU",
            {"customer": client("CH", "CHE-123.456.788")},
        ),
        ("tax_of_small_business", "lines.1.tax_rate", "19% tax is charged", {"issuer": SMALL} | TAXED),
        ("distant_issue_date", "issue_date", "31 days ago", {"issue_date": "2026-01-31"}),
        ("distant_issue_date", "issue_date", "31 days from now", {"issue_date": "2026-04-03"}),
        ("unprintable_characters", "client_id", "of ქ ა", {"customer": replace(CUSTOMER, name="ქაქ")}),
        ("unprintable_characters", None, "of ქ.", {"issuer": replace(ISSUER, footer="ქ")}),
        ("unprintable_characters", None, "of ქ.", {"issuer": replace(ISSUER, website="ქ.example")}),
        ("unprintable_characters", "client_id", "of ქ.", {"customer": client("DE", "ქ 12345")}),
        ("unprintable_characters", "notes", "of ქ ა", {"notes": "ქა"}),
        ("unprintable_characters", "notes", "of U+0591 U+E000.", {"notes": "a\u0591 \ue000"}),
    ],
)
def test_one_warning_names_its_field(kind, code, field, words, facts) -> None:
    warned = found(document(kind=kind, **facts))
    follows = {"no_einvoice"} if (kind, code) == ("invoice", "client_without_country") else set()
    assert warned.keys() == {code} | follows
    assert warned[code][0] == field
    assert words in warned[code][1]


@pytest.mark.parametrize("kind", ["quote", "invoice"])
@pytest.mark.parametrize(
    "facts",
    [
        {},
        EXEMPT,
        {"issuer": SMALL} | priced([line("Work", "1", "10.00", "0")], "EUR"),
        {"customer": client("AT", VALID["AT"])} | priced([line("Work", "1", "10.00", "0")], "EUR"),
        {"customer": client("US")} | priced([line("Work", "1", "10.00", "0")], "EUR"),
        {"customer": client("US")},
        {"customer": client("AT")},
        {"issue_date": "2026-04-02"},
        {"issue_date": "2026-02-01"},
        priced([], "EUR"),
        {"notes": "Ελλάδα, Україна, Ł, € and \u202e control"},
        {"issuer": replace(ISSUER, country="US")} | priced([line("Work", "1", "10.00", "0")], "EUR"),
    ],
    ids=range(12),
)
def test_nothing_is_said_about_a_usual_document(kind, facts) -> None:
    assert found(document(kind=kind, **facts)) == {}


HERE = {"issuer": replace(ISSUER, address_line1=None, postal_code=None)}


@pytest.mark.parametrize(
    ("code", "field", "words", "facts"),
    [
        ("issuer_without_tax_number", None, "charges tax", {"issuer": replace(ISSUER, vat_number=None)}),
        (
            "issuer_without_tax_number",
            None,
            "leaves the tax to the client (reverse charge)",
            {"issuer": replace(ISSUER, vat_number="applied for"), "customer": client("AT", VALID["AT"])} | EXEMPT,
        ),
        ("issuer_without_address", None, "The agency's address is missing or incomplete", HERE),
        ("issuer_without_address", None, "under Settings", {"issuer": replace(ISSUER, city=None)}),
        ("client_without_address", "client_id", "Add it to the client", {"customer": replace(CUSTOMER, city=None)}),
        (
            "date_before_service",
            "issue_date",
            "is 2026-03-03, before its work, which begins on 2026-03-04",
            {"service_from": "2026-03-04", "service_to": "2026-03-31"},
        ),
        ("due_date_past", "due_date", "due on 2026-03-02, before today", {"due_date": "2026-03-02"}),
        (
            "early_payment_over",
            "issue_date",
            "ends on 2026-03-02",
            {
                "issue_date": "2026-02-20",
                "issuer": replace(ISSUER, early_payment_discount_percent=Decimal(2), early_payment_discount_days=10),
            },
        ),
    ],
)
def test_what_only_an_invoice_must_have_is_missed_on_it_and_not_on_a_quote(code, field, words, facts) -> None:
    warned = found(document(kind="invoice", **facts))
    assert warned.keys() - {"no_einvoice"} == {code}
    assert warned[code][0] == field
    assert words in warned[code][1]
    assert found(document(kind="quote", **facts)) == {}


@pytest.mark.parametrize(
    "facts",
    [
        {"due_date": TODAY},
        {"issuer": replace(ISSUER, vat_number="12/345/67890")},
        {"issuer": replace(ISSUER, address_line1=None)},
        {"customer": replace(CUSTOMER, address_line1=None)},
        {
            "issue_date": "2026-02-21",
            "issuer": replace(ISSUER, early_payment_discount_percent=Decimal(2), early_payment_discount_days=10),
        },
    ],
)
def test_an_invoice_that_has_what_it_must_have_is_not_warned_about(facts) -> None:
    assert found(document(**facts)) == {}


def test_missing_einvoice_is_explained_once_and_only_for_invoices() -> None:
    issuer = replace(ISSUER, country=None)
    made = document(issuer=issuer, customer=client(None))
    warned = found(made)
    assert warned.keys() == {"no_einvoice", "client_without_country"}
    assert warned["no_einvoice"] == (
        None,
        "There will be no e-invoice. The agency has no country: add it in the console under Settings.",
    )
    assert "Without it, there will be no e-invoice" in warned["client_without_country"][1]
    assert found(replace(made, kind="quote")).keys() == {"client_without_country"}


def test_subject_of_a_quote_is_its_title() -> None:
    assert found(document(kind="quote", subject="ქ"))["unprintable_characters"][0] == "title"
    assert found(document(subject="ქ"))["unprintable_characters"][0] == "subject"


def test_many_characters_are_counted() -> None:
    (_, message) = found(document(notes="".join(map(chr, range(0x10D0, 0x10F0)))))["unprintable_characters"]
    assert message.endswith("and 22 more.")
    assert message.count(" ") < 25


def test_the_reference_explains_each_code() -> None:
    page = files("retainer.reference").joinpath("templates/guide/values.md").read_text()
    code = get_type_hints(DocumentWarning)["code"]
    assert {f"`{each}`" for each in get_args(code)} <= set(page.split())
