"""The checks that both the tests and their controls use: each raises AssertionError when a promise is broken."""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import time_machine
from testing.agencies import open_app

from retainer.identity.keys import keys
from retainer.kernel.limits import SlidingWindow
from retainer.kernel.resource import Operation
from retainer.settings import BASE_PATH
from retainer.values.reading import must_match
from retainer.values.texts import CONTROL_FREE
from tests.contract.cases import (
    CREATES,
    LISTS,
    ONES,
    PATHS,
    UNKNOWN_ID,
    WRITES,
    Sample,
    body_schema,
    commits,
    db_copy,
    described,
    dump,
    home,
    is_decimal,
    kept_headers,
    kinds,
    query_parameters,
    reference_filters,
    references,
    sample,
    schema_fields,
    send,
    shown,
    some,
    statements_of,
    succeeds,
    target_of,
    timeless,
    with_reference,
)
from tests.contract_checker import resolved
from tests.factories import Answer, ApiClient

PAST = "2020-01-01T00:00:00.000000Z"
MAX_ANSWER = 32_000
"""Bytes of the answer to a body with many faults: 20 times the longest message, which names every type of event."""
OTHER_STATE = {"If-Match": '"another-state"'}
FAILING = OTHER_STATE | {
    "If-None-Match": "*",
    "If-Modified-Since": "Sat, 29 Oct 2044 19:43:31 GMT",
    "If-Unmodified-Since": "Sat, 29 Oct 1994 19:43:31 GMT",
}
"""Preconditions that hold for no record."""
IN_BATCHES = {"If-Match": "if_match", "If-None-Match": "if_none_match"}
"""The preconditions that an operation of a batch can have, with their fields."""

# Access


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


AUTH_FAILURES = {
    "no key": AuthFailure(401, "missing_key", lambda _: None),
    "an unknown key": AuthFailure(401, "invalid_key", lambda _: keys.new_key()),
    "a wrong checksum": AuthFailure(401, "invalid_key", wrong_checksum),
    "a revoked key": AuthFailure(401, "revoked_key", revoked),
    "an expired key": AuthFailure(401, "expired_key", expired),
    "a deactivated user": AuthFailure(401, "user_deactivated", of_deactivated),
    "a plan without the API after its trial": AuthFailure(402, "trial_ended", without_plan(PAST)),
    "a plan without the API and no trial": AuthFailure(402, "plan_required", without_plan(None)),
    "the API switched off": AuthFailure(403, "api_disabled", switched_off),
}


def restore(api: ApiClient) -> None:
    """Give the account its plan, its switch and its users back."""
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


# Tenancy


def foreign_paths(mine: Sample, theirs: Sample, operation: Operation) -> list[tuple[str, str]]:
    """Paths with another account's id, each beside the same path with an id that never was."""
    template, own_parts, foreign_parts = (text.split("/") for text in (operation.path, mine.path, theirs.path))
    found = []
    for position, part in enumerate(template):
        if not part.startswith("{"):
            continue
        assert own_parts[position] != foreign_parts[position]
        for rest in {tuple(own_parts[position + 1 :]), tuple(foreign_parts[position + 1 :])}:
            foreign = "/".join([*own_parts[:position], foreign_parts[position], *rest])
            found.append((foreign, "/".join([*own_parts[:position], str(UNKNOWN_ID), *rest])))
    return found


def foreign_id_in_path_is_nothing(api: ApiClient, other_tenant: ApiClient, operation: Operation) -> None:
    """Another account's id in the path is answered like one that never was, and nothing is changed."""
    mine, theirs = sample(api, operation), sample(other_tenant, operation)
    before = commits(api)
    for foreign, never in foreign_paths(mine, theirs, operation):
        answer, expected = (send(api, mine, path=path) for path in (foreign, never))
        assert answer.status == 404, answer
        assert shown(answer) == shown(expected)
    assert commits(api) == before
    succeeds(send(api, mine))
    succeeds(send(other_tenant, theirs))


def foreign_id_in_body_is_nothing(api: ApiClient, other_tenant: ApiClient, operation: Operation) -> None:
    """Another account's id in a body is refused in the words for one that never was; one's own is not."""
    request = sample(api, operation)
    for path in references(operation):
        table, field = target_of(operation, path), ".".join(path)
        own_id, foreign = some(api, table), some(other_tenant, table)
        before = commits(api)
        bodies = (with_reference(operation, request.body, path, record_id) for record_id in (UNKNOWN_ID, foreign))
        never, answer = (send(api, request, body=body) for body in bodies)
        assert field in answer.errors, answer
        assert shown(answer) == shown(never)
        assert commits(api) == before
        found = send(db_copy(api), request, body=with_reference(operation, request.body, path, own_id))
        assert found.status != 422 or found.errors.get(field) != answer.errors[field], found
    succeeds(send(api, request))


def foreign_id_in_filter_is_nothing(api: ApiClient, other_tenant: ApiClient, operation: Operation) -> None:
    """Another account's id in a filter finds what one that never was finds: nothing; one's own finds its record."""
    path = sample(api, operation).path
    for name, table in reference_filters(operation).items():
        own_id, foreign = (_found_by(client, operation, name, table) for client in (api, other_tenant))
        answer, never = (api.get(path, {name: record_id}) for record_id in (foreign, UNKNOWN_ID))
        assert answer.data == never.data == []
        assert answer.json["meta"] == never.json["meta"]
        assert answer.json["meta"]["total"] == 0
        place = path if "{" not in operation.path else None
        creates = [create for create in CREATES if home(create) == operation.path]
        settable = name == "ids" or (creates and _field_of(creates[0], name))
        if place and creates and settable:
            assert len(api.get(path, {name: own_id}).data) == 1


def _field_of(operation: Operation, name: str) -> tuple[str, ...] | None:
    """The field of a body that a filter looks for."""
    return next((path for path in references(operation) if path in {(name,), (f"{name}s", "0")}), None)


def _found_by(api: ApiClient, operation: Operation, name: str, table: Any) -> int:
    """The id by which a filter finds a new record of this client's account."""
    create = next((candidate for candidate in CREATES if home(candidate) == operation.path), None)
    if name == "ids" or create is None:
        return api.make(operation.path)["id"] if name == "ids" else some(api, table)
    field, record_id = _field_of(create, name), some(api, table)
    if field is not None:
        request = sample(api, create)
        succeeds(send(api, request, body=with_reference(create, request.body, field, record_id)))
    return record_id


def populate(api: ApiClient) -> None:
    """At least one record in every collection, and one with each list of references that bodies take."""
    for operation in CREATES:
        succeeds(send(api, sample(api, operation)))
        for path in references(operation):
            if path[0].endswith("_ids"):
                request, record_id = sample(api, operation), some(api, target_of(operation, path))
                succeeds(send(api, request, body=with_reference(operation, request.body, path, record_id)))


def everything_read(api: ApiClient, paths: list[str]) -> list[Any]:
    """What one client reads at these paths."""
    return [shown(api.get(path)) for path in paths]


def other_tenants_records_do_not_show(api: ApiClient, other_tenant: ApiClient) -> None:
    """Every list, total, count and record of one account reads the same before and after another account's work."""
    populate(api)
    paths = [sample(api, operation).path for operation in [*LISTS, *ONES]]
    before = everything_read(api, paths)
    populate(other_tenant)
    assert everything_read(api, paths) == before


def writes_leave_other_tenants_alone(api: ApiClient, other_tenant: ApiClient) -> None:
    """A write changes no row of another account."""
    populate(other_tenant)
    before = dump(api, other_tenant.account_id)
    for operation in WRITES:
        api.app.pipeline.limiter = SlidingWindow()
        succeeds(send(api, sample(api, operation)))
        assert dump(api, other_tenant.account_id) == before, operation


# Conventions


def unknown_parameter_is_refused(api: ApiClient, operation: Operation) -> None:
    """A query parameter that is none is refused, and the valid ones are named."""
    request = sample(api, operation)
    before = commits(api)
    answer = send(api, request, query="no_such=1")
    assert (answer.status, answer.code, list(answer.errors)) == (422, "unknown_parameter", ["no_such"]), answer
    (message,) = answer.errors["no_such"]
    for name in query_parameters(operation):
        assert name in message
    assert commits(api) == before
    succeeds(send(api, request))


def guarded(api: ApiClient, request: Sample) -> tuple[str, dict[str, Any], str]:
    """The path of the record that If-Match guards, the last one in the path, with its fields and its ETag now."""
    path = request.path if request.record else request.path[: re.search(r"[0-9](?=\D*$)", request.path).end()]
    read = api.get(path)
    return (path, read.data, read.headers["etag"]) if read.status == 200 else (path, request.record, request.etag)


def if_match_guards(api: ApiClient, operation: Operation) -> None:
    """A write to another state than the present is refused and changes nothing; the present state or any goes through.

    After a change, the state from before it is another.
    """
    request = sample(api, operation)
    (path, record, state), before = guarded(api, request), commits(api)
    answer = send(api, request, headers=OTHER_STATE)
    assert (answer.status, answer.code) == (412, "precondition_failed"), answer
    weak = send(api, request, headers={"If-Match": f"W/{state}"})
    assert (weak.status, "without W/" in weak.json["message"]) == (412, True), "If-Match compares strongly"
    unquoted = send(api, request, headers={"If-Match": state.strip('"')})
    assert (unquoted.status, "needs the quotes" in unquoted.json["message"]) == (412, True), unquoted
    assert commits(api) == before
    for good in (state, "*", f'"x", {state}'):
        succeeds(send(db_copy(api), request, headers={"If-Match": good}))
    changes = [other for other in PATHS[declared_path(operation)] if other.method in {"PUT", "PATCH"}]
    if changes:
        succeeds(api.call(changes[0].method, path, {}))
        assert send(db_copy(api), request, headers={"If-Match": state}).status != 412, "nothing has changed yet"
        succeeds(api.call(changes[0].method, path, some_change(path, record, "other")))
        assert send(api, request, headers={"If-Match": state}).status == 412


def declared_path(operation: Operation) -> str:
    """The declared path of the last record in the path of an operation."""
    return operation.path[: operation.path.rindex("}") + 1]


def preconditions_are_honoured_or_refused(api: ApiClient, operation: Operation) -> None:
    """A precondition that does not hold keeps an operation from being performed; one that is not documented is 422."""
    request, before = sample(api, operation), commits(api)
    documented_names = {resolved(parameter)["name"] for parameter in described(operation)["parameters"]}
    for name, value in FAILING.items():
        answer = send(api, request, headers={name: value})
        if name in documented_names:
            assert answer.status == (412 if operation.writes else 304), f"{name}: {answer}"
        else:
            assert answer.errors.keys() == {name}, f"{name}: {answer}"
        if name in IN_BATCHES and not operation.batched:
            answer_in_batches(api, operation, request, name, answer)
    assert commits(api) == before
    succeeds(send(api, request))


def answer_in_batches(api: ApiClient, operation: Operation, request: Sample, name: str, alone: Answer) -> None:
    """A request with a precondition is refused in a batch as it is alone, and refuses an atomic batch."""
    part = {"method": request.method, "path": request.path, "body": request.body, IN_BATCHES[name]: FAILING[name]}
    (result,) = succeeds(api.post("/batch", {"operations": [part]})).data["results"]
    assert (result["status"], error_of(result["body"])) == (alone.status, error_of(alone.json if alone.body else None))
    if operation.writes:
        atomic = api.post("/batch", {"operations": [part], "atomic": True})
        assert (atomic.status, error_of(atomic.json)) == (alone.status, error_of(alone.json)), atomic


def error_of(body: dict[str, Any] | None) -> tuple[Any, Any]:
    """The code and the fields of an error."""
    return (body["code"], body.get("errors")) if body else (None, None)


def some_change(path: str, record: dict[str, Any], word: str) -> dict[str, str]:
    """A body that changes the record at a path and says nothing of its relations, nor what the path says."""
    texts = ("description", "notes", "name", "url") if "/external:" in path else ("external_id", "description", "color")
    name = next(name for name in texts if name in record)
    return {name: f"#{word.encode().hex()[:6]:0<6}" if name == "color" else word}


def if_none_match_saves(api: ApiClient, operation: Operation) -> None:
    """A record that is unchanged is 304 without a body; a changed one is sent."""
    request = sample(api, operation)
    first = succeeds(send(api, request))
    state = first.headers["etag"]
    for same in (state, f"W/{state}", "*", f'"x", {state}'):
        answer = send(api, request, headers={"If-None-Match": same})
        assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", state), answer
    assert send(api, request, headers={"If-None-Match": '"x"'}).status == 200
    for change in (other for other in PATHS[operation.path] if other.method in {"PUT", "PATCH"}):
        succeeds(api.call(change.method, request.path, {}))
        assert succeeds(send(api, request)).headers["etag"] == state, "nothing has changed"
        succeeds(api.call(change.method, request.path, some_change(request.path, request.record, change.method)))
        state, former = succeeds(send(api, request)).headers["etag"], state
        assert state != former
        assert send(api, request, headers={"If-None-Match": former}).status == 200


def retry_is_replayed(api: ApiClient, operation: Operation) -> None:
    """A write sent again with its Idempotency-Key is answered as before and changes nothing."""
    request, headers = sample(api, operation), {"Idempotency-Key": "once"}
    first = succeeds(send(api, request, headers=headers))
    assert "idempotency-replayed" not in first.headers
    after = commits(api)
    again = send(api, request, headers=headers)
    assert (again.status, again.body) == (first.status, first.body), again
    assert kept_headers(again) == kept_headers(first) | {"idempotency-replayed": "true"}
    assert commits(api) == after
    if not operation.batched:  # which is read before its key, because only an atomic one uses the key as it is
        reused = send(api, request, headers=headers, raw=b'{"another": "body"}')
        assert (reused.status, reused.code) == (422, "idempotency_key_reused"), reused
    other = send(api, request, headers=headers, key=api.new_key())
    assert "idempotency-replayed" not in other.headers, "another API key is another client"
    assert other.status < 400 or other.code != "idempotency_key_reused", other


def refusal_is_not_kept(api: ApiClient, operation: Operation) -> None:
    """A refused write leaves its Idempotency-Key free."""
    request, headers = sample(api, operation), {"Idempotency-Key": "once"}
    wrong = {"raw": b'{"no_such_field": 1}'} if operation.body else {"path": f"{request.collection}/{UNKNOWN_ID}"}
    assert send(api, request, headers=headers, **wrong).status in {404, 422}
    assert "idempotency-replayed" not in succeeds(send(api, request, headers=headers)).headers


def malformed_is_refused(api: ApiClient, operation: Operation) -> None:
    """JSON that can be understood in two ways, or in none, is refused and changes nothing."""
    request = sample(api, operation)
    name = next(iter(schema_fields(body_schema(operation))))
    quoted = json.dumps(name).encode()
    before = commits(api)
    for raw in (
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b"{%b: 1, %b: 2}" % (quoted, quoted),
        b"{%b: NaN}" % quoted,
        b"{%b: Infinity}" % quoted,
        b"{%b: -Infinity}" % quoted,
        b"{%b: %b}" % (quoted, b"[" * 40 + b"]" * 40),
        b"{%b: %b}" % (quoted, b"[" * 100_000),
        b"\xef\xbb\xbf{}",
        b'{%b: "\xff"}' % quoted,
        "{}".encode("utf-16"),
        b'{"\\ud800": 1}',
        b"{} {}",
        b"{'a': 1}",
        b"{%b: 1,}" % quoted,
        b"{%b: 01}" % quoted,
    ):
        answer = send(api, request, raw=raw, headers={"Content-Type": "application/json"})
        assert (answer.status, answer.code) == (400, "malformed_json"), f"{raw[:80]!r}: {answer}"
    assert commits(api) == before
    succeeds(send(api, request))


def unknown_fields_are_refused(api: ApiClient, operation: Operation) -> None:
    """An unknown field is refused, and the nearest known one is named."""
    request = sample(api, operation)
    before = commits(api)
    for name in schema_fields(body_schema(operation)):
        answer = send(api, request, body=request.body | {f"{name}x": 1})
        assert list(answer.errors) == [f"{name}x"]
        assert name in answer.errors[f"{name}x"][0]
    assert commits(api) == before
    succeeds(send(api, request))


def wrong_kinds_are_refused(api: ApiClient, operation: Operation) -> None:
    """A value of a wrong kind is refused on its field: no field takes what only looks like its kind."""
    request = sample(api, operation)
    before = commits(api)
    for name, schema in schema_fields(body_schema(operation)).items():
        types = kinds(schema) - {"null"}
        wrong: list[Any] = [{}, [{}]] if "properties" not in schema else [1]
        if types == {"integer"}:
            wrong += [True, "5", 2**53, 10**30, 1.5]
        if types == {"string"}:
            wrong += [True, "\x00", "a\x00b", "\ud800", *([] if is_decimal(schema) else [5])]
        if schema.get("pattern") == CONTROL_FREE:
            wrong += ["a\nb", "a\x7fb", "a\x85b"]
        if types == {"boolean"}:
            wrong += ["true", 1, 0]
        for value in wrong:
            answer = send(api, request, body=request.body | {name: value})
            assert answer.status == 422, f"{name}: {value!r}: {answer}"
            assert any(field.split(".")[0] == name for field in answer.errors), f"{name}: {value!r}: {answer}"
    assert commits(api) == before
    succeeds(send(api, request))


def faults_are_named_at_once(api: ApiClient, operation: Operation) -> None:
    """A body with many faults is answered with all of them."""
    request = sample(api, operation)
    fields = schema_fields(body_schema(operation))
    body = {name: 1.5 if "boolean" in kinds(schema) else False for name, schema in fields.items()}
    assert set(send(api, request, body=body | {"no_such": 1}).errors) == {*fields, "no_such"}
    if operation.created:
        required = set(body_schema(operation).get("required", []))
        empty = send(db_copy(api), request, body={})
        assert set(empty.errors if required else {}) >= required
    succeeds(send(api, request))


def many_faults_get_a_short_answer(api: ApiClient, operation: Operation) -> None:
    """However many faults a body has, the answer lists the first of each kind and counts the others."""
    request = sample(api, operation)
    unknown = {f"surprise_{number}": 1 for number in range(900)}
    bodies: list[dict[str, Any]] = [unknown]
    for name, schema in schema_fields(body_schema(operation)).items():
        if "array" in kinds(schema):
            wrong = [[0] * 1000, ["x"] * 1000, [unknown] * 50]
            inner = [key for key, part in lists_within(schema) if "array" in kinds(part)]
            bodies += [{name: value} for value in [*wrong, *([{key: [0] * 1000}] * 50 for key in inner)]]
    before = commits(api)
    for body in bodies:
        answer = send(api, request, body=request.body | body)
        assert len(answer.body) < MAX_ANSWER, f"{len(answer.body)} bytes for {list(body)[:2]}"
        found = Counter(re.sub(r"surprise_|[0-9]", "", field) for field in answer.errors)
        assert max(found.values()) <= 20, found
    assert commits(api) == before
    succeeds(send(api, request))


def lists_within(schema: dict[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    """The fields of the entries of a list."""
    items = resolved(schema["items"])
    return schema_fields(items).items() if "properties" in items else ()


def put_is_patch(api: ApiClient, path: str) -> None:
    """PUT and PATCH answer the same to the same body, and leave the same behind."""
    by_method = {operation.method: operation for operation in PATHS[path]}
    put, patch = by_method["PUT"], by_method["PATCH"]
    request = sample(api, put)
    clients = [(db_copy(api), "PUT"), (db_copy(api), "PATCH")]
    bodies = [{}, {"no_such": 1}, request.record]
    for name, schema in schema_fields(body_schema(patch)).items():
        if f"{{{name}}}" not in path:  # PUT by external id refuses another than that of its path
            bodies += [{name: schema["examples"][0]}, {name: None}, {name: ""}]
    accepted = 0
    for body in bodies:
        answers = [client.call(method, request.path, body) for client, method in clients]
        first, second = (timeless({**answer.json, "request_id": ""}) for answer in answers)
        assert (answers[0].status, first) == (answers[1].status, second), body
        accepted += answers[0].status == 200
    assert accepted > 3


def record_can_be_sent_back(api: ApiClient, operation: Operation) -> None:
    """A record, sent back as it was read, is accepted and stays as it is, with its time of change."""
    request = sample(api, operation)
    read = api.get(request.path)
    record = read.data if read.status == 200 else request.record
    answer = succeeds(send(api, request, body=record))
    assert answer.data == record


def read_only_fields_are_ignored(api: ApiClient, operation: Operation) -> None:
    """Read-only fields of a change are accepted with any value, and nothing comes of it.

    Those that must say what the record holds are refused with another, and a new record has none but null.
    """
    request = sample(api, operation)
    locked = [name for name, schema in body_schema(operation)["properties"].items() if schema.get("readOnly")]
    assert {"id", "created_at", "updated_at"} <= set(locked)
    known = set(locked) if operation.use == "Create" else set(must_match(operation.body))
    faulty, ignored = dict.fromkeys(locked, "x"), dict.fromkeys(locked) if operation.use == "Create" else {}
    ignored |= {name: "x" for name in locked if name not in known}
    expected, answer = (succeeds(send(db_copy(api), request, body=request.body | more)).data for more in ({}, ignored))
    assert timeless(answer) == timeless(expected)
    if known:
        assert send(api, request, body=request.body | faulty).errors.keys() == known


def list_costs_the_same(api: ApiClient, operation: Operation) -> None:
    """A list takes as many statements for seven records as for one; sorted, filtered, or on a later page."""
    path = sample(api, operation).path
    queries = ["", "per_page=1&page=1", "updated_since=2020-01-01T00:00:00Z", f"sort={operation.query.sorts[-1]}"]
    api.make(path)
    few = [statements(api, path, query) for query in queries]
    for _ in range(6):
        api.make(path)
    assert [statements(api, path, query) for query in queries] == few
    assert len(api.get(path).data) == 7


def statements(api: ApiClient, path: str, query: str) -> int:
    """How many statements a list runs."""
    with statements_of(api) as seen:
        succeeds(api.get(path, query))
    assert seen
    return len(seen)


def every_record_comes_once(api: ApiClient, path: str, sort: str, made: list[int]) -> list[dict[str, Any]]:
    """Walking the pages by their links meets every record exactly once; figures and links agree."""
    url, found, pages = "", [], 0
    query = f"per_page=2&sort={sort}"
    while True:
        answer = api.get(path, url or query)
        rows, meta, links = answer.data, answer.json["meta"], answer.json["links"]
        pages += 1
        assert meta["current_page"] == pages
        assert (meta["from"], meta["to"]) == (len(found) + 1, len(found) + len(rows))
        assert (meta["per_page"], meta["total"], meta["last_page"]) == (2, len(made), -(-len(made) // 2))
        assert (links["prev"] is None) == (pages == 1)
        found += rows
        if links["next"] is None:
            break
        url = urlsplit(links["next"]).query
    assert sorted(row["id"] for row in found) == sorted(made)
    assert pages == meta["last_page"]
    return found


def ceiling_holds(api: ApiClient, other_tenant: ApiClient) -> None:
    """The last two requests of a minute are answered, more are 429 and not counted; other keys go on."""
    bucket = f"key:{api.key_id}"
    api.spend(bucket, 598)
    answers = [api.get("/me") for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 429, 429]
    assert [charged(answer) for answer in answers] == [1, 0, 0, 0]
    refused = answers[-1]
    assert refused.code == "rate_limited"
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.headers["retry-after"] in refused.json["message"]
    now = time.time()
    assert now < int(refused.headers["x-ratelimit-reset"]) <= now + 61
    assert api.app.pipeline.limiter.hit(bucket, 601, amount=0).remaining == 1
    succeeds(api.get("/me", key=api.new_key()))
    succeeds(other_tenant.get("/me"))


def anonymous_callers_are_charged(api: ApiClient) -> None:
    """A refused caller is charged to the address, a good key never; an empty bucket refuses strangers only."""
    for expected in (599, 598):
        answer = api.get("/me", key=None)
        assert (answer.headers["x-ratelimit-limit"], charged(answer)) == ("600", expected)
    succeeds(api.get("/me"))
    assert charged(api.get("/me", key=keys.new_key())) == 597
    api.spend("address:127.0.0.1", 597)
    for key in (None, keys.new_key(), "nonsense"):
        refused = api.get("/me", key=key)
        assert (refused.status, refused.code, charged(refused)) == (429, "rate_limited", 0)
        assert int(refused.headers["retry-after"]) >= 1
    assert charged(succeeds(api.get("/me"))) == 598


def paths_and_methods(path: str) -> tuple[list[str], list[str]]:
    """The methods that a path takes, and those that it does not."""
    taken = {operation.method for operation in PATHS[path]} | {"OPTIONS"}
    taken |= {"HEAD"} if "GET" in taken else set()
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
    return [name for name in known if name in taken], [name for name in known if name not in taken]


def base() -> str:
    """The public address of the API under test."""
    return f"http://agency.example{BASE_PATH}"


def charged(answer: Answer) -> int:
    """What is left of the bucket that an answer shows."""
    return int(answer.headers["x-ratelimit-remaining"])
