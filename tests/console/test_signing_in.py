"""Who gets into the console, how, and how that ends."""

import io
import re
from types import SimpleNamespace

import pytest

from retainer.app import App
from retainer.identity.people import passwords, users
from retainer.identity.sign_in import throttle
from retainer.kernel.limits import ADDRESS_RATE_LIMIT
from retainer.settings import Settings
from tests.console.visitor import PASSWORD, Visitor, admin_of
from tests.length import only_full

FORM = {"email": "ana@north.example", "password": PASSWORD}


def link_of(api, user_id: int) -> str:
    with api.operating() as tx:
        return users.create_link(tx, user_id).url("http://agency.example").removeprefix("http://agency.example")


def test_a_page_without_a_session_redirects_to_the_sign_in_and_back(api):
    admin_of(api)
    stranger = Visitor(api.app)
    asked = stranger.get("/console/keys?status=revoked&sort=name")
    assert (asked.status, asked.location) == (303, "/console/sign-in?next=/keys%3Fstatus%3Drevoked%26sort%3Dname")
    form = stranger.get(asked.location)
    assert form.title == "Sign in · Retainer"
    led = stranger.submit(asked.location, action="/console/sign-in", email="ana@north.example", password=PASSWORD)
    assert led.title == "Keys · Retainer"


@pytest.mark.parametrize(
    "elsewhere",
    [
        *("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"),
        *("/../../docs", "/keys/../../docs", "/..", "/./../docs", "/keys/.."),
    ],
)
def test_the_sign_in_never_redirects_out_of_the_console(api, elsewhere):
    admin_of(api)
    assert Visitor(api.app).sign_in("ana@north.example", next=elsewhere).location == "/console"


def test_a_wrong_password_is_an_error_at_the_form_which_keeps_the_email(api):
    admin_of(api)
    visitor = Visitor(api.app)
    refused = visitor.sign_in("ana@north.example", "not the password")
    assert refused.status == 422
    assert refused.text.count("Wrong email or password.") == 1
    assert "Correct this field" not in refused.text
    assert 'value="ana@north.example"' in refused.html
    assert "not the password" not in refused.html
    missing = visitor.post("/console/sign-in", {"email": "", "password": ""})
    assert missing.text.count("Enter your email address.") == 2, "on top, and at the field"
    assert missing.text.count("Enter your password.") == 2
    assert visitor.get("/console").status == 303


def test_after_many_failures_a_message_and_a_header_say_how_long_to_wait(api, monkeypatch):
    monkeypatch.setattr(throttle, "time", SimpleNamespace(monotonic=lambda: 0.0))  # a hash may take longer than a wait
    admin_of(api)
    visitor = Visitor(api.app)
    answers = [visitor.sign_in("ana@north.example", "not the password") for _ in range(6)]
    assert [answer.status for answer in answers] == [422] * 5 + [429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert "Try again in" in answers[-1].text
    assert answers[0].headers.get("retry-after") is None


def test_pages_without_a_session_are_charged_to_the_address(api, monkeypatch):
    signed_in, ended = admin_of(api), Visitor(api.app)
    ended.sign_in("ana@north.example")
    ended.post("/console/sign-out")
    stranger, elsewhere = Visitor(api.app), Visitor(api.app, "198.51.100.1")
    asked = stranger.get("/console/sign-in")
    used = ADDRESS_RATE_LIMIT - int(asked.headers["x-ratelimit-remaining"])
    for number in range(used, ADDRESS_RATE_LIMIT):
        assert stranger.get("/console/sign-in").headers["x-ratelimit-remaining"] == str(ADDRESS_RATE_LIMIT - number - 1)
    with monkeypatch.context() as patch:
        patch.setattr(passwords, "matches", None)
        refused = stranger.sign_in("ana@north.example")
    assert (refused.status, refused.title) == (429, "Too many requests · Retainer")
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert signed_in.get("/console").status == 200
    assert ended.sign_in("ana@north.example").status == 303, "a browser that was signed in before has its own limit"
    assert elsewhere.sign_in("ana@north.example").status == 303


@only_full
def test_a_browser_whose_session_has_ended_has_a_limit_too(api):
    ended = admin_of(api)
    ended.post("/console/sign-out")
    statuses = [ended.get("/console/sign-in").status for _ in range(ADDRESS_RATE_LIMIT + 1)]
    assert statuses == [200] * ADDRESS_RATE_LIMIT + [429]
    assert Visitor(api.app).get("/console/sign-in").status == 200


def test_the_session_cookie_is_hidden_from_scripts_and_other_hosts(api, unnamed):
    admin_of(api)
    plain = Visitor(api.app).sign_in("ana@north.example").headers["set-cookie"]
    assert re.fullmatch(r"retainer-session=[\w-]{43}; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax", plain)
    secure = Visitor(unnamed.app).post("/console/sign-in", FORM, **{"wsgi.url_scheme": "https"}).headers["set-cookie"]
    assert re.fullmatch(
        r"__Host-retainer-session=[\w-]{43}; Path=/; Max-Age=7776000; HttpOnly; SameSite=Lax; Secure", secure
    )


def test_signing_out_ends_the_session_permanently(api):
    visitor = admin_of(api)
    kept = dict(visitor.cookies)
    assert "You have signed out." in visitor.follow(visitor.post("/console/sign-out")).text
    visitor.cookies = kept
    assert visitor.get("/console").location == "/console/sign-in"


def test_a_link_sets_the_password_once_and_signs_in(api):
    visitor, path = Visitor(api.app), link_of(api, api.admin_id)
    form = visitor.get(path)
    assert "ana@north.example" in form.html
    short = visitor.submit(path, action="/console/password", password="short", again="short")
    assert short.status == 422
    assert "12" in short.text
    differing = visitor.submit(path, action="/console/password", password=PASSWORD, again="another password")
    assert "Passwords don't match." in differing.text
    done = visitor.submit(path, action="/console/password", password=PASSWORD, again=PASSWORD)
    assert "Password set" in done.text
    assert done.title == "Today · Retainer"
    used = Visitor(api.app).get(path)
    assert (used.status, "If you have set your password with it, sign in." in used.text) == (404, True)
    assert used.title.startswith("This link no longer works")
    assert ('class="narrow-page"' in used.html, "Sign in" in used.text, "Today" in used.text) == (True, True, False)


def test_a_new_password_ends_the_other_sessions(api):
    visitor = admin_of(api)
    other = Visitor(api.app)
    other.sign_in("ana@north.example")
    wrong = visitor.submit("/console/profile", current="wrong", password="eleven red doors", again="eleven red doors")
    assert "Wrong password." in wrong.text
    fields = {"current": PASSWORD, "password": "eleven red doors", "again": "eleven red doors"}
    assert "Password changed." in visitor.submit("/console/profile", **fields).text
    assert visitor.get("/console").status == 200
    assert other.get("/console").status == 303


def test_all_errors_of_a_new_password_are_shown_at_once(api):
    visitor = admin_of(api)
    refused = visitor.submit("/console/profile", current="wrong", password="short", again="another")
    assert refused.status == 422
    for sentence in ("Wrong password.", "12", "Passwords don't match."):
        assert sentence in refused.text
    blank = visitor.submit("/console/profile", current="", password=PASSWORD, again="another")
    assert ("Enter your current password." in blank.text, "Passwords don't match." in blank.text) == (True, True)
    refused = Visitor(api.app).submit(link_of(api, api.admin_id), action="/console/password", password="a", again="b")
    assert ("12" in refused.text, "Passwords don't match." in refused.text) == (True, True)


@pytest.mark.parametrize(
    "headers",
    [
        {"HTTP_SEC_FETCH_SITE": "cross-site"},
        {"HTTP_SEC_FETCH_SITE": "same-site"},
        {"HTTP_SEC_FETCH_SITE": "none"},
        {"HTTP_SEC_FETCH_SITE": None},
        {"HTTP_SEC_FETCH_SITE": None, "HTTP_ORIGIN": "http://evil.example"},
        {"HTTP_SEC_FETCH_SITE": None, "HTTP_ORIGIN": "null"},
        {"HTTP_SEC_FETCH_SITE": None, "HTTP_ORIGIN": "http://["},
        {"HTTP_SEC_FETCH_SITE": None, "HTTP_ORIGIN": "http://agency.example:x"},
        {"HTTP_SEC_FETCH_SITE": None, "HTTP_ORIGIN": "https://agency.example"},
        {"HTTP_SEC_FETCH_SITE": None, "HTTP_ORIGIN": "http://agency.example:8080"},
        {"HTTP_SEC_FETCH_SITE": None, "HTTP_ORIGIN": "http://agency.example", "wsgi.url_scheme": "https"},
        {"HTTP_SEC_FETCH_SITE": "cross-site", "HTTP_ORIGIN": "http://agency.example"},
    ],
)
def test_forms_from_other_sites_do_nothing(api, unnamed, headers):
    visitor = admin_of(api)
    visitor.app = unnamed.app
    refused = visitor.post("/console/sign-out", **headers)
    assert (refused.status, "another site" in refused.text) == (403, True)
    assert visitor.get("/console").status == 200
    assert (
        visitor.post("/console/sign-out", HTTP_SEC_FETCH_SITE=None, HTTP_ORIGIN="http://agency.example").status == 303
    )


def test_the_api_accepts_no_session_and_the_console_no_key(api):
    visitor = admin_of(api)
    token = visitor.cookies["retainer-session"]
    assert api.get("/me", key=token).status == 401
    assert api.get("/me", key=None, headers={"Cookie": f"retainer-session={token}"}).status == 401
    visitor.cookies = {"retainer-session": api.key}
    assert visitor.get("/console", HTTP_AUTHORIZATION=f"Bearer {api.key}").status == 303


def test_an_email_of_several_accounts_chooses_one(both):
    north, south = both
    admin_of(north), admin_of(south)
    with south.operating() as tx:
        users.change_user(tx, south.admin_id, {"email": "ana@north.example"})
    visitor = Visitor(north.app)
    choice = visitor.sign_in("ana@north.example")
    assert (choice.status, "match 2 accounts" in choice.text) == (200, True)
    visitor.sign_in("ana@north.example", account=str(south.account_id))
    assert "South" in visitor.get("/console").html


def test_the_root_redirects_browsers_to_the_console_and_others_to_the_reference(api):
    visitor = Visitor(api.app)
    assert (visitor.get("/").status, visitor.get("/").location) == (302, "/console")
    for other in (visitor.get("/", HTTP_ACCEPT="application/json"), visitor.get("/", HTTP_ACCEPT="*/*")):
        assert (other.status, other.location) == (302, "/docs")


def test_forms_that_are_too_large_or_of_another_type_are_refused(api):
    visitor = Visitor(api.app)
    assert visitor.post("/console/sign-in", {"email": "x" * 270_000}).status == 413
    assert visitor.call("POST", "/console/sign-in", b"{}", CONTENT_TYPE="application/json").status == 415
    assert visitor.call("POST", "/console/sign-in", b"&".join([b"a=1"] * 3000)).status == 400
    assert visitor.call("DELETE", "/console/sign-in").headers["allow"] == "GET, HEAD, POST"


@pytest.fixture
def public(api):
    """A visitor of the same agency where the operator has named the public address, behind a proxy without TLS."""
    admin_of(api)
    settings = Settings(database_url=api.app.settings.database, base_url="https://Agency.example:443")
    app = App(settings, io.BytesIO())
    yield Visitor(app)
    app.store.engine.close()


@pytest.mark.parametrize(
    ("origin", "status"), [("https://agency.example", 303), ("http://agency.example", 403), ("http://inside:8000", 403)]
)
def test_a_page_without_tls_is_another_site(public, origin, status):
    public.sign_in("ana@north.example")
    sent = {"HTTP_SEC_FETCH_SITE": None, "HTTP_ORIGIN": origin, "HTTP_HOST": "inside:8000"}
    assert public.post("/console/sign-out", **sent).status == status


def test_links_have_the_public_address_for_any_host_of_the_request(api, public):
    public.sign_in("ana@north.example")
    made = public.post(f"/console/people/{api.admin_id}/link", HTTP_HOST="evil.example")
    shown = public.get(made.location, HTTP_HOST="evil.example")
    assert "https://Agency.example:443/console/password?token=" in shown.html
    assert "evil.example" not in shown.html


def test_https_responses_have_strict_transport_security(api, public):
    for path in ("/console/sign-in", "/console", "/docs", "/nowhere", "/"):
        assert public.get(path).headers["strict-transport-security"] == "max-age=31536000"
        assert "strict-transport-security" not in Visitor(api.app).get(path).headers
