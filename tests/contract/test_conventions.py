"""What every request and every answer have in common, tried on every operation."""

import json
import re

import pytest

from retainer.domain import accounts
from retainer.domain.limits import Window
from retainer.kernel.http import LARGEST_BODY
from retainer.settings import BASE_PATH
from tests.contract.cases import (
    BODIES,
    CREATES,
    DELETES,
    LISTS,
    NEVER,
    ONES,
    OPERATIONS,
    PATHS,
    READS,
    UPDATES,
    WRITES,
    another_process,
    body_schema,
    commits,
    each,
    home,
    kept_headers,
    kinds,
    members_of,
    query_parameters,
    sample,
    send,
    shown,
    succeeds,
    timeless,
    twin,
)
from tests.contract.checks import (
    base,
    ceiling_holds,
    charged,
    every_record_comes_once,
    faults_are_named_at_once,
    if_match_guards,
    if_none_match_saves,
    list_costs_the_same,
    malformed_is_refused,
    paths_and_methods,
    put_is_patch,
    read_only_members_are_ignored,
    record_can_be_sent_back,
    refusal_is_not_kept,
    retry_is_replayed,
    strangers_are_charged,
    unknown_parameter_is_refused,
    wrong_kinds_are_refused,
)

CREATED_LISTS = [it for it in LISTS if it.path in map(home, CREATES)]
SORTS = [
    (it, sort) for it in CREATED_LISTS for sort in (*sorted({name.removeprefix("-") for name in it.query.sorts}), "id")
]

# Paths and methods


@pytest.mark.parametrize("path", PATHS)
def test_a_method_that_a_path_does_not_take_is_405_with_those_it_takes(office, path):
    concrete = sample(office, PATHS[path][0]).path
    taken, others = paths_and_methods(path)
    before = commits(office)
    for method in others:
        answer = office.call(method, concrete)
        assert answer.status == 405, f"{method}: {answer}"
        assert answer.headers["allow"].split(", ") == taken
        assert method == "HEAD" or answer.code == "method_not_allowed"
    assert commits(office) == before


@pytest.mark.parametrize("path", PATHS)
def test_options_answers_the_methods_of_a_path(office, path):
    answer = office.call("OPTIONS", sample(office, PATHS[path][0]).path)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["allow"].split(", ") == paths_and_methods(path)[0]


@each(READS)
def test_head_is_get_without_the_body(office, operation):
    it = sample(office, operation)
    get, head = (send(office, it._replace(method=method)) for method in ("GET", "HEAD"))
    assert get.status == 200
    assert (head.status, head.body) == (200, b"")
    assert kept_headers(head) == kept_headers(get)
    assert int(head.headers["content-length"]) == len(get.body)


@pytest.mark.parametrize(
    "path", ["", "/", "/nothing", "/clients/1/nothing", "/clients//", "/Clients", "/clients/", "/%"]
)
def test_an_unknown_path_is_404(office, path):
    office.make("/clients")
    answer = office.get(path)
    assert (answer.status, answer.code) == (404, "not_found")


@each([it for it in ONES if it.parameters])
def test_what_is_no_id_is_no_record(office, operation):
    it = sample(office, operation)
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
        f"0{it.record['id']}",
    ):
        assert send(office, it, path=f"{it.collection}/{text}").status == 404, text
    succeeds(send(office, it))


# Query parameters


@each(OPERATIONS)
def test_an_unknown_query_parameter_is_refused_and_the_valid_ones_are_named(office, operation):
    unknown_parameter_is_refused(office, operation)


@each(LISTS)
def test_bad_values_of_parameters_are_refused_each_by_its_name(office, operation):
    path = sample(office, operation).path
    wrong = {}
    for name, schema in query_parameters(operation).items():
        item = schema.get("items", schema)
        if kinds(item) & {"integer", "boolean", "number"} or item.keys() & {"enum", "format"}:
            wrong[name] = "?!"
    assert {"page", "per_page", "sort", "ids", "created_since", "updated_before"} <= set(wrong)
    for name, value in wrong.items():
        answer = office.get(path, {name: value})
        assert list(answer.errors) == [name], answer
        assert answer.code == "validation_failed"
    assert set(office.get(path, wrong).errors) == set(wrong)
    assert set(office.get(path, wrong | {"no_such": 1}).errors) == {*wrong, "no_such"}


@each(LISTS)
def test_a_parameter_that_is_sent_twice_is_a_list_or_refused(office, operation):
    path = sample(office, operation).path
    assert list(office.get(path, "per_page=1&per_page=2").errors) == ["per_page"]
    assert office.get(path, "ids=1&ids=2").data == office.get(path, "ids=1,2").data


@each(LISTS)
def test_pages_have_bounds(office, operation):
    path = sample(office, operation).path
    for query in ("page=0", "page=-1", "page=", "page=1.5", "per_page=0", "per_page=101", "per_page=-1", "per_page=x"):
        assert list(office.get(path, query).errors) == [query.partition("=")[0]], query
    for query, size in (("", 25), ("per_page=1", 1), ("per_page=100", 100)):
        assert office.get(path, query).json["meta"]["per_page"] == size


@each(LISTS)
def test_at_most_100_ids_are_taken(office, operation):
    path = sample(office, operation).path
    assert office.get(path, {"ids": ",".join(map(str, range(1, 101)))}).status == 200
    assert list(office.get(path, {"ids": ",".join(map(str, range(1, 102)))}).errors) == ["ids"]


# Lists


@each(LISTS)
def test_an_empty_list_has_its_envelope(office, operation):
    path = sample(office, operation).path
    answer = office.get(path, {"per_page": 10, "created_since": "2999-01-01T00:00:00Z"})
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
def test_a_page_past_the_end_is_empty(office, operation):
    path = sample(office, operation).path
    for _ in range(3):
        office.make(path)
    for number in (3, 9, 2**53 - 1):
        answer = office.get(path, {"per_page": 2, "page": number})
        meta, links = answer.json["meta"], answer.json["links"]
        assert answer.data == []
        assert (meta["current_page"], meta["last_page"], meta["total"]) == (number, 2, 3)
        assert (meta["from"], meta["to"], links["next"]) == (None, None, None)
        assert links["prev"] == links["last"] == f"{base()}{path}?per_page=2&page=2"


@pytest.mark.parametrize(("operation", "sort"), SORTS, ids=str)
def test_pages_meet_every_record_once_in_every_order(office, operation, sort):
    path = sample(office, operation).path
    made = [office.make(path)["id"] for _ in range(7)]
    rows = {}
    for name in (sort, f"-{sort}"):
        rows[name] = every_record_comes_once(office, path, name, made)
    values = [row.get(sort) for row in rows[sort]]
    if None not in values and len({json.dumps(value) for value in values}) == len(values):
        assert rows[f"-{sort}"] == rows[sort][::-1]
    if sort in {"id", "created_at", "updated_at"}:
        assert values == sorted(values)


@each(CREATED_LISTS)
def test_a_list_is_in_its_default_order_when_none_is_asked_for(office, operation):
    path = sample(office, operation).path
    for _ in range(4):
        office.make(path)
    default = operation.query.sorts[0]
    assert office.get(path).data == office.get(path, {"sort": default}).data


@each(CREATED_LISTS)
def test_common_filters_find_what_they_say(office, operation):
    path = sample(office, operation).path
    rows = [office.make(path) for _ in range(3)]
    ids = [row["id"] for row in rows]

    def found(**query: object) -> list[int]:
        return sorted(row["id"] for row in office.get(path, {**query, "per_page": 100}).data)

    assert found(ids=f"{ids[2]},{ids[0]}") == [ids[0], ids[2]]
    assert found(ids=f"{ids[1]},{ids[1]},{NEVER}") == [ids[1]]
    second = office.get(path, {"ids": ids[1]}).data[0]
    for stamp in ("created", "updated"):
        assert found(**{f"{stamp}_since": second[f"{stamp}_at"]}) == ids[1:]
        assert found(**{f"{stamp}_before": second[f"{stamp}_at"]}) == ids[:1]
    assert found(ids=f"{ids[0]},{ids[1]}", created_since=second["created_at"]) == [ids[1]]


@each(CREATED_LISTS)
def test_a_list_takes_as_many_statements_for_many_records_as_for_one(office, operation):
    list_costs_the_same(office, operation)


# Records


@each(CREATES)
def test_what_was_made_is_answered_whole_and_can_be_found(office, operation):
    it = sample(office, operation)
    answer = send(office, it)
    assert answer.status == 201
    location = answer.headers["location"]
    collection = operation.resource.made_at or it.path
    assert location == f"{base()}{collection}/{answer.data['id']}"
    read = office.get(location.removeprefix(base()))
    assert read.status in {200, 404, 405}
    if any(other.path.startswith(home(operation)) for other in ONES):
        assert (read.json, read.headers["etag"]) == (answer.json, answer.headers["etag"])
    if home(operation) in {other.path for other in LISTS}:
        assert answer.data["id"] in [row["id"] for row in office.get(collection).data]


@each(ONES)
def test_a_record_that_is_unchanged_is_304(office, operation):
    if_none_match_saves(office, operation)


@each(ONES)
def test_a_records_tag_is_derived_from_the_record_not_from_the_key(office, operation):
    it = sample(office, operation)
    other = office.new_key(user_id=office.member_id)
    assert send(office, it).headers["etag"] == send(office, it, key=other).headers["etag"]
    assert send(another_process(office), it).headers["etag"] == send(office, it).headers["etag"]


@each([*UPDATES, *DELETES])
def test_a_write_to_another_state_is_412(office, operation):
    if_match_guards(office, operation)


@each(DELETES)
def test_what_was_deleted_is_nothing_and_its_id_is_never_used_again(office, operation):
    it = sample(office, operation)
    before = commits(office)
    answer = send(office, it)
    assert (answer.status, answer.body) == (204, b"")
    for other in PATHS[operation.path]:
        again = office.call(other.method, it.path, it.record if other.body else None)
        assert (again.status, again.code) == (404, "not_found"), f"{other}: {again}"
    assert commits(office) != before
    listed = office.get(it.collection)
    assert listed.status == 405 or it.record["id"] not in [row["id"] for row in listed.data]
    assert office.make(it.collection)["id"] > it.record["id"]


# Retries


@each(WRITES)
def test_a_retry_is_answered_as_before_and_changes_nothing(office, operation):
    retry_is_replayed(office, operation)


@each(WRITES)
def test_a_retry_at_another_process_is_answered_as_before(office, operation):
    it, headers = sample(office, operation), {"Idempotency-Key": "once"}
    first = succeeds(send(office, it, headers=headers))
    again = send(another_process(office), it, headers=headers)
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (first.status, first.body, "true")


@each(WRITES)
def test_a_refusal_leaves_its_idempotency_key_free(office, operation):
    refusal_is_not_kept(office, operation)


@each(WRITES)
def test_a_retry_that_may_no_longer_act_is_refused(office, operation):
    it, headers = sample(office, operation), {"Idempotency-Key": "once"}
    succeeds(send(office, it, headers=headers))
    accounts.switch_api(office.store, office.account_id, on=False)
    assert send(office, it, headers=headers).code == "api_disabled"
    accounts.switch_api(office.store, office.account_id, on=True)
    assert "idempotency-replayed" in send(office, it, headers=headers).headers


def test_an_idempotency_key_is_1_to_255_visible_ascii_characters(office):
    for value in ("", " ", "a b", "é", "x" * 256, "\t"):
        answer = office.post("/tags", {"name": "New"}, headers={"Idempotency-Key": value})
        assert (answer.status, answer.code) == (400, "bad_request"), repr(value)
    assert office.get("/tags").data == []
    for number, value in enumerate(("!", "~", "x" * 255)):
        assert office.post("/tags", {"name": f"New {number}"}, headers={"Idempotency-Key": value}).status == 201


def test_an_idempotency_key_means_nothing_to_a_read(office):
    for _ in range(2):
        assert "idempotency-replayed" not in office.get("/tags", headers={"Idempotency-Key": "once"}).headers
        office.make("/tags")
    assert len(office.get("/tags", headers={"Idempotency-Key": "once"}).data) == 2


# Bodies


@pytest.mark.parametrize("path", [path for path, its in PATHS.items() if {"PUT", "PATCH"} <= {it.method for it in its}])
def test_put_and_patch_are_one_operation(office, path):
    put_is_patch(office, path)


@each(UPDATES)
def test_a_record_can_be_sent_back_as_it_was_read(office, operation):
    record_can_be_sent_back(office, operation)


@each(UPDATES)
def test_members_left_out_keep_their_value(office, operation):
    it = sample(office, operation)
    answer = succeeds(send(office, it, body={}))
    assert answer.data | {"updated_at": ""} == it.record | {"updated_at": ""}


@each(BODIES)
def test_an_unknown_member_is_refused_with_the_nearest_known_name(office, operation):
    it = sample(office, operation)
    before = commits(office)
    for name in members_of(body_schema(operation)):
        answer = send(office, it, body=it.body | {f"{name}x": 1})
        assert list(answer.errors) == [f"{name}x"]
        assert name in answer.errors[f"{name}x"][0]
    assert commits(office) == before
    succeeds(send(office, it))


@each(BODIES)
def test_read_only_members_are_accepted_and_ignored(office, operation):
    read_only_members_are_ignored(office, operation)


@each(BODIES)
def test_json_that_is_ambiguous_or_broken_is_400(office, operation):
    malformed_is_refused(office, operation)


@each(BODIES)
def test_a_value_of_a_wrong_kind_is_refused(office, operation):
    wrong_kinds_are_refused(office, operation)


@each(BODIES)
def test_all_faulty_and_all_missing_members_are_named_at_once(office, operation):
    faults_are_named_at_once(office, operation)


@each([it for it in BODIES if {"tag_ids", "external_id"} <= members_of(body_schema(it)).keys()])
def test_a_reference_to_nothing_and_a_faulty_member_are_named_at_once(office, operation):
    it = sample(office, operation)
    answer = send(office, it, body=it.body | {"tag_ids": [NEVER], "external_id": 5})
    assert set(answer.errors) == {"tag_ids.0", "external_id"}


@each(it for it in UPDATES if it.method == "PATCH")
def test_blank_text_is_null_where_null_is_allowed_and_text_is_trimmed(office, operation):
    it = sample(office, operation)
    blank, spaces, null, plain, padded = (twin(office) for _ in range(5))
    for name, schema in body_schema(operation)["properties"].items():
        if schema.get("readOnly") or kinds(schema) != {"string", "null"}:
            continue
        example = schema["examples"][0]
        told = [
            timeless(client.patch(it.path, {name: value}).json | {"request_id": ""})
            for client, value in ((blank, ""), (spaces, " \t "), (null, None))
        ]
        assert told[0] == told[1] == told[2], name
        given = [
            timeless(client.patch(it.path, {name: value}).json | {"request_id": ""})
            for client, value in ((plain, example), (padded, f" \t{example}\n"))
        ]
        assert given[0] == given[1], name


@each(BODIES)
def test_a_body_of_another_media_type_is_415(office, operation):
    it = sample(office, operation)
    raw = json.dumps(it.body).encode()
    before = commits(office)
    for media in ("", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "multipart/form-data"):
        answer = send(office, it, raw=raw, headers={"Content-Type": media})
        assert (answer.status, answer.code) == (415, "unsupported_media_type"), media
    assert send(office, it, raw=raw, headers={"Content-Encoding": "gzip"}).status == 415
    assert commits(office) == before
    succeeds(send(office, it, raw=raw, headers={"Content-Type": "Application/JSON; charset=utf-8"}))


@each(BODIES)
def test_a_body_over_one_mebibyte_is_413_and_one_of_just_that_is_read(office, operation):
    it = sample(office, operation)
    raw = json.dumps(it.body).encode()
    full = raw + b" " * (LARGEST_BODY - len(raw))
    before = commits(office)
    for headers in ({}, {"Content-Length": "", "Transfer-Encoding": "chunked"}, {"Content-Length": "9" * 30}):
        answer = send(office, it, raw=full + b" ", headers=headers)
        assert (answer.status, answer.code) == (413, "body_too_large"), headers
    assert commits(office) == before
    succeeds(send(office, it, raw=full))


# Headers


def test_a_sane_request_id_is_echoed_and_any_other_replaced(office):
    for given in ("a", "req_1.2-3", "X" * 64):
        answer = office.get("/me", headers={"X-Request-Id": given})
        assert answer.headers["x-request-id"] == given
    for given in ("", " ", "a b", "X" * 65, "é", "a\tb", '"', "a;b"):
        made = office.get("/me", headers={"X-Request-Id": given}).headers["x-request-id"]
        assert re.fullmatch(r"req_[0-9a-f]{24}", made), given
    refused = office.get("/me", key=None, headers={"X-Request-Id": "mine"})
    assert refused.json["request_id"] == refused.headers["x-request-id"] == "mine"


def test_request_ids_that_are_made_differ(office):
    assert len({office.get("/me").headers["x-request-id"] for _ in range(50)}) == 50


@each(OPERATIONS)
def test_every_answer_says_that_it_is_private_and_depends_on_the_key(office, operation):
    it = sample(office, operation)
    for answer in (send(office, it), send(office, it, key=None)):
        assert "private" in answer.headers["cache-control"]
        assert {"Authorization", "X-Api-Key"} <= set(answer.headers["vary"].split(", "))


@each(READS)
def test_reading_changes_nothing(office, operation):
    it = sample(office, operation)
    before = commits(office)
    assert shown(send(office, it))[0] == 200
    assert commits(office) == before


# Limits


def test_every_counted_request_takes_one_whatever_its_answer(office):
    assert charged(office.get("/me")) == 599
    lacking = office.new_key(["sites:read"])
    counted = [
        (200, office.get("/tags")),
        (404, office.get("/nothing")),
        (405, office.call("PATCH", "/me")),
        (422, office.get("/tags", "no_such=1")),
        (404, office.get(f"/clients/{NEVER}")),
        (400, office.call("POST", "/tags", raw=b"{")),
        (415, office.call("POST", "/tags", raw=b"{}", headers={"Content-Type": "text/plain"})),
        (204, office.call("OPTIONS", "/tags")),
        (200, office.call("HEAD", "/tags")),
        (201, office.post("/tags", {"name": "New"})),
    ]
    assert [answer.status for _, answer in counted] == [status for status, _ in counted]
    assert [charged(answer) for _, answer in counted] == list(range(598, 588, -1))
    refused = office.get("/tags", key=lacking)
    assert (refused.status, charged(refused)) == (403, 599)


def test_over_the_ceiling_is_429_with_the_seconds_to_wait_and_other_keys_go_on(office, stranger):
    ceiling_holds(office, stranger)


@each(OPERATIONS)
def test_every_operation_is_limited_and_a_refused_one_changes_nothing(office, operation):
    it = sample(office, operation)
    before = commits(office)
    office.spend(f"key:{office.key_id}", charged(office.get("/me")))
    assert send(office, it).status == 429
    assert commits(office) == before
    office.app.window = Window()
    succeeds(send(office, it))


def test_me_shows_the_figures_of_the_headers(office):
    answer = office.get("/me")
    figures = answer.data["rate_limit"]
    assert str(figures["limit"]) == answer.headers["x-ratelimit-limit"] == "600"
    assert str(figures["remaining"]) == answer.headers["x-ratelimit-remaining"]
    assert str(figures["reset"]) == answer.headers["x-ratelimit-reset"]
    assert figures["window_seconds"] == 60


def test_refused_callers_are_charged_to_their_address_and_good_keys_never(office):
    strangers_are_charged(office)


def test_who_is_too_large_or_switched_off_is_charged_to_the_address(office):
    assert charged(office.call("POST", "/tags", raw=b"x" * (LARGEST_BODY + 1))) == 599
    accounts.switch_api(office.store, office.account_id, on=False)
    assert charged(office.get("/me")) == 598
    accounts.switch_api(office.store, office.account_id, on=True)
    assert charged(office.get("/me")) == 599, "nothing of that was charged to the key"


def test_nothing_but_the_api_lies_under_the_base_path(office):
    for path in ("/openapi.json", "/health", "/metrics", "/docs"):
        assert office.get(path).status == 404
    assert BASE_PATH == "/api/public/v1"
