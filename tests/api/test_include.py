"""`include` adds related records and parts to what is read, and `fields` limits the records to some fields."""

from urllib.parse import parse_qs, urlsplit

import pytest
from tests.contract.cases import READS, statements_of
from tests.databases import each_database, only_sqlite

from retainer.api import ROUTES
from retainer.store import details

NOT_RECORDS = {"external_id", "key_id", "event_id", "record_id", "invoice_line_id"}
"""Fields that are named like references, to what has no GET that returns it, or to none at all."""


@pytest.fixture
def task(api):
    """A task with a client, a project and an assignee."""
    client = api.make("/clients", name="Nordwind")
    project = api.make("/projects", name="Shop", client_id=client["id"])
    return api.make("/tasks", title="Move", project_id=project["id"], assignee_id=api.member_id)


@pytest.fixture
def invoice(api):
    """An invoice that is partly paid, whose lines are not in the order of their ids."""
    made = api.make("/invoices", client_id=api.usual("/clients"), lines=invoice_lines(2))
    path, lines = f"/invoices/{made['id']}", [{"id": line["id"]} for line in reversed(made["lines"])]
    api.patch(path, {"lines": lines, "status": "sent"})
    return api.patch(path, {"record_payment": {"amount": "1"}}).data


def invoice_lines(count):
    return [{"description": f"Line {place}", "unit_price": "1"} for place in range(count)]


def ids_of(records):
    return [record["id"] for record in records]


@each_database
def test_related_records_come_once_each_as_their_own_get_returns_them(api, task):
    api.make("/tasks", title="Second", project_id=task["project_id"], assignee_id=api.admin_id)
    api.make("/tasks", title="Without anything")
    page = api.get("/tasks", {"include": "client,project,assignee,created_by,parent"})
    assert list(page.json["included"]) == ["clients", "projects", "users", "tasks"]
    assert page.json["included"] == {
        "clients": [api.get(f"/clients/{task['client_id']}").data],
        "projects": [api.get(f"/projects/{task['project_id']}").data],
        "users": [api.get(f"/users/{user_id}").data for user_id in sorted((api.admin_id, api.member_id))],
        "tasks": [],
    }
    assert page.data == api.get("/tasks").data


@each_database
def test_a_single_record_includes_what_it_refers_to(api, task):
    one = api.get(f"/tasks/{task['id']}", "include=client&include=milestone")
    assert one.data == task
    assert one.json["included"] == {"clients": [api.get(f"/clients/{task['client_id']}").data], "milestones": []}
    assert set(api.get(f"/tasks/{task['id']}").json) == {"data"}


@each_database
def test_an_included_invoice_has_its_lines_and_payments(api, invoice):
    page = api.get("/payments", {"include": "invoice,client"})
    assert page.json["included"]["invoices"] == [invoice]
    assert ids_of(page.json["included"]["clients"]) == [invoice["client_id"]]


@each_database
def test_a_list_of_ids_includes_each_record(api):
    tags = [api.make("/tags", name=name) for name in "abc"]
    for chosen in (tags[:2], tags[1:2]):
        api.make("/clients", name="Tagged", tag_ids=ids_of(chosen))
    included = api.get("/clients", {"include": "tags"}).json["included"]
    assert included == {"tags": api.get("/tags", {"ids": f"{tags[0]['id']},{tags[1]['id']}"}).data}


@each_database
def test_lists_include_the_parts_that_single_records_have(api, invoice):
    other = api.make("/invoices", client_id=invoice["client_id"])
    site = api.make("/sites", url="https://a.example", plugins=[{"slug": "b"}, {"slug": "a", "auto_update": True}])
    page = api.get("/invoices", {"include": "lines,payments,credit_notes,client", "sort": "id"})
    assert ids_of(page.data[0]["lines"]) == sorted(ids_of(invoice["lines"]), reverse=True)
    assert page.data == [invoice, api.get(f"/invoices/{other['id']}").data]
    assert ids_of(page.json["included"]["clients"]) == [invoice["client_id"]]
    assert api.get("/sites", {"include": "plugins"}).data == [api.get(f"/sites/{site['id']}").data]
    assert "lines" not in api.get("/invoices", {"include": "payments"}).data[0]
    assert "included" not in api.get("/invoices", {"include": "lines"}).json


@each_database
def test_the_number_of_statements_does_not_depend_on_the_number_of_records(api):
    counts = []
    for _ in range(2):
        for name in "ab":
            client = api.make("/clients", name=name)
            api.make("/invoices", client_id=client["id"], lines=[{"description": "a", "unit_price": "5"}])
        with statements_of(api) as ran:
            assert api.get("/invoices", {"include": "lines,payments,client,project"}).status == 200
        counts.append(len(ran))
    assert counts == [5, 5], "the key, the invoices, lines, payments and clients; no invoice has a project"


def test_a_relation_needs_the_scope_that_reads_it(api, task):
    key = api.new_key(["tasks:read", "projects:read"])
    for path in ("/tasks", f"/tasks/{task['id']}"):
        refused = api.get(path, {"include": "project,client"}, key=key)
        assert (refused.status, refused.code, refused.json["required_scope"]) == (403, "missing_scope", "clients:read")
        assert "lacks the scope clients:read, which include=client needs." in refused.json["message"]
        assert api.get(path, {"include": "project,assignee"}, key=key).status == 200


def test_an_included_user_shows_emails_only_to_admins(api, task):
    member = api.new_key(["tasks:read"], user_id=api.member_id)
    path = f"/tasks/{task['id']}"
    for key, email in (("own", "max@north.example"), (member, None)):
        (user,) = api.get(path, {"include": "assignee"}, key=key).json["included"]["users"]
        assert user["email"] == email


@pytest.mark.parametrize(
    ("collection", "parts"),
    [("/invoices", ["lines", "payments", "credit_notes"]), ("/quotes", ["lines"]), ("/sites", ["plugins"])],
)
def test_a_single_record_takes_the_names_of_parts_and_has_them_once(api, collection, parts):
    made = api.make(collection)
    path = f"{collection}/{made['id']}"
    with statements_of(api) as plain:
        read = api.get(path)
    with statements_of(api) as asked:
        assert api.get(path, {"include": ",".join(parts)}).json == read.json
    assert len(asked) == len(plain)
    limited = api.get(path, {"include": parts[0], "fields": "created_at"}).data
    assert limited.keys() == {"id", "created_at", parts[0]}


def test_unknown_names_are_refused_together_and_the_possible_ones_are_named(api, invoice):
    refused = api.get("/credit-notes", {"include": "invoice,lines", "fields": "id,colour", "per_page": 0})
    assert (refused.status, refused.code) == (422, "validation_failed")
    assert refused.json["errors"].keys() == {"include", "fields", "per_page"}
    assert refused.json["errors"]["include"] == [
        "Must be a comma-separated list of: invoice, client. lines is none of them."
    ]
    assert "id, created_at, updated_at, invoice_id" in refused.json["errors"]["fields"][0]
    assert api.get("/invoices", {"fields": "lines"}).status == 422
    assert api.get("/tasks", {"include": ""}).status == 422
    for path in ("/users", "/events", "/reports/overview", "/me"):
        assert api.get(path, {"include": "client"}).code == "unknown_parameter"
    assert api.call("POST", "/tags", {"name": "a"}, query="include=client").code == "unknown_parameter"


def test_every_reference_of_what_is_read_can_be_included():
    for operation in READS:
        selectable = ROUTES.bound[operation].selectable
        if selectable is not None:
            names = {name for name in selectable.fields if name.endswith(("_id", "_ids"))}
            fields = {field for field, _ in selectable.relations.values()}
            assert names - NOT_RECORDS == fields, operation
            assert not selectable.relations.keys() & set(selectable.fields), operation


@each_database
def test_fields_limit_the_records_and_nothing_else(api, invoice):
    page = api.get("/invoices", {"fields": "total, number", "include": "client,payments"})
    (record,) = page.data
    assert record == {name: invoice[name] for name in ("id", "number", "total", "payments")}
    assert list(record) == ["id", "number", "total", "payments"], "in the order of the record"
    assert page.json["included"]["clients"] == [api.get(f"/clients/{invoice['client_id']}").data]
    one = api.get(f"/invoices/{invoice['id']}", {"fields": "lines"})
    assert one.data == {"id": invoice["id"], "lines": invoice["lines"]}


def test_each_selection_has_a_tag_of_its_own_which_if_match_takes_for_the_record(api, task):
    path, selection = f"/tasks/{task['id']}", {"fields": "title", "include": "client"}
    whole, chosen = api.get(path), api.get(path, selection)
    assert whole.headers["etag"] != chosen.headers["etag"] != api.get(path, {"fields": "title"}).headers["etag"]
    held = {"If-None-Match": chosen.headers["etag"]}
    assert [api.get(path, query, headers=held).status for query in (selection, {})] == [304, 200]
    api.patch(f"/clients/{task['client_id']}", {"notes": "changed"})
    assert api.get(path, selection, headers=held).status == 200, "the included client has changed"
    match = {"If-Match": chosen.headers["etag"]}
    assert [api.patch(path, {"title": title}, headers=match).status for title in ("New", "Newer")] == [200, 412]


@only_sqlite
def test_links_keep_the_selection_and_a_cursor_continues_with_it(api):
    for name in "abc":
        api.make("/projects", name=name, client_id=api.usual("/clients"))
    first = api.get("/projects", {"include": "client", "fields": "name", "per_page": 2})
    following = urlsplit(first.json["links"]["next"]).query
    assert parse_qs(following).keys() >= {"include", "fields", "cursor"}
    last = api.get("/projects", following)
    assert [set(record) for record in last.data] == [{"id", "name"}]
    assert ids_of(last.json["included"]["clients"]) == [api.usual("/clients")]


@only_sqlite
def test_a_batch_includes_like_a_request_of_its_own(api, task):
    read = {"method": "GET", "path": f"/tasks/{task['id']}?include=client&fields=title"}
    (result,) = api.post("/batch", {"operations": [read]}).data["results"]
    alone = api.get(f"/tasks/{task['id']}", "include=client&fields=title")
    assert (result["body"], result["etag"]) == (alone.json, alone.headers["etag"])


def test_a_pdf_is_the_same_with_a_selection(api, invoice):
    path, accept = f"/invoices/{invoice['id']}", {"Accept": "application/pdf"}
    assert api.get(path, {"include": "client"}, headers=accept).body == api.get(path, headers=accept).body


def test_a_page_with_too_many_parts_is_refused_and_a_single_record_is_not(api, invoice, monkeypatch):
    monkeypatch.setattr(details, "MAX_DETAILS", 3)
    other = api.make("/invoices", client_id=invoice["client_id"], lines=invoice_lines(4))
    refused = api.get("/invoices", {"include": "lines"})
    assert refused.json["errors"] == {
        "include": ["These records have more than 3 lines. Read fewer at a time, with `per_page`."]
    }
    assert len(api.get(f"/invoices/{other['id']}").data["lines"]) == 4
    assert api.get("/invoices", {"include": "lines", "per_page": 1}).status == 200
