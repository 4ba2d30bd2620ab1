"""Keys as admins see them: created, shown once, used, changed, rotated, revoked."""

import re
from datetime import timedelta

import pytest

from retainer.identity.keys import key_list, keys
from retainer.identity.keys.keys import KeyDetails
from retainer.values.exact import instant_after

NEW = "/console/keys/new"


def made(visitor, **fields):
    chosen = {"name": "Zapier", "scopes": ["clients:read", "time:write"]} | fields
    return visitor.submit(NEW, **chosen)


def value_of(page) -> str:
    return re.search(r"rtn_\w{38}", page.html)[0]


def key_of(api, name: str = "Zapier") -> key_list.Key:
    with api.operating() as tx:
        return next(key for key in key_list.list_keys(tx, key_list.KeyFilter(sort="-created_at")) if key.name == name)


def recorded(api) -> None:
    """Write what the server batches: the request log and the last uses of keys."""
    api.app.log.drain()
    api.app.housekeeping.recorder.write(api.store)
    api.app.housekeeping.keys_used.write(api.store)


def test_a_new_key_is_shown_once_and_works(api, visitor):
    shown = made(visitor)
    value = value_of(shown)
    assert api.get("/clients", key=value).status == 200
    assert f'curl -H "Authorization: Bearer {value}" http://agency.example/api/public/v1/me' in shown.text
    assert "It won't be shown again" in shown.text
    assert "rtn_" not in visitor.get(f"/console/keys/{key_of(api).id}").text.replace("rtn_", "", 1)
    assert value not in visitor.get("/console/keys").html
    assert value[-4:] in visitor.get("/console/keys").text


def test_the_page_of_a_new_key_shows_its_first_call(api, visitor):
    value, path = value_of(made(visitor)), f"/console/keys/{key_of(api).id}"
    assert "Waiting for the first call" in visitor.get(path).text
    assert visitor.get(f"{path}/first-call").html == '{"has_arrived":false}'
    api.get("/me", key=value)
    recorded(api)
    assert visitor.get(f"{path}/first-call").html == '{"has_arrived":true}'
    assert "Waiting for the first call" not in visitor.get(path).text
    assert all(words in visitor.get(path).text for words in ("/me", "Busiest minute: 1 request sent"))


def test_a_refused_form_shows_all_errors_at_its_fields_and_keeps_the_input(visitor):
    form = {"name": " ", "expires_at": "2020-01-01", "scopes": []}
    refused = visitor.post(NEW, form)
    assert refused.status == 422
    for name in ("name", "scopes"):
        assert f'id="{name}-error"' in refused.html
    assert "no longer offered" in visitor.post(NEW, form | {"user_id": "99999"}).error_of("user_id")
    assert "Must be a date" in visitor.post(NEW, form | {"expires_at": "9999-12-31x"}).error_of("expires_at")
    kept = visitor.post(NEW, form | {"name": "Looker", "scopes": ["sites:write"]})
    assert "Must be in the future" in kept.error_of("expires_at")
    assert 'value="Looker"' in kept.html
    assert 'value="sites:write" checked' in kept.html
    assert 'value="2020-01-01"' in kept.html


def test_a_preset_fills_the_matrix_without_script_and_keeps_the_input(visitor):
    page = visitor.get(f"{NEW}?name=Looker&expires_at=2099-01-30&preset=Reporting&scopes=sites:write")
    ticked = {box["value"] for box in page.all("input", name="scopes") if "checked" in box}
    assert ticked == {"clients:read", "projects:read", "reports:read"}
    assert 'value="Looker"' in page.html
    assert 'value="2099-01-30"' in page.html


def test_a_key_expires_after_90_days_unless_its_last_day_is_left_blank(api, visitor):
    api.set_account({"timezone": "UTC"})
    made(visitor)
    key = key_of(api)
    assert key.created_at[:10] == instant_after(key.expires_at, timedelta(days=-91))[:10]
    made(visitor, name="Looker", expires_at="")
    assert key_of(api, "Looker").expires_at is None


def test_a_key_expires_at_the_end_of_its_last_day_in_the_account_s_time_zone(api, visitor):
    api.set_account({"timezone": "America/New_York"})
    made(visitor, expires_at="2099-07-01")
    assert key_of(api).expires_at == "2099-07-02T04:00:00.000000Z"


def test_keys_are_filtered_and_sorted(api, visitor):
    made(visitor, name="Zebra")
    made(visitor, name="Ant", user_id=str(api.member_id))
    rows = [head.all("a")[0].text for head in visitor.get("/console/keys?sort=name").all("th", scope="row")]
    assert rows == sorted(rows)
    assert {"Zebra", "Ant"} <= set(rows)
    assert "Zebra" not in visitor.get(f"/console/keys?user_id={api.member_id}").text
    assert "No keys match." in visitor.get("/console/keys?q=nowhere").text
    assert "No keys match." in visitor.get("/console/keys?status=revoked").text
    assert visitor.get("/console/keys?status=odd&sort=odd&user_id=x").status in {200, 422}


def test_changes_of_name_and_scopes_are_in_the_audit_log(api, visitor):
    made(visitor)
    path = f"/console/keys/{key_of(api).id}"
    assert 'value="time:write" checked' in visitor.get(f"{path}/edit").html
    changed = visitor.submit(f"{path}/edit", leave=("scopes",), name="Zapier two", scopes=["tickets:read"])
    assert "Zapier two saved." in changed.text
    assert key_of(api, "Zapier two").scopes == ["tickets:read"]
    audit = visitor.get("/console/audit?action=key+changed").text
    assert "Scopes Can read clients. Can create and edit time, but not read them. Can read tickets." in audit
    none = visitor.submit(f"{path}/edit", scopes="")
    assert "Permissions : Select at least one permission." in none.text
    assert none.error_of("scopes") == "Select at least one permission."


def test_a_rotated_key_works_for_the_chosen_time(api, visitor):
    former = value_of(made(visitor))
    path = f"/console/keys/{key_of(api).id}"
    new = value_of(visitor.submit(f"{path}/rotate", hours="1"))
    assert {api.get("/clients", key=key).status for key in (former, new)} == {200}
    assert "was replaced by" in visitor.get(path).text
    assert "was already replaced" in visitor.post(f"{path}/rotate").text
    at_once = value_of(made(visitor, name="Other"))
    visitor.submit(f"/console/keys/{key_of(api, 'Other').id}/rotate", hours="0")
    assert api.get("/clients", key=at_once).code == "expired_key"


def test_revoking_a_key_shows_its_use_and_needs_its_name(api, visitor):
    value = value_of(made(visitor))
    for _ in range(3):
        api.get("/clients", key=value)
    recorded(api)
    path = f"/console/keys/{key_of(api).id}/revoke"
    assert "3 requests in the last hour" in visitor.get(path).text
    assert "listClients" in visitor.get(path).text
    unsure = visitor.submit(path, confirmation="zap")
    assert unsure.status == 422
    assert api.get("/clients", key=value).status == 200
    assert "Zapier revoked." in visitor.submit(path, confirmation="zapier").text
    assert api.get("/clients", key=value).code == "revoked_key"
    assert "/revoke" not in visitor.get(path.removesuffix("/revoke")).html


@pytest.mark.parametrize("fields", [{}, {"pause_webhooks": "yes"}])
def test_the_webhooks_of_a_key_are_listed_and_paused_on_request_when_it_is_revoked(api, visitor, fields):
    value = value_of(made(visitor, scopes=["clients:read", "webhooks:write"]))
    hook = {"description": "Books", "url": "https://receiver.example/hooks"}
    webhook = api.post("/webhooks", hook, key=value).data["id"]
    other = api.make("/webhooks", description="Wiki")["id"]
    path = f"/console/keys/{key_of(api).id}"
    for page in (visitor.get(path), visitor.get(f"{path}/revoke")):
        assert ("Books" in page.text, "Wiki" in page.text) == (True, False)
    visitor.submit(f"{path}/revoke", confirmation="zapier", **fields)
    assert api.get(f"/webhooks/{webhook}").data["status"] == ("paused" if fields else "active")
    assert api.get(f"/webhooks/{other}").data["status"] == "active"
    shown = visitor.get(path)
    assert "They keep sending, although this key was revoked." in shown.text
    assert f"/console/webhooks/{webhook}" in shown.links
    assert "keep sending" not in visitor.get(f"/console/keys/{api.key_id}").text


def test_no_key_is_created_while_the_api_is_off(api, visitor):
    with api.operating() as tx:
        keys.create_key(tx, KeyDetails("Busy", api.admin_id, ["clients:read"]))
    api.get("/clients")
    recorded(api)
    page = visitor.get("/console/switch")
    assert "2 keys stop working" in page.text
    assert "Used in the last hour" in page.text
    assert "“switch off” : Does not match." in visitor.submit("/console/switch", confirmation="yes").text
    assert (
        "The API is off. 2 keys stopped working." in visitor.submit("/console/switch", confirmation="Switch off").text
    )
    assert api.get("/clients").code == "api_disabled"
    assert "Switch on the API" in visitor.get(NEW).text
    refused = visitor.post(NEW, {"name": "A", "user_id": str(api.admin_id), "scopes": "clients:read"})
    assert "The API is off." in refused.text
    assert "on the page API of the console" in visitor.post(f"/console/keys/{api.key_id}/rotate", {}).text
    assert "The API is on." in visitor.submit("/console/switch", step="on").text
    assert api.get("/clients").status == 200


def test_switching_the_api_off_twice_leaves_it_off(visitor):
    for _ in range(2):
        visitor.post("/console/switch", {"confirmation": "switch off"})
    assert "The API is off" in visitor.get("/console/api").text
    refused = visitor.post("/console/switch", {})
    assert (refused.status, "Does not match." in refused.text) == (422, True)


def test_the_api_is_not_switched_on_without_a_plan(api, visitor):
    visitor.submit("/console/switch", confirmation="switch off")
    api.set_account({"plan": "solo", "trial_ends_at": "2020-01-01T00:00:00Z"})
    assert "does not include the API, and the trial has ended." in visitor.get("/console/switch").text
    refused = visitor.post("/console/switch", {"step": "on"})
    assert (refused.status, "ask the operator of this server" in refused.text) == (402, True)
    assert "Switch on" not in visitor.get("/console/api").text
    assert "Ended 1 Jan 2020" in visitor.get("/console/api").text
