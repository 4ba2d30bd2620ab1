"""Batches: several requests in one, each checked like a request of its own."""

import pytest
from tests.databases import each_database

from retainer.kernel import batch
from retainer.kernel.idempotency import Attempt
from retainer.kernel.limits import SlidingWindow

CREATE = {"method": "POST", "path": "/clients", "body": {"name": "Nordwind"}}
REFUSED = {"method": "POST", "path": "/clients", "body": {"name": ""}}


def send(api, *operations, atomic=False, **options):
    return api.post("/batch", {"operations": list(operations), "atomic": atomic}, **options)


def statuses(answer):
    return [result["status"] for result in answer.data["results"]]


def count_clients(api):
    return api.get("/clients").json["meta"]["total"]


def test_each_operation_gets_the_response_of_a_request_of_its_own(api):
    client = api.make("/clients", name="Bergmann")
    path = f"/clients/{client['id']}"
    operations = [
        CREATE,
        {"method": "GET", "path": "/clients?q=bergmann&per_page=1"},
        {"method": "PATCH", "path": path, "body": {"name": "Bergmann Optik"}},
        {"method": "GET", "path": path},
        {"method": "DELETE", "path": path},
        {"method": "GET", "path": path},
        REFUSED,
        {"method": "GET", "path": "/nothing"},
        {"method": "POST", "path": path},
    ]
    answer = send(api, *operations)
    created, listed, changed, read, deleted, *_ = results = answer.data["results"]
    assert statuses(answer) == [201, 200, 200, 200, 204, 404, 422, 404, 405]
    assert created["body"]["data"]["name"] == "Nordwind"
    assert [each["id"] for each in listed["body"]["data"]] == [client["id"]]
    assert read["body"]["data"]["name"] == changed["body"]["data"]["name"] == "Bergmann Optik"
    assert read["etag"] == changed["etag"] != client
    assert deleted["body"] is None
    assert results[6]["body"]["errors"].keys() == {"name"}
    assert len({result["request_id"] for result in results}) == len(operations)


def test_numbers_arrive_as_they_were_sent(api):
    body = '{"operations": [{"method": "POST", "path": "/expenses", "body": {"amount": 0.1000000000000000055}}]}'
    (result,) = api.call("POST", "/batch", raw=body.encode()).data["results"]
    assert "decimal places" in result["body"]["errors"]["amount"][0]
    (result,) = send(api, {"method": "POST", "path": "/expenses", "body": {"amount": 119.35}}).data["results"]
    assert result["body"]["data"]["amount"] == api.make("/expenses", amount="119.35")["amount"]


def test_a_path_is_decoded_like_that_of_any_request(api):
    upsert = {"method": "PUT", "path": "/clients/external:%C3%96-7", "body": {"name": "Nordwind"}}
    (result,) = send(api, upsert).data["results"]
    assert (result["status"], result["body"]["data"]["external_id"]) == (201, "Ö-7")


def test_each_operation_needs_its_scope(api):
    key = api.new_key(["clients:read"])
    operations = [CREATE, {"method": "GET", "path": "/clients"}, {"method": "GET", "path": "/tasks"}]
    assert statuses(send(api, *operations, key=key)) == [403, 200, 403]
    refused = send(api, CREATE, atomic=True, key=key)
    assert (refused.status, refused.code, refused.json["operation"]) == (403, "missing_scope", 0)
    assert count_clients(api) == 0


def test_each_operation_counts_against_the_limit(api):
    def left(answer):
        return int(answer.headers["x-ratelimit-remaining"])

    before = left(api.get("/me"))
    assert left(send(api, CREATE, REFUSED)) == before - 3
    assert left(send(api, CREATE, CREATE, atomic=True)) == before - 6
    api.spend(f"key:{api.key_id}", before - 6 - 3)
    assert statuses(send(api, CREATE, CREATE, CREATE)) == [201, 201, 429]


def test_an_atomic_batch_over_the_limit_is_refused_before_it_is_counted(api):
    left = int(api.get("/me").headers["x-ratelimit-remaining"])
    api.spend(f"key:{api.key_id}", left - 3)
    refused = send(api, CREATE, CREATE, CREATE, atomic=True)
    assert (refused.status, count_clients(api)) == (429, 0)
    assert refused.code == "rate_limited"
    assert refused.headers["retry-after"]


def test_an_atomic_batch_that_just_fits_into_the_limit_is_performed(api):
    left = int(api.get("/me").headers["x-ratelimit-remaining"])
    api.spend(f"key:{api.key_id}", left - 4)
    performed = send(api, CREATE, CREATE, CREATE, atomic=True)
    assert (statuses(performed), performed.headers["x-ratelimit-remaining"]) == ([201, 201, 201], "0")


def test_a_repeated_atomic_batch_is_charged_like_one_request(api):
    headers = {"Idempotency-Key": "import-2026-11"}
    first = send(api, CREATE, CREATE, CREATE, atomic=True, headers=headers)
    left = int(first.headers["x-ratelimit-remaining"])
    api.spend(f"key:{api.key_id}", left - 2)
    again, other = (send(api, CREATE, CREATE, CREATE, atomic=True, headers=sent) for sent in (headers, {}))
    assert (again.body, again.headers["x-ratelimit-remaining"]) == (first.body, "1")
    assert (other.status, other.headers["x-ratelimit-remaining"]) == (429, "0")


@each_database
def test_an_atomic_batch_has_two_seconds_where_all_accounts_share_one_writer(api, monkeypatch):
    monkeypatch.setattr(batch, "ATOMIC_SECONDS", 0)
    answer = send(api, CREATE, atomic=True)
    if api.store.engine.has_one_writer:
        assert (answer.status, answer.code, "retry-after" in answer.headers) == (503, "unavailable", True)
        assert "Ask for less in one request" in answer.json["message"]
    assert count_clients(api) == (answer.status == 200) == (not api.store.engine.has_one_writer)
    assert statuses(send(api, CREATE)) == [201], "only an atomic batch has this limit"


@each_database
def test_an_atomic_batch_is_written_as_a_whole(api):
    client = api.make("/clients")
    path = f"/clients/{client['id']}"
    first, second = {"name": "First"}, {"name": "Second"}
    changes = [{"method": "PATCH", "path": path, "body": body} for body in (first, second)]
    answer = send(api, CREATE, *changes, atomic=True, headers={"X-Request-Id": "import-7"})
    assert statuses(answer) == [201, 200, 200]
    assert api.get(path).data["name"] == "Second"
    assert {result["request_id"] for result in answer.data["results"]} == {"import-7"}
    told = api.get("/events").data[1:]
    assert sorted((event["type"], event["request_id"]) for event in told) == [
        ("client.created", "import-7"),
        ("client.updated", "import-7"),
    ]


@each_database
@pytest.mark.parametrize("failing", [REFUSED, {"method": "DELETE", "path": "/clients/999"}])
def test_nothing_of_an_atomic_batch_is_written_if_one_operation_is_refused(api, failing):
    refused = send(api, CREATE, failing, CREATE, atomic=True)
    assert (refused.status, refused.json["operation"]) == (404 if failing["method"] == "DELETE" else 422, 1)
    assert f"Operation 1 ({failing['method']} {failing['path']}) was refused" in refused.json["message"]
    assert count_clients(api) == 0
    assert api.get("/events").data == []


def test_an_atomic_batch_with_a_method_that_a_path_lacks_is_told_which_it_has(api):
    refused = send(api, CREATE, {"method": "PUT", "path": "/clients", "body": {"name": "Other"}}, atomic=True)
    assert (refused.status, refused.code, refused.json["operation"]) == (405, "method_not_allowed", 1)
    assert refused.headers["allow"] == "GET, HEAD, POST, OPTIONS"
    assert count_clients(api) == 0


@pytest.mark.parametrize("atomic", [False, True])
def test_an_operation_has_an_if_match_of_its_own(api, atomic):
    made = api.create("/clients")
    path = f"/clients/{made.data['id']}"
    change = {"method": "PATCH", "path": path, "body": {"name": "Other"}, "if_match": made.headers["etag"]}
    assert statuses(send(api, change, atomic=atomic)) == [200]
    again = send(api, CREATE, change, atomic=atomic)
    assert again.status == 412 if atomic else statuses(again) == [201, 412]


@each_database
def test_a_repeated_batch_continues_where_the_first_one_ended(api):
    headers = {"Idempotency-Key": "import-2026-11"}
    left = int(api.get("/me").headers["x-ratelimit-remaining"])
    api.spend(f"key:{api.key_id}", left - 2)
    first = send(api, CREATE, CREATE, headers=headers)
    assert statuses(first) == [201, 429]
    api.app.pipeline.limiter = SlidingWindow()
    second = send(api, CREATE, CREATE, headers=headers)
    assert statuses(second) == [201, 201]
    assert second.data["results"][0]["body"] == first.data["results"][0]["body"]
    assert count_clients(api) == 2


@pytest.mark.parametrize("atomic", [False, True])
def test_a_batch_takes_the_idempotency_keys_of_any_write_and_refuses_others(api, atomic):
    assert statuses(send(api, CREATE, atomic=atomic, headers={"Idempotency-Key": "k" * 255})) == [201]
    for malformed in ("k" * 256, "k 0"):
        refused = send(api, CREATE, atomic=atomic, headers={"Idempotency-Key": malformed})
        assert (refused.status, refused.code) == (400, "bad_request")
    assert count_clients(api) == 1


@pytest.mark.parametrize("own", ["k/0", "k0", "k-0", "k:0"])
def test_the_keys_of_operations_are_no_keys_of_callers(api, own):
    assert statuses(send(api, CREATE, headers={"Idempotency-Key": "k"})) == [201]
    answer = api.post(CREATE["path"], CREATE["body"], headers={"Idempotency-Key": own})
    assert (answer.status, "idempotency-replayed" in answer.headers) == (201, False)
    assert count_clients(api) == 2


@each_database
@pytest.mark.parametrize("operation", [CREATE, REFUSED, {"method": "GET", "path": "/clients"}])
def test_a_key_that_a_batch_has_used_is_refused_for_any_other_request(api, operation):
    headers = {"Idempotency-Key": "import-2026-11"}
    first = statuses(send(api, operation, headers=headers))
    others = [
        api.post("/clients", CREATE["body"], headers=headers),
        api.post("/batch", {"operations": [operation]}, headers=headers),
        send(api, CREATE, CREATE, headers=headers),
        send(api, CREATE, atomic=True, headers=headers),
    ]
    assert [(each.status, each.code) for each in others] == [(422, "idempotency_key_reused")] * 4
    assert statuses(send(api, operation, headers=headers)) == first, "the batch itself can be sent again"
    assert count_clients(api) == first.count(201)


@each_database
@pytest.mark.parametrize("atomic", [False, True])
def test_a_key_that_another_request_has_used_is_refused_for_a_batch(api, atomic):
    headers = {"Idempotency-Key": "import-2026-11"}
    assert api.post("/clients", CREATE["body"], headers=headers).status == 201
    refused = send(api, CREATE, atomic=atomic, headers=headers)
    assert (refused.status, refused.code, count_clients(api)) == (422, "idempotency_key_reused", 1)


def test_a_batch_that_is_sent_again_while_it_runs_is_told_to_wait(api):
    with Attempt(api.app.pipeline.running, api.key_id, "k", "fingerprint"):
        waiting = send(api, CREATE, headers={"Idempotency-Key": "k"})
    assert (waiting.status, waiting.code, count_clients(api)) == (409, "idempotency_in_progress", 0)
    assert statuses(send(api, CREATE, headers={"Idempotency-Key": "k"})) == [201]


@each_database
def test_a_repeated_atomic_batch_gets_the_stored_response(api):
    headers = {"Idempotency-Key": "import-2026-11"}
    first, second = (send(api, CREATE, atomic=True, headers=headers) for _ in range(2))
    assert first.body == second.body
    assert (second.headers["idempotency-replayed"], count_clients(api)) == ("true", 1)


def test_a_key_that_lost_a_scope_gets_no_stored_response(api):
    headers = {"Idempotency-Key": "import-2026-11"}
    webhook = {"method": "POST", "path": "/webhooks", "body": {"url": "https://receiver.example/hook"}}
    user_id = api.add_user("Pat", role="admin")
    key = api.new_key(user_id=user_id)
    created = send(api, CREATE, webhook, atomic=True, key=key, headers=headers)
    assert b"whsec_" in created.body
    api.set_user(user_id, {"role": "member"})
    refused = send(api, CREATE, webhook, atomic=True, key=key, headers=headers)
    assert (refused.status, refused.code, refused.json["operation"]) == (403, "missing_scope", 1)


def test_all_errors_of_a_batch_are_named_at_once(api):
    operations = [
        {"method": "FETCH", "path": "clients"},
        {"method": "GET", "path": "/clients", "body": {"name": "x"}},
        {"method": "POST", "path": "/batch", "body": {"operations": []}},
        {"path": "/clients", "surprise": 1},
    ]
    assert send(api, *operations, atomic=True).errors.keys() >= {
        "operations.0.method", "operations.0.path", "operations.1.method", "operations.1.body", "operations.2.path",
        "operations.3.method", "operations.3.surprise",
    }  # fmt: skip
    assert send(api).errors.keys() == {"operations"}
    assert send(api, *[CREATE] * 101).errors.keys() == {"operations"}
    assert count_clients(api) == 0


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("path", ["/batch", "/%62atch", "/batch?x=1"])
def test_no_batch_reaches_another_however_its_path_is_written(api, path, atomic):
    inner = {"method": "POST", "path": path, "body": {"operations": [CREATE], "atomic": True}}
    assert send(api, CREATE, inner, atomic=atomic).errors.keys() == {"operations.1.path"}
    assert count_clients(api) == 0


def test_a_batch_with_too_large_responses_ends_early(api, monkeypatch):
    monkeypatch.setattr(batch, "MAX_RESPONSE_BYTES", 100)
    answer = send(api, CREATE, CREATE)
    assert statuses(answer) == [201, 503]
    assert "Send this operation again" in answer.data["results"][1]["body"]["message"]
    assert count_clients(api) == 1


def test_a_batch_that_takes_too_long_ends_early(api, monkeypatch):
    monkeypatch.setattr(batch, "RUN_SECONDS", -1)
    assert statuses(send(api, CREATE)) == [503]
    assert count_clients(api) == 0


def test_nothing_of_another_account_is_visible(api, other_tenant):
    foreign = other_tenant.make("/clients")
    path = f"/clients/{foreign['id']}"
    reads = send(api, {"method": "GET", "path": path}, {"method": "DELETE", "path": path})
    assert statuses(reads) == [404, 404]
    assert send(api, {"method": "DELETE", "path": path}, atomic=True).status == 404
    assert other_tenant.get(path).data["id"] == foreign["id"]
