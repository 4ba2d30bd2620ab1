"""Who gets in: every operation against every reason for a refusal, and the order in which the reasons are judged."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import time_machine
from testing.agencies import open_app

from retainer.errors import Refusal
from retainer.identity import closing
from retainer.identity.keys import keys
from retainer.identity.keys.keys import SCOPES
from retainer.kernel.resource import Operation
from tests.contract.cases import (
    BY_ID,
    DELETES,
    LISTS,
    OPERATIONS,
    OTHER_STATE,
    READS,
    SCOPED,
    UNKNOWN_ID,
    UPDATES,
    another_process,
    commits,
    each,
    few,
    sample,
    send,
    succeeds,
)
from tests.databases import any_database
from tests.factories import ApiClient

PAST = "2020-01-01T00:00:00.000000Z"


class AuthFailure(NamedTuple):
    """A reason why a caller does not get in; `arrange` brings it about and returns the key to use."""

    status: int
    code: str
    arrange: Callable[[ApiClient], str | None]


def wrong_checksum(api: ApiClient) -> str:
    """A good key whose last letter is mistyped."""
    return api.key[:-1] + ("0" if api.key[-1] != "0" else "1")


def revoked(api: ApiClient) -> str:
    """A key that was revoked."""
    key = api.new_key()
    api.revoke_newest_key()
    return key


def expired(api: ApiClient) -> str:
    """A key whose time is over."""
    with time_machine.travel(PAST, tick=False):
        return api.new_key(expires_at="2020-01-01T00:00:01.000000Z")


def of_deactivated(api: ApiClient) -> str:
    """A key whose user was deactivated."""
    key = api.new_key(user_id=api.member_id)
    api.set_user(api.member_id, {"is_active": False})
    return key


def without_plan(trial_ends_at: str | None) -> Callable[[ApiClient], str | None]:
    """The good key of an account whose plan lacks the API."""

    def arrange(api: ApiClient) -> str | None:
        api.set_account({"plan": "solo", "trial_ends_at": trial_ends_at})
        return api.key

    return arrange


def switched_off(api: ApiClient) -> str | None:
    """The good key of an account whose API is off."""
    api.switch_api(on=False)
    return api.key


def suspended(api: ApiClient) -> str | None:
    """The good key of an account that the operator has suspended, whose plan and switch would refuse it, too."""
    with api.operating() as tx:
        closing.suspend(tx, "The invoice of February is not paid.")
    api.set_account({"plan": "solo", "trial_ends_at": None})
    return switched_off(api)


AUTH_FAILURES = {
    "no key": AuthFailure(401, "missing_key", lambda _: None),
    "an unknown key": AuthFailure(401, "invalid_key", lambda _: keys.new_key()),
    "a wrong checksum": AuthFailure(401, "invalid_key", wrong_checksum),
    "a revoked key": AuthFailure(401, "revoked_key", revoked),
    "an expired key": AuthFailure(401, "expired_key", expired),
    "a deactivated user": AuthFailure(401, "user_deactivated", of_deactivated),
    "a suspended account": AuthFailure(403, "account_suspended", suspended),
    "a plan without the API after its trial": AuthFailure(402, "trial_ended", without_plan(PAST)),
    "a plan without the API and no trial": AuthFailure(402, "plan_required", without_plan(None)),
    "the API switched off": AuthFailure(403, "api_disabled", switched_off),
}


def restore(api: ApiClient) -> None:
    """Give the account its plan, its switch and its users back."""
    with api.operating() as tx:
        closing.resume(tx)
    api.set_user(api.member_id, {"is_active": True})
    api.set_account({"plan": "agency"})
    api.switch_api(on=True)


def callers_are_refused(api: ApiClient, operation: Operation, *auth_failures: str) -> None:
    """The caller is refused in each of these cases and nothing is changed; afterwards the good key is answered."""
    request = sample(api, operation)
    for name in auth_failures:
        status, code, arrange = AUTH_FAILURES[name]
        key = arrange(api)
        before = commits(api)
        answer = send(api, request, key=key)
        assert (answer.status, answer.code) == (status, code), f"{name}: {answer}"
        challenge = answer.headers.get("www-authenticate") or ""
        assert challenge.startswith("Bearer") == (status == 401), f"{name}: {answer.headers}"
        assert commits(api) == before, name
        restore(api)
    succeeds(send(api, request))


def scope_is_required(api: ApiClient, operation: Operation, held: list[str]) -> None:
    """A key with these scopes is refused with the name of the missing one; the scope alone is enough.

    A webhook also needs something that its key may read.
    """
    request = sample(api, operation)
    key = api.new_key(held)
    before = commits(api)
    answer = send(api, request, key=key)
    assert (answer.status, answer.code) == (403, "missing_scope"), answer
    assert operation.scope in answer.json["message"]
    assert answer.json["required_scope"] == operation.scope
    assert sorted(answer.json["granted_scopes"]) == sorted(held)
    assert commits(api) == before
    also = ["clients:read"] if (operation.method, operation.path) == ("POST", "/webhooks") else []
    succeeds(send(api, request, key=api.new_key([operation.scope, *also])))


def checksum_needs_no_database(api: ApiClient, nowhere: Path) -> None:
    """A mistyped key is refused where the database is out of reach; one that could be good must wait for it."""
    out_of_reach = api.on(open_app(nowhere / "missing" / "retainer.db"))
    answer = out_of_reach.get("/me", key=wrong_checksum(api))
    assert (answer.status, answer.code) == (401, "invalid_key"), answer
    assert out_of_reach.get("/me", key=keys.new_key()).code == "unavailable"
    succeeds(api.get("/me"))


HUGE = {"Content-Length": str(1024 * 1024 + 1), "Content-Type": "application/json"}


@any_database
@few(OPERATIONS)
def test_who_does_not_get_in_is_refused_and_changes_nothing(api, operation):
    callers_are_refused(api, operation, *AUTH_FAILURES)


@pytest.mark.parametrize("failure", AUTH_FAILURES)
def test_every_reason_to_refuse_a_caller_is_found_in_both_databases(api, failure):
    callers_are_refused(api, LISTS[0], failure)


@any_database
@each(SCOPED)
def test_a_key_with_every_scope_but_the_needed_one_is_refused_by_name(api, operation):
    scope_is_required(api, operation, [scope for scope in SCOPES if scope != operation.scope])


@each([one for one in OPERATIONS if one.scope is None and not (one.batched or one.resource.needs)])
def test_any_valid_key_may_use_an_operation_without_scope(api, operation):
    for scope in SCOPES:
        succeeds(send(api, sample(api, operation), key=api.new_key([scope])))


def test_a_wrong_checksum_is_refused_without_the_database(api, tmp_path):
    checksum_needs_no_database(api, tmp_path)


def test_a_key_may_come_in_x_api_key(api):
    succeeds(api.get("/me", key=None, headers={"X-Api-Key": api.key}))
    assert api.get("/me", key=None, headers={"X-Api-Key": keys.new_key()}).code == "invalid_key"


def test_a_second_credential_is_never_tried(api):
    for bad in (keys.new_key(), "nonsense"):
        assert api.get("/me", key=bad, headers={"X-Api-Key": api.key}).code == "invalid_key"
    succeeds(api.get("/me", headers={"X-Api-Key": keys.new_key()}))


def test_another_scheme_is_no_bearer_credential(api):
    basic = {"Authorization": "Basic YTpi"}
    succeeds(api.get("/me", key=None, headers={**basic, "X-Api-Key": api.key}))
    assert api.get("/me", key=None, headers=basic).code == "missing_key"


def test_a_scheme_without_a_token_is_no_bearer_credential(api):
    for bare in ("Bearer", "bearer "):
        succeeds(api.get("/me", key=None, headers={"Authorization": bare, "X-Api-Key": api.key}))
        assert api.get("/me", key=None, headers={"Authorization": bare}).code == "missing_key"


def test_the_name_of_the_scheme_may_be_written_in_any_case(api):
    for scheme in ("bearer", "BEARER", "Bearer"):
        succeeds(api.get("/me", key=None, headers={"Authorization": f"{scheme} {api.key}"}))


def test_a_key_in_the_query_string_is_no_key(api):
    for name in ("api_key", "key", "access_token"):
        assert api.get("/clients", {name: api.key}, key=None).code == "missing_key"


def test_a_trial_gives_the_api_to_every_plan(api):
    api.set_account({"plan": "solo"})
    succeeds(api.get("/me"))


def test_the_api_cannot_be_switched_on_without_a_plan_that_has_it(api):
    without_plan(PAST)(api)
    with pytest.raises(Refusal):
        api.switch_api(on=True)


# What is changed counts from the very next request, in every process


def test_a_revoked_key_stops_at_once_everywhere_and_others_go_on(api):
    other = another_process(api)
    key = api.new_key()
    succeeds(other.get("/me", key=key))
    api.revoke_newest_key()
    assert other.get("/me", key=key).code == "revoked_key"
    succeeds(other.get("/me"))


def test_the_switch_stops_every_key_at_once_everywhere(api):
    other = another_process(api)
    keys = [api.new_key(["clients:read"]), api.key]
    for key in keys:
        succeeds(other.get("/me", key=key))
    switched_off(api)
    assert {other.get("/me", key=key).code for key in keys} == {"api_disabled"}
    restore(api)
    for key in keys:
        succeeds(other.get("/me", key=key))


def test_a_deactivated_users_keys_stop_at_once_everywhere_and_those_of_others_go_on(api):
    other = another_process(api)
    key = api.new_key(user_id=api.member_id)
    succeeds(other.get("/me", key=key))
    api.set_user(api.member_id, {"is_active": False})
    assert other.get("/me", key=key).code == "user_deactivated"
    succeeds(other.get("/me"))


def test_a_changed_plan_counts_at_once_everywhere(api):
    other = another_process(api)
    for plan, limit in (("scale", "1200"), ("enterprise", "3000"), ("agency", "600"), ("solo", "600")):
        api.set_account({"plan": plan})
        assert succeeds(other.get("/me")).headers["x-ratelimit-limit"] == limit
    without_plan(PAST)(api)
    assert other.get("/me").code == "trial_ended"


def test_a_key_can_only_be_made_for_an_active_user_of_its_account(api, other_tenant):
    api.set_user(api.member_id, {"is_active": False})
    for user_id in (other_tenant.admin_id, api.member_id, UNKNOWN_ID):
        with pytest.raises(Refusal) as refusal:
            api.new_key(["clients:read"], user_id=user_id)
        assert refusal.value.code == "validation_failed"
    api.new_key(["clients:read"])


# The order of the checks: a request that is wrong in two ways is refused for the first


def test_1_too_large_a_body_comes_before_a_missing_key(api):
    answer = api.call("POST", "/clients", raw=b"{}", key=None, headers=HUGE)
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert api.call("POST", "/clients", raw=b"{}", key=None).status == 401


def test_2_a_revoked_key_comes_before_a_plan_without_the_api(api):
    key = revoked(api)
    without_plan(PAST)(api)
    assert api.get("/me", key=key).status == 401
    assert api.get("/me").status == 402


def test_3_a_plan_without_the_api_comes_before_the_switch(api):
    switched_off(api)
    assert api.get("/me").status == 403
    without_plan(PAST)(api)
    assert api.get("/me").status == 402


def test_4_the_switch_comes_before_the_limit(api):
    api.spend(f"key:{api.key_id}", 600)
    assert api.get("/me").status == 429
    switched_off(api)
    assert api.get("/me").code == "api_disabled"


def test_5_the_limit_comes_before_an_unknown_path(api):
    assert api.get("/no-such-path").status == 404
    api.spend(f"key:{api.key_id}", 599)
    assert api.get("/no-such-path").status == 429


@any_database
@few(SCOPED)
def test_6_a_missing_scope_comes_before_an_unknown_parameter(api, operation):
    request = sample(api, operation)
    lacking = api.new_key([scope for scope in SCOPES if scope != operation.scope])
    assert send(api, request, query="no_such=1", key=lacking).code == "missing_scope"
    assert send(api, request, query="no_such=1").code == "unknown_parameter"


@any_database
@few(BY_ID)
def test_7_an_unknown_parameter_comes_before_a_missing_record(api, operation):
    request = sample(api, operation)
    missing = "/".join(str(UNKNOWN_ID) if part.isdigit() else part for part in request.path.split("/"))
    assert send(api, request, path=missing, query="no_such=1").code == "unknown_parameter"
    assert send(api, request, path=missing).code == "not_found"
    succeeds(send(api, request))


@any_database
@few([*UPDATES, *DELETES])
def test_8_a_missing_record_comes_before_another_state(api, operation):
    request = sample(api, operation)
    assert send(api, request, path=f"{request.collection}/{UNKNOWN_ID}", headers=OTHER_STATE).status == 404
    assert send(api, request, headers=OTHER_STATE).status == 412


@any_database
@few(UPDATES)
def test_9_another_state_comes_before_a_faulty_body(api, operation):
    request = sample(api, operation)
    wrongs = [(b"{", {}, 400), (b"{}", {"Content-Type": "text/plain"}, 415), (b'{"no_such": 1}', {}, 422)]
    before = commits(api)
    for raw, headers, status in wrongs:
        assert send(api, request, raw=raw, headers={**headers, **OTHER_STATE}).status == 412
        assert send(api, request, raw=raw, headers=headers).status == status
    assert commits(api) == before
    succeeds(send(api, request))


@any_database
@few([operation for operation in BY_ID if operation.body])
def test_a_missing_record_comes_before_a_faulty_body(api, operation):
    request = sample(api, operation)
    missing = "/".join(str(UNKNOWN_ID) if part.isdigit() else part for part in request.path.split("/"))
    assert send(api, request, path=missing, raw=b"{").status == 404
    assert send(api, request, raw=b"{").status == 400


@any_database
@few(READS)
def test_head_is_refused_like_get(api, operation):
    request = sample(api, operation)
    for key in (None, api.new_key([scope for scope in SCOPES if scope != operation.scope])):
        get, head = (send(api, request._replace(method=method), key=key) for method in ("GET", "HEAD"))
        assert (head.status, head.body) == (get.status, b"")
