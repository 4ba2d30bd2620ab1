"""Keys of a person who is deactivated: they stop, or act as somebody else from the same moment on."""

import pytest

from retainer.console.pages import people_pages
from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.audit import AuditFilter
from retainer.identity.keys import key_list
from retainer.identity.keys.keys import hand_over, revoke_key
from retainer.identity.people import users
from retainer.schema.work import timers
from retainer.values.reading import read_record
from retainer.work.timers import Timer
from tests.console.test_key_pages import made, recorded, value_of


@pytest.fixture
def keys(api, visitor):
    """The values of two keys of the member, by their ids as text."""
    values = [value_of(made(visitor, name=name, user_id=str(api.member_id))) for name in ("Zapier", "Looker")]
    with api.operating() as tx:
        live = key_list.live_keys(tx, user_id=api.member_id).keys
    assert [key.name for key in live] == ["Zapier", "Looker"]
    return dict(zip([str(key.id) for key in live], values, strict=True))


def deactivate(api, visitor, **fields):
    with api.operating() as tx:
        name = users.get_user(tx, api.member_id)["name"]
    return visitor.submit(f"/console/people/{api.member_id}/deactivate", confirmation=name, **fields)


def holder_of(api, key_id):
    with api.operating() as tx:
        return key_list.get_key(tx, int(key_id))


def test_handed_over_keys_act_as_the_other_person_and_the_rest_stops(api, visitor, keys):
    (kept, stopped) = keys
    scopes = holder_of(api, kept).scopes
    api.get("/me", key=keys[kept])
    recorded(api)
    assert "1 request in the last hour." in visitor.get(f"/console/people/{api.member_id}/deactivate").text
    page = deactivate(api, visitor, new_user_id=str(api.admin_id), keys=[kept])
    assert "1 key now acts as Ana Admin. 1 key stopped working." in page.text
    me = api.get("/me", key=keys[kept])
    assert (me.status, me.data["user"]["id"]) == (200, api.admin_id)
    assert api.get("/me", key=keys[stopped]).code == "user_deactivated"
    assert holder_of(api, kept).scopes == scopes
    with api.operating() as tx:
        (entry,) = audit.list_entries(tx, AuditFilter(action="key handed over")).entries
    assert (entry.user_id, entry.target_id) == (api.admin_id, int(kept))
    assert (entry.before["user_id"], entry.after["user_id"]) == (api.member_id, api.admin_id)


def test_all_keys_are_handed_over_unless_some_are_left_out(api, visitor, keys):
    page = deactivate(api, visitor, new_user_id=str(api.admin_id))
    assert "2 keys now act as Ana Admin." in page.text
    assert "stopped" not in page.text
    assert {holder_of(api, key).user_id for key in keys} == {api.admin_id}


def test_without_another_person_all_keys_stop(api, visitor, keys):
    page = deactivate(api, visitor)
    assert "2 keys stopped working." in page.text
    assert {api.get("/me", key=value).code for value in keys.values()} == {"user_deactivated"}


@pytest.mark.parametrize("fields", [{}, {"pause_webhooks": "yes"}])
def test_webhooks_of_keys_that_stop_are_listed_and_paused_on_request(api, visitor, keys, fields):
    (kept, _) = keys
    hooks = [api.make("/webhooks", description=name)["id"] for name in ("Books", "Wiki", "Chat")]
    for key, hook in zip([*keys, str(api.key_id)], hooks, strict=True):
        api.sql("UPDATE webhooks SET key_id = $1 WHERE id = $2", int(key), hook)
    page = visitor.get(f"/console/people/{api.member_id}/deactivate")
    assert "Webhooks that were set up with these keys keep sending unless you pause them: Books, Wiki." in page.text
    deactivate(api, visitor, new_user_id=str(api.admin_id), keys=[kept], **fields)
    states = [api.get(f"/webhooks/{hook}").data["status"] for hook in hooks]
    assert states == ["active", "paused" if fields else "active", "active"]


@pytest.mark.parametrize("other", ["0", "999999", "x"])
def test_nothing_is_done_if_the_other_person_cannot_hold_keys(api, visitor, keys, other):
    page = deactivate(api, visitor, new_user_id=other)
    assert page.status == 422
    assert api.get("/me", key=next(iter(keys.values()))).status == 200


def test_neither_the_same_person_nor_a_deactivated_one_holds_them(api, visitor, keys):
    olga = api.add_user("Olga")
    api.set_user(olga, {"is_active": False})
    for other in (api.member_id, olga):
        assert deactivate(api, visitor, new_user_id=str(other)).status == 422
    assert {holder_of(api, key).user_id for key in keys} == {api.member_id}


def test_keys_of_others_cannot_be_handed_over_with_them(api, visitor, keys):
    page = deactivate(api, visitor, new_user_id=str(api.admin_id), keys=[*keys, str(api.key_id)])
    assert (page.status, "no longer offered" in page.text) == (422, True)
    assert holder_of(api, next(iter(keys))).user_id == api.member_id


@pytest.mark.usefixtures("visitor")
def test_a_key_that_no_longer_works_is_not_handed_over(api):
    with api.operating() as tx:
        revoke_key(tx, api.key_id)
        with pytest.raises(Refusal, match="revoked"):
            hand_over(tx, api.key_id, api.member_id)


def test_a_key_of_another_account_is_not_found(both):
    north, south = both
    with south.operating() as tx, pytest.raises(Refusal, match="There is no key"):
        hand_over(tx, north.key_id, south.admin_id)
    with north.operating() as tx, pytest.raises(Refusal, match="no such user"):
        hand_over(tx, north.key_id, 999_999)


def test_the_open_work_of_a_person_is_named_before_they_are_deactivated(api, visitor):
    path = f"/console/people/{api.member_id}/deactivate"
    assert "Open tasks" not in visitor.get(path).text
    api.make("/tasks", assignee_id=api.member_id)
    api.make("/tasks", assignee_id=api.member_id, status="done")
    api.make("/tickets", assignee_id=api.member_id)
    (name,) = [each["name"] for each in api.get("/users").data if each["id"] == api.member_id]
    page = visitor.get(path)
    assert f"Work of {name} Work Open Open tasks 1 Unresolved tickets 1" in page.text
    listed = visitor.get(next(link for link in page.links if link.startswith("/console/records/tasks?")))
    assert "1 task" in listed.text
    with api.operating() as tx:
        begun = {"user_id": api.member_id, "work": "task_id-1", "started_at": tx.now}
        tx.insert(timers, read_record(Timer, begun))
    assert "Running timer since" in visitor.get(path).text


def test_open_work_is_assigned_to_somebody_else(api, visitor):
    done = api.make("/tasks", assignee_id=api.member_id, status="done")["id"]
    open_task, ticket = (api.make(path, assignee_id=api.member_id)["id"] for path in ("/tasks", "/tickets"))
    assert 'name="assignee_id"' in visitor.get(f"/console/people/{api.member_id}/deactivate").html
    page = visitor.submit(f"/console/people/{api.member_id}/deactivate", assignee_id=str(api.admin_id))
    assert "1 task and 1 ticket assigned to Ana Admin." in page.text
    found = [
        api.get(path).data["assignee_id"] for path in (f"/tasks/{open_task}", f"/tickets/{ticket}", f"/tasks/{done}")
    ]
    assert found == [api.admin_id, api.admin_id, api.member_id]
    with api.operating() as tx:
        assert len(audit.list_entries(tx, AuditFilter(action="record changed")).entries) == 2


def test_more_work_than_one_form_assigns_is_named_alone(api, visitor, monkeypatch):
    monkeypatch.setattr(people_pages, "MAX_REASSIGNED", 1)
    for _ in range(2):
        api.make("/tasks", assignee_id=api.member_id)
    page = visitor.get(f"/console/people/{api.member_id}/deactivate")
    assert ("Open tasks 2" in page.text, 'name="assignee_id"' in page.html) == (True, False)
    assert "deactivated." in visitor.submit(f"/console/people/{api.member_id}/deactivate").text


def test_all_errors_of_a_deactivation_are_shown_at_once_and_nothing_is_done(api, visitor, keys):
    path = f"/console/people/{api.member_id}/deactivate"
    refused = visitor.submit(path, confirmation="somebody else", new_user_id="999999")
    assert refused.status == 422
    assert "Does not match." in refused.text
    assert "Is no longer offered." in refused.text
    refused = visitor.submit(path, confirmation="somebody else", new_user_id=str(api.admin_id), keys=["999999"])
    assert ("Does not match." in refused.text, "Is no longer offered." in refused.text) == (True, True)
    with api.operating() as tx:
        assert users.get_user(tx, api.member_id)["is_active"]
