"""All faults of a body are named at once: what could not be read hides nothing that rules find in the rest."""

import pytest

LINE = {"description": "Design", "unit_price": "100"}


def error_fields(api, method, path, body):
    return set(api.call(method, path, body).errors)


def test_errors_of_several_lines_are_listed_together(api):
    client, other = (api.make("/clients")["id"], api.make("/projects", client_id=api.make("/clients")["id"])["id"])
    lines = [LINE | {"project_id": 999}, LINE | {"quantity": "many"}, LINE | {"project_id": other}, {"unit_price": "1"}]
    body = {"client_id": client, "lines": lines}
    expected = {"lines.0.project_id", "lines.1.quantity", "lines.2.project_id", "lines.3.description"}
    for collection in ("/quotes", "/invoices"):
        assert error_fields(api, "POST", collection, body) == expected
        draft = f"{collection}/{api.make(collection, client_id=client)['id']}"
        assert error_fields(api, "PATCH", draft, {"lines": lines}) == expected


@pytest.mark.parametrize(
    ("collection", "body", "expected"),
    [
        ("/projects", {"name": " ", "start_date": "2026-02-02", "due_date": "2026-02-01"}, {"name", "due_date"}),
        ("/projects", {"name": 1, "fixed_fee": "5"}, {"name", "fixed_fee"}),
        ("/tasks", {"title": "", "start_date": "2026-02-02", "due_date": "2026-02-01"}, {"title", "due_date"}),
        ("/tasks", {"priority": "soon", "parent_id": 999, "milestone_id": 999},
         {"title", "priority", "parent_id", "milestone_id"}),
        ("/clients", {"name": None, "number": "C-1", "tag_ids": [999, "x"]},
         {"name", "number", "tag_ids.0", "tag_ids.1"}),
        ("/expenses", {"amount": "x", "project_id": 999, "tag": 1}, {"amount", "project_id", "tag"}),
        ("/expenses", {"amount": "0", "date": "x", "billable": True}, {"amount", "date", "billable"}),
        ("/quotes", {"client_id": "x", "issue_date": "2026-02-02", "valid_until": "2026-02-01"},
         {"client_id", "valid_until"}),
        ("/sites", {"url": "x", "check_interval_seconds": 5, "plugins": [{"slug": "a"}, {"slug": "a"}]},
         {"url", "check_interval_seconds", "plugins.1.slug"}),
        ("/tickets", {"subject": "", "assignee_id": 999, "due_at": "soon"}, {"subject", "assignee_id", "due_at"}),
        ("/external-contacts", {"client_id": 999, "email": "x"}, {"client_id", "email"}),
        ("/time-entries", {"date": "x", "task_id": 999}, {"date", "task_id", "duration_minutes"}),
    ],
)  # fmt: skip
def test_what_cannot_be_read_hides_nothing_else(api, collection, body, expected):
    api.make("/clients", number="C-1")
    assert error_fields(api, "POST", collection, body) == expected
    assert api.get(collection, {"sort": "-id"}).json["meta"]["total"] == (1 if collection == "/clients" else 0)


@pytest.mark.parametrize(
    ("collection", "body", "field"),
    [
        ("/time-entries", {"client_id": "x", "duration_minutes": 5, "billable": True}, "client_id"),
        ("/time-entries", {"client_id": 1, "started_at": "x", "ended_at": "2026-01-01T00:00:00Z"}, "started_at"),
        ("/projects", {"name": "A", "client_id": "x", "billing_type": "fixed_fee", "fixed_fee": "5"}, "client_id"),
        ("/projects", {"name": "A", "client_id": 1, "billing_type": "x", "fixed_fee": "5"}, "billing_type"),
        ("/expenses", {"amount": "5", "client_id": "x", "billable": True}, "client_id"),
        ("/external-contacts", {"client_id": 1, "email": "x"}, "email"),
        ("/quotes", {"client_id": 1, "status": "sent", "lines": "x"}, "lines"),
        ("/quotes", {"client_id": 1, "issue_date": "x", "valid_until": "2020-01-01"}, "issue_date"),
        ("/invoices", {"client_id": 1, "status": "sent", "lines": {}}, "lines"),
        ("/invoices", {"client_id": 1, "lines": [{"time_entry_ids": "x"}]}, "lines.0.time_entry_ids"),
        ("/sites", {"url": "nowhere"}, "url"),
        ("/expenses", {"amount": None}, "amount"),
    ],
)
def test_nothing_is_concluded_from_what_could_not_be_read(api, collection, body, field):
    api.make("/clients")
    assert error_fields(api, "POST", collection, body) == {field}


def test_a_change_names_all_faults_and_leaves_everything_as_it_was(api):
    project = api.make("/projects", start_date="2026-02-02", external_id="a")
    api.make("/projects", external_id="b")
    path = f"/projects/{project['id']}"
    body = {"name": "", "due_date": "2026-02-01", "external_id": "b", "manager_id": 999, "client_id": 999}
    assert error_fields(api, "PATCH", path, body) == set(body)
    assert api.get(path).data == project


def test_members_that_only_a_create_can_set_are_taken_when_they_say_what_is_so(api):
    project = api.make("/projects")
    path = f"/projects/{project['id']}"
    template = api.make("/projects", is_template=True)["id"]
    quote = api.make("/quotes", lines=[LINE], status="accepted")["id"]
    assert api.patch(path, {"is_template": False, "quote_id": None, "template_id": None}).data == project
    refused = api.patch(path, {"is_template": True, "quote_id": quote, "template_id": template})
    message = ["Can be set only when the record is created. Leave it out."]
    assert refused.errors == dict.fromkeys(("is_template", "quote_id", "template_id"), message)
    invoice = api.post("/invoices", {"quote_id": quote}).data
    same = api.patch(f"/invoices/{invoice['id']}", {"quote_id": quote, "subject": "Same"})
    assert (same.status, same.data["quote_id"]) == (200, quote)
    assert api.patch(f"/invoices/{invoice['id']}", {"quote_id": None}).errors == {"quote_id": message}


@pytest.mark.parametrize(
    ("collection", "member", "message"),
    [
        ("/clients", "tag_ids", "Must be a list; send [] for none."),
        ("/quotes", "lines", "Must be a list; send [] for none."),
        ("/sites", "plugins", "Must be a list; send [] for none."),
        ("/clients", "status", "this is null. Omit the field instead."),
        ("/tasks", "priority", "this is null. Omit the field instead."),
    ],
)
def test_null_where_there_is_none_says_what_to_send(api, collection, member, message):
    path = f"{collection}/{api.make(collection)['id']}"
    for answer in (api.patch(path, {member: None}), api.create(collection, **{member: None})):
        assert list(answer.errors) == [member]
        assert answer.errors[member][0].endswith(message)


@pytest.mark.parametrize("child", [1, None, [], "a", True])
def test_a_child_that_is_no_object_is_refused_where_it_stands(api, child):
    for collection, field, other in (
        ("/quotes", "lines", LINE),
        ("/invoices", "lines", LINE),
        ("/sites", "plugins", {}),
    ):
        path = f"{collection}/{api.make(collection)['id']}"
        message = {f"{field}.1": ["Must be an object."]}
        known = (
            {} if collection == "/sites" else {f"{field}.0.project_id": ["There is no such project in this account."]}
        )
        first = other | ({"slug": "akismet"} if collection == "/sites" else {"project_id": 999})
        assert api.patch(path, {field: [first, child]}).errors == message | known
        assert api.create(collection, **{field: [first, child]}).errors == message | known
    invoice = api.make("/invoices", lines=[LINE], status="sent")["id"]
    answer = api.post(f"/invoices/{invoice}/credit-notes", {"lines": [{"invoice_line_id": 999}, child]})
    assert answer.errors.keys() == {"lines.0.invoice_line_id", "lines.1"}


def test_a_client_that_is_not_there_is_told_alone_and_blames_no_work_of_others(api):
    client = api.make("/clients", hourly_rate="100")["id"]
    project = api.make("/projects", client_id=client)["id"]
    entry = api.make("/time-entries", client_id=client, project_id=project)["id"]
    lines = {
        "/invoices": [{"time_entry_ids": [entry], "project_id": project}],
        "/quotes": [LINE | {"project_id": project}],
    }
    for collection, line_items in lines.items():
        body = {"project_id": project, "lines": line_items}
        assert api.post(collection, body).errors == {"client_id": ["Is required."]}
        assert api.post(collection, body | {"client_id": None}).errors == {"client_id": ["Is required; this is null."]}
        missing = api.post(collection, body | {"client_id": 10**6}).errors
        assert missing == {"client_id": ["There is no such client in this account."]}
        assert list(api.post(collection, body | {"client_id": "a"}).errors) == ["client_id"]


def test_a_fee_of_the_wrong_billing_type_needs_no_client_to_be_told(api):
    body = {"name": "A", "client_id": "x", "billing_type": "retainer", "fixed_fee": "5"}
    assert error_fields(api, "POST", "/projects", body) == {"client_id", "fixed_fee"}


@pytest.mark.parametrize(
    ("collection", "body", "cause"),
    [
        ("/invoices", {"quote_id": 999, "status": "sent"}, "quote_id"),
        ("/invoices", {"lines": [{"time_entry_ids": [999]}], "status": "sent"}, "lines.0.time_entry_ids.0"),
        ("/invoices", {"lines": [{"time_entry_ids": [999], "quantity": "7"}]}, "lines.0.time_entry_ids.0"),
        ("/expenses", {"client_id": None, "project_id": 999, "billable": True}, "project_id"),
        ("/time-entries", {"client_id": None, "project_id": 999, "billable": True}, "project_id"),
        ("/time-entries", {"client_id": None, "task_id": 999, "billable": True}, "task_id"),
        ("/expenses", {"currency": "EURO", "amount": "1.001"}, "currency"),
        ("/clients", {"currency": "euro", "hourly_rate": "1.001"}, "currency"),
        ("/invoices", {"currency": "EURO", "unbilled_work": {"time": {}}, "status": "sent"}, "currency"),
    ],
)
def test_a_consequence_is_not_reported_beside_its_cause(api, collection, body, cause):
    assert set(api.create(collection, **body).errors) == {cause}


def test_a_client_that_cannot_change_causes_no_other_error(api):
    entry = api.make("/time-entries", project_id=api.make("/projects")["id"])
    assert set(api.patch(f"/projects/{entry['project_id']}", {"client_id": None}).errors) == {"client_id"}


def test_a_payment_with_too_many_digits_is_reported_alone(api):
    invoice = api.make("/invoices", lines=[LINE], status="sent")["id"]
    answer = api.patch(f"/invoices/{invoice}", {"status": "paid", "record_payment": {"amount": "1.001"}})
    assert answer.errors == {"record_payment.amount": ["EUR has 2 decimal places: 1.001 has more."]}
