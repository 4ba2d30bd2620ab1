"""Forms that a session sends again, also after others: each acts once, and no stored answer has a secret."""

import re
from urllib.parse import unquote

import pytest

from retainer.identity.people.sent_forms import KEPT
from tests.console.visitor import Fields

NEW_KEY, NEW_CLIENT = "/console/keys/new", "/console/records/clients/new"
SECRET = re.compile(r"rtn_\w{38}|whsec_[\w+/=]+|token=[\w-]{43}")
OF_SECRETS = {
    NEW_KEY: ({"name": "Zapier", "scopes": "clients:read"}, "rotate it"),
    "/console/keys/{key}/rotate": ({"hours": "24"}, "rotate it"),
    "/console/people/new": (
        {"name": "Mia Member", "email": "mia@north.example", "by_mail": "no"},
        "create another one",
    ),
    "/console/people/{user}/link": ({"by_mail": "no"}, "create another one"),
    "/console/webhooks/new": ({"url": "https://receiver.example/hooks", "description": "Books"}, "rotate it"),
}
"""Forms that lead to a secret, with what they need, and how the second answer says to replace it."""


def filled(visitor, path, **fields):
    """Return the fields of a form that was just shown, with some of them filled in."""
    form = [pair for pair in Fields(visitor.get(path).html).forms[path] if pair[0] not in fields]
    return [*form, *fields.items()]


def stored(api):
    """Return the answers that are stored for sessions, as text."""
    return "".join(answer for (answer,) in api.sql("SELECT answer FROM sessions WHERE answer IS NOT NULL"))


def secrets_of(page):
    return SECRET.findall(unquote(page.headers.get("set-cookie", "")))


@pytest.mark.parametrize("path", OF_SECRETS)
def test_a_form_that_leads_to_a_secret_leads_to_advice_when_it_is_sent_again(api, visitor, path):
    fields, advice = OF_SECRETS[path]
    path = path.format(key=api.key_id, user=api.member_id)
    form = filled(visitor, path, **fields)
    first = visitor.post(path, form)
    assert len(secrets_of(first)) == 1
    assert SECRET.search(unquote(stored(api))) is None
    visitor.cookies.pop("retainer-secret")  # as if a browser had not read the first answer
    second = visitor.post(path, form)
    assert (second.location, secrets_of(second)) == (first.location, [])
    assert "This form was sent twice and processed once." in visitor.follow(second).text
    assert advice in unquote(second.headers["set-cookie"])


def test_a_form_that_is_sent_again_after_another_makes_nothing_again(api, visitor):
    first, other = filled(visitor, NEW_CLIENT, name="Nordwind"), filled(visitor, NEW_CLIENT, name="Ostwind")
    led = [visitor.post(NEW_CLIENT, form).location for form in (first, other, first, other)]
    assert led[:2] == led[2:]
    assert sorted(client["name"] for client in api.get("/clients").data) == ["Nordwind", "Ostwind"]


def test_two_keys_of_one_form_are_never_related_by_what_is_stored(visitor, api):
    """A key is asked for, another form is sent, and the same key is asked for again: that once revealed the second."""
    key, other = (filled(visitor, NEW_KEY, name=name, scopes="clients:read") for name in ("Zapier", "Looker"))
    made, kept = [], []
    for form in (key, other, key):
        made += secrets_of(visitor.post(NEW_KEY, form))
        kept.append(stored(api))
    assert len({*made}) == 2, "the third sending makes no key"
    assert SECRET.search(unquote("".join(kept))) is None
    assert all(value[4:] not in text and value.encode().hex() not in text for value in made for text in kept)


def test_a_session_remembers_its_last_forms_and_no_more(api, visitor):
    forms = [filled(visitor, NEW_CLIENT, name=f"Client {number}") for number in range(KEPT + 1)]
    led = [visitor.post(NEW_CLIENT, form).location for form in forms]
    ((answer,),) = api.sql("SELECT answer FROM sessions")
    assert answer.count("Client") == KEPT
    assert visitor.post(NEW_CLIENT, forms[1]).location == led[1], "the oldest that is kept"
    assert visitor.post(NEW_CLIENT, forms[0]).location != led[0], "older ones are new forms"


def test_a_session_of_the_previous_version_sends_forms(api, visitor):
    api.sql("UPDATE sessions SET sent_form = $1, answer = $2", "ab" * 32, "cd" * 40)
    assert visitor.post(NEW_CLIENT, filled(visitor, NEW_CLIENT, name="Nordwind")).status == 303
