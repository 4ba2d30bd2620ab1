"""The turns of requests are those of the account whose key or session they have, from the first one to the last."""

from contextlib import contextmanager

from retainer.identity.people import sessions
from retainer.server.http import turns
from tests.console.visitor import admin_of
from tests.quick_hashes import hash_quickly


@contextmanager
def all_turns_of(api, monkeypatch):
    """An account that has no turn left, whose next request does not wait for one."""
    monkeypatch.setattr(turns, "TURN_SECONDS", 0)
    running, held = api.app.gate.turns.running, 0
    while running.acquire(api.account_id, 0):
        held += 1
    assert held
    yield
    for _ in range(held):
        running.release(api.account_id)


def test_a_new_key_and_a_new_session_have_the_turns_of_their_account_until_they_end(api, monkeypatch):
    hash_quickly(monkeypatch)
    visitor, key = admin_of(api), api.new_key()
    with all_turns_of(api, monkeypatch):
        assert api.get("/me", key=key).status == 503
        assert visitor.call("GET", "/console", may_fail=True).status == 503
        api.revoke_newest_key()
        with api.operating() as tx:
            sessions.end_all_of(tx, api.admin_id)
    assert api.get("/me", key=key).code == "revoked_key"
    assert visitor.get("/console").status == 303
    with all_turns_of(api, monkeypatch):
        assert api.get("/me", key=key).code == "revoked_key"
        assert visitor.get("/console").status == 303
