"""What every request and every answer have in common, tried on every operation."""

import json
import re
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any
from urllib.parse import urlsplit

import pytest

from retainer.api import ROUTES
from retainer.identity.keys import keys
from retainer.identity.keys.keys import SCOPES
from retainer.kernel.limits import SlidingWindow
from retainer.kernel.resource import Operation
from retainer.settings import BASE_PATH
from retainer.values.reading import must_match
from retainer.values.records import Record
from retainer.values.texts import CONTROL_FREE
from tests.contract.cases import (
    BODIES,
    CREATED_LISTS,
    CREATES,
    DELETES,
    LISTS,
    ONES,
    OPERATIONS,
    OTHER_STATE,
    PATHS,
    READS,
    UNKNOWN_ID,
    UPDATES,
    WRITES,
    Sample,
    another_process,
    body_schema,
    commits,
    db_copy,
    described,
    each,
    few,
    held_writes,
    home,
    is_decimal,
    kept_headers,
    kinds,
    query_parameters,
    sample,
    schema_fields,
    send,
    some_change,
    statements_of,
    succeeds,
    timeless,
)
from tests.contract_checker import resolved
from tests.databases import any_database
from tests.factories import Answer, ApiClient
from tests.length import sampled

MAX_ANSWER = 32_000
"""Bytes of the answer to a body with many faults: 20 times the longest message, which names every type of event."""
FAILING = OTHER_STATE | {
    "If-None-Match": "*",
    "If-Modified-Since": "Sat, 29 Oct 2044 19:43:31 GMT",
    "If-Unmodified-Since": "Sat, 29 Oct 1994 19:43:31 GMT",
}
"""Preconditions that hold for no record."""
IN_BATCHES = {"If-Match": "if_match", "If-None-Match": "if_none_match"}
"""The preconditions that an operation of a batch can have, with their fields."""


def guarded(api: ApiClient, request: Sample) -> tuple[str, dict[str, Any], str]:
    """The path of the record that If-Match guards, the last one in the path, with its fields and its ETag now."""
    path = request.path if request.record else request.path[: re.search(r"[0-9](?=\D*$)", request.path).end()]
    read = api.get(path)
    return (path, read.data, read.headers["etag"]) if read.status == 200 else (path, request.record, request.etag)


def declared_path(operation: Operation) -> str:
    """The declared path of the last record in the path of an operation."""
    return operation.path[: operation.path.rindex("}") + 1]


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


MEBIBYTE = 1024 * 1024

# Paths and methods


@any_database
@pytest.mark.parametrize("path", sampled(PATHS))
def test_options_names_the_methods_of_a_path_and_others_are_405(api, path):
    concrete = sample(api, PATHS[path][0]).path
    taken, others = paths_and_methods(path)
    lacking = api.new_key([scope for scope in SCOPES if scope not in {operation.scope for operation in PATHS[path]}])
    options = api.call("OPTIONS", concrete)
    assert (options.status, options.body, options.headers["allow"].split(", ")) == (204, b"", taken)
    before = commits(api)
    for method in others:
        for key in (api.key, lacking):
            answer = api.call(method, concrete, key=key)
            assert answer.status == 405, f"{method}: {answer}"
            assert answer.headers["allow"].split(", ") == taken
            assert method == "HEAD" or answer.code == "method_not_allowed"
    assert commits(api) == before


@any_database
@each(READS)
def test_reading_changes_nothing_and_head_is_get_without_the_body(api, operation):
    request = sample(api, operation)
    before = commits(api)
    get, head = (send(api, request._replace(method=method)) for method in ("GET", "HEAD"))
    assert get.status == 200
    assert (head.status, head.body) == (200, b"")
    assert kept_headers(head) == kept_headers(get)
    assert int(head.headers["content-length"]) == len(get.body)
    assert commits(api) == before


@any_database
@pytest.mark.parametrize(
    "path",
    ["", "/", "/nothing", "/clients/1/nothing", "/clients//", "//clients", "///clients", "/Clients", "/clients/", "/%"],
)
def test_an_unknown_path_is_404(api, path):
    api.make("/clients")
    answer = api.get(path)
    assert (answer.status, answer.code) == (404, "not_found")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_slash_at_the_end_is_404_and_named(api, method):
    for path in ("/clients/", "/clients/1/", "/time-entries/"):
        answer = api.call(method, path, {"name": "Acme"} if method == "POST" else None)
        message = "There is nothing at this path. Remove the trailing slash."
        assert (answer.status, answer.code, answer.json["message"]) == (404, "not_found", message), path
    assert "slash" not in api.call(method, "/nowhere/").json["message"]


@few([operation for operation in ONES if operation.parameters])
def test_what_is_no_id_is_no_record(api, operation):
    request = sample(api, operation)
    for text in (
        "0",
        "-1",
        "+1",
        "01",
        "1.0",
        "1e3",
        "x",
        "²",
        "%31",
        " 1",
        str(2**53),
        "9" * 40,
        f"0{request.record['id']}",
    ):
        assert send(api, request, path=f"{request.collection}/{text}").status == 404, text
    succeeds(send(api, request))


# Query parameters


@any_database
@each(OPERATIONS)
def test_an_unknown_query_parameter_is_refused_and_the_valid_ones_are_named(api, operation):
    request = sample(api, operation)
    before = commits(api)
    answer = send(api, request, query="no_such=1")
    assert (answer.status, answer.code, list(answer.errors)) == (422, "unknown_parameter", ["no_such"]), answer
    (message,) = answer.errors["no_such"]
    for name in query_parameters(operation):
        assert name in message
    assert commits(api) == before
    succeeds(send(api, request))


@any_database
@each(LISTS)
def test_a_list_takes_and_refuses_values_of_its_parameters_each_by_its_name(api, operation):
    path = sample(api, operation).path
    wrong = {}
    for name, schema in query_parameters(operation).items():
        item = schema.get("items", schema)
        if kinds(item) & {"integer", "boolean", "number"} or item.keys() & {"enum", "format"}:
            wrong[name] = "?!"
    assert {"page", "per_page", "sort", "ids", "created_since", "updated_before"} <= set(wrong)
    for name, value in wrong.items():
        answer = api.get(path, {name: value})
        assert list(answer.errors) == [name], answer
        assert answer.code == "validation_failed"
    assert set(api.get(path, wrong).errors) == set(wrong)
    assert set(api.get(path, wrong | {"no_such": 1}).errors) == {*wrong, "no_such"}
    assert list(api.get(path, "per_page=1&per_page=2").errors) == ["per_page"]
    assert api.get(path, "ids=1&ids=2").data == api.get(path, "ids=1,2").data
    for query in ("page=0", "page=-1", "page=", "page=1.5", "per_page=0", "per_page=101", "per_page=-1", "per_page=x"):
        assert list(api.get(path, query).errors) == [query.partition("=")[0]], query
    for query, size in (("", 25), ("per_page=1", 1), ("per_page=100", 100)):
        assert api.get(path, query).json["meta"]["per_page"] == size
    assert api.get(path, {"ids": ",".join(map(str, range(1, 101)))}).status == 200
    assert list(api.get(path, {"ids": ",".join(map(str, range(1, 102)))}).errors) == ["ids"]


# Lists

OF_ADMINS = {"/users/{user_id}", "/webhooks/{webhook_id}"}
"""Records that look different to a member: only an admin sees emails."""


@each(LISTS)
def test_an_empty_list_has_its_envelope(api, operation):
    path = sample(api, operation).path
    answer = api.get(path, {"per_page": 10, "created_since": "2999-01-01T00:00:00Z"})
    first = f"{base()}{path}?per_page=10&created_since=2999-01-01T00%3A00%3A00Z&page=1"
    assert answer.json == {
        "data": [],
        "links": {"first": first, "last": first, "prev": None, "next": None},
        "meta": {
            "current_page": 1,
            "from": None,
            "last_page": 1,
            "path": f"{base()}{path}",
            "per_page": 10,
            "to": None,
            "total": 0,
        },
    }


@each(CREATED_LISTS)
def test_a_page_past_the_end_is_empty(api, operation):
    path = sample(api, operation).path
    for _ in range(3):
        api.make(path)
    for number in (3, 9, 2**53 - 1):
        answer = api.get(path, {"per_page": 2, "page": number})
        meta, links = answer.json["meta"], answer.json["links"]
        assert answer.data == []
        assert (meta["current_page"], meta["last_page"], meta["total"]) == (number, 2, 3)
        assert (meta["from"], meta["to"], links["next"]) == (None, None, None)
        assert links["prev"] == links["last"] == f"{base()}{path}?per_page=2&page=2"


@each(CREATED_LISTS)
def test_pages_meet_every_record_once_in_every_order(api, operation):
    path = sample(api, operation).path
    made = [api.make(path)["id"] for _ in range(5)]
    assert api.get(path).data == api.get(path, {"sort": operation.query.sorts[0]}).data, "the default order"
    for sort in {name.removeprefix("-") for name in operation.query.sorts} | {"id"}:
        api.app.pipeline.limiter = SlidingWindow()
        rows, backward = (every_record_comes_once(api, path, name, made) for name in (sort, f"-{sort}"))
        values = [row.get(sort) for row in rows]
        if None not in values and len({json.dumps(value) for value in values}) == len(values):
            assert backward == rows[::-1]
        if sort in {"id", "created_at", "updated_at"}:
            assert values == sorted(values)


@each(CREATED_LISTS)
def test_common_filters_find_what_they_say(api, operation):
    path = sample(api, operation).path
    rows = [api.make(path) for _ in range(3)]
    ids = [row["id"] for row in rows]

    def found(**query: object) -> list[int]:
        return sorted(row["id"] for row in api.get(path, {**query, "per_page": 100}).data)

    assert found(ids=f"{ids[2]},{ids[0]}") == [ids[0], ids[2]]
    assert found(ids=f"{ids[1]},{ids[1]},{UNKNOWN_ID}") == [ids[1]]
    second = api.get(path, {"ids": ids[1]}).data[0]
    for stamp in ("created", "updated"):
        assert found(**{f"{stamp}_since": second[f"{stamp}_at"]}) == ids[1:]
        assert found(**{f"{stamp}_before": second[f"{stamp}_at"]}) == ids[:1]
    assert found(ids=f"{ids[0]},{ids[1]}", created_since=second["created_at"]) == [ids[1]]


@each(CREATED_LISTS)
def test_a_list_takes_as_many_statements_for_many_records_as_for_one(api, operation):
    path = sample(api, operation).path
    queries = ["", "per_page=1&page=1", "updated_since=2020-01-01T00:00:00Z", f"sort={operation.query.sorts[-1]}"]
    api.make(path)
    few = [statements(api, path, query) for query in queries]
    for _ in range(6):
        api.make(path)
    assert [statements(api, path, query) for query in queries] == few
    assert len(api.get(path).data) == 7


# Records


@each(CREATES)
def test_what_was_made_is_answered_whole_and_can_be_found(api, operation):
    request = sample(api, operation)
    answer = send(api, request)
    assert answer.status == 201
    location = answer.headers["location"]
    collection = operation.resource.location or request.path
    assert location == f"{base()}{collection}/{answer.data['id']}"
    read = api.get(location.removeprefix(base()))
    assert read.status in {200, 404, 405}
    if any(other.path.startswith(home(operation)) for other in ONES):
        made, tag = dict(answer.data), answer.headers["etag"]
        if made.get("url", "").startswith(
            base().replace(BASE_PATH, "/client")
        ):  # the address of a link is shown only once
            made["url"], tag = None, read.headers["etag"]
        assert (read.data, read.headers["etag"]) == (made, tag)
    if home(operation) in {other.path for other in LISTS}:
        assert answer.data["id"] in [row["id"] for row in api.get(collection).data]


@each(ONES)
def test_a_record_that_is_unchanged_is_304_with_any_key_in_any_process(api, operation):
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
    request = sample(api, operation)
    etag = send(api, request).headers["etag"]
    reader = api.admin_id if operation.path in OF_ADMINS else api.member_id
    assert send(api, request, key=api.new_key(user_id=reader)).headers["etag"] == etag
    assert send(another_process(api), request).headers["etag"] == etag


@each(ONES)
def test_the_state_that_an_etag_names_begins_with_the_time_of_the_last_change(api, operation):
    read = send(api, sample(api, operation))
    assert read.headers["etag"].startswith(f'"{read.data["updated_at"]}.')


@each([operation for operation in WRITES if "If-Match" in operation.preconditions])
def test_a_write_to_another_state_is_412(api, operation):
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


@few([operation for operation in OPERATIONS if ROUTES.bound[operation].media_types_of_others])
def test_a_form_that_an_operation_does_not_have_is_406_and_changes_nothing(api, operation):
    request, before, foreign = sample(api, operation), commits(api), ROUTES.bound[operation].media_types_of_others[0]
    refused = send(api, request, headers={"Accept": foreign})
    assert (refused.status, refused.code) == (406, "not_acceptable")
    assert commits(api) == before
    succeeds(send(api, request, headers={"Accept": f"{foreign}, application/json"}))


@any_database
@each(OPERATIONS)
def test_a_precondition_is_honoured_or_refused_and_never_dropped(api, operation):
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


@each(DELETES)
def test_what_was_deleted_is_nothing_and_its_id_is_never_used_again(api, operation):
    request = sample(api, operation)
    before = commits(api)
    answer = send(api, request)
    assert (answer.status, answer.body) == (204, b"")
    for other in PATHS[operation.path]:
        if other.upserts:  # it creates the record again
            continue
        again = api.call(other.method, request.path, request.record if other.body else None)
        assert (again.status, again.code) == (404, "not_found"), f"{other}: {again}"
    assert commits(api) != before
    listed = api.get(request.collection)
    assert listed.status == 405 or request.record["id"] not in [row["id"] for row in listed.data]
    assert api.make(request.collection)["id"] > request.record["id"]


# Retries


@each(WRITES)
def test_a_retry_is_answered_as_before_and_changes_nothing(api, operation):
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


@few(WRITES)
def test_a_retry_at_another_process_is_answered_as_before(api, operation):
    request, headers = sample(api, operation), {"Idempotency-Key": "once"}
    first = succeeds(send(api, request, headers=headers))
    again = send(another_process(api), request, headers=headers)
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (first.status, first.body, "true")


@few(WRITES)
def test_a_refusal_leaves_its_idempotency_key_free(api, operation):
    request, headers = sample(api, operation), {"Idempotency-Key": "once"}
    wrong = {"raw": b'{"no_such_field": 1}'} if operation.body else {"path": f"{request.collection}/{UNKNOWN_ID}"}
    assert send(api, request, headers=headers, **wrong).status in {404, 422}
    assert "idempotency-replayed" not in succeeds(send(api, request, headers=headers)).headers


@few(WRITES)
def test_a_retry_while_the_first_still_runs_is_refused_and_the_first_goes_on(api, operation):
    """It is a 409. With one writer, it waits for its turn behind the first, to replay that, which is held here."""
    request, headers = sample(api, operation), {"Idempotency-Key": "once"}
    before = commits(api)
    with ThreadPoolExecutor(2) as clients:
        with held_writes(api, patience=60):  # neither can end but by a refusal
            requests = [clients.submit(send, api, request, headers=headers) for _ in range(2)]
            (refused,), (first,) = wait(requests, return_when=FIRST_COMPLETED)
            answer = refused.result()
            if not (api.store.engine.has_one_writer and answer.code == "unavailable"):
                assert (answer.status, answer.code) == (409, "idempotency_in_progress"), answer
                assert "Idempotency-Key" in answer.json["message"]
                assert answer.headers["retry-after"] == "1"
            assert commits(api) == before
        done = succeeds(first.result())
    assert "idempotency-replayed" not in done.headers
    again = send(api, request, headers=headers)
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (done.status, done.body, "true")


@few(WRITES)
def test_a_retry_that_may_no_longer_act_is_refused(api, operation):
    request, headers = sample(api, operation), {"Idempotency-Key": "once"}
    succeeds(send(api, request, headers=headers))
    api.switch_api(on=False)
    assert send(api, request, headers=headers).code == "api_disabled"
    api.switch_api(on=True)
    assert "idempotency-replayed" in send(api, request, headers=headers).headers


def test_an_idempotency_key_is_1_to_255_visible_ascii_characters(api):
    for value in ("", " ", "a b", "é", "x" * 256, "\t", "\x7f"):
        answer = api.post("/tags", {"name": "New"}, headers={"Idempotency-Key": value})
        assert (answer.status, answer.code) == (400, "bad_request"), repr(value)
    assert api.get("/tags").data == []
    for number, value in enumerate(("!", "~", "x" * 255)):
        assert api.post("/tags", {"name": f"New {number}"}, headers={"Idempotency-Key": value}).status == 201


def test_an_idempotency_key_means_nothing_to_a_read(api):
    for _ in range(2):
        assert "idempotency-replayed" not in api.get("/tags", headers={"Idempotency-Key": "once"}).headers
        api.make("/tags")
    assert len(api.get("/tags", headers={"Idempotency-Key": "once"}).data) == 2


# Bodies


@any_database
@pytest.mark.parametrize(
    "path",
    sampled(path for path, on_path in PATHS.items() if {"PUT", "PATCH"} <= {operation.method for operation in on_path}),
)
def test_put_and_patch_are_one_operation(api, path):
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


@each(UPDATES)
def test_a_record_can_be_sent_back_as_it_was_read(api, operation):
    request = sample(api, operation)
    read = api.get(request.path)
    record = read.data if read.status == 200 else request.record
    answer = succeeds(send(api, request, body=record))
    assert answer.data == record
    request = sample(api, operation)
    answer = succeeds(send(api, request, body={}))
    assert answer.data | {"updated_at": ""} == request.record | {"updated_at": ""}


@any_database
@each(BODIES)
def test_wrong_fields_are_refused_by_name_all_of_them_together(api, operation):
    unknown_fields_are_refused(api, operation)
    wrong_kinds_are_refused(api, operation)
    faults_are_named_at_once(api, operation)
    many_faults_get_a_short_answer(api, operation)


@any_database
@each([operation for operation in BODIES if issubclass(operation.body, Record)])
def test_read_only_fields_are_ignored_in_a_change_and_refused_in_a_new_record(api, operation):
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


@any_database
@few(BODIES)
def test_json_that_is_ambiguous_or_broken_is_400(api, operation):
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


@each([operation for operation in BODIES if {"tag_ids", "external_id"} <= schema_fields(body_schema(operation)).keys()])
def test_a_reference_to_nothing_and_a_faulty_field_are_named_at_once(api, operation):
    request = sample(api, operation)
    answer = send(api, request, body=request.body | {"tag_ids": [UNKNOWN_ID], "external_id": 5})
    assert set(answer.errors) == {"tag_ids.0", "external_id"}


@each(operation for operation in UPDATES if operation.method == "PATCH")
def test_blank_text_is_null_where_null_is_allowed_and_text_is_trimmed(api, operation):
    request = sample(api, operation)
    blank, spaces, null, plain, padded = (db_copy(api) for _ in range(5))
    for name, schema in body_schema(operation)["properties"].items():
        if schema.get("readOnly") or kinds(schema) != {"string", "null"}:
            continue
        example = schema["examples"][0]
        expected = [
            timeless(client.patch(request.path, {name: value}).json | {"request_id": ""})
            for client, value in ((blank, ""), (spaces, " \t "), (null, None))
        ]
        assert expected[0] == expected[1] == expected[2], name
        given = [
            timeless(client.patch(request.path, {name: value}).json | {"request_id": ""})
            for client, value in ((plain, example), (padded, f" \t{example}\n"))
        ]
        assert given[0] == given[1], name


@any_database
@few(BODIES)
def test_a_body_of_another_media_type_is_415(api, operation):
    request = sample(api, operation)
    raw = json.dumps(request.body).encode()
    before = commits(api)
    for media in ("", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "multipart/form-data"):
        answer = send(api, request, raw=raw, headers={"Content-Type": media})
        assert (answer.status, answer.code) == (415, "unsupported_media_type"), media
    assert send(api, request, raw=raw, headers={"Content-Encoding": "gzip"}).status == 415
    assert commits(api) == before
    succeeds(send(api, request, raw=raw, headers={"Content-Type": "Application/JSON; charset=utf-8"}))


@any_database
@few(OPERATIONS)
def test_a_body_in_another_coding_than_chunked_is_501_and_one_in_chunks_twice_400(api, operation):
    request = sample(api, operation)
    raw = b"" if request.body is None else json.dumps(request.body).encode()
    before = commits(api)
    refusals = {"gzip, chunked": 501, "identity, chunked": 501, "gzip": 501, "": 501, "chunked, Chunked": 400}
    for coding, status in refusals.items():
        answer = send(api, request, raw=raw, headers={"Content-Length": "", "Transfer-Encoding": coding})
        codes = {501: "unsupported_transfer_coding", 400: "bad_request"}
        assert (answer.status, answer.code, answer.headers["connection"]) == (status, codes[status], "close"), coding
    assert commits(api) == before
    if raw:
        succeeds(send(api, request, raw=raw, headers={"Content-Length": "", "Transfer-Encoding": " , Chunked"}))


@any_database
@few(BODIES)
def test_a_body_over_one_mebibyte_is_413_and_one_of_just_that_is_read(api, operation):
    request = sample(api, operation)
    raw = json.dumps(request.body).encode()
    full = raw + b" " * (MEBIBYTE - len(raw))
    before = commits(api)
    for headers in ({}, {"Content-Length": "", "Transfer-Encoding": "chunked"}, {"Content-Length": "9" * 30}):
        answer = send(api, request, raw=full + b" ", headers=headers)
        assert (answer.status, answer.code) == (413, "body_too_large"), headers
    assert commits(api) == before
    succeeds(send(api, request, raw=full))


@any_database
@few([operation for operation in OPERATIONS if not operation.body])
def test_a_body_over_one_mebibyte_is_413_where_none_is_taken_too(api, operation):
    request = sample(api, operation)
    before = commits(api)
    answer = send(api, request, raw=b" " * (MEBIBYTE + 1))
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert commits(api) == before
    succeeds(send(api, request))


# Headers


@any_database
@few(OPERATIONS)
def test_a_request_that_does_not_name_one_host_is_400(api, operation):
    request = sample(api, operation)
    before = commits(api)
    for host in ("", "agency.example,other.example", "agency example"):
        answer = send(api, request, headers={"Host": host})
        assert (answer.status, answer.code) == (400, "bad_request"), repr(host)
        assert "Host" in answer.json["message"]
    assert commits(api) == before
    succeeds(send(api, request))


def test_a_sane_request_id_is_echoed_and_any_other_replaced(api):
    for given in ("a", "req_1.2-3", "X" * 64, "req_" + "0" * 25):
        answer = api.get("/me", headers={"X-Request-Id": given})
        assert answer.headers["x-request-id"] == given
    for given in ("", " ", "a b", "X" * 65, "é", "a\tb", '"', "a;b", "req_" + "0" * 24):
        made = api.get("/me", headers={"X-Request-Id": given}).headers["x-request-id"]
        assert re.fullmatch(r"req_[0-9a-f]{24}", made), given
    refused = api.get("/me", key=None, headers={"X-Request-Id": "mine"})
    assert refused.json["request_id"] == refused.headers["x-request-id"] == "mine"


def test_request_ids_that_are_made_differ(api):
    assert len({api.get("/me").headers["x-request-id"] for _ in range(50)}) == 50


# Limits


def test_every_counted_request_takes_one_whatever_its_answer(api):
    assert charged(api.get("/me")) == 599
    lacking = api.new_key(["sites:read"])
    counted = [
        (200, api.get("/tags")),
        (404, api.get("/nothing")),
        (405, api.call("PATCH", "/me")),
        (422, api.get("/tags", "no_such=1")),
        (404, api.get(f"/clients/{UNKNOWN_ID}")),
        (400, api.call("POST", "/tags", raw=b"{")),
        (415, api.call("POST", "/tags", raw=b"{}", headers={"Content-Type": "text/plain"})),
        (204, api.call("OPTIONS", "/tags")),
        (200, api.call("HEAD", "/tags")),
        (201, api.post("/tags", {"name": "New"})),
    ]
    assert [answer.status for _, answer in counted] == [status for status, _ in counted]
    assert [charged(answer) for _, answer in counted] == list(range(598, 588, -1))
    refused = api.get("/tags", key=lacking)
    assert (refused.status, charged(refused)) == (403, 599)


def test_over_the_ceiling_is_429_with_the_seconds_to_wait_and_other_keys_go_on(api, other_tenant):
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


@any_database
@few(OPERATIONS)
def test_every_operation_is_limited_and_a_refused_one_changes_nothing(api, operation):
    request = sample(api, operation)
    before = commits(api)
    api.spend(f"key:{api.key_id}", charged(api.get("/me")))
    assert send(api, request).status == 429
    assert commits(api) == before
    api.app.pipeline.limiter = SlidingWindow()
    succeeds(send(api, request))


def test_me_shows_the_figures_of_the_headers(api):
    answer = api.get("/me")
    figures = answer.data["rate_limit"]
    assert str(figures["limit"]) == answer.headers["x-ratelimit-limit"] == "600"
    assert str(figures["remaining"]) == answer.headers["x-ratelimit-remaining"]
    assert str(figures["reset"]) == answer.headers["x-ratelimit-reset"]
    assert figures["window_seconds"] == 60


def test_refused_callers_are_charged_to_their_address_and_good_keys_never(api):
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


def test_who_is_too_large_or_switched_off_is_charged_to_the_address(api):
    assert charged(api.call("POST", "/tags", raw=b"x" * (MEBIBYTE + 1))) == 599
    api.switch_api(on=False)
    assert charged(api.get("/me")) == 598
    api.switch_api(on=True)
    assert charged(api.get("/me")) == 599, "nothing of that was charged to the key"


def test_nothing_but_the_api_lies_under_the_base_path(api):
    for path in ("/openapi.json", "/health", "/metrics", "/docs"):
        assert api.get(path).status == 404
    assert BASE_PATH == "/api/public/v1"
