"""Text that is copied from a PDF is what was stored: numbers with their hyphens, words with their letters."""

import io
import random

import pypdf
import pytest
from msgspec.structs import replace

from retainer.documents.facts import Address, Document
from retainer.documents.pdf import render_pdf
from retainer.documents.printable import BREAK, LONGEST_IN_PROSE, printable
from tests.documents.made import CUSTOMER, document, line, priced, random_document
from tests.documents.test_pdf import compact
from tests.length import length

WORDS = (
    *(
        "Dokumentation",
        "internationalen",
        "Kommunikationsinfrastruktur",
        "Verantwortlichkeiten",
        "E-Mail",
        "Überprüfung",
    ),
    *("documentation", "responsibilities", "infrastructure", "e-mail", "check-in", "office", "fluffy", "affiliate"),
    *("INV-2026-0005", "PO-4711-B", "2026-11-28", "http://example.com/a-b", "1.234,50", "§", "½", "µm", "μ", "№", "…"),
    *(
        "Schifffahrt",
        "find",
        "Ελλάδα",
        "Київ",
        "A_b",
        "x=y",
        "--",
        "\u2013",
        "\u2019",
        "“",
        "ß",
        "ﬁ",
        "ﬀ",
        "co\u2011op",
        "a\u00adb",
    ),
)
"""Long words that a typesetter would divide, hyphens of each kind, and letters that ligatures join."""


def copied(made: Document) -> str:
    reader = pypdf.PdfReader(io.BytesIO(render_pdf(made)))
    return "\n".join(page.extract_text() for page in reader.pages)


def prose(rng: random.Random, longest: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, longest)))


def texts_of(made: Document) -> list[str | None]:
    """Return all texts that the document prints as they are stored."""
    sides = (made.issuer, made.customer)
    names = [name for name in Address.__struct_fields__ if name not in {"country", "region"}]
    shown = [getattr(side, name) for side in sides for name in ("name", *names)]
    shown += [getattr(made.issuer, name) for name in ("email", "phone", "registration_number", "footer")]
    shown += [made.customer.contact_name, *(each.description for each in made.lines)]
    return [*shown, *(getattr(made, name) for name in ("number", "purchase_order", "subject", "notes", "terms"))]


@pytest.mark.parametrize("seed", range(length(200)))
def test_each_text_is_copied_from_a_document_as_it_was_stored(seed: int) -> None:
    rng = random.Random(seed)
    made = random_document(rng)
    lines = [line(prose(rng, 20), "1", "10.00", "19", currency=made.currency) for _ in range(rng.randint(1, 8))]
    made = replace(
        made,
        **priced(lines, made.currency),
        issuer=replace(made.issuer, footer=prose(rng, 30)),
        customer=replace(CUSTOMER, contact_name=prose(rng, 3), address_line2=prose(rng, 4)),
        **{name: prose(rng, 80) for name in ("notes", "terms")},
        subject=prose(rng, 8),
        number=f"INV-2026-{seed:04}",
    )
    text = copied(made)
    assert BREAK not in text
    shown = compact(text)
    for stored in filter(None, texts_of(made)):
        for word in printable(stored).split():
            assert compact(word) in shown


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_number_is_copied_with_its_hyphens_below_long_texts(language) -> None:
    notes = "Documentation of the international communication infrastructure and responsibilities " * 6
    made = document(
        language=language,
        number="INV-2026-0005",
        notes=notes,
        terms=notes,
        issuer=replace(document().issuer, iban=None),
    )
    assert copied(made).count("INV-2026-0005") >= 3
    assert "\u00ad" not in copied(made)


def test_long_numbers_and_addresses_are_copied_without_their_places_to_break() -> None:
    number, address = "INV-2026-00000000000000000005", "https://example.com/pay/a-very-long-path/with-more/1234567890"
    made = document(number=number, notes=f"See {address} for it", subject="y" * 200)
    reader = pypdf.PdfReader(io.BytesIO(render_pdf(made)))
    (page,) = reader.pages
    text = page.extract_text()
    assert BREAK not in text
    assert text.count(number) >= 2
    assert address in text
    assert "y" * 200 in compact(text)
    assert "y" * 200 not in text, "it has no room on one line"
    assert reader.metadata is not None
    assert reader.metadata.title == f"Rechnung {number}"


def test_words_of_prose_break_only_where_a_line_is_too_short() -> None:
    word = "Kommunikationsinfrastrukturen"
    assert printable(word, LONGEST_IN_PROSE) == word
    assert BREAK in printable(word)
    assert word in copied(document(notes=f"{word} " * 40))


def test_characters_with_one_glyph_are_printed_as_the_usual_one() -> None:
    assert printable("co\u2011op a\u2010b \u00b5m \ufb01nd \u2126") == "co-op a-b \u03bcm find \u03a9"
    for order in ("co-op co\u2011op", "co\u2011op co-op"):
        assert "co-op co-op" in copied(document(subject=order))
