"""Mail to people: invitations, forgotten passwords and notices reach them alone, are few, and give nothing away."""

import io
import re
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from testing.agencies import RENDERERS, SITE

from retainer.app import App
from retainer.identity import closing
from retainer.identity.people import users
from retainer.mail import people
from retainer.server.monitoring import housekeeping
from retainer.settings import Settings
from retainer.store.engines.base import Unavailable
from tests.console.visitor import PASSWORD as KNOWN
from tests.console.visitor import Fields, Visitor, admin_of, user_of
from tests.mail.server import SENDER
from tests.quick_hashes import hash_quickly

FORGOTTEN, LINK = "/console/sign-in/forgotten", re.compile(r"http://agency\.example(/console/password\?token=\S+)")
PASSWORD = "four unrelated words here"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    hash_quickly(monkeypatch)


@pytest.fixture
def visitor(api):
    return admin_of(api)


def ask(api, email, address="198.51.100.9"):
    """Ask for a link, and let the server do what it has noted."""
    page = Visitor(api.app, address).post(FORGOTTEN, {"email": email})
    api.app.housekeeping.links_asked.send(api.store)
    return page


def links(post):
    """The paths of the links that have arrived, oldest first."""
    return [LINK.search(got.message.get_content())[1] for got in post.server.got]


def set_password(api, path, password=PASSWORD):
    visitor = Visitor(api.app)
    page = visitor.get(path)
    if page.status != 200:
        return page
    token = path.partition("=")[2]
    return visitor.post("/console/password", {"token": token, "password": password, "again": password})


def test_a_new_person_gets_an_invitation_chooses_a_password_and_is_in(api, visitor, post):
    page = visitor.submit("/console/people/new", name="Mia Member", email="mia@north.example")
    assert "A link to choose a password is being sent to mia@north.example." in page.text
    assert "token=" not in page.html
    assert "{link}" not in page.html
    assert "Your access to North" in page.text, "the page of the person lists her messages"
    for query in ({}, {"status": "queued,sent"}, {"ids": "1"}):
        page = api.get("/messages", query)
        assert (page.data, page.json["meta"]["total"]) == ([], 0), "no key reads it"
    assert api.sql("SELECT count(*) FROM password_links") == [(0,)], "nothing that could be stolen waits"
    assert post.send() == 1
    (got,) = post.server.got
    assert (got.recipient, got.sender) == ("mia@north.example", SENDER)
    assert (got.message["Auto-Submitted"], got.message["Reply-To"]) == ("auto-generated", "ana@north.example")
    assert "within 7 days" in got.message.get_content()
    (path,) = links(post)
    assert path.partition("=")[2] not in str(api.sql("SELECT message, subject FROM messages"))
    assert set_password(api, path).status == 303
    assert Visitor(api.app).sign_in("mia@north.example", PASSWORD).status == 303
    assert set_password(api, path).status == 404, "it works once"


def test_a_link_by_mail_to_a_person_with_a_password_says_so_and_is_short(api, visitor, post):
    user_of(api, api.member_id)
    path = f"/console/people/{api.member_id}/link"
    assert "within an hour if it is sent by mail" in visitor.get(path).text
    page = visitor.submit(path)
    assert "A link to set a new password, which works for an hour, is being sent to max@north.example." in page.text
    assert post.send() == 1
    (got,) = post.server.got
    assert got.message["Subject"] == "Link to set a new password at North"
    text = got.message.get_content()
    assert "Ana Admin has sent it to you." in text
    assert "within an hour" in text
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=61)):
        assert set_password(api, links(post)[0]).status == 404


def test_a_person_is_told_of_a_new_password_but_not_of_the_first(api, visitor, post):
    visitor.submit("/console/people/new", name="Mia", email="mia@north.example")
    post.send()
    assert set_password(api, links(post)[0]).status == 303
    assert post.send() == 0
    ask(api, "mia@north.example")
    post.send()
    assert set_password(api, links(post)[1]).status == 303
    visitor.submit("/console/profile", current=KNOWN, password=PASSWORD, again=PASSWORD)
    assert post.send() == 2
    told = {got.recipient: got.message for got in post.server.got[2:]}
    assert {str(each["Subject"]) for each in told.values()} == {"Your password was changed at North"}
    assert told.keys() == {"mia@north.example", "ana@north.example"}
    assert told["mia@north.example"].get_content().splitlines()[2] == (
        "Your password was changed at North. If you did not expect this, ask an admin of North at once, "
        "and change your password."
    )


def test_a_corrected_address_voids_what_was_sent_to_the_wrong_one(api, visitor, post):
    visitor.submit("/console/people/new", name="Mia", email="mia@nroth.example")
    assert post.send() == 1
    visitor.submit("/console/people/new", name="Zoe", email="zoe@nroth.example")
    mia, zoe = (user_id for (user_id,) in api.sql("SELECT id FROM users WHERE name IN ('Mia', 'Zoe') ORDER BY name"))
    for user_id in (mia, zoe):
        visitor.submit(f"/console/people/{user_id}/edit", email=f"{user_id}@north.example")
    assert set_password(api, links(post)[0]).status == 404
    assert post.send() == 0, "nobody at the wrong address is told the right one, or gets the link"
    assert "got another email, before the link was sent" in visitor.get(f"/console/people/{zoe}").text
    assert len(post.server.got) == 1


def test_an_admin_can_show_a_link_instead_and_has_to_without_a_mail_server(api, visitor, post, tmp_path):
    page = visitor.submit("/console/people/new", name="Mia", email="mia@north.example", by_mail="no")
    assert "/console/password?token=" in page.html
    assert post.send() == 0
    again = visitor.submit(f"/console/people/{api.member_id}/link")
    assert "is being sent to max@north.example" in again.text
    assert post.send() == 1
    bare = Visitor(App(Settings(data_dir=tmp_path, base_url=SITE), io.BytesIO(), renderers=RENDERERS))
    assert "Ask an admin of your account" in bare.get("/console/sign-in").text
    assert bare.get(FORGOTTEN).status == 404


def test_a_forgotten_password_is_set_by_a_link_that_works_for_an_hour(api, post, visitor):
    assert "Forgot your password?" in Visitor(api.app).get("/console/sign-in").text
    page = ask(api, " ANA@north.example ")
    assert page.location == "/console/sign-in"
    assert post.send() == 1
    (path,) = links(post)
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=61)):
        assert set_password(api, path).status == 404
    assert set_password(api, path).status == 303
    assert Visitor(api.app).sign_in("ana@north.example", PASSWORD).status == 303
    assert visitor.get("/console").status == 303, "other sessions have ended"


def test_known_and_unknown_addresses_get_the_same_answer_for_the_same_work(api, post, monkeypatch):
    answers, written = [], []
    real = api.store.begin
    monkeypatch.setattr(api.store, "begin", lambda *a, **k: written.append(a) or real(*a, **k))
    for email in ("ana@north.example", "nobody@north.example", "no address"):
        page = Visitor(api.app, "198.51.100.9").post(FORGOTTEN, {"email": email})
        answers.append((page.status, page.location, page.html, page.headers["set-cookie"], page.headers.keys()))
    assert answers[0] == answers[1] == answers[2]
    assert written == [], "no request wrote or read anything of an account"
    api.app.housekeeping.links_asked.send(api.store)
    post.send()
    assert [got.recipient for got in post.server.got] == ["ana@north.example"]


def test_nobody_is_flooded_and_a_network_has_to_wait(api, post):
    for turn in range(8):
        assert ask(api, "ana@north.example", f"198.51.100.{turn}").status == 303
    assert post.send() == 5
    works = [set_password(api, path).status for path in links(post)]
    assert works.count(303) == 1, "a newer link replaces the older"
    statuses = [ask(api, f"{turn}@x.example").status for turn in range(25)]
    assert statuses[:19] == [303] * 19
    assert statuses[-1] == 429


def test_deactivated_people_and_suspended_accounts_get_no_link(api, post, visitor):
    with api.operating() as tx:
        users.change_user(tx, api.member_id, {"is_active": False})
    ask(api, "max@north.example")
    assert post.send() == 0
    ask(api, "ana@north.example")
    with api.operating() as tx:
        closing.suspend(tx, "unpaid")
    ask(api, "ana@north.example")
    assert post.send() == 0
    with api.operating() as tx:
        closing.resume(tx)
    assert post.send() == 1


def test_one_email_in_two_accounts_gets_a_link_to_each(both, post):
    api, other = both
    with other.operating() as tx:
        users.change_user(tx, other.member_id, {"email": "ana@north.example"})
    ask(api, "ana@north.example")
    assert post.send() == 2
    subjects = sorted(str(got.message["Subject"]) for got in post.server.got)
    assert len(set(subjects)) == 2


def test_a_refused_invitation_is_on_today_of_admins_alone(api, visitor, post):
    visitor.submit("/console/people/new", name="Mia Member", email="mia@north.example")
    post.server.answer = lambda step, _: "550 no such user" if step == "rcpt" else None
    post.send()
    today = visitor.get("/console").html
    assert "Mail that was not sent" in today
    person = re.search(r'href="/console/people/(\d+)" title="mia@north\.example"', today)[1]
    assert "550 no such user" in visitor.get(f"/console/people/{person}").text


def test_a_link_that_waited_is_not_sent_to_somebody_who_was_deactivated(api, post):
    ask(api, "max@north.example")
    with api.operating() as tx:
        users.change_user(tx, api.member_id, {"is_active": False})
    assert post.send() == 0
    assert api.sql("SELECT status FROM messages") == [("cancelled",)]


def test_emails_that_wait_are_bounded(api, post, monkeypatch):
    monkeypatch.setattr(housekeeping, "MAX_ASKED", 1)
    asked = housekeeping.AskedLinks()
    for email in ("max@north.example", "max@north.example", "ana@north.example"):
        asked.note(email)
    asked.send(api.store)
    post.send()
    assert [got.recipient for got in post.server.got] == ["max@north.example"]


def test_a_link_that_the_database_did_not_take_is_tried_again_after_the_others(api, post, monkeypatch):
    asked, is_away = api.app.housekeeping.links_asked, [True]

    def ask_for_link(store, email):
        if email == "max@north.example" and is_away:
            raise Unavailable(is_away.pop())
        people.ask_for_link(store, email)

    monkeypatch.setattr(housekeeping, "ask_for_link", ask_for_link)
    for email in ("max@north.example", "ana@north.example"):
        asked.note(email)
    with pytest.raises(Unavailable):
        asked.send(api.store)
    asked.send(api.store)
    queued = api.sql('SELECT "to" FROM messages ORDER BY id')  # they are sent at the same time
    assert queued == [("ana@north.example",), ("max@north.example",)]


def test_the_form_asks_for_an_email(api):
    page = Visitor(api.app).post(FORGOTTEN, {"email": " "})
    assert (page.status, page.error_of("email")) == (422, "Enter your email address.")
    assert Fields(page.html).forms[FORGOTTEN]
