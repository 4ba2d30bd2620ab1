"""A session that ends while somebody fills in a form: what was typed comes back, for that person only."""

import pytest
import time_machine

from retainer.console import ended_sessions
from retainer.identity import accounts
from retainer.identity.people import sessions, tokens, users
from tests.console.test_second_factor import NOW, code_of, set_up
from tests.console.visitor import HASH, PASSWORD, Visitor, admin_of

SETTINGS = "/console/settings"
EMAIL = "ana@north.example"


def end_sessions(api) -> None:
    with api.operating() as tx:
        sessions.end_all_of(tx, api.admin_id)


def kept(api) -> list[str]:
    return [fields for (fields,) in api.sql("SELECT fields FROM kept_forms")]


def city_of(api) -> object:
    with api.operating() as tx:
        return accounts.get_account(tx)["city"]


def lose_session(api, path: str = "/console/people/new", **fields: str) -> Visitor:
    """Send a form after the session has ended; return the visitor, who is asked to sign in."""
    visitor = admin_of(api)
    end_sessions(api)
    asked = visitor.post(path, fields or {"name": "Mia Müller", "email": "mia@north.example"})
    assert (asked.status, asked.location) == (303, f"/console/sign-in?next={path.removeprefix('/console')}")
    assert "what you typed comes back" in visitor.get(asked.location).text
    return visitor


def test_the_form_comes_back_filled_and_nothing_is_done_until_it_is_sent_again(api):
    visitor = lose_session(api, SETTINGS, city="Ulm & <b>", document_footer_en="First\r\nsecond")
    back = visitor.follow(visitor.sign_in(EMAIL, next="/settings"))
    assert "Your session had ended, so nothing was changed." in back.text
    assert 'value="Ulm &amp; &lt;b&gt;"' in back.html
    assert "First\nsecond</textarea>" in back.html
    assert city_of(api) is None
    again = visitor.get(SETTINGS)
    assert "Ulm" not in again.html, "it comes back once"
    visitor.submit(SETTINGS, city="Ulm")
    assert city_of(api) == "Ulm"


def test_it_comes_back_after_a_second_factor_too(api):
    with time_machine.travel(NOW, tick=False) as clock:
        visitor = admin_of(api)
        app, _ = set_up(visitor)
        clock.shift(60)
        end_sessions(api)
        visitor.post("/console/people/new", {"name": "Mia"})
        asked = visitor.sign_in(EMAIL, next="/people/new").location
        assert asked == "/console/sign-in/code?next=/people/new"
        assert 'value="Mia"' in visitor.submit(asked, action="/console/sign-in/code", code=code_of(app)).html


def test_another_person_does_not_see_it(api):
    with api.operating() as tx:
        details = users.UserDetails("Bea Boss", "bea@north.example", role="admin")
        users.create_user(tx, details, HASH)
    visitor = lose_session(api)
    page = visitor.follow(visitor.sign_in("bea@north.example", next="/people/new"))
    assert (page.title, "Mia" in page.html) == ("Add person · Retainer", False)


def test_another_browser_does_not_see_it(api):
    lose_session(api)
    other = Visitor(api.app)
    page = other.follow(other.sign_in(EMAIL, next="/people/new"))
    assert "Mia" not in page.html


def test_another_page_does_not_show_it(api):
    visitor = lose_session(api)
    assert "Mia" not in visitor.follow(visitor.sign_in(EMAIL, next="/keys/new")).html
    assert "Mia" in visitor.get("/console/people/new").html


def test_another_account_does_not_see_it(both):
    north, south = both
    visitor = lose_session(north)
    admin_of(south)
    with south.operating() as tx:
        email = users.get_user(tx, south.admin_id)["email"]
    assert "Mia" not in visitor.follow(visitor.sign_in(email, next="/people/new")).html


def test_passwords_codes_and_confirmations_are_never_kept(api):
    secret = dict.fromkeys(("password", "again", "current", "code", "secret", "token"), "a very secret text")
    lose_session(api, "/console/people/new", name="Mia", confirmation="Mia", **secret)
    assert kept(api) == ['[["name", "Mia"]]']
    visitor = admin_of(api)
    end_sessions(api)
    lost = visitor.post("/console/profile", {"current": PASSWORD, "password": "x" * 12, "again": "x" * 12})
    assert lost.location == "/console/sign-in"
    assert kept(api) == ['[["name", "Mia"]]'], "the form of a password is not kept at all"


@pytest.mark.parametrize(
    "path", ["/console/sign-out", "/console/settings/logo", "/console/nowhere", "/console/sessions/1/end"]
)
def test_what_has_no_form_with_text_is_not_kept(api, path):
    visitor = admin_of(api)
    end_sessions(api)
    lost = visitor.post(path, {"name": "Mia"})
    assert lost.location == "/console/sign-in"
    assert "nothing was changed" in visitor.get(lost.location).text
    assert kept(api) == []


def test_a_form_from_another_site_is_refused_and_not_kept(api):
    visitor = admin_of(api)
    end_sessions(api)
    sent = visitor.post("/console/people/new", {"name": "Mia"}, HTTP_SEC_FETCH_SITE="cross-site")
    assert sent.status == 403
    assert kept(api) == []


def test_nothing_is_kept_for_a_browser_without_a_recent_session_or_access(api):
    stranger = Visitor(api.app)
    assert stranger.post("/console/people/new", {"name": "Mia"}).location == "/console/sign-in"
    stranger.cookies["retainer-session"] = "x" * 43
    assert stranger.post("/console/people/new", {"name": "Mia"}).location == "/console/sign-in"
    visitor = admin_of(api)
    end_sessions(api)
    api.sql("UPDATE sessions SET last_used_at = '2020-01-01T00:00:00.000000Z'")
    assert visitor.post("/console/people/new", {"name": "Mia"}).location == "/console/sign-in"
    api.add_user("Bea Boss", role="admin")
    former = admin_of(api)
    api.set_user(api.admin_id, {"is_active": False})
    assert former.post("/console/people/new", {"name": "Mia"}).location == "/console/sign-in"
    assert kept(api) == []


def test_a_form_that_is_too_large_or_cannot_be_read_is_not_kept(api):
    visitor = admin_of(api)
    end_sessions(api)
    for body in ({"name": "x" * 70_000}, {"name": "\0"}, {f"field{number}": "" for number in range(3000)}):
        assert visitor.post("/console/people/new", body).location == "/console/sign-in"
    assert kept(api) == []


def test_one_form_is_kept_for_each_person_and_for_an_hour(api):
    lose_session(api)
    visitor = lose_session(api, "/console/people/new", name="Ada")
    assert kept(api) == ['[["name", "Ada"]]']
    api.sql("UPDATE kept_forms SET expires_at = '2020-01-01T00:00:00.000000Z'")
    assert "Ada" not in visitor.follow(visitor.sign_in(EMAIL, next="/people/new")).html
    tokens.delete_expired(api.store)
    assert kept(api) == []


def test_a_restore_of_a_backup_forgets_kept_forms(api):
    lose_session(api)
    tokens.revoke_all(api.store)
    assert kept(api) == []


def test_an_account_keeps_some_forms_a_minute_and_all_accounts_together_too(both, monkeypatch):
    api, other = both
    monkeypatch.setattr(ended_sessions, "MAX_KEPT", 3)
    monkeypatch.setattr(ended_sessions, "MAX_KEPT_OF_ALL", 5)
    mine, theirs = lose_session(api), lose_session(other, email="otto@south.example")
    for count in range(2, 6):
        mine.post("/console/people/new", {"name": f"Mia {count}"})
    assert kept(api) == kept(other)
    assert '[["name", "Mia 3"]]' in kept(api)
    theirs.post("/console/people/new", {"name": "Max 2"})
    assert '[["name", "Max 2"]]' in kept(api), "what an account tries beyond its limit does not count for all"
    asked = theirs.post("/console/people/new", {"name": "Max 3"})
    assert '[["name", "Max 2"]]' in kept(api)
    assert asked.location == "/console/sign-in"
    assert "nothing was changed" in theirs.get(asked.location).text
