"""PUT by external id creates a record, or changes the one that has the id."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.contract.cases import OPERATIONS
from tests.databases import each_database
from tests.factories import RECIPES

COLLECTIONS = sorted({each.resource.path for each in OPERATIONS if "external_id" in each.parameters})


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_second_put_changes_what_the_first_created(api, collection):
    body, path = RECIPES[collection](api), f"{collection}/external:erp-7"
    created = api.put(path, body)
    assert (created.status, created.data["external_id"]) == (201, "erp-7")
    assert created.headers["location"].endswith(f"{collection}/{created.data['id']}")
    latest = api.get("/events").json["meta"]["latest"]
    again = api.put(path, body)
    assert (again.status, again.data) == (200, created.data)
    assert api.get("/events", {"after": latest}).data == []
    assert "location" not in again.headers
    assert api.get(f"{collection}/{created.data['id']}").data == again.data
    assert api.get(collection, {"external_id": "erp-7"}).json["meta"]["total"] == 1


def test_omitted_fields_keep_their_values_and_are_required_only_to_create(api):
    assert api.put("/clients/external:7", {"city": "Köln"}).errors == {"name": ["Is required."]}
    api.put("/clients/external:7", {"name": "Optik", "city": "Köln"})
    changed = api.put("/clients/external:7", {"phone": "1"}).data
    assert [changed[name] for name in ("name", "city", "phone")] == ["Optik", "Köln", "1"]
    assert api.put("/clients/external:7", {"city": None}).data["city"] is None


def test_the_path_decides_about_the_external_id(api):
    assert api.put("/clients/external:7", {"name": "Optik", "external_id": "7"}).status == 201
    for other in ("8", None):
        (message,) = api.put("/clients/external:7", {"external_id": other}).errors["external_id"]
        assert message == "Must be that of the path. Leave it out."
    assert api.put("/clients/external:%20", {"name": "Optik"}).errors.keys() == {"external_id"}
    assert api.put(f"/clients/external:{'x' * 192}", {"name": "Optik"}).errors.keys() == {"external_id"}
    assert api.put("/clients/external:a%00b", {"name": "Optik"}).errors.keys() == {"external_id"}
    assert api.put("/clients/external:%FF", {"name": "Optik"}).code == "bad_request"
    assert api.get("/clients").json["meta"]["total"] == 1


@pytest.mark.parametrize(
    "external_id", ["a:b", "K%C3%B6ln%207", "50%25", "external:7", "2026%2F7", "a%2F%2Fexternal:b"]
)
def test_any_text_is_an_external_id(api, external_id):
    first = api.put(f"/clients/external:{external_id}", {"name": "Optik"})
    assert first.status == 201
    assert api.put(f"/clients/external:{external_id}", {}).data["id"] == first.data["id"]
    assert api.get(f"/clients/external:{external_id}").data["id"] == first.data["id"]
    assert api.get("/clients", f"external_id={external_id}").data[0]["id"] == first.data["id"]
    assert api.delete(f"/clients/external:{external_id}").status == 204


def test_a_path_of_a_record_with_an_external_id_is_no_external_id(api):
    """A PUT with a slash too many, or below a record, must not create another one."""
    api.put("/clients/external:7", {"name": "Optik"})
    for path in ("/clients/external:7/", "/clients/external:7/unbilled-work"):
        assert api.put(path, {"name": "Optik"}).status in {404, 405}
    assert api.get("/clients").json["meta"]["total"] == 1


def test_if_match_changes_only_the_state_it_names_and_creates_nothing(api):
    path = "/clients/external:7"
    assert api.put(path, {"name": "Optik"}, headers={"If-Match": "*"}).code == "precondition_failed"
    created = api.put(path, {"name": "Optik"})
    changed = api.put(path, {"name": "Optik 2"}, headers={"If-Match": created.headers["etag"]})
    assert changed.status == 200
    stale = api.put(path, {"name": "Optik 3"}, headers={"If-Match": created.headers["etag"]})
    assert stale.code == "precondition_failed"
    assert api.get("/clients").data[0]["name"] == "Optik 2"


def test_an_idempotent_retry_gets_the_201_again(api):
    headers = {"Idempotency-Key": "one"}
    first, again = (api.put("/clients/external:7", {"name": "Optik"}, headers=headers) for _ in range(2))
    assert (first.status, again.status, first.data) == (201, 201, again.data)


def test_it_needs_the_scope_of_writes_and_stays_in_its_account(api, other_tenant):
    ours = api.put("/clients/external:7", {"name": "Ours"}).data
    assert api.put("/clients/external:7", {}, key=api.new_key(["clients:read"])).json["required_scope"] == (
        "clients:write"
    )
    theirs = other_tenant.put("/clients/external:7", {"name": "Theirs"})
    assert theirs.status == 201
    assert api.get(f"/clients/{ours['id']}").data == ours


def test_another_method_is_told_where_to_go(api):
    answer = api.post("/clients/external:7")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, PUT, PATCH, DELETE, OPTIONS")
    assert "Send POST /clients to create, or PATCH /clients/external:{external_id} to change." in answer.json["message"]


def test_every_record_with_an_external_id_is_read_changed_and_deleted_by_it():
    assert len(COLLECTIONS) == 10
    for collection in COLLECTIONS:
        by_id, by_external_id = (
            {
                each.method
                for each in OPERATIONS
                if each.path.startswith(f"{collection}{start}") and each.path.count("/") == 2
            }
            for start in ("/{", "/external:{")
        )
        assert by_id == by_external_id == {"GET", "PUT", "PATCH", "DELETE"}, collection


@pytest.mark.parametrize("collection", COLLECTIONS)
def test_a_record_is_read_changed_and_deleted_by_its_external_id_as_by_its_id(api, collection):
    made, path = api.create(collection, external_id="Ö 7").data, f"{collection}/external:%C3%96%207"
    by_id = api.get(f"{collection}/{made['id']}")
    read = api.get(path)
    assert (read.data, read.headers["etag"]) == (by_id.data, by_id.headers["etag"])
    changed = api.patch(path, {"external_id": "8"}, headers={"If-Match": read.headers["etag"]})
    assert (changed.status, changed.data["external_id"]) == (200, "8")
    assert [api.call(method, path, {}).code for method in ("GET", "PATCH", "DELETE")] == ["not_found"] * 3
    path = f"{collection}/external:8"
    assert api.delete(path, headers={"If-Match": read.headers["etag"]}).code == "precondition_failed"
    assert api.delete(path).status == 204
    assert api.get(f"{collection}/{made['id']}").status == 404


def test_if_none_match_only_creates(api):
    path, only_new = "/clients/external:7", {"If-None-Match": "*"}
    assert api.put(path, {"name": "Optik"}, headers=only_new).status == 201
    refused = api.put(path, {"name": "Other"}, headers=only_new)
    assert (refused.code, api.get(path).data["name"]) == ("precondition_failed", "Optik")
    assert "The client 1 has this external id" in refused.json["message"]
    named = api.put(path, {"name": "Other"}, headers={"If-None-Match": api.get(path).headers["etag"]})
    assert named.errors == {"If-None-Match": ["Must be * here: it creates the record only if there is none."]}


@pytest.mark.parametrize("atomic", [False, True])
def test_if_none_match_only_creates_in_a_batch(api, atomic):
    upsert = {"method": "PUT", "path": "/clients/external:7", "body": {"name": "Optik"}, "if_none_match": "*"}
    first, again = (api.post("/batch", {"operations": [upsert], "atomic": atomic}) for _ in range(2))
    assert first.data["results"][0]["status"] == 201
    assert (again.status if atomic else again.data["results"][0]["status"]) == 412


def test_a_record_is_read_by_its_external_id_with_what_a_request_selects(api):
    client = api.make("/clients", external_id="7", name="Optik")
    api.make("/projects", client_id=client["id"], external_id="8")
    read = api.get("/projects/external:8", {"include": "client", "fields": "name"}).json
    assert read["data"].keys() == {"id", "name"}
    assert [each["id"] for each in read["included"]["clients"]] == [client["id"]]
    assert api.get(f"/clients/external:{'x' * 192}").status == 404
    assert api.get("/clients/external:a%00b").errors.keys() == {"external_id"}
    assert api.get("/clients/external:%FF").code == "bad_request"


def test_an_event_says_whether_it_was_created(api):
    for name in ("Optik", "Optik", "Brille"):
        api.put("/clients/external:7", {"name": name})
    told = [(event["type"], event["fields"]) for event in api.get("/events").data]
    assert told == [("client.created", []), ("client.updated", ["name"])]


@each_database
def test_of_many_at_once_one_creates_and_the_others_change(api):
    def put(number):
        return api.put("/clients/external:7", {"name": f"Optik {number}", "number": "C-7"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(put, range(16)))
    assert sorted(answer.status for answer in answers) == [200] * 15 + [201]
    assert len({answer.data["id"] for answer in answers}) == 1
    assert api.get("/clients").json["meta"]["total"] == 1


LINES = [
    {"description": "Design", "unit_price": "10"},
    {"description": "Design", "unit_price": 10},
    {"description": "Build", "quantity": "2.50", "unit": "days", "unit_price": "800.00", "discount_percent": 5},
]
STATUSES = {"/quotes": ("draft", "sent", "accepted", "declined"), "/invoices": ("draft", "sent")}


@pytest.mark.parametrize(("collection", "status"), [(path, each) for path in STATUSES for each in STATUSES[path]])
def test_a_document_that_is_put_again_changes_nothing(api, collection, status):
    body = {"client_id": api.usual("/clients"), "lines": LINES, "status": status}
    first = api.put(f"{collection}/external:7", body)
    assert first.status == 201
    latest = api.get("/events").json["meta"]["latest"]
    again = api.put(f"{collection}/external:7", body)
    assert (again.status, again.data, again.headers["etag"]) == (200, first.data, first.headers["etag"])
    assert api.get("/events", {"after": latest}).data == []


def test_lines_that_bill_work_are_put_again_in_a_draft_and_in_an_issued_invoice(api):
    client = api.make("/clients", hourly_rate="80", tax_rate="19")["id"]
    retainer = api.make("/projects", client_id=client, billing_type="retainer", retainer_amount="450")["id"]
    time = [api.make("/time-entries", client_id=client, duration_minutes=minutes)["id"] for minutes in (50, 25)]
    expense = api.make("/expenses", client_id=client, billable=True)["id"]
    month = api.today[:7]
    fee = {"project_id": retainer, "fee_month": month}
    lines = [{"time_entry_ids": time[::-1]}, {"expense_ids": [expense]}, fee, LINES[2]]
    body = {"client_id": client, "lines": lines}
    first = api.put("/invoices/external:7", body).data
    latest = api.get("/events").json["meta"]["latest"]
    assert api.put("/invoices/external:7", body).data == first
    assert api.get("/events", {"after": latest}).data == []
    issued = api.put("/invoices/external:7", body | {"status": "sent"}).data
    assert [line["id"] for line in issued["lines"]] == [line["id"] for line in first["lines"]]
    api.patch(f"/clients/{client}", {"tax_rate": "7"})
    assert api.put("/invoices/external:7", body | {"status": "sent"}).data == issued
    for other in (
        [lines[1], lines[0], *lines[2:]],
        lines[:3],
        [*lines[:3], LINES[2] | {"quantity": "2"}],
        [*lines[:3], {name: LINES[2][name] for name in ("description", "unit_price", "unit", "discount_percent")}],
        [*lines[:3], LINES[2] | {"unit": None}],
        [{"time_entry_ids": time[:1]}, *lines[1:]],
    ):
        refused = api.put("/invoices/external:7", body | {"lines": other})
        assert (refused.code, set(refused.errors)) == ("locked", {"lines"}), other


@pytest.mark.parametrize("collection", STATUSES)
def test_of_lines_that_are_put_again_those_that_are_equal_keep_their_ids(api, collection):
    body = {"client_id": api.usual("/clients"), "lines": LINES}
    one, two, three = api.put(f"{collection}/external:7", body).data["lines"]
    changed = [LINES[2], LINES[0] | {"quantity": "3"}, LINES[1]]
    after = api.put(f"{collection}/external:7", body | {"lines": changed}).data["lines"]
    assert [after[0]["id"], after[2]["id"]] == [three["id"], one["id"]]
    assert after[1]["id"] > three["id"]
    assert api.delete(f"{collection}/external:7").status == 204
    assert two["id"] != one["id"]
