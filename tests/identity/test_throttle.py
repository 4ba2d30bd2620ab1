"""Floods of sign-ins: which attempts are hashed, and what they leave."""

import threading

import pytest
from testing.agencies import bare_request
from testing.process import PATIENCE, until

from retainer.identity.people import passwords, users
from retainer.identity.people.users import UserDetails
from retainer.identity.sign_in import failures, sign_in
from retainer.identity.sign_in.sign_in import Browser
from retainer.kernel import limits
from retainer.kernel.forwarding import networks, parse_address
from retainer.kernel.limits import ADDRESS_RATE_LIMIT, hit_address
from tests.databases import any_database
from tests.identity.conftest import PASSWORD
from tests.identity.test_sign_in import ELSEWHERE, OFFICE, enter, fail, refusal


def remaining(api, browser):
    """How many refusals the address of a browser has left."""
    return hit_address(api.app.limiter, browser.address, charge=False).remaining


def use_up(api, browser):
    """Refuse as many requests of an address as there may be."""
    for _ in range(ADDRESS_RATE_LIMIT):
        hit_address(api.app.limiter, browser.address, charge=True)


def test_only_refused_sign_ins_are_charged_to_the_address(api, admin):
    assert remaining(api, ELSEWHERE) == ADDRESS_RATE_LIMIT
    enter(api, admin, browser=ELSEWHERE)
    assert remaining(api, ELSEWHERE) == ADDRESS_RATE_LIMIT
    for number in range(1, 8):
        refused = fail(api, admin)
        assert remaining(api, ELSEWHERE) == ADDRESS_RATE_LIMIT - number
    assert refused.code == "rate_limited"
    assert remaining(api, OFFICE) == ADDRESS_RATE_LIMIT


def test_beyond_the_limit_of_its_address_no_attempt_is_hashed_or_written(both, admin, monkeypatch):
    api, other = both
    token = enter(api, admin, browser=ELSEWHERE).token
    use_up(api, ELSEWHERE)
    before = api.databases.commits(api.app)
    with monkeypatch.context() as patch:
        patch.setattr(passwords, "matches", None)
        refused = refusal(enter, api, admin, browser=ELSEWHERE)
    assert refused.code == "rate_limited"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert api.databases.commits(api.app) == before
    enter(api, admin)
    enter(api, admin, browser=ELSEWHERE._replace(last_token=token))
    assert remaining(api, ELSEWHERE) == 0
    assert other.get("/me").status == 200


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
    acting = enter(api, admin).admin
    change = (sign_in.change_password, api.store, api.app.throttle, acting)
    codes = [refusal(*change, "a wrong password", "another long password").code for _ in range(6)]
    assert codes == ["validation_failed"] * 5 + ["rate_limited"]
    enter(api, admin)


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
    assert remaining(api, OFFICE) == ADDRESS_RATE_LIMIT
    enter(api, admin)


@any_database
def test_housekeeping_deletes_old_windows_and_failures(api, admin, monkeypatch):
    app = api.app
    fail(api, admin)
    monkeypatch.setattr(failures, "TTL", -PATIENCE)
    monkeypatch.setattr(limits, "WINDOW_SECONDS", -PATIENCE)
    app.housekeeping.start()
    for chore in app.housekeeping.chores:
        chore.due_at = 0
    until(lambda: not (app.throttle.failures._counted or app.limiter._hits), "they are dropped")  # noqa: SLF001
    app.housekeeping.stop()


@any_database
def test_a_flood_is_refused_beyond_its_share_while_an_admin_from_elsewhere_gets_a_turn(api, admin):
    queue, answered = api.app.throttle.queue, []
    assert queue.share < 20
    with queue.turn("others", is_known=False), queue.turn("others", is_known=False):
        flood = [threading.Thread(target=lambda n=n: answered.append(fail(api, f"{n}@x.example"))) for n in range(20)]
        entering = threading.Thread(target=lambda: answered.append(enter(api, admin)))
        for thread in flood:
            thread.start()
        until(lambda: queue.waiting + len(answered) == 20, "each waits or was refused")
        assert {(refused.code, refused.status) for refused in answered} == {("rate_limited", 429)}
        assert all(int(refused.headers["Retry-After"]) >= 1 for refused in answered)
        assert len(answered) == 20 - queue.share
        entering.start()
        until(lambda: queue.waiting == queue.share + 1, "the admin waits")
    for thread in (*flood, entering):
        thread.join()
    assert sum(isinstance(answer, sign_in.SignedIn) for answer in answered) == 1
    assert [fail(api, "new@x.example").code for _ in range(5)] == ["validation_failed"] * 5, "refused ones do not count"


@any_database
def test_an_attempt_that_waits_for_its_hash_occupies_no_slot(api, admin):
    app, answered = api.app, []

    def attempt():
        with app.gate.admit(bare_request(app.settings)):
            answered.append(enter(api, admin))

    with app.throttle.queue.turn("a", is_known=False), app.throttle.queue.turn("b", is_known=False):
        free = app.gate.running.free
        thread = threading.Thread(target=attempt)
        thread.start()
        until(lambda: app.throttle.queue.waiting == 1, "it waits")
        assert app.gate.running.free == free
    thread.join()
    assert app.gate.running.free == app.gate.running.count
    assert answered


@pytest.mark.parametrize("change", [{"is_active": False}, {"role": "member"}, {"password_hash": "another"}])
def test_losing_access_while_the_password_is_hashed_refuses_the_sign_in(api, admin, change):
    api.add_user("Another Admin", role="admin")  # the last one keeps the right
    queue, answered = api.app.throttle.queue, []
    with queue.turn("a", is_known=False), queue.turn("b", is_known=False):
        thread = threading.Thread(target=lambda: answered.append(refusal(enter, api, admin).code))
        thread.start()
        until(lambda: queue.waiting == 1, "it knows the user, and waits")
        api.set_user(api.admin_id, change)
    thread.join()
    assert answered == ["validation_failed"]
    assert api.sql("SELECT id FROM sessions") == []


@any_database
def test_password_links_and_changes_are_hashed_like_known_browsers(api, admin):
    queue = api.app.throttle.queue
    acting = enter(api, admin).admin
    with api.operating() as tx:
        _, link = users.invite(tx, UserDetails("Eve", "eve@north.example", "admin"))
    steps = [
        lambda: sign_in.set_password(api.store, api.app.throttle, link.token, PASSWORD, OFFICE),
        lambda: sign_in.change_password(api.store, api.app.throttle, acting, PASSWORD, "another long password"),
    ]
    for step in steps:
        with queue.turn("a", is_known=False), queue.turn("b", is_known=False):
            thread = threading.Thread(target=step)
            thread.start()
            until(lambda: queue.waiting == 1, "it waits")
            other = threading.Thread(target=lambda: fail(api, "nobody@x.example"))
            other.start()
            until(lambda: queue.waiting == 2, "another waits behind it")
            assert len(queue._known) == 1  # noqa: SLF001
        thread.join()
        other.join()
    enter(api, "eve@north.example")
    enter(api, admin, "another long password")
