"""Changes of keys: name and scopes, rotation, revocation; and the warnings of keys."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.audit import AuditFilter
from retainer.identity.keys import key_list, keys
from retainer.identity.keys.key_list import KeyFilter
from retainer.identity.keys.keys import SCOPES, KeyDetails, Rotation
from retainer.schema.identity import api_keys

NOW = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False) as clock:
        yield clock


def create(api, name="Shop", scopes=("clients:read",), **details):
    with api.operating() as tx:
        return keys.create_key(tx, KeyDetails(name, api.admin_id, list(scopes), **details))


def change(api, function, *arguments):
    with api.operating() as tx:
        return function(tx, *arguments)


def refusal(api, function, *arguments) -> str:
    with pytest.raises(Refusal) as refused:
        change(api, function, *arguments)
    return refused.value.code


def get(api, key_id):
    return change(api, key_list.get_key, key_id)


def listed(api, **filters):
    return [key.name for key in change(api, key_list.list_keys, KeyFilter(**filters))]


def actions(api, key_id):
    """What the audit has of a key since it was created, oldest first."""
    entries = change(api, audit.list_entries, AuditFilter(target="key", target_id=key_id)).entries
    return [(entry.action, entry.before, entry.after) for entry in reversed(entries)][1:]


def test_changes_of_name_and_scopes_apply_from_the_next_request(api):
    key_id, value = create(api)
    assert api.get("/projects", key=value).code == "missing_scope"
    changed = change(api, keys.change_key, key_id, {"name": "Till", "scopes": ["projects:read", "clients:read"]})
    assert (changed.name, changed.scopes) == ("Till", ["clients:read", "projects:read"])
    assert api.get("/projects", key=value).status == 200
    change(api, keys.change_key, key_id, {"name": "Till"})
    before = {"name": "Shop", "scopes": ["clients:read"]}
    assert actions(api, key_id) == [
        ("key changed", before, {"name": "Till", "scopes": ["clients:read", "projects:read"]})
    ]


def test_a_rotated_key_is_valid_for_the_hours_and_the_new_one_immediately(api, clock):
    key_id, former = create(api)
    new_id, value = change(api, keys.rotate_key, key_id, Rotation(hours=2))
    new, old = get(api, new_id), get(api, key_id)
    assert (new.name, new.user_id, new.scopes, new.expires_at) == (old.name, old.user_id, old.scopes, None)
    assert (old.expires_at, old.replaced_by_id) == ("2026-03-10T11:00:00.000000Z", new_id)
    assert [api.get("/clients", key=key).status for key in (former, value)] == [200, 200]
    clock.shift(timedelta(hours=2))
    assert api.get("/clients", key=former).code == "expired_key"
    assert api.get("/clients", key=value).status == 200
    ((action, before, after),) = actions(api, key_id)
    assert (action, before) == ("key rotated", {"expires_at": None, "replaced_by_id": None})
    assert after == {"expires_at": "2026-03-10T11:00:00.000000Z", "replaced_by_id": new_id}


def test_a_rotated_key_never_lives_longer_and_the_new_key_has_its_lifetime(api, clock):
    key_id, _ = create(api, expires_at="2026-03-20T09:00:00.000000Z")
    clock.shift(timedelta(days=9, hours=23))
    new_id, _ = change(api, keys.rotate_key, key_id, Rotation(hours=48))
    assert get(api, key_id).expires_at == "2026-03-20T09:00:00.000000Z"
    assert get(api, new_id).expires_at == "2026-03-30T08:00:00.000000Z"
    third, _ = change(api, keys.rotate_key, new_id, Rotation(0, "2027-01-01T00:00:00.000000Z"))
    assert (get(api, new_id).status, get(api, third).expires_at) == ("expired", "2027-01-01T00:00:00.000000Z")


def test_a_key_that_is_not_active_cannot_be_rotated_nor_a_key_twice(api, other_tenant, clock):
    rotated, revoked = create(api).id, create(api).id
    expired = create(api, expires_at="2026-03-10T09:00:01.000000Z").id
    change(api, keys.rotate_key, rotated, Rotation())
    change(api, keys.revoke_key, revoked)
    clock.shift(1)
    for key_id in (rotated, revoked, expired):
        assert refusal(api, keys.rotate_key, key_id, Rotation()) == "locked"
    assert refusal(api, keys.change_key, revoked, {"name": "Other"}) == "locked"
    for function, more in (
        (keys.rotate_key, [Rotation()]),
        (keys.change_key, [{"name": "Other"}]),
        (keys.revoke_key, []),
    ):
        assert refusal(other_tenant, function, rotated, *more) == "not_found", "another account's"


def test_revoking_again_changes_nothing(api, clock):
    key_id, _ = create(api)
    first = change(api, keys.revoke_key, key_id)
    clock.shift(60)
    assert change(api, keys.revoke_key, key_id) == first
    assert actions(api, key_id) == [("key revoked", None, None)]


def test_the_last_use_is_stored_with_its_time_and_address(api):
    api.get("/me")
    api.app.housekeeping.keys_used.write(api.store)
    key = get(api, api.key_id)
    assert (key.last_used_at, key.last_used_address) == ("2026-03-10T09:00:00.000000Z", "127.0.0.1")


def test_a_use_soon_after_a_write_is_written_a_minute_after_it(api, clock):
    api.get("/me")
    api.app.housekeeping.keys_used.write(api.store)
    clock.shift(59)
    api.get("/me")
    api.app.housekeeping.keys_used.write(api.store)
    assert get(api, api.key_id).last_used_at == "2026-03-10T09:00:00.000000Z"
    clock.shift(1)
    api.app.housekeeping.keys_used.write(api.store)
    assert get(api, api.key_id).last_used_at == "2026-03-10T09:00:59.000000Z"


def test_a_use_is_written_only_once(api, clock):
    api.get("/me")
    clock.shift(1)
    api.app.housekeeping.keys_used.write(api.store)
    api.sql("UPDATE api_keys SET last_used_at = NULL WHERE id = $1", api.key_id)
    clock.shift(120)
    api.app.housekeeping.keys_used.write(api.store)
    assert get(api, api.key_id).last_used_at is None


def test_an_earlier_use_does_not_replace_a_later_one_of_another_server(api):
    api.get("/me")
    later = "2026-03-10T09:00:00.000001Z"
    api.sql("UPDATE api_keys SET last_used_at = $1 WHERE id = $2", later, api.key_id)
    api.app.housekeeping.keys_used.write(api.store)
    assert get(api, api.key_id).last_used_at == later


def test_keys_are_filtered_searched_and_sorted(api, clock):
    create(api, "Zebra", expires_at="2026-03-11T00:00:00.000000Z")
    create(api, "Älva", expires_at="2026-03-10T12:00:00.000000Z")
    change(api, keys.revoke_key, create(api, "Moth").id)
    clock.shift(timedelta(hours=4))
    assert listed(api, status="active") == ["All", "Zebra"]
    assert (listed(api, status="expired"), listed(api, status="revoked")) == (["Älva"], ["Moth"])
    assert (listed(api, q="EBR"), listed(api, q="ana adm", status="revoked")) == (["Zebra"], ["Moth"])
    assert listed(api, user_id=api.member_id) == []
    assert listed(api, sort="name") == ["All", "Älva", "Moth", "Zebra"]
    assert listed(api, sort="-name") == ["Zebra", "Moth", "Älva", "All"]
    assert listed(api, sort="-expires_at") == ["Zebra", "Älva", "All", "Moth"]
    assert refusal(api, key_list.list_keys, KeyFilter(sort="hash")) == "validation_failed"


def test_unused_and_expiring_keys_have_warnings(api, clock):
    moment = "2026-06-25T00:00:00.000000Z"
    ids = {"used": create(api).id, "unused": create(api).id, "expiring": create(api, expires_at=moment).id}
    clock.shift(timedelta(days=90))
    with api.operating() as tx:
        for name in ("used", "expiring"):
            tx.update_columns(api_keys, ids[name], {"last_used_at": tx.now})
    assert [get(api, key_id).warnings for key_id in ids.values()] == [[], ["unused"], []]
    clock.shift(timedelta(days=3))
    assert get(api, ids["expiring"]).warnings == ["expiring"]
    change(api, keys.rotate_key, ids["expiring"], Rotation())
    assert get(api, ids["expiring"]).warnings == [], "it expires as it should"


def test_live_keys_are_the_keys_that_work_now(api, clock):
    stopped = change(api, key_list.live_keys)
    assert [key.name for key in stopped.keys] == ["All"]
    assert stopped.used == []
    with api.operating() as tx:
        of_member = keys.create_key(tx, KeyDetails("Member's", api.member_id, list(SCOPES)))
        tx.update_columns(api_keys, of_member.id, {"last_used_at": tx.now})
    clock.shift(timedelta(hours=1))
    assert [key.name for key in change(api, key_list.live_keys).used] == ["Member's"]
    with api.operating() as tx:
        assert [key.name for key in key_list.live_keys(tx, user_id=api.member_id).keys] == ["Member's"]
    clock.shift(1)
    assert change(api, key_list.live_keys).used == []
    api.set_user(api.member_id, {"is_active": False})
    assert [key.name for key in change(api, key_list.live_keys).keys] == ["All"]
