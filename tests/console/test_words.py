"""Instants, scopes and charts as people read them."""

from decimal import Decimal

import pytest

from retainer.console import words
from retainer.console.labels import in_words
from retainer.errors import Sentence, part
from retainer.identity.keys.keys import SCOPES
from retainer.values.exact import day_end, day_start

NOW = "2026-03-10T12:00:00.000000Z"


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        ("2026-03-10T12:00:04.000000Z", "just now"),
        ("2026-03-10T11:59:15.000000Z", "45 seconds ago"),
        ("2026-03-10T11:57:00.000000Z", "3 minutes ago"),
        ("2026-03-10T13:00:00.000000Z", "in 1 hour"),
        ("2026-03-08T12:00:00.000000Z", "2 days ago"),
        ("2025-12-10T12:00:00.000000Z", "3 months ago"),
        ("2020-03-10T12:00:00.000000Z", "6 years ago"),
    ],
)
def test_the_distance_of_an_instant(instant, text):
    assert words.distance(instant, NOW) == text


def test_an_instant_is_shown_in_the_account_s_time_zone():
    at = words.moment("2026-03-10T23:30:05.000000Z", "Europe/Berlin", NOW)
    assert (at.text, at.day, at.second) == ("11 Mar 2026, 00:30", "11 Mar 2026", "11 Mar, 00:30:05")
    assert day_end("2026-03-29", "Europe/Berlin") == "2026-03-29T22:00:00.000000Z"
    assert day_start("2026-03-29", "Europe/Berlin") == "2026-03-28T23:00:00.000000Z"


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        ("1190.00", "EUR", "1,190.00 EUR"),
        ("-5.50", "EUR", "\u22125.50 EUR"),
        ("1200", "JPY", "1,200 JPY"),
        ("7.00", "", "7.00"),
    ],
)
def test_an_amount_has_its_currency_and_a_minus_as_wide_as_a_digit(amount, currency, text):
    assert words.money(Decimal(amount), currency) == text


@pytest.mark.parametrize(
    ("scopes", "text"),
    [
        (list(SCOPES), "Can read and edit everything."),
        ([scope for scope in SCOPES if ":read" in scope], "Can read everything, but not edit."),
        (["clients:read"], "Can read clients."),
        (
            ["time:write", "time:read", "clients:read", "tasks:read", "sites:write"],
            "Can read and edit time. Can read clients and tasks. Can create and edit sites, but not read them.",
        ),
    ],
)
def test_scopes_are_described_in_sentences(scopes, text):
    assert words.scopes_in_words(scopes) == text


def test_numbers_have_the_form_of_the_language_of_the_account(api, person):
    visitor, client = person("admin"), api.make("/clients", name="Nordwind")["id"]
    line = {"description": "Design", "quantity": "89.0167", "unit": "hour", "unit_price": "1234.50", "tax_rate": "19"}
    invoice = api.make("/invoices", client_id=client, lines=[line], status="sent")
    path = f"/console/records/invoices/{invoice['id']}"
    due = Decimal(invoice["total"])
    for language, form in (("en", str), ("de", lambda text: text.translate(words.SWAPPED))):
        api.set_account({"document_language": language})
        page = visitor.get(path)
        for shown in (form(f"{due:,f}") + " EUR", form("89.0167"), form("1,234.50")):
            assert shown in page.text, (language, shown)
        payment = visitor.get(f"{path}/payment")
        assert f'value="{form(invoice["total"])}"' in payment.html
        assert f"{form(f'{due:,f}')} EUR is due." in payment.text
        for below in ("/records/invoices", "", "/reports/overview"):
            assert form(f"{due:,f}") in visitor.get(f"/console{below}").text, (language, below)
        sent = {"amount": form("200000.50"), "paid_date": invoice["issue_date"], "method": "cash"}
        refused = visitor.submit(f"{path}/payment", **sent)
        assert form(f"{Decimal('200000.50') - due:,f}") in refused.text


def test_sentences_of_the_api_have_numbers_in_the_form_of_the_language():
    bounds = f"Must be at most {part('1234.50')} EUR; this is {part('-2000.00')} EUR"
    sentence = f"{bounds} at {part('19.5')}%, of version 5.9.1 at 10.0.0.1."
    english = "Must be at most 1,234.50 EUR; this is \N{MINUS SIGN}2,000.00 EUR at 19.5%, of version 5.9.1 at 10.0.0.1."
    assert in_words(Sentence(sentence), ()) == english
    former = words.LANGUAGE.set("de")
    german = "Must be at most 1.234,50 EUR; this is \N{MINUS SIGN}2.000,00 EUR at 19,5%, of version 5.9.1 at 10.0.0.1."
    assert in_words(Sentence(sentence), ()) == german
    words.LANGUAGE.reset(former)
