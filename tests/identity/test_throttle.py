"""Floods of sign-ins: which attempts are hashed, and what they leave."""

import threading
from contextlib import nullcontext

import pyotp
import pytest
from testing.agencies import bare_request
from testing.process import PATIENCE, until
from testing.wsgi import Client

from retainer.identity.people import passwords, second_factors, users
from retainer.identity.people.users import UserDetails
from retainer.identity.sign_in import sign_in, throttle
from retainer.identity.sign_in.sign_in import Browser
from retainer.kernel import limits
from retainer.kernel.http import Response, networks, parse_address
from retainer.server.http.exchange import Exchange
from tests.databases import any_database
from tests.identity.conftest import NOW, PASSWORD
from tests.identity.test_sign_in import OFFICE, enter, fail, refusal


def busy(subject):
    """A block in which the only turn of strangers is taken."""
    return subject.turn("others")


def waiting(subject):
    """The number of attempts that wait for their turn."""
    return sum(lane.waiting for lane in subject.lanes.values())


def test_a_flood_writes_nothing(api, admin):
    before = api.databases.commits(api.app)
    for number in range(60):
        browser = Browser(f"198.51.100.{number % 7}", last_token=f"token {number}")
        fail(api, f"{number % 11}@north.example", browser)
    assert api.databases.commits(api.app) == before
    for _ in range(9):
        fail(api, admin, Browser("192.0.2.1"))
    entries = api.sql("SELECT action FROM audit_entries WHERE action = 'sign-in failed'")
    assert len(entries) == 1, "the failure that made the next attempt wait"


def six(network, number):
    """A browser in a /64 network of a /48 network."""
    address = parse_address(f"2001:db8:{network}:{number:x}::{number:x}")
    return Browser(str(address), networks=networks(address))


def test_ipv6_addresses_are_counted_by_their_64_and_48_networks(api, admin):
    assert networks(parse_address("2001:db8:a:b:c::d")) == ("2001:db8:a:b::/64", "2001:db8:a::/48")
    assert networks(parse_address("::ffff:192.0.2.1")) == ("192.0.2.1",)
    for number in range(20):
        address = f"2001:db8:9:9::{number}"
        fail(api, f"{number}@x.example", Browser(address, networks=networks(parse_address(address))))
    assert refusal(enter, api, admin, browser=six("9", 9)).code == "rate_limited"
    enter(api, admin, browser=six("9", 10))
    for number in range(80):
        assert fail(api, f"{number}@y.example", six("9", 100 + number)).code == "validation_failed"
    assert refusal(enter, api, admin, browser=six("9", 10)).code == "rate_limited"
    enter(api, admin, browser=six("8", 10))


def test_success_in_a_known_browser_keeps_the_failures_from_elsewhere(api, admin):
    token = enter(api, admin).token
    for number in range(5):
        fail(api, admin, Browser(f"198.51.100.{number}"))
    assert refusal(enter, api, admin).code == "rate_limited"
    enter(api, admin, browser=OFFICE._replace(last_token=token))
    assert refusal(enter, api, admin).code == "rate_limited", "failures from elsewhere still count"


def test_failures_in_a_known_browser_do_not_count_for_its_email_or_address(api, admin):
    token = enter(api, admin).token
    for _ in range(5):
        assert fail(api, admin, OFFICE._replace(last_token=token)).code == "validation_failed"
    assert refusal(enter, api, admin, browser=OFFICE._replace(last_token=token)).code == "rate_limited"
    enter(api, admin)


def test_success_resets_the_failures_of_its_email_only(api, admin):
    for email in (admin, "max@north.example"):
        for _ in range(4):
            fail(api, email)
    enter(api, admin)
    assert [fail(api, admin).code for _ in range(5)] == ["validation_failed"] * 5
    assert [fail(api, "max@north.example").code for _ in range(2)] == ["validation_failed", "rate_limited"]


def test_guesses_at_the_current_password_make_its_session_wait(api, admin):
    acting = enter(api, admin).person
    change = (sign_in.change_password, api.store, api.app.throttle, acting)
    wrong = sign_in.SignInChange("a wrong password", "another long password")
    codes = [refusal(*change, wrong, id).code for _ in range(6)]
    assert codes == ["validation_failed"] * 5 + ["rate_limited"]
    enter(api, admin)


def test_the_right_password_does_not_clear_wrong_codes_in_the_same_session(api, admin):
    acting = enter(api, admin).person
    remove = (sign_in.remove_second_factor, api.store, api.app.throttle, acting, "000000", id)
    for _ in range(4):
        assert refusal(*remove).code == "validation_failed"
    sign_in.change_password(api.store, api.app.throttle, acting, sign_in.SignInChange(PASSWORD, PASSWORD), id)
    assert [refusal(*remove).code for _ in range(2)] == ["validation_failed", "rate_limited"]


def test_a_flood_from_the_same_network_keeps_no_admin_out_of_a_known_browser(api, admin):
    first = enter(api, admin)
    with api.store.begin(first.person, write=True) as tx:
        secret = pyotp.random_base32()
        second_factors.add(tx, secret, pyotp.TOTP(secret).at(NOW.timestamp()))
    for number in range(21):
        refused = fail(api, f"{number}@x.example", OFFICE)
    assert refused.code == "rate_limited"
    known = OFFICE._replace(last_token=first.token)
    step = sign_in.sign_in(api.store, api.app.throttle, admin, PASSWORD, known)
    code = pyotp.TOTP(secret).at(NOW.timestamp() + 30)
    assert sign_in.finish(api.store, api.app.throttle, step.token, code, known).person.user_id == api.admin_id


def test_an_attempt_that_failed_for_an_internal_reason_is_not_counted(api, admin, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(passwords, "matches", None)
        for _ in range(9):
            with pytest.raises(TypeError):
                enter(api, admin)
    with api.databases.out_of_reach(api.app):
        for _ in range(9):
            with pytest.raises(Exception, match=r"\w"):
                enter(api, admin)
    enter(api, admin)


@any_database
def test_housekeeping_deletes_old_windows(api, monkeypatch):
    app = api.app
    app.limiter.hit("address:203.0.113.1", 1)
    monkeypatch.setattr(limits, "WINDOW_SECONDS", -PATIENCE)
    app.housekeeping.start()
    for chore in app.housekeeping.chores:
        chore.due_at = 0
    until(lambda: not app.limiter._hits, "they are dropped")  # noqa: SLF001
    app.housekeeping.stop()


@any_database
def test_an_admin_from_elsewhere_waits_for_one_hash_of_a_flood(api, admin, monkeypatch):
    subject, hashed, matches = api.app.throttle, [], passwords.matches
    monkeypatch.setattr(passwords, "matches", lambda *given: hashed.append(given[1]) or matches(*given))
    with busy(subject):
        flood = [threading.Thread(target=fail, args=(api, f"{n}@x.example")) for n in range(9)]
        entering = threading.Thread(target=enter, args=(api, admin))
        for thread in flood:
            thread.start()
        until(lambda: waiting(subject) == len(flood), "they wait")
        entering.start()
        until(lambda: waiting(subject) == len(flood) + 1, "the admin waits")
    for thread in (*flood, entering):
        thread.join()
    assert hashed.index(PASSWORD) == 1


@any_database
def test_the_network_with_most_strangers_gives_up_a_place(api, admin, monkeypatch):
    monkeypatch.setattr(throttle, "MAX_WAITING", 4)
    token, refused = enter(api, admin).token, []
    subject = api.app.throttle = throttle.Throttle(api.app.limiter, api.app.throttle.failures, nullcontext)
    with busy(subject):
        flood = [threading.Thread(target=lambda n=n: refused.append(fail(api, f"{n}@x.example"))) for n in range(3)]
        for thread in flood:
            thread.start()
        until(lambda: waiting(subject) + len(refused) == 3, "two wait, and one was refused")
        entering = threading.Thread(target=enter, args=(api, admin))
        entering.start()
        until(lambda: len(refused) == 2, "one gave its place up")
        assert {(each.code, each.status, each.headers["Retry-After"]) for each in refused} == {
            ("unavailable", 503, "2")
        }
        for _ in range(9):
            enter(api, admin, browser=OFFICE._replace(last_token=token))
    for thread in (*flood, entering):
        thread.join()
    assert len(api.sql("SELECT id FROM sessions")) == 1 + 1 + 9


@any_database
def test_two_passwords_are_hashed_at_a_time(api, admin, monkeypatch):
    known, subject = OFFICE._replace(last_token=enter(api, admin).token), api.app.throttle
    monkeypatch.setattr(throttle, "WAIT_SECONDS", 0)
    with busy(subject), subject.turn(api.account_id):
        for browser in (OFFICE, known):
            for _ in range(9):
                assert refusal(enter, api, admin, browser=browser).code == "unavailable"
    for browser in (OFFICE, known):
        enter(api, admin, browser=browser)


@any_database
def test_an_attempt_that_waits_for_its_hash_occupies_no_slot(api, admin):
    app, answered, running = api.app, [], api.app.gate.turns.running

    def attempt(_):
        answered.append(enter(api, admin))
        return Response(200, [])

    with busy(app.throttle):
        sent = Exchange(bare_request(app.settings), Client(None), "127.0.0.1:9", attempt, is_quick=False)
        app.gate.admit(sent)
        until(lambda: waiting(app.throttle) == 1, "it waits")
        until(lambda: running.free == running.count, "it has left its turn")
        assert answered == []
    until(lambda: answered, "it goes on")
    until(lambda: running.free == running.count, "it has ended")


@any_database
def test_a_hash_that_fails_gives_its_turn_back(api):
    subject = api.app.throttle
    with pytest.raises(ValueError, match="broken"), subject.turn("a"):
        raise ValueError("broken")
    with subject.turn("a"):
        assert waiting(subject) == 0


@pytest.mark.parametrize("change", [{"is_active": False}, {"password_hash": "another"}])
def test_losing_access_while_the_password_is_hashed_refuses_the_sign_in(api, admin, change):
    api.add_user("Another Admin", role="admin")  # the last one keeps the right
    answered = []
    with busy(api.app.throttle):
        thread = threading.Thread(target=lambda: answered.append(refusal(enter, api, admin).code))
        thread.start()
        until(lambda: waiting(api.app.throttle) == 1, "it knows the user, and waits")
        api.set_user(api.admin_id, change)
    thread.join()
    assert answered == ["validation_failed"]
    assert api.sql("SELECT id FROM sessions") == []


@any_database
def test_password_links_and_changes_are_hashed_like_known_browsers(api, admin):
    subject = api.app.throttle
    acting = enter(api, admin).person
    with api.operating() as tx:
        _, link = users.invite(tx, UserDetails("Eve", "eve@north.example", "admin"))
    with busy(subject):
        sign_in.set_password(api.store, subject, link.token, PASSWORD, OFFICE)
        sign_in.change_password(api.store, subject, acting, sign_in.SignInChange(PASSWORD, "another long password"), id)
    enter(api, "eve@north.example")
    enter(api, admin, "another long password")
