"""What every request and every answer have in common, tried on every operation."""

import json
import re
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import pytest

from retainer.identity.keys.keys import SCOPES
from retainer.kernel.limits import SlidingWindow
from retainer.settings import BASE_PATH
from retainer.values.records import Record
from tests.contract.cases import (
    BODIES,
    CREATED_LISTS,
    CREATES,
    DELETES,
    LISTS,
    ONES,
    OPERATIONS,
    PATHS,
    READS,
    UNKNOWN_ID,
    UPDATES,
    WRITES,
    another_process,
    body_schema,
    commits,
    db_copy,
    each,
    few,
    held_writes,
    home,
    kept_headers,
    kinds,
    query_parameters,
    sample,
    schema_fields,
    send,
    succeeds,
    timeless,
)
from tests.contract.checks import (
    anonymous_callers_are_charged,
    base,
    ceiling_holds,
    charged,
    every_record_comes_once,
    faults_are_named_at_once,
    if_match_guards,
    if_none_match_saves,
    list_costs_the_same,
    malformed_is_refused,
    many_faults_get_a_short_answer,
    paths_and_methods,
    preconditions_are_honoured_or_refused,
    put_is_patch,
    read_only_fields_are_ignored,
    record_can_be_sent_back,
    refusal_is_not_kept,
    retry_is_replayed,
    unknown_fields_are_refused,
    unknown_parameter_is_refused,
    wrong_kinds_are_refused,
)
from tests.databases import any_database
from tests.length import sampled

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
    unknown_parameter_is_refused(api, operation)


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
    list_costs_the_same(api, operation)


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
        assert (read.data, read.headers["etag"]) == (answer.data, answer.headers["etag"])
    if home(operation) in {other.path for other in LISTS}:
        assert answer.data["id"] in [row["id"] for row in api.get(collection).data]


@each(ONES)
def test_a_record_that_is_unchanged_is_304_with_any_key_in_any_process(api, operation):
    if_none_match_saves(api, operation)
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
    if_match_guards(api, operation)


@few([operation for operation in OPERATIONS if operation.elsewhere])
def test_a_form_that_an_operation_does_not_have_is_406_and_changes_nothing(api, operation):
    request, before = sample(api, operation), commits(api)
    refused = send(api, request, headers={"Accept": operation.elsewhere[0]})
    assert (refused.status, refused.code) == (406, "not_acceptable")
    assert commits(api) == before
    succeeds(send(api, request, headers={"Accept": f"{operation.elsewhere[0]}, application/json"}))


@any_database
@each(OPERATIONS)
def test_a_precondition_is_honoured_or_refused_and_never_dropped(api, operation):
    preconditions_are_honoured_or_refused(api, operation)


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
    retry_is_replayed(api, operation)


@few(WRITES)
def test_a_retry_at_another_process_is_answered_as_before(api, operation):
    request, headers = sample(api, operation), {"Idempotency-Key": "once"}
    first = succeeds(send(api, request, headers=headers))
    again = send(another_process(api), request, headers=headers)
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (first.status, first.body, "true")


@few(WRITES)
def test_a_refusal_leaves_its_idempotency_key_free(api, operation):
    refusal_is_not_kept(api, operation)


@few(WRITES)
def test_a_retry_while_the_first_still_runs_is_409_and_the_first_goes_on(api, operation):
    request, headers = sample(api, operation), {"Idempotency-Key": "once"}
    before = commits(api)
    with ThreadPoolExecutor(2) as clients:
        with held_writes(api, patience=60):  # neither can end but by a refusal
            requests = [clients.submit(send, api, request, headers=headers) for _ in range(2)]
            (refused,), (first,) = wait(requests, return_when=FIRST_COMPLETED)
            answer = refused.result()
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
    put_is_patch(api, path)


@each(UPDATES)
def test_a_record_can_be_sent_back_as_it_was_read(api, operation):
    record_can_be_sent_back(api, operation)
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
    read_only_fields_are_ignored(api, operation)


@any_database
@few(BODIES)
def test_json_that_is_ambiguous_or_broken_is_400(api, operation):
    malformed_is_refused(api, operation)


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
@few([operation for operation in WRITES if not operation.body])
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
    ceiling_holds(api, other_tenant)


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
    anonymous_callers_are_charged(api)


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
