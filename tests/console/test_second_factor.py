"""The second factor of admins: set-up, signing in, recovery codes, and the setting that requires it of all."""

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pyotp
import pytest
import time_machine

from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.audit import AuditFilter
from retainer.identity.people import second_factors, sessions, users
from retainer.identity.sign_in import throttle
from retainer.store.tx import ActorChanged
from tests.console.visitor import HASH, PASSWORD, Fields, Visitor, admin_of

PATH = "/console/profile/second-factor"
CODE = "/console/sign-in/code"
RECOVERY_CODE = re.compile(r"[A-Z2-7]{4}(?:-[A-Z2-7]{4}){3}")
NOW = datetime(2026, 3, 10, 9, 0, 10, tzinfo=UTC)


@pytest.fixture
def clock():
    with time_machine.travel(NOW, tick=False) as travelling:
        yield travelling


@pytest.fixture
def admin(clock, api):  # the clock stops before the session begins
    return admin_of(api)


def set_up(visitor):
    """Set a second factor up; return its app and the recovery codes."""
    app = pyotp.TOTP(secret_of(visitor))
    page = visitor.follow(visitor.post(PATH, {"current": PASSWORD, "code": code_of(app)}))
    codes = RECOVERY_CODE.findall(page.text)
    assert len(set(codes)) == 10, page.text
    return app, codes


def secret_of(visitor):
    """The key that the page shows beside the QR code."""
    (shown,) = re.findall(r"Or enter this key: ((?:[A-Z2-7]{4} ?){8})", visitor.get(PATH).text)
    return shown.replace(" ", "")


def code_of(app):
    return app.at(datetime.now(UTC))


def email_of(api):
    with api.operating() as tx:
        return users.get_user(tx, api.admin_id)["email"]


def actions(api, action):
    with api.operating() as tx:
        return audit.list_entries(tx, AuditFilter(action=action)).entries


def test_a_wrong_password_does_not_hide_a_wrong_code_of_a_new_second_factor(admin):
    admin.get(PATH)
    refused = admin.post(PATH, {"current": "wrong", "code": "000000"})
    assert refused.status == 422
    assert "Wrong password." in refused.text
    assert "Wrong code." in refused.text
    half = admin.post(PATH, {"current": "wrong", "code": ""})
    assert ("Wrong password." in half.text, "Enter a code." in half.text) == (True, True)


def test_signing_in_needs_a_code_once_it_is_set_up(api, admin, clock):
    app, _ = set_up(admin)
    clock.shift(60)
    other = Visitor(api.app, "203.0.113.8")
    page = other.sign_in(email_of(api))
    assert page.title == "Second factor · Retainer"
    assert other.get("/console/keys").location == "/console/sign-in?next=/keys", "the password alone opens nothing"
    assert other.post(CODE, {"code": "000000"}).status == 422
    assert other.post(CODE, {"code": code_of(app)}).location == "/console"
    assert other.get("/console/keys").status == 200
    assert [entry.user_id for entry in actions(api, "second factor added")] == [api.admin_id]


def test_the_requested_page_is_kept_through_both_steps(api, admin, clock):
    app, _ = set_up(admin)
    clock.shift(60)
    other = Visitor(api.app)
    page = other.sign_in(email_of(api), next="/keys?status=all")
    form = dict(Fields(page.html).forms[CODE])
    assert other.post(CODE, form | {"code": code_of(app)}).location == "/console/keys?status=all"


def test_a_code_works_once_and_only_near_its_time(api, admin, clock):
    app, _ = set_up(admin)
    used = code_of(app)
    other = Visitor(api.app)
    other.sign_in(email_of(api))
    assert "already used" in other.post(CODE, {"code": used}).text
    clock.shift(30)
    assert "already used" in other.post(CODE, {"code": used}).text, "still within its window"
    clock.shift(60)
    wrong = other.post(CODE, {"code": used})
    assert "Code : Wrong code" in wrong.text
    assert used not in wrong.html, "so that the next one is not typed behind it"
    early = app.at(datetime.now(UTC) + timedelta(seconds=30))
    assert other.post(CODE, {"code": f"{early[:3]} {early[3:]}"}).status == 303


def test_a_recovery_code_works_once_however_it_is_typed(api, admin):
    _, codes = set_up(admin)
    for typed, status in ((codes[0].lower().replace("-", " "), 303), (codes[0], 422), (codes[1], 303)):
        other = Visitor(api.app)
        other.sign_in(email_of(api))
        assert other.post(CODE, {"code": typed}).status == status
    assert [entry.after for entry in actions(api, "recovery code used")] == [{"left": 8}, {"left": 9}]
    assert "8 recovery codes left" in admin.get(PATH).text


def test_no_secret_or_code_is_stored_in_the_audit_log_or_shown_again(api, admin):
    app, codes = set_up(admin)
    page = admin.get(PATH)
    logged = str(api.sql("SELECT action, target_name, before, after FROM audit_entries"))
    stored = str(api.sql("SELECT hash FROM recovery_codes"))
    for secret in (app.secret, *codes, *(code.replace("-", "") for code in codes)):
        assert secret not in page.html
        assert secret not in logged
        assert secret not in stored


def test_a_sign_in_expires_and_ends_with_a_new_password(api, admin, clock):
    app, _ = set_up(admin)
    clock.shift(60)
    late, changed = Visitor(api.app), Visitor(api.app)
    late.sign_in(email_of(api))
    clock.shift(10 * 60)
    assert late.post(CODE, {"code": code_of(app)}).status == 404
    sessions.delete_expired(api.store)
    assert api.sql("SELECT id FROM pending_sign_ins") == []
    changed.sign_in(email_of(api))
    with api.operating() as tx:
        users.set_password(tx, api.admin_id, "Ana", HASH)
    assert changed.post(CODE, {"code": code_of(app)}).status == 404


def test_many_wrong_codes_must_wait_and_the_right_password_does_not_help(api, admin, clock, monkeypatch):
    monkeypatch.setattr(throttle, "time", SimpleNamespace(monotonic=lambda: 0.0))  # a hash may take longer than a wait
    app, _ = set_up(admin)
    clock.shift(60)
    other = Visitor(api.app, "203.0.113.9")
    statuses = []
    for _ in range(7):
        other.sign_in(email_of(api))
        statuses.append(other.post(CODE, {"code": "000000"}).status)
    assert statuses == [422] * 5 + [429] * 2
    assert other.post(CODE, {"code": code_of(app)}).status == 429
    assert actions(api, "sign-in failed")[0].after["failures"] >= 5
    assert admin.get("/console").status == 200, "who is signed in stays so"


def test_set_up_needs_the_password_and_a_right_code(api, admin):
    secret = secret_of(admin)
    right = {"current": PASSWORD, "code": code_of(pyotp.TOTP(secret))}
    for wrong in ({"current": "wrong"}, {"code": "000000"}):
        page = admin.post(PATH, right | wrong)
        assert page.status == 422, wrong
    assert api.sql("SELECT id FROM second_factors") == []
    assert secret_of(admin) == secret, "the code that was scanned stays right"
    assert admin.post(PATH, right).status == 303
    assert admin.post(PATH, right).status == 422, "there is one already"


def test_the_server_makes_and_keeps_the_secret_whatever_a_form_says(api, admin, clock):
    chosen = pyotp.random_base32()
    sent = {"secret": chosen, "current": PASSWORD, "code": code_of(pyotp.TOTP(chosen))}
    assert admin.post(PATH, sent).status == 422
    assert api.sql("SELECT id FROM second_factors") == []
    assert chosen not in admin.get(PATH).html
    app, _ = set_up(admin)
    assert api.sql("SELECT secret FROM second_factors") == [(app.secret,)]
    assert {secret for (secret,) in api.sql("SELECT proposed_secret FROM sessions")} == {None}
    clock.shift(60)
    admin.post(PATH, {"code": code_of(app), "step": "remove"})
    assert secret_of(admin) != app.secret, "a phone that was lost is of no use"


def test_a_form_that_is_sent_twice_makes_codes_once_and_says_how_to_replace_them(api, admin, clock):
    app = pyotp.TOTP(secret_of(admin))
    for step in ("set up", "replace"):
        sent = [*dict(Fields(admin.get(PATH).html).forms[PATH], current=PASSWORD, code=code_of(app)).items()]
        codes = RECOVERY_CODE.findall(admin.post(PATH, sent).headers["set-cookie"])
        del admin.cookies["retainer-secret"]  # the browser gave that answer up
        again, kept = admin.post(PATH, sent), str(api.sql("SELECT answer FROM sessions"))
        assert (len(codes), RECOVERY_CODE.findall(again.headers["set-cookie"] + kept)) == (10, []), step
        assert "If you did not copy them, replace them." in admin.follow(again).text
        clock.shift(60)
    assert "10 recovery codes left" in admin.get(PATH).text


def test_each_session_proposes_a_secret_of_its_own(api, admin):
    other = Visitor(api.app, "203.0.113.8")
    other.sign_in(email_of(api))
    assert secret_of(other) != secret_of(admin)
    set_up(other)
    assert admin.get("/console").status == 303


def test_it_is_removed_and_its_codes_are_replaced_with_a_code(api, admin, clock):
    app, codes = set_up(admin)
    clock.shift(60)
    assert admin.post(PATH, {"code": "000000", "step": "remove"}).status == 422
    page = admin.follow(admin.post(PATH, {"code": code_of(app)}))
    assert codes[0] not in page.text
    assert admin.post(PATH, {"code": codes[0], "step": "remove"}).status == 422, "replaced"
    clock.shift(60)
    assert admin.post(PATH, {"code": code_of(app), "step": "remove"}).location == "/console/profile"
    assert Visitor(api.app).sign_in(email_of(api)).location == "/console"
    assert api.sql("SELECT id FROM recovery_codes") == []
    assert len(actions(api, "recovery codes replaced") + actions(api, "second factor removed")) == 2


def test_where_it_is_required_nothing_else_opens_before_it_is_set_up(api, admin, clock):
    api.set_account({"require_second_factor": True})
    assert admin.get("/console").location == PATH
    shown = admin.get(PATH).html
    assert ("Cancel" in shown, 'formaction="/console/sign-out"' in shown) == (False, True)
    app, _ = set_up(admin)
    assert admin.get("/console/keys").status == 200
    clock.shift(60)
    refused = admin.post(PATH, {"code": code_of(app), "step": "remove"})
    assert (refused.status, "requires a second factor" in refused.text) == (422, True)
    assert admin.post("/console/sign-out").location == "/console/sign-in"


def test_a_write_that_began_before_it_was_required_is_refused(api, admin):
    token = admin.cookies["retainer-session"]
    acting = sessions.person_of(api.store, token, "203.0.113.7")
    api.set_account({"require_second_factor": True})
    with pytest.raises(ActorChanged), api.store.begin(acting, write=True) as tx:
        users.create_user(tx, users.UserDetails(name="Eve", email="eve@evil.example"))
    assert api.sql("SELECT id FROM users WHERE name = 'Eve'") == []


def test_another_admin_or_the_operator_removes_a_lost_one(api, admin):
    set_up(admin)
    other_id = api.add_user("Olga", role="admin", email="olga@people.example")
    with api.operating() as tx:
        users.set_password(tx, other_id, "Olga", HASH)
    other = Visitor(api.app)
    other.sign_in("olga@people.example")
    path = f"/console/people/{api.admin_id}/second-factor"
    assert admin.post(path, {"confirmation": "Ana Admin"}).status == 422
    assert other.submit(path, confirmation="Ana").status == 422
    assert other.submit(path, confirmation="Ana Admin").status == 200
    assert Visitor(api.app).sign_in(email_of(api)).location == "/console"
    with api.operating() as tx, pytest.raises(Refusal, match="no second factor"):
        second_factors.remove(tx, api.admin_id)


def test_people_are_told_by_mail_what_became_of_their_second_factor(api, admin, clock):
    set_up(admin)
    clock.shift(timedelta(minutes=5))
    told = [("security_notice", "Your second factor was set up at North", email_of(api))]
    assert api.sql('SELECT kind, subject, "to" FROM messages ORDER BY id') == told
    with api.operating() as tx:
        user_id = users.create_user(tx, users.UserDetails("Pat", "pat@north.example", "admin"), HASH)
    other = Visitor(api.app)
    other.sign_in("pat@north.example")
    other.submit(f"/console/people/{api.admin_id}/second-factor", confirmation="Ana Admin")
    told.append(("security_notice", "Your second factor was removed at North", email_of(api)))
    assert api.sql('SELECT kind, subject, "to" FROM messages ORDER BY id') == told
    assert user_id != api.admin_id


def test_a_full_quota_of_mail_keeps_nobody_from_a_second_factor(api, admin, monkeypatch):
    full = {**api.store.limits, "messages": dict.fromkeys(api.store.limits["files"], 0)}
    monkeypatch.setattr(api.store, "limits", full)
    set_up(admin)
    assert api.sql("SELECT id FROM messages") == []
