from retainer import __version__


def test_it_works(api):
    me = api.get("/me").data
    assert me["key"]["prefix"] == api.key[:8]
    assert me["key"]["last_used_at"] is None
    assert "clients:read" in me["key"]["scopes"]
    assert me["user"] == {"id": api.admin_id, "name": "Ana Admin", "email": "ana@north.example", "role": "admin"}
    assert me["account"] | {"trial_ends_at": None} == {
        "id": api.account_id,
        "name": "North",
        "plan": "agency",
        "trial_ends_at": None,
        "currency": "EUR",
        "timezone": "Europe/Berlin",
    }
    assert (me["rate_limit"]["limit"], me["rate_limit"]["remaining"], me["rate_limit"]["window_seconds"]) == (
        600,
        599,
        60,
    )
    assert (me["server"]["version"], me["server"]["api_version"]) == (__version__, "v1")


def test_any_valid_key_may_ask_and_sees_its_own_scopes(api):
    me = api.get("/me", key=api.new_key(["tasks:write", "clients:read"])).data
    assert me["key"]["scopes"] == ["clients:read", "tasks:write"]


def test_the_last_use_is_written_at_most_once_a_minute(api):
    used = api.app.housekeeping.keys_used
    assert api.get("/me").data["key"]["last_used_at"] is None
    used.write(api.store)
    first = api.get("/me").data["key"]["last_used_at"]
    assert first is not None
    used.write(api.store)
    assert api.get("/me").data["key"]["last_used_at"] == first
