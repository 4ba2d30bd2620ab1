"""What the console says of an action whose transaction fails when it commits: nothing but that it failed."""

import pytest

from retainer.identity.people import sessions
from tests.console.test_actions import TWINS, actions_of, filled, path_of, read, ready
from tests.console.visitor import HASH, PASSWORD, Visitor
from tests.databases import each_database
from tests.factories import ApiClient
from tests.length import TURN, sampled

pytestmark = each_database

FORMS = {
    "/keys/new": {"name": "Zapier", "user_id": "{user}", "scopes": "clients:read"},
    "/keys/{key}/rotate": {"hours": "1"},
    "/keys/{key}/revoke": {"confirmation": "All"},
    "/webhooks/new": {"url": "https://receiver.example/hooks", "description": "Books"},
    "/people/new": {"name": "Ada Admin", "email": "ada@north.example", "role": "admin"},
    "/people/{user}/edit": {"name": "Max Renamed"},
    "/people/{user}/deactivate": {"confirmation": "Max Member"},
    "/people/{admin}/link": {},
    "/switch": {"confirmation": "switch off"},
    "/profile": {"current": PASSWORD, "password": "eleven red doors", "again": "eleven red doors"},
    "/sign-out": {},
}
ACTIONS = [*(twin[:3] for twin in TWINS), ("invoices paid", "/remove-payment", {})]
"""A record, and an action on it with its form."""


@pytest.mark.parametrize("path", sampled(FORMS, 4, TURN))
def test_a_failed_commit_shows_neither_a_notice_nor_a_secret(api, visitor, path):
    ids = {"key": str(api.key_id), "user": str(api.member_id), "admin": str(api.admin_id)}
    before = dict(visitor.cookies)
    with api.databases.broken_commits(api.app):
        form = {name: text.format(**ids) for name, text in FORMS[path].items()}
        failed = visitor.post(f"/console{path.format(**ids)}", form, may_fail=True)
    assert failed.status >= 500
    assert "set-cookie" not in failed.headers
    assert visitor.cookies == before
    assert "rtn_" not in failed.html
    assert "whsec_" not in failed.html
    assert "token=" not in failed.html
    assert 'role="status"' not in visitor.get("/console").html


@pytest.mark.parametrize("action", sampled(ACTIONS, start=TURN), ids=lambda action: f"{action[0]} {action[1]}")
def test_a_failed_commit_of_an_action_leaves_the_record_and_its_form_as_they_were(api, visitor, action):
    named, suffix, fields = action
    collection, status = named.split()
    record = ready(api, collection, status)
    path, before = path_of(collection, record, suffix), read(api, collection, record)
    form = filled(visitor, path, fields)
    with api.databases.broken_commits(api.app):
        failed = visitor.post(path, form, may_fail=True)
    assert failed.status >= 500
    assert "set-cookie" not in failed.headers
    assert 'role="status"' not in visitor.get(path_of(collection, record)).html
    assert read(api, collection, record) == before
    assert actions_of(api) == []
    assert visitor.post(path, form).status == 303, "the same form does it once commits work"


def test_a_failed_commit_starts_no_session(api: ApiClient):
    stranger = Visitor(api.app)
    api.sql("UPDATE users SET password_hash = $1 WHERE id = $2", HASH, api.admin_id)
    with api.databases.broken_commits(api.app):
        failed = stranger.post("/console/sign-in", {"email": "ana@north.example", "password": PASSWORD}, may_fail=True)
    assert failed.status >= 500
    assert stranger.cookies == {}
    with api.operating() as tx:
        assert sessions.list_sessions(tx) == []
