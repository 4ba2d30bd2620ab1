"""Answers to quotes that no careful client sends: they accept nothing that was not shown, and nobody without a name."""

import pytest

from tests.client_pages.links import LINES, OPTION, answer, link, send_quote
from tests.databases import any_database

pytestmark = any_database


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("\u200b\u2060", "Enter your name."),
        ("\u3164", "Enter your name."),
        ("Sofie\x07", "Enter a name without control characters."),
        ("Sofie\u206a\ufdef", "Enter a name without control characters."),
    ],
)
def test_a_name_that_prints_nothing_or_is_no_line_is_refused_beside_its_field(api, client, name, message):
    quote = send_quote(api)
    page = answer(client, link(api, quote), answer="accept", name=name)
    assert ([each.text for each in page.all("p", "error")], page.status) == ([message], 422)
    assert page.title.startswith("Error: ")
    assert api.get(f"/quotes/{quote['id']}").data["status"] == "sent"


def test_a_name_is_one_line_and_turns_nothing_beside_it(api, client):
    quote = send_quote(api)
    done = answer(client, link(api, quote), answer="accept", name="Sofie\t\r\nLindner\u2028\u202e")
    read = api.get(f"/quotes/{quote['id']}").data
    assert (read["status"], read["accepted_by"]) == ("accepted", "Sofie Lindner \u202e")
    assert "\u2068Sofie Lindner \u202e\u2069 accepted this quote" in done.text


def test_a_line_that_the_quote_does_not_offer_accepts_nothing(api, client):
    quote = send_quote(api, lines=[*LINES, OPTION])
    path, lines = link(api, quote), [line["id"] for line in quote["lines"]]
    for line in (lines[0], lines[1] + 1, "9" * 50, "x", ""):
        assert answer(client, path, answer="accept", name="Jo", line=[lines[1], line]).status == 422
    assert api.get(f"/quotes/{quote['id']}").data["status"] == "sent"


def test_a_form_without_an_answer_declines_nothing(api, client):
    quote = send_quote(api)
    path, version = link(api, quote), str(quote["document_version"])
    for fields in ({}, {"answer": ""}, {"answer": "Accept"}):
        assert answer(client, path, name="Jo", version=version, **fields).status == 422
    assert api.get(f"/quotes/{quote['id']}").data["status"] == "sent"
