"""An answer to a quote: whoever sent its link hears of it by mail, and nothing that fails there stops the client."""

import re

import pytest
from testing.agencies import SITE

from tests.client_pages.links import LINES, OPTION, answer, link, send_quote
from tests.console.visitor import Visitor, admin_of
from tests.databases import slow_on_each
from tests.mail.server import SENDER

PAGE = re.compile(rf"{re.escape(SITE)}(/console/\S+)")


@pytest.fixture
def client(api):
    return Visitor(api.app, "198.51.100.4")


def send_by_mail(api, post, quote):
    """Send a quote by mail; return the path of the link that its client gets."""
    api.post(f"/quotes/{quote['id']}/send", {"to": ["sofie@ahorn.example"], "message": "Accept it: {link}"})
    post.send()
    found = re.search(rf"{re.escape(SITE)}(/client\?token=\S+)", body_of(post.server.got.pop()))
    return found[1]


def body_of(got):
    return got.message.get_body().get_content().replace("\r\n", "\n")


def address_of(api, user_id):
    return api.sql("SELECT email FROM users WHERE id = $1", user_id)[0][0]


@slow_on_each
def test_who_sent_a_quote_hears_who_accepted_it_for_which_total(api, post, client):
    quote = send_quote(api, lines=[*LINES, OPTION], title="Shop")
    path = send_by_mail(api, post, quote)
    chosen = {"answer": "accept", "name": "Sofie Lindner", "line": str(quote["lines"][1]["id"])}
    answer(client, path, **chosen)
    assert post.send() == 0, "the client has to confirm the total with it first"
    answer(client, path, **chosen, total="980")
    assert post.send() == 1
    (got,) = post.server.got
    customer = api.get(f"/clients/{quote['client_id']}").data["name"]
    assert got.recipient == address_of(api, api.admin_id)
    assert got.message["Subject"] == f"{customer} has accepted quote {quote['number']}"
    assert f"{customer} has accepted quote {quote['number']}, Shop." in body_of(got)
    assert "By: Sofie Lindner\nTotal: €980.00\n" in body_of(got)
    page = admin_of(api).get(PAGE.search(body_of(got))[1])
    assert (page.status, quote["number"] in page.text) == (200, True)


def test_who_sent_a_quote_hears_why_it_was_declined_in_words_that_do_nothing(api, post, client):
    quote = send_quote(api)
    path = send_by_mail(api, post, quote)
    answer(client, path, answer="decline", name="Jo {page} {link}", reason="Too much.\r\nBcc: all@ahorn.example {link}")
    assert post.send() == 1
    (got,) = post.server.got
    assert "has declined quote" in got.message["Subject"]
    assert "By: Jo {page} {link}\n" in body_of(got)
    assert "Reason: Too much.\nBcc: all@ahorn.example {link}\n" in body_of(got)
    assert got.message["Bcc"] is None
    assert [each["kind"] for each in api.get("/messages").data] == ["quote"], "mail to people is for admins alone"


@pytest.mark.parametrize("state", ["role = 'manager', is_active = FALSE", "role = 'member'"])
def test_admins_hear_of_the_answer_where_the_sender_opens_no_quotes_any_more(api, post, client, state):
    of_account = f"account_id = {api.account_id}"
    sender = api.sql(f"SELECT id FROM users WHERE role <> 'admin' AND is_active AND {of_account}")[0][0]
    quote = send_quote(api)
    path = link(api, quote)
    api.sql("UPDATE client_links SET user_id = $1", sender)
    api.sql(f"UPDATE users SET {state} WHERE id = $1", sender)
    answer(client, path, answer="accept", name="Jo")
    post.send()
    admins = api.sql(f"SELECT email FROM users WHERE role = 'admin' AND is_active AND {of_account}")
    assert [(got.recipient, got.sender) for got in post.server.got] == [(email, SENDER) for (email,) in admins]


def test_an_answer_counts_where_no_mail_can_be_sent(api, client):
    api.app.store.mail_from = ""
    quote = send_quote(api)
    answer(client, link(api, quote), answer="accept", name="Jo")
    assert api.get(f"/quotes/{quote['id']}").data["status"] == "accepted"
    assert api.sql("SELECT count(*) FROM messages") == [(0,)]


def test_a_quote_that_the_agency_itself_accepts_sends_nothing(api, post):
    quote = send_quote(api)
    api.patch(f"/quotes/{quote['id']}", {"status": "accepted", "accepted_by": "Jo"})
    assert post.send() == 0
