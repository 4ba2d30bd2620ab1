"""A suspended account in the console: nobody gets in by any way, and everybody who may know reads why."""

import dataclasses

import pytest

from retainer.identity import audit, closing
from retainer.identity.people import users
from retainer.identity.people.sessions import SECOND_STEPS
from tests.console.test_races import behind
from tests.console.visitor import HASH, PASSWORD, Visitor
from tests.databases import each_database

REASON = "Invoice 2026-31 is not paid"
SENTENCE = f"North has been suspended since 2026-03-10: {REASON}. Only the operator of this server can change that."


@pytest.fixture
def suspend(api):
    def act(work=lambda tx: closing.suspend(tx, REASON)):
        with api.operating() as tx:
            tx.now = "2026-03-10T09:00:00.000000Z"
            work(tx)

    return act


@pytest.mark.parametrize(
    "path", ["", "/records/clients", "/week", "/profile", "/settings", "/records/clients/new", "/nowhere"]
)
def test_a_running_session_reads_the_reason_on_every_page(api, visitor, suspend, path):
    suspend()
    page = visitor.get(f"/console{path}")
    assert page.status == (404 if path == "/nowhere" else 403)
    if page.status == 403:
        assert page.title == "Account suspended · Retainer"
        assert SENTENCE in page.text
        assert not [link for link in page.links if link not in {"/console", "/console/profile"}], (
            "there is nothing else"
        )


def test_a_form_that_was_open_does_nothing(api, visitor, suspend):
    suspend()
    sent = visitor.post("/console/records/clients/new", {"name": "Nordwind", "once": "a"})
    assert (sent.status, SENTENCE in sent.text) == (403, True)
    assert api.sql("SELECT id FROM clients WHERE account_id = $1", api.account_id) == []


@each_database
def test_a_form_that_waits_when_its_account_is_suspended_does_nothing(api, visitor):
    def ask():
        return visitor.post("/console/records/clients/new", {"name": "Nordwind", "once": "a"})

    with behind(api, ask) as (tx, answer):
        closing.suspend(tx, REASON)
    sent = answer.result(60)
    assert (sent.status, REASON in sent.text) == (403, True)
    assert api.sql("SELECT id FROM clients WHERE account_id = $1", api.account_id) == []


def test_people_can_sign_out_of_a_suspended_account(api, visitor, suspend):
    suspend()
    page = visitor.get("/console")
    assert page.all("form", action="/console/sign-out")
    assert visitor.post("/console/sign-out").location == "/console/sign-in"
    assert visitor.get("/console").location == "/console/sign-in"


def test_the_reason_is_for_those_alone_who_know_the_password(api, visitor, suspend):
    suspend()
    stranger = Visitor(api.app)
    wrong = stranger.sign_in("ana@north.example", "another password")
    assert (wrong.status, REASON in wrong.html) == (422, False)
    right = stranger.sign_in("ana@north.example")
    assert (right.status, right.title) == (403, "Account suspended · Retainer")
    assert SENTENCE in right.text
    assert stranger.cookies == {}


def test_a_password_link_is_refused_and_stays_good(api, visitor, suspend):
    with api.operating() as tx:
        link = users.create_link(tx, api.admin_id)
    path = f"/console/password?token={link.token}"
    suspend()
    stranger = Visitor(api.app)
    form = {"token": link.token, "password": "eleven red doors", "again": "eleven red doors"}
    for page in (stranger.get(path), stranger.post("/console/password", form)):
        assert (page.status, SENTENCE in page.text) == (403, True)
    assert api.sql("SELECT password_hash FROM users WHERE id = $1", api.admin_id) == [(HASH,)]
    suspend(closing.resume)
    assert stranger.submit(path, action="/console/password", **form).title == "Today · Retainer"


def test_a_second_factor_that_is_awaited_leads_nowhere(api, suspend):
    with api.operating() as tx:
        token = SECOND_STEPS.create(tx, api.admin_id).token
    suspend()
    stranger = Visitor(api.app)
    stranger.cookies["retainer-sign-in"] = token
    for page in (stranger.get("/console/sign-in/code"), stranger.post("/console/sign-in/code", {"code": "123456"})):
        assert (page.status, SENTENCE in page.text) == (403, True)


def test_an_announced_deletion_says_its_day(api, visitor, suspend):
    suspend(lambda tx: closing.close(tx, None))
    page = visitor.get("/console")
    since = "North has been suspended since 2026-03-10. It will be deleted with all its data on 2026-04-09. Only "
    assert since in page.text


def test_a_contact_of_the_operator_is_named(api, visitor, suspend, monkeypatch):
    monkeypatch.setattr(api.app, "settings", dataclasses.replace(api.app.settings, contact="help@host.example"))
    suspend()
    assert "Only help@host.example can change that." in visitor.get("/console").text


def test_after_a_resumption_the_session_goes_on(api, visitor, suspend):
    suspend()
    visitor.get("/console")
    suspend(closing.resume)
    assert visitor.get("/console").title == "Today · Retainer"
    with api.operating() as tx:
        entries = audit.list_entries(tx).entries
    resumed, suspended = (
        next(each for each in entries if each.action == f"account {end}") for end in ("resumed", "suspended")
    )
    assert (suspended.user_id, suspended.after["suspension_reason"]) == (None, REASON)
    assert resumed.before["suspension_reason"] == REASON


def test_people_of_other_accounts_notice_nothing(api, other_tenant, suspend):
    with other_tenant.operating() as tx:
        users.set_password(tx, other_tenant.admin_id, "Sam", HASH)
        email = users.get_user(tx, other_tenant.admin_id)["email"]
    suspend()
    stranger = Visitor(api.app)
    assert stranger.sign_in(email, PASSWORD).status == 303
    assert stranger.get("/console").status == 200
