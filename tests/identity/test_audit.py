"""The audit log: every action with its user, address and changes."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.actors import operator_of
from retainer.identity.audit import AuditFilter, Target

RATE = {"hourly_rate": Decimal(90), "cost_rate": Decimal(40)}


def entries(api, **filters):
    with api.operating() as tx:
        return audit.list_entries(tx, AuditFilter(**filters)).entries


def newest(api):
    entry = entries(api)[0]
    return entry.action, entry.target, entry.target_id, entry.before, entry.after


def test_an_action_has_the_fields_that_changed_and_none_is_added_without_a_change(api):
    api.set_account({"plan": "scale", "name": "North"})
    assert newest(api) == ("account changed", "account", api.account_id, {"plan": "agency"}, {"plan": "scale"})
    api.switch_api(on=False)
    assert newest(api) == ("API switched off", "account", api.account_id, None, None)
    api.set_user(api.member_id, RATE)
    before = {"hourly_rate": None, "cost_rate": None}
    assert newest(api) == (
        "user changed",
        "user",
        api.member_id,
        before,
        {"hourly_rate": "90.00", "cost_rate": "40.00"},
    )
    api.set_user(api.member_id, {"is_active": False})
    assert newest(api) == ("user deactivated", "user", api.member_id, None, None)
    api.add_user("Eve", cost_rate=Decimal(30))
    assert newest(api)[4]["name"] == "Eve"
    assert newest(api)[4]["cost_rate"] == "30.00"
    assert newest(api)[4].keys() & {"id", "account_id", "created_at", "password", "password_hash"} == set()
    count = len(entries(api))
    api.set_account({"plan": "scale"})
    api.switch_api(on=False)
    api.set_user(api.member_id, RATE | {"is_active": False})
    assert len(entries(api)) == count


def test_the_audit_log_keeps_all_fields_of_a_removed_payment(api):
    line = {"description": "Design", "unit_price": "100"}
    invoice = api.make("/invoices", client_id=api.make("/clients")["id"], lines=[line], status="sent")
    paid = api.patch(f"/invoices/{invoice['id']}", {"record_payment": {"amount": "10", "reference": "R1"}}).data
    (payment,) = paid["payments"]
    api.remove_payment(payment["id"])
    action, kind, target_id, before, after = newest(api)
    assert (action, kind, target_id, after) == ("payment removed", "payment", payment["id"], None)
    assert (before["amount"], before["reference"]) == ("10.00", "R1")


def test_actions_of_admins_have_a_user_and_an_address_those_of_operators_do_not(api):
    admin = replace(operator_of(api.store, api.account_id), user_id=api.admin_id, role="admin", address="2001:db8::1")
    with api.store.begin(admin, write=True) as tx:
        audit.note(tx, "key revoked", Target("key", 7, "Shop"))
    entry = entries(api)[0]
    assert (entry.user_id, entry.user_name, entry.address) == (api.admin_id, "Ana Admin", "2001:db8::1")
    assert entries(api, user_id=api.admin_id) == [entry]
    assert entries(api, action="key revoked", target="key", target_id=7) == [entry]
    assert {other.user_id for other in entries(api, user_id=0)} == {None}
    assert entries(api, since=entry.created_at) == [entry]
    assert entry not in entries(api, until=entry.created_at)


def test_pages_neither_repeat_nor_skip_actions_of_one_moment_while_others_are_added(api):
    with api.operating() as tx:
        for number in range(7):
            audit.note(tx, "key revoked", Target("key", number, "Shop"))
    found, cursor = [], None
    for _ in range(20):
        with api.operating() as tx:
            page = audit.list_entries(tx, AuditFilter(action="key revoked"), cursor=cursor, limit=2)
            audit.note(tx, "key revoked", Target("key", 100, "New"))
        found += [entry.target_id for entry in page.entries]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == [6, 5, 4, 3, 2, 1, 0]
    for wrong in ("", "x", "2026-03-10T09:00:00.000000Z", "2026-03-10T09:00:00.000000Z,x"):
        with api.operating() as tx, pytest.raises(Refusal) as refused:
            audit.list_entries(tx, cursor=wrong)
        assert "cursor" in refused.value.members["errors"]


def test_an_account_sees_its_own_actions_alone(api, other_tenant):
    other_tenant.set_account({"plan": "scale"})
    assert [entry.action for entry in entries(other_tenant)].count("account changed") == 1
    assert "account changed" not in [entry.action for entry in entries(api)]
