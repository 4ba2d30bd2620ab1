"""Users of the account, as any key reads them."""

import pytest


@pytest.fixture
def member_key(api):
    return api.new_key(["sites:read"], user_id=api.member_id)


def test_any_key_finds_the_people_of_its_account_by_name(api, member_key):
    found = api.get("/users", key=member_key).data
    assert [user["id"] for user in found] == [api.admin_id, api.member_id]
    assert [(user["name"], user["role"], user["is_active"]) for user in found] == [
        ("Ana Admin", "admin", True),
        ("Max Member", "member", True),
    ]
    assert api.get(f"/users/{api.admin_id}", key=member_key).data == found[0]


def test_only_an_admins_key_sees_emails_and_nobody_finds_users_by_them(api, member_key):
    assert [user["email"] for user in api.get("/users").data] == ["ana@north.example", "max@north.example"]
    assert {user["email"] for user in api.get("/users", key=member_key).data} == {None}
    assert api.get(f"/users/{api.admin_id}").data["email"] == "ana@north.example"
    assert api.get(f"/users/{api.admin_id}", key=member_key).data["email"] is None
    assert api.get("/users", {"q": "north.example"}, key=member_key).json["meta"]["total"] == 0


def test_nothing_else_of_a_user_is_told(api):
    assert set(api.get(f"/users/{api.admin_id}").data) == {
        *("id", "created_at", "updated_at", "name", "email", "role", "is_active")
    }


def test_a_new_name_is_found_and_sorted_at_once_and_a_deactivated_user_stays(api):
    assert api.get("/users").json["meta"]["total"] == 2
    user_id = api.add_user("Zoë Zwei")
    api.set_user(user_id, {"name": "Änne Erste"})
    assert [user["id"] for user in api.get("/users").data][:2] == [api.admin_id, user_id]
    assert [user["id"] for user in api.get("/users", {"q": "ÄNNE"}).data] == [user_id]
    assert api.get("/users", {"q": "zoë"}).data == []
    api.set_user(user_id, {"is_active": False})
    assert [user["id"] for user in api.get("/users", {"is_active": "false"}).data] == [user_id]
    assert api.get("/users").json["meta"]["total"] == 3


def test_users_are_only_read(api):
    assert api.post("/users", {"name": "Jo"}).status == 405
    assert api.delete(f"/users/{api.member_id}").status == 405
