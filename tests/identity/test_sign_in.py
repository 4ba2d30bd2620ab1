"""Sign-ins, sessions, password links, and the throttle."""

import threading
from datetime import timedelta

import pytest
from testing.process import PATIENCE

from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.audit import AuditFilter
from retainer.identity.people import passwords, sessions, users
from retainer.identity.people.sessions import LINKS
from retainer.identity.people.users import UserDetails
from retainer.identity.sign_in import sign_in
from retainer.identity.sign_in.sign_in import Browser, SignedIn, SignInChange
from tests.identity.conftest import PASSWORD

OFFICE = Browser("203.0.113.1", "Firefox")
ELSEWHERE = Browser("198.51.100.1")
OTHER = "another long password"
pytestmark = pytest.mark.usefixtures("quick")


def enter(api, email, password=PASSWORD, browser=OFFICE, **options) -> SignedIn:
    result = sign_in.sign_in(api.store, api.app.throttle, email, password, browser, **options)
    assert isinstance(result, SignedIn), result
    return result


def refusal(call, *arguments, **options) -> Refusal:
    with pytest.raises(Refusal) as refused:
        call(*arguments, **options)
    return refused.value


def fail(api, email, browser=ELSEWHERE) -> Refusal:
    return refusal(enter, api, email, "a wrong password", browser)


def admin_of(api, token):
    """The user of a session who opens a page; its use is written as the server does every two seconds."""
    person = sessions.person_of(api.store, token, "203.0.113.9")
    if person is not None:
        used = api.app.housekeeping.sessions_used
        used.note(person.account_id, person.session_id, person.address)
        used.write(api.store)
    return person


def actions(api, **filters):
    """What was done in the time of the test: the agencies were opened later."""
    with api.operating() as tx:
        return audit.list_entries(tx, AuditFilter(until="2026-06-01T00:00:00.000000Z", **filters)).entries


def test_an_admin_signs_in_and_is_known_by_the_session(api, admin):
    token, signed_in = enter(api, f" {admin.upper()} ")
    found = admin_of(api, token)
    assert (found.account_id, found.user_id, found.role) == (api.account_id, api.admin_id, "admin")
    assert (found.name, found.email, found.account_name) == ("Ana Admin", "ana@north.example", "North")
    assert (found.session_id, found.address) == (signed_in.session_id, "203.0.113.9")
    assert admin_of(api, token[:-1]) is None
    (entry,) = actions(api, action="signed in")
    assert (entry.user_id, entry.address, entry.target_id) == (api.admin_id, "203.0.113.1", signed_in.session_id)


def test_no_stored_value_is_a_password_token_or_link(api, admin):
    token = enter(api, admin).token
    with api.operating() as tx:
        link = users.create_link(tx, api.admin_id)
    stored = repr(api.sql("SELECT * FROM sessions")) + repr(api.sql("SELECT * FROM password_links"))
    stored += repr(api.sql("SELECT * FROM audit_entries")) + repr(api.sql("SELECT * FROM users"))
    for secret in (token, link.token, PASSWORD):
        assert secret not in stored


@pytest.mark.parametrize(
    "change", [{"is_active": False}, {"password_hash": None}], ids=lambda change: next(iter(change))
)
def test_only_active_users_with_a_password_sign_in_and_each_refusal_is_the_same(api, admin, change):
    api.add_user("Bea Boss", role="admin")
    unknown = fail(api, "nobody@north.example")
    wrong = fail(api, admin)
    if "password_hash" in change:
        api.sql("UPDATE users SET password_hash = NULL WHERE id = $1", api.admin_id)
    else:
        api.set_user(api.admin_id, change)
    refused = refusal(enter, api, admin)
    assert {unknown.code, wrong.code, refused.code} == {"validation_failed"}
    assert str(unknown) == str(wrong) == str(refused)
    assert unknown.members == wrong.members == refused.members


def test_an_unknown_email_takes_one_hash_like_a_known_one(api, admin, monkeypatch):
    verified = []
    verify = passwords.HASHER.verify
    monkeypatch.setattr(passwords.PasswordHasher, "verify", lambda _, *args: verified.append(args) or verify(*args))
    for email in (admin, "nobody@north.example", "no address"):
        verified.clear()
        fail(api, email)
        assert len(verified) == 1, email


def test_a_choice_of_accounts_is_returned_only_if_the_password_matches_several(api, other_tenant, admin):
    with other_tenant.operating() as tx:
        details = UserDetails("Ana too", admin, "admin")
        users.create_user(tx, details, passwords.hash_password(OTHER))
    assert enter(api, admin).person.account_id == api.account_id
    assert enter(api, admin, OTHER).person.account_id == other_tenant.account_id
    other_tenant.sql("UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE id = $1)", api.admin_id)
    choices = sign_in.sign_in(api.store, api.app.throttle, admin, PASSWORD, OFFICE)
    found = [(person.account_id, person.account_name) for person in choices]
    assert found == [(api.account_id, "North"), (other_tenant.account_id, "South")]
    for account_id, _ in found:
        assert enter(api, admin, account_id=account_id).person.account_id == account_id
    assert fail(api, admin).code == "validation_failed"


# Sessions


def test_a_session_ends_when_it_is_idle_and_after_12_hours(api, admin, clock):
    token = enter(api, admin).token
    for _ in range(24):
        clock.shift(timedelta(minutes=29, seconds=59))
        assert admin_of(api, token), "it was used before it was idle"
    clock.shift(timedelta(seconds=24))
    assert admin_of(api, token) is None, "12 hours have passed"
    token = enter(api, admin).token
    clock.shift(timedelta(minutes=30))
    assert admin_of(api, token) is None


def test_the_use_of_a_session_is_written_once_a_minute(api, admin, clock):
    token = enter(api, admin).token
    for seconds, written in ((20, "09:00:20"), (59, "09:00:20"), (1, "09:01:20"), (30, "09:01:20")):
        clock.shift(seconds)
        admin_of(api, token)
        assert used(api) == [f"2026-03-10T{written}.000000Z"]


def used(api):
    with api.operating() as tx:
        return [session.last_used_at for session in sessions.list_sessions(tx)]


def test_deactivation_ends_sessions_and_links_permanently(api, admin):
    api.add_user("Bea Boss", role="admin")
    token = enter(api, admin).token
    with api.operating() as tx:
        link = users.create_link(tx, api.admin_id)
    api.set_user(api.admin_id, {"is_active": False})
    assert admin_of(api, token) is None
    api.set_user(api.admin_id, {"is_active": True})
    assert admin_of(api, token) is None, "the session stays ended"
    assert refusal(LINKS.find, api.store, link.token).code == "not_found"


def test_a_new_password_ends_all_other_sessions(api, admin):
    first, second = enter(api, admin), enter(api, admin)
    sign_in.change_password(api.store, api.app.throttle, second.person, SignInChange(PASSWORD, OTHER), id)
    assert (admin_of(api, first.token), bool(admin_of(api, second.token))) == (None, True)
    assert refusal(enter, api, admin).code == "validation_failed"
    enter(api, admin, OTHER)
    refused = refusal(
        sign_in.change_password, api.store, api.app.throttle, second.person, SignInChange(PASSWORD, OTHER), id
    )
    assert "current" in refused.members["errors"]
    refused = refusal(
        sign_in.change_password, api.store, api.app.throttle, second.person, SignInChange(OTHER, "elevenchars"), id
    )
    assert "password" in refused.members["errors"]
    api.set_user(api.admin_id, {"password_hash": passwords.hash_password(PASSWORD)})
    assert admin_of(api, second.token) is None, "a change by the operator ends all of them"


def test_sessions_are_listed_and_revoked_within_the_account(api, other_tenant, admin):
    first, second = enter(api, admin), enter(api, admin, browser=ELSEWHERE)
    with api.operating() as tx:
        listed = sessions.list_sessions(tx)
    assert [session.address for session in listed] == ["198.51.100.1", "203.0.113.1"]
    with other_tenant.operating() as tx:
        assert sessions.list_sessions(tx) == []
        assert refusal(sessions.end, tx, first.person.session_id).code == "not_found"
    with api.store.begin(second.person, write=True) as tx:
        sessions.end(tx, first.person.session_id)
        sessions.end(tx, second.person.session_id)
    assert (admin_of(api, first.token), admin_of(api, second.token)) == (None, None)
    assert [entry.action for entry in actions(api)][:2] == ["signed out", "session revoked"]


def test_admins_cannot_end_their_own_access(api, admin):
    acting = enter(api, admin).person
    for change in ({"role": "member"}, {"is_active": False}):
        with api.store.begin(acting, write=True) as tx:
            assert refusal(users.change_user, tx, api.admin_id, change).code == "validation_failed"
    with api.store.begin(acting, write=True) as tx:
        users.change_user(tx, api.admin_id, {"role": "admin", "name": "Ana"})


# Links


def test_a_link_sets_a_password_once_and_signs_in(api, clock):
    with api.operating() as tx:
        user_id, link = users.invite(tx, UserDetails("Eve", "eve@north.example", "admin"))
    invitee, has_password = LINKS.find(api.store, link.token)
    assert (invitee.user_id, invitee.email, has_password) == (user_id, "eve@north.example", False)
    short = refusal(sign_in.set_password, api.store, api.app.throttle, link.token, "elevenchars", OFFICE)
    assert "12 to 1000 characters" in str(short)
    token, signed_in = sign_in.set_password(api.store, api.app.throttle, link.token, PASSWORD, OFFICE)
    assert admin_of(api, token).user_id == signed_in.user_id == user_id
    assert refusal(sign_in.set_password, api.store, api.app.throttle, link.token, OTHER, OFFICE).code == "not_found"
    enter(api, "eve@north.example")
    told = [(entry.action, entry.user_id) for entry in actions(api)]
    assert told[:5] == [
        ("signed in", user_id),
        ("signed in", user_id),
        ("password set", user_id),
        ("link created", None),
        ("user created", None),
    ]


def test_a_link_is_void_after_a_week_and_when_there_is_a_newer_one(api, admin, clock):
    with api.operating() as tx:
        first, second = users.create_link(tx, api.admin_id), users.create_link(tx, api.admin_id)
    assert refusal(LINKS.find, api.store, first.token).code == "not_found"
    clock.shift(timedelta(days=7) - timedelta(seconds=1))
    assert LINKS.find(api.store, second.token)[1]
    clock.shift(1)
    assert refusal(LINKS.find, api.store, second.token).code == "not_found"


def test_of_two_concurrent_uses_of_a_link_one_sets_the_password(api, monkeypatch):
    with api.operating() as tx:
        link = users.create_link(tx, api.admin_id)
    found, results = threading.Barrier(2), []
    read = sign_in.read_new_password  # after the link was found
    monkeypatch.setattr(sign_in, "read_new_password", lambda text: (found.wait(PATIENCE) and None) or read(text))

    def attempt(password):
        try:
            sign_in.set_password(api.store, api.app.throttle, link.token, password, OFFICE)
            results.append(password)
        except Refusal as refused:
            results.append(refused.code)

    threads = [threading.Thread(target=attempt, args=(password,)) for password in (PASSWORD, OTHER)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count("not_found") == 1, results
    (password,) = {PASSWORD, OTHER} & set(results)
    enter(api, "ana@north.example", password)


def test_only_active_users_get_links(api, other_tenant):
    with api.operating() as tx:
        assert users.create_link(tx, api.member_id).token
    api.set_user(api.member_id, {"is_active": False})
    with api.operating() as tx:
        assert refusal(users.create_link, tx, api.member_id).code == "validation_failed"
        assert refusal(users.create_link, tx, other_tenant.admin_id).code == "not_found"


# Throttling


def test_each_failure_makes_the_next_attempt_wait_longer_up_to_15_minutes(api, admin, clock):
    waits = []
    for attempt in range(20):
        assert fail(api, admin).code == "validation_failed"
        if attempt >= 4:
            refused = refusal(enter, api, admin, browser=ELSEWHERE)
            assert refused.code == "rate_limited"
            waits.append(int(refused.headers["Retry-After"]))
            clock.shift(waits[-1])
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900, 900, 900, 900]
    assert len(actions(api, action="sign-in failed")) == 16
    enter(api, admin, browser=ELSEWHERE)
    assert fail(api, admin).code == "validation_failed", "success resets the count"


def test_an_attack_from_elsewhere_does_not_delay_a_known_browser(api, admin, clock):
    token = enter(api, admin).token
    clock.shift(timedelta(days=2))
    assert admin_of(api, token) is None
    for number in range(6):
        fail(api, admin, Browser(f"198.51.100.{number}"))
    assert refusal(enter, api, admin).code == "rate_limited"
    enter(api, admin, browser=OFFICE._replace(last_token=token))


def test_a_known_browser_is_counted_separately_for_its_email(api, admin, clock):
    token = enter(api, admin).token
    known = ELSEWHERE._replace(last_token=token)
    for _ in range(5):
        assert fail(api, admin, known).code == "validation_failed"
    assert fail(api, admin, known).code == "rate_limited"
    enter(api, admin)
    for _ in range(5):
        fail(api, "max@north.example", known)
    assert fail(api, "max@north.example").code == "rate_limited", "like any browser"


def test_an_address_that_tries_many_emails_must_wait(api, admin, clock):
    for number in range(20):
        assert fail(api, f"{number}@north.example").code == "validation_failed"
    assert refusal(enter, api, admin, browser=ELSEWHERE).code == "rate_limited"
    enter(api, admin)
    clock.shift(1)
    enter(api, admin, browser=ELSEWHERE)
    fail(api, "20@north.example")
    assert refusal(enter, api, admin, browser=ELSEWHERE).code == "rate_limited", "one's own sign-in clears nothing"


def test_concurrent_attempts_are_all_counted(api, admin):
    results = []

    def attempt():
        results.append(fail(api, admin).code)

    threads = [threading.Thread(target=attempt) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count("validation_failed") == 5, results


def test_a_hash_with_former_parameters_is_renewed(api, clock):
    old = passwords.PasswordHasher(time_cost=2, memory_cost=32, parallelism=1).hash(PASSWORD)
    api.set_user(api.admin_id, {"password_hash": old})
    enter(api, "ana@north.example")
    ((new,),) = api.sql("SELECT password_hash FROM users WHERE id = $1", api.admin_id)
    assert new != old
    enter(api, "ana@north.example")


# What is over


def test_expired_sessions_and_links_are_deleted(api, admin, clock):
    enter(api, admin)
    with api.operating() as tx:
        users.create_link(tx, api.admin_id)
    sessions.delete_expired(api.store)
    assert counts(api) == {"sessions": 1, "password_links": 1}
    clock.shift(timedelta(days=7))
    sessions.delete_expired(api.store)
    assert counts(api) == {"sessions": 1, "password_links": 0}
    clock.shift(timedelta(days=90))
    sessions.delete_expired(api.store)
    assert counts(api)["sessions"] == 0


def counts(api):
    names = ("sessions", "password_links")
    return {name: api.sql(f"SELECT count(*) FROM {name}")[0][0] for name in names}


def test_after_a_restore_no_session_and_no_link_is_valid(api, admin):
    token = enter(api, admin).token
    with api.operating() as tx:
        link = users.create_link(tx, api.admin_id)
    sessions.revoke_all(api.store)
    assert admin_of(api, token) is None
    assert refusal(LINKS.find, api.store, link.token).code == "not_found"
