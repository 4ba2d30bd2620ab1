"""A session that ends while a form is filled in: the sign-in carries what was typed, and the form shows it again."""

import re

import pytest
import time_machine

from retainer.console.routes import CONSOLE_ROUTES
from retainer.identity import accounts
from retainer.identity.people import sessions
from tests.console.test_second_factor import NOW, code_of, set_up
from tests.console.visitor import PASSWORD, Fields, Visitor, admin_of

SETTINGS, SIGN_IN, CODE = "/console/settings", "/console/sign-in", "/console/sign-in/code"
EMAIL = "ana@north.example"


def end_sessions(api) -> None:
    with api.operating() as tx:
        sessions.end_all_of(tx, api.admin_id)


def city_of(api) -> object:
    with api.operating() as tx:
        return accounts.get_account(tx)["city"]


def lose_session(api, path: str = "/console/people/new", **fields: object):
    """Send a form after the session has ended; return the visitor, and the page that asks to sign in."""
    visitor = admin_of(api)
    end_sessions(api)
    asked = visitor.post(path, fields or {"name": "Mia Müller", "email": "mia@north.example"})
    assert (asked.status, asked.title) == (403, "Sign in · Retainer")
    assert "Your session has ended, and nothing was changed." in asked.text
    return visitor, asked


def send(visitor: Visitor, page, action: str, **fields: str):
    """Send a form of a page as it is, with some fields filled in."""
    form = [pair for pair in Fields(page.html).forms[action] if pair[0] not in fields]
    return visitor.follow(visitor.post(action, [*form, *fields.items()]))


def sign_in_again(visitor: Visitor, asked, email: str = EMAIL):
    """Sign in on the page that asked for it, and open the form again."""
    signed_in = send(visitor, asked, SIGN_IN, email=email, password=PASSWORD)
    assert signed_in.title == "Signed in · Retainer", signed_in.text
    (form,) = signed_in.all("main")[0].all("form")
    return send(visitor, signed_in, form["action"])


def test_the_form_comes_back_filled_and_nothing_is_done_until_it_is_sent_again(api):
    typed = {"city": "Ulm & <b>", "document_footer_en": "First\r\nsecond", "working_weekdays": "mon"}
    visitor, asked = lose_session(api, SETTINGS, **typed)
    back = sign_in_again(visitor, asked)
    assert "Your session had ended, so nothing was changed." in back.text
    assert 'value="Ulm &amp; &lt;b&gt;"' in back.html
    assert "First\nsecond</textarea>" in back.html
    assert city_of(api) is None
    send(visitor, back, SETTINGS, city="Ulm")
    assert city_of(api) == "Ulm"


def test_fields_with_several_values_come_back(api):
    visitor, asked = lose_session(api, "/console/keys/new", name="Looker", scopes=["sites:read", "time:read"])
    boxes = sign_in_again(visitor, asked).all("input", name="scopes")
    assert {box["value"] for box in boxes if "checked" in box} == {"sites:read", "time:read"}


def test_it_comes_back_after_a_wrong_password_and_a_second_factor_too(api):
    with time_machine.travel(NOW, tick=False) as clock:
        app, _ = set_up(admin_of(api))
        clock.shift(60)
        visitor = Visitor(api.app)
        asked = visitor.post("/console/people/new", {"name": "Mia"})
        wrong = send(visitor, asked, SIGN_IN, email=EMAIL, password="wrong")
        assert wrong.status == 422
        code = send(visitor, wrong, SIGN_IN, email=EMAIL, password=PASSWORD)
        assert code.title == "Second factor · Retainer"
        signed_in = send(visitor, code, CODE, code=code_of(app))
        assert 'value="Mia"' in send(visitor, signed_in, "/console/people/new").html


def test_a_person_whose_role_lacks_the_page_does_not_get_its_form(api, person):
    member = person("member")
    member.post("/console/sign-out")
    asked = member.post("/console/people/new", {"name": "Mia"})
    assert sign_in_again(member, asked, "member@north.example").status == 403


def test_passwords_codes_and_confirmations_are_never_carried(api):
    secret = dict.fromkeys(("password", "again", "current", "code", "secret", "token"), "a very secret text")
    _, asked = lose_session(api, name="Mia", confirmation="a typed name", **secret)
    assert "Mia" in asked.html
    for text in ("a very secret text", "a typed name"):
        assert text not in asked.html


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/console/sign-out", {"name": "Mia"}),
        ("/console/nowhere", {"name": "Mia"}),
        ("/console/profile", {"current": PASSWORD, "password": "x" * 12, "again": "x" * 12}),
        ("/console/people/1/deactivate", {"confirmation": "Mia"}),
        ("/console/people/new", {"name": "x" * 70_000}),
        ("/console/people/new", {"name": "\0"}),
        ("/console/people/new", {f"field{number}": "" for number in range(3000)}),
    ],
)
def test_what_has_no_form_with_text_or_cannot_be_read_is_not_carried(api, path, form):
    visitor = admin_of(api)
    end_sessions(api)
    lost = visitor.post(path, form)
    assert lost.location == SIGN_IN
    assert "nothing was changed" in visitor.get(lost.location).text


def test_no_form_from_another_site_is_answered_or_carried(api):
    visitors = admin_of(api), Visitor(api.app)
    for path in CONSOLE_ROUTES:
        for visitor in visitors:
            address = "/console" + re.sub(r"\{\w+\}", "1", path)
            sent = visitor.post(address, {"name": "Mia", "step": "restore"}, HTTP_SEC_FETCH_SITE="cross-site")
            assert (sent.status, "Mia" in sent.html) == (403, False), path


def test_a_form_without_a_page_of_its_own_does_not_open(api, visitor):
    assert visitor.post("/console/sign-out", {"step": "restore"}).location == SIGN_IN
