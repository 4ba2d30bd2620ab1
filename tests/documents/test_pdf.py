"""PDFs say what the facts say, the same to the byte, whatever the texts contain."""

import io
import random
import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import cast

import facturx
import pypdf
import pytest
import segno
from msgspec.structs import replace

from retainer.documents.einvoice import build_einvoice
from retainer.documents.facts import CreditedDocument, Document, Language, TaxShare
from retainer.documents.layout import build_layout, is_readable, payment_code
from retainer.documents.logo_files import draw
from retainer.documents.pdf import render_pdf
from retainer.documents.printable import (
    BREAK,
    END,
    LONGEST_WORD,
    REPLACEMENT,
    RIGHT_TO_LEFT,
    printable,
    printable_line,
    unprintable_characters,
)
from retainer.values.texts import FORMATTING
from tests.documents.made import CUSTOMER, ISSUER, document, hostile_texts, line, priced, random_document
from tests.documents.test_logo_files import SHAPE, png, svg
from tests.length import length, sampled


def pages_of(made: Document) -> list[str]:
    """Return the text of each page, with spaces as a reader sees them."""
    reader = pypdf.PdfReader(io.BytesIO(render_pdf(made)))
    return [" ".join(page.extract_text().replace("\u200b", "").split()) for page in reader.pages]


def text_of(**changes) -> str:
    return " ".join(pages_of(document(**changes)))


def test_same_facts_give_same_bytes() -> None:
    made = document()
    assert render_pdf(made, build_einvoice(made)) == render_pdf(made, build_einvoice(made))


def test_pdf_carries_the_einvoice() -> None:
    made = document()
    xml = build_einvoice(made)
    pdf = render_pdf(made, xml)
    assert facturx.get_xml_from_pdf(pdf, check_xsd=True) == ("factur-x.xml", xml)
    metadata = cast("pypdf.generic.StreamObject", pypdf.PdfReader(io.BytesIO(pdf)).root_object["/Metadata"]).get_data()
    for declared in (b"<fx:ConformanceLevel>EN 16931<", b"<pdfaid:part>3<", b"<pdfaSchema:prefix>fx<"):
        assert metadata.count(declared) == 1
    assert pdf.startswith(render_pdf(made, None)[:8])


def test_german_invoice() -> None:
    (page,) = pages_of(document())
    for text in (
        "Rechnung RE-2026-0042",
        "3. März 2026",
        "4.092,75",
        "zzgl. 19 % USt. auf 4.092,75 €",
        "777,62 €",
        "4.870,37 €",
        "10 %",
        "DE89 3704 0044 0532 0130 00",
        "Seite 1 von 1",
        "USt-IdNr. DE123456788",
    ):
        assert text in page.replace("\u00a0", " ")


def test_english_credit_note() -> None:
    facts = priced([line("Work", "1.5", "1000.00", "20", currency="USD")], "USD")
    page = text_of(kind="credit_note", language="en", credited=CreditedDocument("INV-7", "2026-02-01"), **facts)
    for text in (
        "Credit note RE-2026-0042",
        "INV-7",
        "1 February 2026",
        "VAT 20% on $1,500.00",
        "$300.00",
        "$1,800.00",
    ):
        assert text in page.replace("\u00a0", " ")


def test_quote_has_a_place_to_sign() -> None:
    page = text_of(kind="quote", language="en", due_date=None, valid_until="2026-04-02")
    assert "sign here and send it back by 2 April 2026" in page.replace("\u00a0", " ")
    assert "IBAN of the account" not in page


def test_heads_and_page_numbers_on_each_page() -> None:
    pages = pages_of(document(**priced([line(f"Work {n}", "1", "10.00", "19") for n in range(1, 121)], "EUR")))
    assert len(pages) > 3
    for number, page in enumerate(pages[:-1], start=1):
        assert "Beschreibung" in page
        assert f"Seite {number} von {len(pages)}" in page
    assert "Work 120" in " ".join(pages)


@pytest.mark.parametrize("count", range(14, 26))
def test_totals_are_never_alone_on_a_page(count: int) -> None:
    pages = pages_of(document(**priced([line(f"Work {n}", "1", "10.00", "19") for n in range(1, count + 1)], "EUR")))
    (page,) = [page for page in pages if "Nettobetrag" in page]
    assert f"Work {count}" in page
    assert "Rechnungsbetrag" in page


def test_last_line_that_is_longer_than_a_page_is_printed_whole() -> None:
    text = "\n".join(f"Step {n}." for n in range(150))
    shown = text_of(**priced([line(text, "1", "10.00", "19")], "EUR"))
    for step in ("Step 0.", "Step 75.", "Step 149.", "11,90"):
        assert step in shown


def test_units_of_time_are_in_the_language_of_the_document() -> None:
    facts = priced([line("A", "2", "1.00", "19", unit="hours"), line("B", "1", "1.00", "19", unit="months")], "EUR")
    page = text_of(**facts)
    assert "2 Std." in page
    assert "1 Monat " in page
    assert "1 month " in text_of(language="en", **facts)


def test_words_of_the_tax_follow_the_country() -> None:
    issuer = replace(ISSUER, country="US", vat_number="94-1234567")
    page = text_of(issuer=issuer, language="en")
    assert "Tax 19% on" in page
    assert "Tax no. 94-1234567" in page
    assert "VAT" not in page
    assert "Steuernummer 12/345/67890" in text_of(issuer=replace(ISSUER, vat_number="12/345/67890"))


def test_without_tax_the_total_is_the_net_amount() -> None:
    facts = priced([line("A", "1", "100.00", "0")], "EUR")
    page = text_of(issuer=replace(ISSUER, vat_number=None), **facts)
    assert "Es wird keine Umsatzsteuer berechnet." in page
    assert "USt. auf" not in page


def test_several_rates_have_a_column_and_a_line_each() -> None:
    facts = priced([line("A", "1", "100.00", "19"), line("B", "1", "100.00", "7")], "EUR")
    page = text_of(**facts).replace("\u00a0", " ")
    assert "zzgl. 7 % USt. auf 100,00 €" in page
    assert "zzgl. 19 % USt. auf 100,00 €" in page


def test_reverse_charge_is_said() -> None:
    facts = priced([line("A", "1", "100.00", "0")], "EUR")
    page = text_of(customer=replace(CUSTOMER, country="AT", vat_number="ATU12345678"), **facts)
    assert "Steuerschuldnerschaft des Leistungsempfängers" in page
    assert "ÖSTERREICH" in page


def test_draft_is_marked() -> None:
    assert "Entwurf" in text_of(is_draft=True, number=None)


def test_invoice_of_nothing_asks_for_no_payment() -> None:
    assert build_layout(document(**priced([line("A", "1", "0.00", "19")], "EUR")))["payment"] is None


def test_payment_code_is_the_one_of_the_standard() -> None:
    payload = (
        "BCD\n002\n1\nSCT\nCOBADEFFXXX\nNordlicht Digital GmbH\nDE89370400440532013000\nEUR4870.37\n\n\nRE-2026-0042"
    )
    expected = io.BytesIO()
    code = segno.make_qr(payload.encode(), error="m", boost_error=False)
    code.save(expected, kind="svg", border=0, xmldecl=False, svgclass=None, lineclass=None, omitsize=True)
    assert payment_code(document()) == expected.getvalue().decode()


@pytest.mark.parametrize(
    "changes",
    [
        {"is_draft": True},
        {"kind": "credit_note"},
        {"issuer": replace(ISSUER, iban=None)},
        {"issuer": replace(ISSUER, iban="X" * 35)},
        {"issuer": replace(ISSUER, bic="X")},
        priced([line("A", "1", "10.00", "19", currency="USD")], "USD"),
        priced([line("A", "1", "0.00", "19")], "EUR"),
        priced([line("A", "1", "1000000000.00", "0")], "EUR"),
    ],
)
def test_no_payment_code_that_could_be_wrong(changes: dict[str, object]) -> None:
    assert payment_code(document(**changes)) is None


def test_line_break_in_a_name_adds_no_field_to_the_code() -> None:
    assert payment_code(document(issuer=replace(ISSUER, name="A\nDE00"))) == payment_code(
        document(issuer=replace(ISSUER, name="A DE00"))
    )


@pytest.mark.parametrize("content", [png(), png(4000, 1), svg(SHAPE)])
def test_a_logo_takes_the_place_of_the_name(content: bytes) -> None:
    with_logo = render_pdf(document(logo=draw(content)))
    assert len(pypdf.PdfReader(io.BytesIO(with_logo)).pages[0].images) == 1
    assert render_pdf(document()) != with_logo


@pytest.mark.parametrize("text", sampled(hostile_texts(), 10), ids=lambda text: ascii(text)[:30])
def test_hostile_text_in_every_field(text: str) -> None:
    fields = ("name", "address_line1", "address_line2", "city", "region", "postal_code", "email")
    everywhere = dict.fromkeys(fields, text)
    issuer = replace(
        ISSUER, **everywhere, **dict.fromkeys(("phone", "website", "bank_name", "registration_number", "footer"), text)
    )
    made = document(
        issuer=issuer,
        customer=replace(CUSTOMER, **everywhere, contact_name=text, vat_number=text),
        **dict.fromkeys(("subject", "notes", "terms", "purchase_order", "number"), text),
        **priced([line(text, "1", "10.00", "19", unit=text)], "EUR"),
    )
    reader = pypdf.PdfReader(io.BytesIO(render_pdf(made, build_einvoice(made))))
    assert len(reader.pages) < 60
    if len(text) < 100:  # reading much text takes long
        parts = list[str]()
        for page in reader.pages:
            page.extract_text(visitor_text=lambda part, *_: parts.append(part))
        assert "11,90" in "".join(parts)
        expected = printable_line(text)
        if expected.startswith(RIGHT_TO_LEFT):
            expected, shown = single(expected), single("".join(reversed(parts)))  # the parts stand from left to right
        else:
            shown = "".join(parts)
        assert compact(expected) in compact(shown)


def compact(text: str) -> str:
    """Return a text without spaces, places to break and isolates."""
    return re.sub(rf"[\s{BREAK}{RIGHT_TO_LEFT}{END}]", "", text)


def single(text: str) -> str:
    """Return a text without repetitions: where the dot of an Arabic letter is a glyph, it is extracted twice."""
    return re.sub(r"(.)\1+", r"\1", text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "ab"),
        ("a\x07b", "ab"),
        ("a\tb", "a b"),
        ("ქარ", REPLACEMENT * 3),
        ("株式会社みどり", "株式会社みどり"),
        ("Ünï Ωμέγα Ёж 北京 한국어 สวัสดี नमस्ते", "Ünï Ωμέγα Ёж 北京 한국어 สวัสดี नमस्ते"),
        ("חברה 12 (ABC)\nבת", "\u2067חברה 12 (ABC)\u2069\n\u2067בת\u2069"),
        ("ABC חברה", "ABC חברה"),
        ("12 شركة", "\u206712 شركة\u2069"),
        ("\U0001d400\U0001d7cf", "A1"),
        ("A\u030a", "Å"),
        ("a\r\nb\n\n\n\nc", "a\nb\n\nc"),
        ("#panic()", "#panic()"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_characters_without_a_glyph_are_named_once() -> None:
    assert unprintable_characters("Zoë 株式会社 שלום ㎏ a\u202eb\tc\n") == ""
    assert unprintable_characters("ქარი ქ 🙂 x") == "ქარი🙂"
    assert unprintable_characters(REPLACEMENT) == ""


def test_what_has_no_glyph_becomes_a_square_and_is_named_whatever_python_knows_of_it() -> None:
    newer = "\u20c1\U0001fae9\U0001fae8\U00031350\U0002ebf0\U0001b132"
    assert printable(f"Riyal {newer} 100") == f"Riyal {REPLACEMENT * len(newer)} 100"
    assert unprintable_characters(newer) == newer
    unused = "\ue000\uf8ff\u0378\ufdd0\ufffe\u0591"
    assert unprintable_characters(unused) == unused


def test_only_formatting_and_spaces_vanish_from_documents() -> None:
    kept: list[str] = []
    for character in map(chr, range(0x110000)):
        is_formatting = unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"}
        if not is_formatting and not FORMATTING.match(character):
            kept.append(character)
        elif character not in "\t\n\v\f\r\x85":
            assert printable(f"a{character}b") in {"ab", "a b", "a\nb", "a\u00a0b"}, f"U+{ord(character):04X}"
    kept.remove("|")  # which combines with no other character
    for first in range(0, len(kept), 1000):
        text = "|".join(["", *kept[first : first + 1000], ""])
        assert "||" not in printable(text), f"from U+{ord(kept[first]):04X} on"
    assert printable("|") == "|"


@pytest.mark.parametrize(
    ("country", "font"), [("JP", "CJKjp"), ("CN", "CJKsc"), ("TW", "CJKtc"), ("KR", "CJKkr"), (None, "CJKjp")]
)
def test_chinese_characters_have_the_forms_of_the_country(country: str | None, font: str) -> None:
    pdf = render_pdf(document(customer=replace(CUSTOMER, name="株式会社", country=country)))
    resources = pypdf.PdfReader(io.BytesIO(pdf)).pages[0]["/Resources"]
    fonts = cast("pypdf.generic.DictionaryObject", cast("pypdf.generic.DictionaryObject", resources)["/Font"])
    assert font in str(
        [cast("pypdf.generic.DictionaryObject", each)["/BaseFont"] for each in map(fonts.__getitem__, fonts)]
    )


def test_columns_of_the_footer_never_touch() -> None:
    email = f"{'hello' * 11}@nordlicht.example"
    issuer = replace(ISSUER, email=email, website=f"https://{'www' * 20}.nordlicht.example")
    reader = pypdf.PdfReader(io.BytesIO(render_pdf(document(issuer=issuer))))
    assert f"{ISSUER.name} {ISSUER.phone}" in reader.pages[0].extract_text(extraction_mode="layout")


@pytest.mark.parametrize("text", ["株式会社みどり", "北京绿色科技有限公司", "주식회사 초록", "กขค", "Ωμέγα", "Зелёный"])
def test_client_is_named_in_its_script(text: str) -> None:
    assert text in text_of(customer=replace(CUSTOMER, name=text))


def test_long_words_can_break_but_not_before_a_mark() -> None:
    marked = printable("ก" * 11 + "กิ" * 30)
    assert "\u200b" in marked
    assert "\u200bิ" not in marked


def test_long_words_can_break() -> None:
    assert "\u200b" in printable("x" * (LONGEST_WORD + 1))
    assert "\u200b" not in printable("x" * LONGEST_WORD)


BREAKABLE = re.compile(r"\d (€|%|[A-Z]{3}\b)|(CHF|JPY|USD) \d|\d\.? [A-Z][a-zä]+ \d{4}")
"""An amount, a percentage or a day with a space at which a line could end."""


@pytest.mark.parametrize("seed", range(length(200)))
def test_amounts_and_days_never_break(seed: int) -> None:
    made = random_document(random.Random(seed))
    discount = {"early_payment_discount_percent": Decimal(2), "early_payment_discount_days": 10}
    layout = build_layout(replace(made, issuer=replace(made.issuer, **discount)))
    for text in strings_of(layout):
        assert not BREAKABLE.search(text), text


def strings_of(value: object) -> Iterator[str]:
    """Yield all texts in a layout that our words are in; numbers of accounts and addresses can break."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            if name not in {"account", "footer", "recipient", "sender", "rows"}:
                yield from strings_of(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from strings_of(each)


def test_amounts_are_those_of_the_facts() -> None:
    tax = TaxShare(Decimal(19), Decimal("1000000.00"), Decimal("190000.00"))
    page = text_of(tax_breakdown=(tax,), subtotal=Decimal("1000000.00"), total=Decimal("1190000.00"))
    assert "1.190.000,00" in page


@pytest.mark.parametrize(
    ("color", "readable"), [("#1f3a5f", True), ("#4b53d6", True), ("#ffd23f", False), ("#8a8a8a", False)]
)
def test_pale_colors_are_for_rules_not_for_text(color: str, readable: bool) -> None:
    assert is_readable(color) is readable


@pytest.mark.parametrize(
    ("country", "number", "shown"),
    [
        ("AT", "atu 8609 1390", "Your VAT no. ATU86091390"),
        ("AT", "12-345/6789", "Your tax no. 12-345/6789"),
        ("CH", "CHE-123.456.788 MWST", "Your VAT no. CHE-123.456.788 MWST"),
        ("US", "12-3456789", "Your tax no. 12-3456789"),
        ("JP", "T1234567890123", "Your tax no. T1234567890123"),
        ("AT", "none", None),
        ("AT", "pending since 01.03.2026", None),
    ],
)
def test_number_of_a_client_is_called_what_it_is(country: str, number: str, shown: str | None) -> None:
    page = text_of(customer=replace(CUSTOMER, country=country, vat_number=number), language="en")
    assert page.count("Your VAT no.") + page.count("Your tax no.") == (shown is not None)
    assert shown is None or shown in page


@pytest.mark.parametrize(
    ("country", "language", "shown"),
    [
        ("DE", "de", "Handelsregister HRB 123456"),
        ("AT", "de", "Firmenbuch HRB 123456"),
        ("US", "de", "Reg.-Nr. HRB 123456"),
        ("DE", "en", "Reg. no. HRB 123456"),
    ],
)
def test_register_of_companies_has_its_name_in_german(country: str, language: Language, shown: str) -> None:
    assert shown in text_of(issuer=replace(ISSUER, country=country), language=language)
