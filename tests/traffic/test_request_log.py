"""Requests reach the log in batches, and admins find them there: by filters, page by page, and by record."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from retainer.identity.keys.keys import KeyDetails, create_key
from retainer.schema.requests import refusals
from retainer.server.monitoring import housekeeping
from retainer.traffic import request_log
from retainer.traffic.answered import MAX_NAME_LENGTH, MAX_NAMES, MAX_PATH_LENGTH, Reason
from tests.databases import slow_on_each
from tests.traffic.common import NOON, answered, asked, later, listed, write

pytestmark = slow_on_each


def logged(api):
    """What the requests so far have left in the log, oldest first."""
    api.app.log.drain()
    api.app.log.recorder.write(api.store)
    return listed(api, limit=1000).requests[::-1]


def test_a_request_is_logged_with_its_operation_and_how_it_was_answered(api):
    answer = api.get("/clients", headers={"X-Request-Id": "import-7"})
    (request,) = logged(api)
    assert answer.status == 200
    assert (request.key_id, request.request_id, request.method, request.path) == (
        api.key_id,
        "import-7",
        "GET",
        "/clients",
    )
    assert (request.operation, request.status, request.address, request.record) == (
        "listClients",
        200,
        "127.0.0.1",
        None,
    )
    assert 0 < request.duration_us < 10**7
    assert abs(datetime.fromisoformat(request.answered_at) - datetime.now(UTC)) < timedelta(minutes=1)


def test_refusals_of_a_key_are_logged_and_requests_without_a_valid_key_are_not(api):
    api.get("/nothing")
    api.get("/clients", key=None)
    api.get("/clients", key="rtn_" + "0" * 38)
    assert [(request.path, request.status, request.operation) for request in logged(api)] == [("/nothing", 404, None)]


def test_neither_queries_nor_keys_are_logged(api):
    api.get("/clients", query={"q": "Secret Ltd"})
    api.get(f"/clients/{api.key}")
    assert [request.path for request in logged(api)] == ["/clients", "/clients/rtn_***"]
    with api.databases.held_writes(api.app, api.account_id, patience=0):
        assert api.put(f"/clients/external:{api.key}", {"name": "Bergmann"}).status == 503
    assert (
        api.call("PUT", f"/clients/external:{api.key}", {"name": "B"}, headers={"X-Request-Id": api.key}).status == 201
    )
    api.app.log.drain()
    log = api.app.log.writer.stream.getvalue().decode()
    assert "PUT /clients/external:rtn_*** was cancelled" in log
    assert api.key not in log


def test_a_path_that_no_database_takes_is_logged_all_the_same(api):
    api.get("/clients/\0" + "x" * 1000)
    api.get("/clients")
    first, second = logged(api)
    assert first.path.startswith("/clients/\ufffdxxx")
    assert len(first.path) == MAX_PATH_LENGTH
    assert second.path == "/clients"


def test_a_write_is_logged_with_the_record_that_it_wrote(api):
    client = api.post("/clients", {"name": "Bergmann"}).data["id"]
    api.patch(f"/clients/{client}", {"notes": "x"})
    line = {"description": "Design", "unit_price": "5"}
    invoice = api.post("/invoices", {"client_id": client, "status": "sent", "lines": [line]}).data["id"]
    credit_note = api.post(f"/invoices/{invoice}/credit-notes", {}).data["id"]
    draft = api.post("/invoices", {"client_id": client}).data["id"]
    api.post(f"/invoices/{draft}/lines", line)
    api.delete(f"/invoices/{draft}")
    api.patch(f"/clients/{client}", {"name": ""})
    api.get(f"/clients/{client}")
    assert [request.record for request in logged(api)] == [
        f"/clients/{client}",
        f"/clients/{client}",
        f"/invoices/{invoice}",
        f"/credit-notes/{credit_note}",
        *[f"/invoices/{draft}"] * 3,
        *[None] * 2,
    ]


def test_a_write_by_external_id_is_logged_with_the_record_that_it_wrote(api):
    path = "/clients/external:7"
    for method in ("PUT", "PUT", "PATCH", "DELETE"):
        assert api.call(method, path, {"name": "Bergmann"} if method != "DELETE" else None).status < 300
    assert api.call("DELETE", path).status == 404
    assert [request.record for request in logged(api)] == ["/clients/1"] * 4 + [None]


def test_a_refusal_is_logged_with_its_code_and_fields_but_no_values(api):
    api.post("/clients", {"name": "", "email": "not an address", "secret-field": "secret value"})
    api.get("/clients", query={"colour": "blue"})
    api.get("/clients/999999")
    api.get("/clients")
    assert [(request.code, sorted(request.names)) for request in logged(api)] == [
        ("validation_failed", ["email", "name", "secret-field"]),
        ("unknown_parameter", ["colour"]),
        ("not_found", []),
        (None, []),
    ]


def test_a_missing_scope_is_logged(api):
    with api.operating() as tx:
        _, value = create_key(tx, KeyDetails("Reader", api.admin_id, ["clients:read"]))
    api.post("/clients", {"name": "Bergmann"}, key=value)
    (request,) = logged(api)
    assert (request.status, request.code, request.names) == (403, "missing_scope", ["clients:write"])


def test_names_in_a_reason_are_few_short_and_without_keys(api):
    api.post("/clients", {f"{n}" * 100: n for n in range(50)} | {api.key: 1})
    api.post("/clients", {"name": "x", api.key: 1, "odd\u0001": 1})
    first, second = logged(api)
    assert len(first.names) == MAX_NAMES
    assert max(map(len, first.names)) == MAX_NAME_LENGTH
    assert "rtn_***" in second.names
    assert api.key not in str(second)


def test_a_refusal_is_deleted_with_its_request(api, other_tenant):
    old, now = "2020-01-01T12:00:00.000000Z", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    for agency in (api, other_tenant):
        reason = Reason("not_found", [])
        write(agency, *(answered(agency, time=time, status=404, reason=reason) for time in (old, old, now)))
    assert housekeeping.delete_old(api.store, housekeeping.REQUESTS, 30) == 2 * (2 + 2)
    with api.store.unscoped() as tx:
        assert [row[0] for row in tx.all(select(refusals.c.answered_at))] == [now, now]


def test_a_repeated_answer_has_written_nothing(api):
    for _ in range(2):
        api.post("/clients", {"name": "Once"}, headers={"Idempotency-Key": "k"})
    first, second = logged(api)
    assert first.record is not None
    assert second.record is None


def test_the_newest_requests_that_wrote_a_record_are_found(api, other_tenant):
    write(api, *(answered(api, time=later(n), record="/clients/7", method="PATCH") for n in range(12)))
    write(api, answered(api, time=later(13), record="/clients/77"))
    write(other_tenant, answered(other_tenant, time=later(14), record="/clients/7"))
    found = asked(api, request_log.requests_of_record, "clients", 7)
    assert [request.answered_at for request in found] == [later(n) for n in range(11, 1, -1)]


def test_requests_beside_those_that_wrote_a_record_are_not_shown_with_them(api):
    """Of the same key, in the same ten seconds, written together."""
    own = [answered(api, time=later(n), record="/clients/7", request_id=f"own-{n}") for n in (1, 3, 5)]
    beside = [answered(api, time=later(n), record=each) for n, each in ((2, None), (4, "/clients/8"), (6, "/tags/7"))]
    write(api, *own, *beside)
    found = asked(api, request_log.requests_of_record, "clients", 7)
    assert [request.request_id for request in found] == ["own-5", "own-3", "own-1"]


MADE_HERE = f"req_{int(datetime.fromisoformat(NOON).timestamp() * 1000):012x}{7:012x}"
ROWS = [
    {"request_id": MADE_HERE},
    {"status": 404, "path": "/clients/9", "operation": "getClient", "reason": Reason("not_found", [])},
    {"status": 500, "method": "POST", "request_id": "broken-1"},
    {"status": 304, "request_id": "req_mine"},
    {"status": 429, "operation": None, "path": "/client"},
    {"method": "POST", "status": 201, "record": "/tags/1", "path": "/tags", "address": "2001:db8::1"},
]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [5, 4, 3, 2, 1, 0]),
        ({"status": "2xx"}, [5, 0]),
        ({"status": "3xx"}, [3]),
        ({"status": "4xx"}, [4, 1]),
        ({"status": "5xx"}, [2]),
        ({"method": "POST"}, [5, 2]),
        ({"address": "2001:db8::1"}, [5]),
        ({"address": "192.0.2.1", "status": "5xx"}, [2]),
        ({"record": "/tags/1"}, [5]),
        ({"record": "/tags/1", "status": "5xx"}, []),
        ({"record": "/tags"}, []),
        ({"path": "/clients"}, [3, 2, 1, 0]),
        ({"path": "/clients/"}, [1]),
        ({"operation": "getClient"}, [1]),
        ({"request_id": "broken-1"}, [2]),
        ({"request_id": "broken-1", "status": "4xx"}, []),
        ({"request_id": "req_mine"}, [3]),
        ({"request_id": MADE_HERE}, [0]),
        ({"request_id": MADE_HERE, "status": "2xx"}, [0]),
        ({"request_id": MADE_HERE, "status": "4xx"}, []),
        ({"request_id": MADE_HERE[:-1] + "8"}, []),
        ({"request_id": "req_" + "f" * 24}, []),
        ({"status": "4xx", "path": "/clients"}, [1]),
        ({"code": "not_found"}, [1]),
        ({"code": "not_found", "status": "5xx"}, []),
        ({"code": "not_found", "writes": True}, []),
        ({"code": "odd"}, []),
        ({"writes": True}, [5, 2]),
        ({"writes": False, "status": "4xx"}, [4, 1]),
        ({"since": later(1), "until": later(3)}, [2, 1]),
        ({"since": later(1), "method": "GET"}, [4, 3, 1]),
    ],
    ids=str,
)
def test_filters_narrow_the_log(api, other_tenant, wanted, found):
    write(api, *(answered(api, time=later(n), **row) for n, row in enumerate(ROWS)))
    write(other_tenant, *(answered(other_tenant, time=later(n), **row) for n, row in enumerate(ROWS)))
    key = api.key_id
    page = listed(api, **wanted)
    assert [request.answered_at for request in page.requests] == [later(n) for n in found]
    assert page.next is None
    assert listed(api, key_id=key, **wanted) == page
    assert listed(api, key_id=other_tenant.key_id, **wanted).requests == []


def one_by_one(rng, keys, count=400):
    """Requests of several keys, for two minutes, each at a moment of its own, in any order."""
    moments = rng.sample(range(120_000_000), count)
    made = [
        {
            "time": later(moment / 1_000_000),
            "key_id": rng.choice(keys),
            "request_id": f"sent-{rng.randint(1, 40)}",
            "method": rng.choice(("GET", "POST")),
            "path": rng.choice(("/clients", "/clients/1", "/tags")),
            "status": rng.choices((200, 304, 404, 500), (80, 10, 9, 1))[0],
            "operation": rng.choice(("listClients", "getClient", None)),
            "record": rng.choice((None, "/clients/1", "/clients/11")),
            "address": rng.choice((None, "192.0.2.1", "192.0.2.11")),
        }
        for moment in moments
    ]
    codes = {404: "not_found", 500: "server_error"}
    return [each | {"reason": Reason(codes[each["status"]], []) if each["status"] in codes else None} for each in made]


def expected(requests, wanted):
    """The moments of those that are asked for, newest first, found by looking at each."""

    def is_found(each):
        status = wanted.get("status", str(each["status"]))[0] == str(each["status"])[0]
        span = wanted.get("since", "") <= each["time"] < wanted.get("until", "9")
        equal = ("key_id", "method", "operation", "request_id", "address", "record")
        same = all(each[name] == wanted[name] for name in equal if name in wanted)
        same = same and wanted.get("writes", each["method"] == "POST") == (each["method"] == "POST")
        same = same and ("code" not in wanted or (each["reason"] is not None and each["reason"].code == wanted["code"]))
        return status and span and same and each["path"].startswith(wanted.get("path", ""))

    return sorted((each["time"] for each in requests if is_found(each)), reverse=True)


@pytest.mark.parametrize("most", [request_log.MAX_SCANNED, 30])
def test_every_search_finds_what_looking_at_each_request_finds(api, monkeypatch, most):
    monkeypatch.setattr(request_log, "MAX_SCANNED", most)
    rng = random.Random(most)
    with api.operating() as tx:
        other_key = create_key(tx, KeyDetails("Other", api.admin_id, ["clients:read"])).id
    made = one_by_one(rng, [api.key_id, other_key])
    for start in range(0, len(made), 100):  # four servers, or one in four turns
        write(api, *(answered(api, **each) for each in made[start : start + 100]))
    values = {
        "key_id": (api.key_id, other_key),
        "status": ("2xx", "3xx", "4xx", "5xx"),
        "method": ("GET", "POST", "PUT"),
        "path": ("/clients", "/clients/", "/sites"),
        "operation": ("listClients", "getTag"),
        "request_id": ("sent-1", "sent-2", "sent-99"),
        "address": ("192.0.2.1", "192.0.2.11", "192.0.2.9"),
        "record": ("/clients/1", "/clients/11", "/clients/9"),
        "since": (later(25.5), later(30)),
        "until": (later(82.5), later(90)),
        "code": ("not_found", "server_error"),
        "writes": (True, False),
    }
    found_some = 0
    for turn in range(60):
        wanted = {name: rng.choice(values[name]) for name in rng.sample(sorted(values), turn % 4)}
        limit, seen, after, turns = rng.choice((7, 50)), [], None, 0
        while turns == 0 or after:
            page = listed(api, after=after, limit=limit, **wanted)
            assert len(page.requests) <= limit
            assert len(page.requests) == limit or page.next is None or page.searched_to
            assert page.searched_to is None or most < len(made)
            seen += [request.answered_at for request in page.requests]
            after, turns = page.next, turns + 1
            assert turns < 100
        assert seen == expected(made, wanted), wanted
        found_some += bool(seen)
    assert found_some > 30
    records = [each["time"] for each in made if each["record"] == "/clients/1"]
    found = asked(api, request_log.requests_of_record, "clients", 1, limit=5)
    assert [request.answered_at for request in found] == sorted(records, reverse=True)[:5]


def test_pages_follow_each_other_without_gap_or_repetition_while_requests_arrive(api):
    write(api, *(answered(api, time=later(n // 3), request_id=str(n)) for n in range(25)))
    seen, after = [], None
    while True:
        page = listed(api, after=after, limit=4)
        seen += [request.request_id for request in page.requests]
        write(api, answered(api, time=later(100)))
        after = page.next
        if after is None:
            break
    assert sorted(map(int, seen)) == list(range(25))
    assert [int(each) // 3 for each in seen] == [n // 3 for n in range(24, -1, -1)]


@pytest.mark.parametrize("wanted", [{}, {"status": "4xx"}, {"path": "/clients"}, {"request_id": "sent-1"}], ids=str)
def test_there_is_no_older_page_when_only_others_have_older_requests(api, other_tenant, wanted):
    row = {"status": 404, "request_id": "sent-1"}
    write(api, answered(api, time=later(60), **row))
    write(other_tenant, *(answered(other_tenant, time=later(n), **row) for n in (0, 30, 90)))
    page = listed(api, **wanted)
    assert [request.answered_at for request in page.requests] == [later(60)]
    assert (page.next, page.searched_to) == (None, None)


def test_a_position_that_is_none_is_refused(api):
    for after in ("", "5", "2026-13-10T12:00:00.000000Z.1", "x" * 50, f"{NOON}.-1"):
        with pytest.raises(ValueError, match=r"position|month"):
            listed(api, after=after)


def test_a_search_looks_at_no_more_than_so_many_requests_and_says_how_far(api, monkeypatch):
    monkeypatch.setattr(request_log, "MAX_SCANNED", 10)
    write(api, answered(api, path="/tags"), *(answered(api, time=later(n)) for n in range(1, 46)))
    pages, after = [], None
    while not pages or after:
        pages.append(listed(api, after=after, path="/tags"))
        after = pages[-1].next
    assert [len(page.requests) for page in pages] == [0, 0, 0, 0, 1]
    assert [page.searched_to for page in pages] == [later(35), later(25), later(15), later(5), None]
