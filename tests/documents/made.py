"""Facts of documents for tests: one that a person would send, random ones, and texts that attack."""

import random
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from retainer.documents.facts import CreditedDocument, Customer, Document, Issuer, Line, TaxShare
from retainer.values import money
from retainer.values.exact import DIGITS, amount_of, minor_units

ISSUER = Issuer(
    name="Nordlicht Digital GmbH",
    address_line1="Hafenstraße 12",
    postal_code="20457",
    city="Hamburg",
    country="DE",
    vat_number="DE123456788",
    registration_number="HRB 123456",
    email="hallo@nordlicht.example",
    phone="+49 40 1234567",
    website="nordlicht.example",
    iban="DE89370400440532013000",
    bic="COBADEFFXXX",
    bank_name="Commerzbank Hamburg",
    footer="Geschäftsführung: Anna Petersen, Jonas Brandt",
)
CUSTOMER = Customer(
    name="Bäckerei Sommer & Söhne KG",
    address_line1="Marktplatz 3",
    postal_code="80331",
    city="München",
    country="DE",
    vat_number="DE751571259",
    contact_name="Lena Sommer",
    email="lena@sommer.example",
)
LINES = (("Design", "7.5", "120.00", "19", "0"), ("Shop\nSprint 3", "32.25", "110.00", "19", "10"))


def priced(lines: list[Line], currency: str) -> dict[str, Any]:
    """Return the lines, taxes and totals of a document, as the API computes them."""
    shares = money.shares((minor_units(line.amount, currency), line.tax_rate) for line in lines)
    taxes = [TaxShare(s.tax_rate, amount_of(s.taxable, currency), amount_of(s.tax, currency)) for s in shares]
    net, tax = (sum((getattr(t, name) for t in taxes), Decimal(0)) for name in ("taxable_amount", "tax_amount"))
    zero = amount_of(0, currency)
    totals = {"subtotal": zero + net, "tax_total": zero + tax, "total": zero + net + tax}
    return {"currency": currency, "lines": tuple(lines), "tax_breakdown": tuple(taxes), **totals}


def line(text: str, quantity: str, price: str, rate: str, discount: str = "0", currency: str = "EUR", **more) -> Line:
    units = money.line_amount(Decimal(quantity), Decimal(price), Decimal(discount), currency)
    return Line(
        description=text,
        quantity=Decimal(quantity),
        unit_price=Decimal(price),
        discount_percent=Decimal(discount),
        tax_rate=Decimal(rate),
        amount=amount_of(units, currency),
        **more,
    )


def document(**changes) -> Document:
    """Return an invoice of two lines, with some facts changed."""
    facts = {
        "kind": "invoice",
        "language": "de",
        "issuer": ISSUER,
        "customer": CUSTOMER,
        "number": "RE-2026-0042",
        "issue_date": "2026-03-03",
        "due_date": "2026-03-17",
        "subject": "Relaunch",
        **priced([line(*values) for values in LINES], "EUR"),
    }
    return Document(**(facts | changes))


def random_document(rng: random.Random) -> Document:
    """Return an issued invoice or credit note: any mix of rates, discounts, rebates, rounding and countries."""
    currency = rng.choice(["EUR", "EUR", "EUR", "USD", "GBP", "CHF", "JPY"])
    is_credit = rng.random() < 0.3
    rates = rng.choice([["19"], ["19", "7"], ["0"], ["19", "7", "0"], ["20", "5.5"], ["8.1"]])
    lines = [random_line(rng, rates, currency) for _ in range(rng.randint(1, 12))]
    facts = priced(lines, currency)
    if facts["total"] < 0:
        facts = priced([replace(ln, quantity=-ln.quantity, amount=-ln.amount) for ln in lines], currency)
    has_tax = any(rate != "0" for rate in rates)
    vat = rng.choice(["DE123456788", "DE123456788", "DE123456788", "12/345/67890", None])
    if has_tax and vat is None:
        vat = "DE123456788"
    return document(
        kind="credit_note" if is_credit else "invoice",
        language=rng.choice(["de", "en"]),
        credited=CreditedDocument("RE-2026-0001", "2026-01-31") if is_credit else None,
        due_date=None if is_credit else "2026-03-17",
        issuer=replace(
            ISSUER, vat_number=vat, iban=rng.choice([ISSUER.iban, None]), email=rng.choice([None, "a@b.de"])
        ),
        customer=replace(
            CUSTOMER,
            country=rng.choice(["DE", "DE", "AT", "FR", "US", "CH", "GB"]),
            vat_number=rng.choice([None, "DE987654321", "ATU12345678", "12-3456789", "x"]),
            contact_name=rng.choice([None, "Lena Sommer"]),
        ),
        purchase_order=rng.choice([None, "PO 4711"]),
        terms=rng.choice([None, "14 days net"]),
        service_from="2026-02-01" if (has_period := rng.random() < 0.5) else None,
        service_to="2026-02-28" if has_period else None,
        **facts,
    )


def random_line(rng: random.Random, rates: list[str], currency: str) -> Line:
    digits = DIGITS[currency]
    price = str(Decimal(rng.randint(-20_000, 200_000)).scaleb(-digits))
    if rng.random() < 0.2 and digits == 2:
        price += str(rng.randint(1, 99)).zfill(2)
    quantity = str(Decimal(rng.choice([10_000, 20_000, rng.randint(-50_000, 900_000), 333_333])).scaleb(-4))
    made = line(
        rng.choice(["Design", "Work\nDetails", "Überprüfung <b>"]),
        quantity,
        price,
        rng.choice(rates),
        rng.choice(["0", "0", "10", "33.33"]),
        currency,
        unit=rng.choice([None, "h", "Stück", "days", "Tage"]),
    )
    if rng.random() < 0.3:  # work whose amounts were rounded one by one, or what was left to credit
        made = replace(made, amount=made.amount + amount_of(rng.randint(-3, 3), currency))
    return made


def hostile_texts() -> list[str]:
    """Return 200 texts that attack: markup, code, controls, directions, scripts without a glyph, and length."""
    markup = [
        "#panic(1)",
        '#include "/etc/passwd"',
        '#read("/etc/passwd")',
        '#import "@preview/x:1.0.0"',
        "$ x $",
        "$",
        "*b",
        "_i",
        "`raw",
        "```",
        "= H",
        "/ a: b",
        "- x",
        "+ x",
        "<label>",
        "@ref",
        "\\",
        "\\u{1f600}",
        "#",
        "##",
        "#[",
        "#]",
        "]",
        "[",
        "{",
        "}",
        "//",
        "/*",
        "*/",
        "~",
        "---",
        "...",
        "'",
        '"',
        '"); #panic("',
        "<script>alert(1)</script>",
        "<b>",
        "&amp;",
        "&#0;",
        "]]>",
        "<![CDATA[x]]>",
        "<?xml version='1.0'?>",
        "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>&x;",
        "%PDF-1.7",
        "endobj",
        "stream\nendstream",
        "trailer << /Root 1 0 R >>",
        "\\n",
        "{{ 7*7 }}",
        "${7*7}",
        "%s%n",
        "=cmd|' /C calc'!A0",
        "javascript:alert(1)",
    ]
    controls = [f"a{chr(code)}b" for code in (*range(1, 32), *range(127, 160))]
    codes = (0xAD, *range(0x200B, 0x2010), *range(0x2028, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xE000, 0xFEFF)
    formats = [f"a{chr(code)}b" for code in (*codes, 0xFFFD, 0xFFFE, 0xFFFF)]
    scripts = [
        "日本語",
        "中文",
        "한국어",
        "שלום",
        "مرحبا",
        "नमस्ते",
        "ไทย",
        "😀",
        "👨\u200d👩\u200d👧",
        "🏴\U000e0067\U000e007f",
        "\U0001d518",
        "\U0010ffff",
        "Z\u0351\u0352\u0353",
    ]
    scripts += [
        "ﬁ",
        "①",
        "㎏",
        "Å",
        "A\u030a",
        "\u0301",
        "a" + "\u0301" * 300,
        "߷",
        "𐍈",
        "\u0600",
        "￥",
        "\u3000",
        "\u00a0",
        "\u2009",
    ]
    long = [
        "a" * 1900,
        "W" * 1900,
        "a " * 900,
        "\n" * 500 + "x",
        "x\n" * 400,
        "ß" * 1000,
        "-" * 900,
        "." * 900,
        "日" * 900,
        "\t" * 300,
        "1" * 60,
    ]
    texts = [*markup, *controls, *formats, *scripts, *long]
    return texts[:200] if len(texts) >= 200 else texts + [f"#panic({n})" for n in range(200 - len(texts))]
