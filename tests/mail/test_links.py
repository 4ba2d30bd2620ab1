"""Links in messages: each recipient gets a client link of the document, which is stored nowhere."""

import re

import pytest

from tests.databases import slow_on_each

ADDRESSES = ["a@ahorn.example", "b@ahorn.example"]
LINK = re.compile(r"http://agency\.example(/client\?token=[\w-]{43})")


@pytest.fixture
def quote(api):
    return api.make("/quotes", lines=[{"description": "Design", "unit_price": "98"}])


def links(api, quote):
    return api.get(f"/quotes/{quote['id']}/links").data


@slow_on_each
def test_each_recipient_gets_a_link_with_which_the_client_accepts_the_quote(api, post, quote):
    body = {"to": ADDRESSES, "message": "Accept it here: {link}"}
    queued = api.post(f"/quotes/{quote['id']}/send", body).data["messages"]
    assert [each["message"] for each in queued] == 2 * ["Accept it here: {link}"]
    assert links(api, quote) == []
    assert post.send() == 2
    paths = {LINK.search(got.message.get_body().get_content())[1] for got in post.server.got}
    assert len(paths) == 2, "each recipient has another"
    assert [each["user_id"] for each in links(api, quote)] == 2 * [api.admin_id]
    assert {each["message"] for each in post.messages()} == {"Accept it here: {link}"}
    token = paths.pop().partition("=")[2]
    assert api.sql("SELECT count(*) FROM messages WHERE message LIKE $1", f"%{token}%") == [(0,)]


def test_an_attempt_that_fails_takes_its_link_back(api, post, quote):
    post.server.answer = lambda step, _: "451 busy" if step == "data" else None
    api.post(f"/quotes/{quote['id']}/send", {"to": ADDRESSES[:1], "message": "{link}"})
    assert post.send() == 1
    assert post.messages()[0]["status"] == "queued"
    assert links(api, quote) == []
    api.sql("UPDATE messages SET next_attempt_at = created_at")
    post.server.answer = lambda *_: None
    assert post.send() == 1
    assert len(links(api, quote)) == 1


def test_a_link_is_refused_where_it_would_lead_nowhere(api, post, quote):
    send = f"/quotes/{quote['id']}/send"
    assert "subject" in api.post(send, {"to": ADDRESSES, "subject": "Look: {link}"}).errors
    invoice = api.make("/invoices", lines=[{"description": "Design", "unit_price": "98"}], status="sent")
    note = api.post(f"/invoices/{invoice['id']}/credit-notes", {"amount": "10"}).data
    of_note = f"/credit-notes/{note['id']}/send"
    assert "message" in api.post(of_note, {"to": ADDRESSES, "message": "{link}"}).errors
    dated = {"subject": "Until {due_date}", "message": "Due on {due_date}"}
    errors = api.post(of_note, {"to": ADDRESSES, **dated}).errors
    assert errors == {field: ["A credit note has no {due_date}. Leave it out."] for field in dated}
