import pytest
import time_machine

MOVES = {
    "planned": ["active", "on_hold", "completed", "archived"],
    "active": ["planned", "on_hold", "completed", "archived"],
    "on_hold": ["planned", "active", "completed", "archived"],
    "completed": ["active", "archived"],
    "archived": ["active"],
}
AMOUNTS = {
    "hourly_rate": "time_and_materials",
    "fixed_fee": "fixed_fee",
    "retainer_amount": "retainer",
    "budget_amount": "non_billable",
}
"""The amounts of a project, each with a billing_type that takes it."""
RESET_FIELDS = {"id", "created_at", "updated_at", "status", "start_date", "due_date", "started_at", "completed_at"}
RESET_FIELDS |= {"project_id", "client_id", "milestone_id", "parent_id", "created_by_id", "external_id"}
RESET_FIELDS |= {"tasks_done_count", "is_overdue"}
"""What a copy of a template's work does not take over as it is."""


def found(api, **query):
    return [row["id"] for row in api.get("/projects", query).data]


def milestones(api, project):
    return api.get(f"/projects/{project}/milestones").data


def tasks(api, project):
    return api.get("/tasks", {"project_id": project, "sort": "position"}).data


def without(record, names):
    return {name: value for name, value in record.items() if name not in names}


def test_it_works(api):
    tag, client = api.make("/tags")["id"], api.make("/clients", currency="KWD")["id"]
    sent = {
        "name": "Webshop",
        "client_id": client,
        "code": "WEB-1",
        "description": "With a checkout",
        "status": "planned",
        "billing_type": "fixed_fee",
        "hourly_rate": "12.500",
        "fixed_fee": "9000.000",
        "budget_amount": "8000.125",
        "budget_minutes": 6000,
        "start_date": "2026-03-01",
        "due_date": "2026-03-01",
        "manager_id": api.member_id,
        "is_template": False,
        "external_id": "crm-1",
        "tag_ids": [tag],
    }
    answer = api.post("/projects", sent | {"name": "  Webshop ", "currency": None, "completed_at": None})
    assert answer.status == 201
    project = answer.data
    assert project == sent | {
        "id": project["id"],
        "created_at": project["created_at"],
        "updated_at": project["created_at"],
        "currency": "KWD",
        "retainer_amount": None,
        "auto_invoice": "off",
        "completed_at": None,
        "archived_at": None,
        "tracked_minutes": 0,
        "billable_minutes": 0,
        "unbilled_minutes": 0,
        "billable_amount": "0.000",
        "unbilled_amount": "0.000",
        "to_bill_amount": "0.000",
        "invoiced_amount": "0.000",
        "expense_amount": "0.000",
        "budget_used_percent": 0.0,
        "progress_percent": None,
        "quote_id": None,
    }
    assert api.get(f"/projects/{project['id']}").data == project
    assert api.get("/projects").data == [project]


def test_omitted_fields_follows_from_the_client_or_makes_an_internal_project(api, other_tenant):
    client = api.make("/clients", currency="JPY")["id"]
    project = api.post("/projects", {"name": "A", "client_id": client}).data
    assert (project["status"], project["billing_type"], project["currency"]) == ("active", "time_and_materials", "JPY")
    assert (project["is_template"], project["tag_ids"]) == (False, [])
    empty = {"code", "description", "fixed_fee", "budget_minutes", "start_date", "due_date", "manager_id"}
    assert {project[name] for name in empty} == {None}
    internal = api.post("/projects", {"name": "B"}).data
    assert (internal["client_id"], internal["billing_type"], internal["currency"]) == (None, "non_billable", "EUR")
    assert other_tenant.post("/projects", {"name": "C", "client_id": ""}).data["currency"] == "USD"


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("hourly_rate", "-1", "an amount from 0"),
        ("hourly_rate", True, "an amount from 0"),
        ("hourly_rate", "1e3", "an amount from 0"),
        ("hourly_rate", "12.345", "EUR has 2 decimal places"),
        ("fixed_fee", "1", "only for the billing_type `fixed_fee`, not for `time_and_materials`"),
        ("fixed_fee", 0, "only for the billing_type `fixed_fee`"),
        ("fixed_fee", "-1", "an amount from 0"),
        ("retainer_amount", "1", "only for the billing_type `retainer`, not for `time_and_materials`"),
        ("retainer_amount", "much", "an amount from 0"),
        ("auto_invoice", "issue", "Must be `off`: only a `retainer` has months to bill"),
        ("budget_amount", "1000000000000.01", "an amount from 0 to 1000000000000"),
        ("budget_amount", "0.001", "EUR has 2 decimal places"),
    ],
)
def test_an_invalid_field_is_reported_in_a_sentence(api, member, value, message):
    good = {"name": "Good", "client_id": api.usual("/clients")}
    answer = api.post("/projects", good | {member: value})
    field = "tag_ids.0" if value in ([1.5], [999]) else member
    assert message in answer.errors[field][0]
    assert (set(answer.errors), answer.code) == ({field}, "validation_failed")
    assert found(api) == found(api, is_template="true") == []
    assert api.post("/projects", good).status == 201


def test_all_errors_are_reported_together_rules_references_and_unique_values_too(api, other_tenant):
    first = api.make("/projects", code="A-1", external_id="x")["id"]
    taken = {"code": "A-1", "external_id": "x", "client_id": other_tenant.make("/clients")["id"]}
    wrong = {"manager_id": other_tenant.admin_id, "template_id": other_tenant.make("/projects", is_template=True)["id"]}
    rules = {"billing_type": "retainer", "fixed_fee": "1", "start_date": "2026-03-02", "due_date": "2026-03-01"}
    answer = api.post("/projects", {"name": "B", "tag_ids": [99], **taken, **wrong, **rules})
    assert set(answer.errors) == {*taken, *wrong, "fixed_fee", "due_date", "tag_ids.0"}
    kinds = api.post("/projects", {"stauts": "active", "status": 5, "client_id": 999, "code": "A-1"})
    assert set(kinds.errors) == {"name", "stauts", "status", "client_id", "code"}
    assert "Did you mean status?" in kinds.errors["stauts"][0]
    assert api.patch(f"/projects/{first}", {"code": "A-1", "external_id": "x"}).status == 200
    assert other_tenant.post("/projects", {"name": "C", "code": "A-1", "external_id": "x"}).status == 201


@pytest.mark.parametrize(("member", "billing_type"), AMOUNTS.items())
def test_amounts_have_the_digits_of_the_clients_currency(api, member, billing_type):
    client = api.make("/clients", currency="JPY")["id"]
    body = {"name": "A", "client_id": client, "billing_type": billing_type}
    project = api.post("/projects", body | {member: "1500.0"}).data
    assert project[member] == "1500"
    assert api.post("/projects", body | {member: 12.5}).errors == {
        member: ["JPY has no decimal places: 12.5 has more."]
    }
    assert api.patch(f"/projects/{project['id']}", {member: None}).data[member] is None


@pytest.mark.parametrize("member", ["fixed_fee", "retainer_amount"])
@pytest.mark.parametrize("billing_type", ["time_and_materials", "fixed_fee", "retainer", "non_billable"])
def test_a_fee_is_only_for_its_billing_type_if_either_changes(api, member, billing_type):
    own_type = AMOUNTS[member]
    project = api.make("/projects", billing_type=own_type, **{member: "100"})
    path = f"/projects/{project['id']}"
    changes = ({"billing_type": billing_type}, {"billing_type": billing_type, member: "50"})
    if billing_type == own_type:
        assert [api.patch(path, change).status for change in changes] == [200, 200]
    else:
        message = f"Is only for the billing_type `{own_type}`, not for `{billing_type}`. Send null."
        assert [api.patch(path, change).errors for change in changes] == [{member: [message]}] * 2
        assert api.get(path).data == project
        cleared = api.patch(path, {"billing_type": billing_type, member: None}).data
        assert (cleared["billing_type"], cleared[member]) == (billing_type, None)
        assert api.patch(path, {member: "1"}).errors == {member: [message]}


def test_an_internal_project_is_never_billed(api):
    client = api.make("/clients", currency="USD")["id"]
    for billing_type in ("time_and_materials", "fixed_fee", "retainer"):
        answer = api.post("/projects", {"name": "A", "billing_type": billing_type})
        assert "Needs a client, unless it is `non_billable`" in answer.errors["billing_type"][0]
    path = f"/projects/{api.post('/projects', {'name': 'A', 'billing_type': 'non_billable'}).data['id']}"
    assert set(api.patch(path, {"billing_type": "retainer"}).errors) == {"billing_type"}
    given = api.patch(path, {"client_id": client, "billing_type": "retainer", "retainer_amount": "10"}).data
    assert (given["billing_type"], given["currency"], given["retainer_amount"]) == ("retainer", "USD", "10.00")
    assert set(api.patch(path, {"client_id": None}).errors) == {"billing_type"}
    both = {"client_id": None, "billing_type": None}
    assert set(api.patch(path, both).errors) == {"retainer_amount"}
    taken = api.patch(path, both | {"retainer_amount": None}).data
    assert (taken["client_id"], taken["billing_type"], taken["currency"]) == (None, "non_billable", "EUR")
    assert api.patch(path, {"client_id": client}).data["billing_type"] == "non_billable"


def test_a_project_that_gets_a_client_of_another_currency_keeps_its_figures(api):
    euro, yen, dinar = (api.make("/clients", currency=code)["id"] for code in ("EUR", "JPY", "KWD"))
    project = api.make(
        "/projects", client_id=euro, billing_type="fixed_fee", fixed_fee="9000", hourly_rate="80.50", budget_amount="1"
    )["id"]
    path = f"/projects/{project}"
    whole = api.make(f"{path}/milestones", amount="4000")["id"]
    sliced = api.make(f"{path}/milestones", amount="10.50")["id"]
    left = api.make("/projects", client_id=euro)["id"]
    api.make(f"/projects/{left}/milestones")
    others, before = milestones(api, left), api.get(path).data
    assert api.patch(path, {"client_id": yen}).errors == {
        "hourly_rate": ["JPY has no decimal places: 80.50 has more."],
        "client_id": [f"JPY has no decimal places: 10.50 has more. It is an amount of milestone {sliced}."],
    }
    assert api.get(path).data == before
    assert [milestone["currency"] for milestone in milestones(api, project)] == ["EUR", "EUR"]
    moved = api.patch(path, {"client_id": dinar}).data
    assert (moved["currency"], moved["fixed_fee"], moved["hourly_rate"]) == ("KWD", "9000.000", "80.500")
    assert [(milestone["currency"], milestone["amount"]) for milestone in milestones(api, project)] == [
        ("KWD", "4000.000"),
        ("KWD", "10.500"),
    ]
    api.patch(f"{path}/milestones/{sliced}", {"amount": "10"})
    moved = api.patch(path, {"client_id": yen, "hourly_rate": "80"}).data
    assert (moved["currency"], moved["fixed_fee"], moved["hourly_rate"]) == ("JPY", "9000", "80")
    assert [milestone["amount"] for milestone in milestones(api, project)] == ["4000", "10"]
    assert api.patch(f"{path}/milestones/{whole}", {"amount": "8990"}).data["currency"] == "JPY"
    assert milestones(api, left) == others


def test_a_client_that_gets_another_currency_takes_its_projects_and_milestones_along(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    fee = {"billing_type": "fixed_fee", "fixed_fee": "900"}
    first = api.make("/projects", client_id=client, **fee)
    second = api.make("/projects", client_id=client, is_template=True, budget_amount="5.50")
    left = api.make("/projects", client_id=other, **fee)
    slices = [api.make(f"/projects/{project['id']}/milestones", amount="1.50")["id"] for project in (first, left)]
    refused = api.patch(f"/clients/{client}", {"currency": "JPY"})
    assert set(refused.errors) == {"currency"}
    for what in (
        f"1.50 has more. It is an amount of milestone {slices[0]}",
        f"5.50 has more. It is an amount of project {second['id']}",
    ):
        assert what in " ".join(refused.errors["currency"])
    assert api.get(f"/projects/{first['id']}").data == first
    assert api.get(f"/clients/{client}").data["currency"] == "EUR"
    assert api.patch(f"/clients/{client}", {"currency": "BHD"}).status == 200
    shown = api.get(f"/projects/{first['id']}").data
    assert (shown["currency"], shown["fixed_fee"], shown["unbilled_amount"]) == ("BHD", "900.000", "0.000")
    assert shown["updated_at"] > first["updated_at"]
    assert api.get(f"/projects/{second['id']}").data["budget_amount"] == "5.500"
    assert [(milestone["currency"], milestone["amount"]) for milestone in milestones(api, first["id"])] == [
        ("BHD", "1.500")
    ]
    assert api.get(f"/projects/{left['id']}").data == left
    assert [milestone["currency"] for milestone in milestones(api, left["id"])] == ["EUR"]


def test_the_due_date_is_not_before_the_start_whichever_changes(api):
    late = {"start_date": "2026-03-02", "due_date": "2026-03-01"}
    message = "Must not be before start_date, which is 2026-03-02."
    assert api.post("/projects", {"name": "A", **late}).errors == {"due_date": [message]}
    path = f"/projects/{api.make('/projects', due_date='2026-03-01')['id']}"
    assert api.patch(path, {"start_date": "2026-03-02"}).errors == {"due_date": [message]}
    assert api.patch(path, {"start_date": "2026-03-01"}).status == 200
    assert set(api.patch(path, {"due_date": "2026-02-28"}).errors) == {"due_date"}
    assert api.patch(path, {"start_date": "2026-03-02", "due_date": None}).data["due_date"] is None


def test_a_new_manager_must_be_active_and_an_old_one_stays(api):
    managed = f"/projects/{api.make('/projects', manager_id=api.member_id)['id']}"
    other = api.make("/projects")["id"]
    api.set_user(api.member_id, {"is_active": False})
    assert api.patch(managed, {"name": "New", "manager_id": api.member_id}).status == 200
    for answer in (
        api.create("/projects", manager_id=api.member_id),
        api.patch(f"/projects/{other}", {"manager_id": api.member_id}),
    ):
        assert answer.errors == {"manager_id": [f"User {api.member_id} is deactivated. Choose an active user."]}
    assert api.patch(managed, {"manager_id": api.admin_id}).data["manager_id"] == api.admin_id


@pytest.mark.parametrize("before", MOVES)
def test_a_status_moves_as_its_table_allows_and_a_refusal_names_the_legal_moves(api, before):
    for after in MOVES:
        project = api.make("/projects", status=before)
        answer = api.patch(f"/projects/{project['id']}", {"status": after})
        if after in {before, *MOVES[before]}:
            assert answer.data["status"] == after
        else:
            legal = f"It can become: {', '.join(MOVES[before])}."
            assert answer.errors == {"status": [f"Cannot become {after} from {before}. {legal}"]}
            assert answer.code == "invalid_transition"
            assert api.get(f"/projects/{project['id']}").data == project


def test_a_forbidden_move_among_other_faults_is_one_of_them(api):
    path = f"/projects/{api.make('/projects', status='archived')['id']}"
    answer = api.patch(path, {"status": "planned", "client_id": 999})
    assert (set(answer.errors), answer.code) == ({"status", "client_id"}, "validation_failed")


def test_completed_at_and_archived_at_stay_until_a_project_is_reopened(api):
    path = f"/projects/{api.make('/projects', status='planned')['id']}"

    def at(**change):
        data = api.patch(path, change).data
        return data["completed_at"], data["archived_at"], data["updated_at"]

    done, archived, now = at(status="completed", completed_at="2026-03-01T00:00:00Z")
    assert (done, archived) == (now, None)
    assert at(name="New", completed_at=None)[:2] == (done, None)
    kept, archived, now = at(status="archived")
    assert (kept, archived) == (done, now)
    assert at(name="Newer", status="archived")[:2] == (done, archived)
    assert at(status="active")[:2] == (None, None)
    completed, archived, now = at(status="archived")
    assert (completed, archived) == (None, now)
    for status, names in (("completed", {"completed_at"}), ("archived", {"archived_at"}), ("on_hold", set())):
        made = api.make("/projects", status=status)
        assert {name for name in ("completed_at", "archived_at") if made[name] == made["created_at"]} == names
        assert sum(made[name] is None for name in ("completed_at", "archived_at")) == 2 - len(names)


def test_omitted_fields_keep_their_value_and_null_clears(api):
    tag = api.make("/tags")["id"]
    project = api.make("/projects", code="A", description="B", due_date="2026-03-01", tag_ids=[tag])
    path = f"/projects/{project['id']}"
    cleared = {"code": None, "description": None, "due_date": None}
    changed = api.patch(path, cleared | {"code": ""}).data
    assert changed == project | cleared | {"updated_at": changed["updated_at"]}
    assert changed["updated_at"] > project["updated_at"]
    untagged = api.put(path, {"tag_ids": []}).data
    assert untagged == changed | {"tag_ids": [], "updated_at": untagged["updated_at"]}
    assert api.get("/tags").data[0]["usage_count"] == 0


def test_templates_are_excluded_from_lists_unless_requested(api):
    client = api.make("/clients")["id"]
    template = api.make("/projects", name="Relaunch", client_id=client, is_template=True)
    project = api.make("/projects", name="Relaunch", client_id=client)["id"]
    assert found(api) == found(api, is_template="false") == found(api, q="relaunch") == [project]
    assert found(api, ids=f"{project},{template['id']}") == [project]
    assert found(api, is_template="true") == found(api, is_template="true", client_id=client) == [template["id"]]
    path = f"/projects/{template['id']}"
    assert api.get(path).data == template
    sent_back = api.put(path, template | {"name": "Shop"}).data
    assert (sent_back["is_template"], sent_back["name"]) == (True, "Shop")
    api.patch(path, {"is_template": False})
    api.patch(f"/projects/{project}", {"is_template": True})
    assert (found(api), found(api, is_template="true")) == ([project], [template["id"]])


def test_a_template_takes_milestones_and_tasks_but_no_time(api):
    template = api.make("/projects", is_template=True)["id"]
    api.make(f"/projects/{template}/milestones")
    task = api.make("/tasks", project_id=template)["id"]
    message = f"Project {template} is a template and accepts no time or money. Create a project from it first."
    for relation in ({"project_id": template}, {"task_id": task}):
        answer = api.post("/time-entries", {"duration_minutes": 5, **relation})
        assert answer.errors == {next(iter(relation)): [message]}
    entry = api.make("/time-entries", client_id=api.usual("/clients"))["id"]
    assert set(api.patch(f"/time-entries/{entry}", {"project_id": template}).errors) == {"project_id"}


@pytest.fixture
def template(api):
    """A template that starts on 2 January 2026, with milestones, tasks in all states, a subtask and a tag."""
    project = api.make(
        "/projects", is_template=True, start_date="2026-01-02", billing_type="fixed_fee", fixed_fee="1000"
    )["id"]
    path = f"/projects/{project}/milestones"
    first = api.make(
        path,
        name="Design",
        description="Sketches",
        status="completed",
        start_date="2026-01-05",
        due_date="2026-01-20",
        amount="400",
        position=7,
    )["id"]
    api.make(path, name="Launch", due_date="2026-02-27", amount="600")
    part = {"status": "in_progress", "due_date": "2026-02-28", "billable": False, "position": 6}
    part = api.make("/tasks", title="Scan", project_id=project, **part)["id"]
    whole = api.make(
        "/tasks",
        title="Draw",
        description="On paper",
        milestone_id=first,
        status="done",
        priority="high",
        assignee_id=api.member_id,
        start_date="2026-01-06",
        due_date="2026-01-31",
        estimated_minutes=90,
        position=5,
        external_id="x",
        tag_ids=[api.make("/tags")["id"]],
    )["id"]
    api.patch(f"/tasks/{part}", {"parent_id": whole})  # which is younger than its part
    api.make("/tasks", title="Rest", project_id=project, status="cancelled")
    api.make("/tasks", title="Elsewhere")
    return project


def from_template(api, template, **members):
    """The milestones and tasks of a new project that a member began with a template."""
    key = api.new_key(user_id=api.member_id)
    body = {"name": "New", "client_id": api.usual("/clients"), "template_id": template, **members}
    answer = api.post("/projects", body, key=key)
    assert (answer.status, answer.data["is_template"]) == (201, False)
    assert "template_id" not in answer.data
    project = answer.data["id"]
    return milestones(api, project), tasks(api, project)


def test_a_project_begins_with_copies_of_its_templates_work_moved_to_its_start(api, template):
    old = milestones(api, template), tasks(api, template)
    client = api.make("/clients")["id"]
    slices, copies = from_template(api, template, client_id=client, start_date="2026-03-02")
    for copied, former in zip((slices, copies), old, strict=True):
        assert [without(row, RESET_FIELDS) for row in copied] == [without(row, RESET_FIELDS) for row in former]
    assert [(row["start_date"], row["due_date"]) for row in slices + copies] == [
        ("2026-03-05", "2026-03-20"),
        (None, "2026-04-27"),
        ("2026-03-06", "2026-03-31"),
        (None, "2026-04-28"),
        (None, None),
    ]
    assert [row["status"] for row in slices + copies] == ["open", "open", "todo", "todo", "todo"]
    assert {row["completed_at"] for row in slices + copies} == {row["started_at"] for row in copies} == {None}
    assert {row["external_id"] for row in copies} == {None}
    assert {(row["client_id"], row["created_by_id"]) for row in copies} == {(client, api.member_id)}
    assert [task["milestone_id"] for task in copies] == [slices[0]["id"], None, None]
    assert [task["parent_id"] for task in copies] == [None, copies[0]["id"], None]
    assert (milestones(api, template), tasks(api, template)) == old
    assert api.get("/tags").data[0]["usage_count"] == 2
    assert api.get("/tasks").json["meta"]["total"] == 4
    on_paper = api.get("/tasks", {"q": "PAPER", "project_id": f"{template},{copies[0]['project_id']}"}).data
    assert {task["id"] for task in on_paper} == {old[1][0]["id"], copies[0]["id"]}


def test_a_template_without_a_start_is_moved_from_the_earliest_date_in_it(api, template):
    api.patch(f"/projects/{template}", {"start_date": None})
    slices, copies = from_template(api, template, start_date="2026-01-01")
    assert [row["due_date"] for row in slices + copies] == [
        "2026-01-16",
        "2026-02-23",
        "2026-01-27",
        "2026-02-24",
        None,
    ]
    first = milestones(api, template)[0]["id"]
    api.patch(f"/projects/{template}/milestones/{first}", {"start_date": None, "due_date": None})
    slices, copies = from_template(api, template, start_date="2026-01-01")  # the earliest is a task's now
    assert [row["due_date"] for row in slices + copies] == [None, "2026-02-22", "2026-01-26", "2026-02-23", None]


def test_a_copy_without_a_start_has_no_dates(api, template):
    slices, copies = from_template(api, template, due_date="2026-12-31")
    assert len(slices + copies) == 5
    assert {row[name] for row in slices + copies for name in ("start_date", "due_date")} == {None}


WHOLE = {
    "description": "With a checkout",
    "billing_type": "fixed_fee",
    "hourly_rate": "80.00",
    "fixed_fee": "1000.00",
    "budget_amount": "900.00",
    "budget_minutes": 600,
}


def test_a_copy_keeps_what_its_body_leaves_out_and_a_null_keeps_a_field_empty(api):
    tags = [api.make("/tags")["id"] for _ in range(2)]
    whole = WHOLE | {"manager_id": api.member_id, "tag_ids": tags}
    for owner in ({"client_id": None}, {"client_id": api.make("/clients")["id"]}):
        template = api.make("/projects", name="Shop", is_template=True, **owner, **whole)["id"]
        api.make(f"/projects/{template}/milestones", amount="1000")
        copy = api.make("/projects", template_id=template)
        assert {name: copy[name] for name in whole} == whole
        assert [row["amount"] for row in milestones(api, copy["id"])] == ["1000.00"]
        cleared = dict.fromkeys(("description", "hourly_rate", "budget_amount", "budget_minutes", "manager_id"))
        own = cleared | {"tag_ids": tags[:1], "fixed_fee": "2000.00"}
        copy = api.make("/projects", template_id=template, **own)
        assert {name: copy[name] for name in own} == own
        assert api.make("/projects", template_id=template, tag_ids=[])["tag_ids"] == []
    assert {row["usage_count"] for row in api.get("/tags").data} == {6, 4}


@pytest.mark.parametrize(
    ("billing", "internal"),
    [
        ({"billing_type": "time_and_materials"}, "non_billable"),
        ({"billing_type": "fixed_fee", "fixed_fee": "0.00"}, None),
        ({"billing_type": "retainer", "retainer_amount": "900.00"}, None),
        ({"billing_type": "non_billable"}, "non_billable"),
        ({}, "non_billable"),
    ],
)
def test_a_copy_is_billed_like_its_template_and_an_internal_one_never(api, billing, internal):
    template = api.make("/projects", client_id=None, is_template=True, **billing)
    usual = {"billing_type": "time_and_materials"}
    copies = [api.make("/projects", template_id=template["id"], **null) for null in ({}, {"billing_type": None})]
    for record in (template, *copies):
        assert {name: record[name] for name in billing or usual} == (billing or usual)
    inside = api.create("/projects", template_id=template["id"], client_id=None)
    if internal:
        assert inside.data["billing_type"] == internal
    else:
        own_type = billing["billing_type"]
        message = f"Needs a client, unless it is `non_billable`; this is `{own_type}`."
        assert inside.errors == {"billing_type": [message]}


@pytest.mark.parametrize(
    ("currency", "members", "errors"),
    [
        ("EUR", {"fixed_fee": "999.99"}, {"fixed_fee": "at least the sum of the template's milestones, 1000.00 EUR"}),
        ("EUR", {"fixed_fee": None}, {"fixed_fee": "at least the sum of the template's milestones, 1000.00 EUR"}),
        ("EUR", {"billing_type": "retainer"}, {"billing_type": "Must be fixed_fee, because milestones"}),
        ("USD", {"fixed_fee": "5000"}, {"template_id": "amounts in EUR, and the project is in USD"}),
        (
            "USD",
            {},
            {
                "template_id": "amounts in EUR, and the project is in USD",
                "fixed_fee": "Is 1000.00 EUR in the template, and the project is in USD. Send an amount in USD, or",
            },
        ),
    ],
)
def test_amounts_that_do_not_fit_the_copy_are_refused_and_not_dropped(api, template, currency, members, errors):
    client = api.make("/clients", currency=currency)["id"]
    answer = api.create("/projects", client_id=client, template_id=template, **members)
    assert answer.errors.keys() == errors.keys()
    for name, part in errors.items():
        assert part in answer.errors[name][0]
    fitting = {"client_id": client, "billing_type": "fixed_fee", "fixed_fee": "1000"}
    if currency == "EUR":
        slices, _ = from_template(api, template, **fitting)
        assert [row["amount"] for row in slices] == ["400.00", "600.00"]


def test_a_rate_in_another_currency_is_refused_until_the_body_names_one_or_none(api):
    template = api.make("/projects", is_template=True, hourly_rate="80")["id"]
    foreign = {"client_id": api.make("/clients", currency="USD")["id"], "template_id": template}
    assert set(api.create("/projects", **foreign).errors) == {"hourly_rate"}
    for rate in ("95.00", None):
        assert api.make("/projects", **foreign, hourly_rate=rate)["hourly_rate"] == rate


def test_a_template_with_tasks_or_a_manager_of_a_deactivated_user_is_not_copied(api, template):
    api.patch(f"/projects/{template}", {"manager_id": api.member_id})
    _, copies = from_template(api, template)
    assert [task["assignee_id"] for task in copies] == [api.member_id, None, None]
    api.set_user(api.member_id, {"is_active": False})
    errors = api.create("/projects", template_id=template).errors
    assert set(errors) == {"template_id", "manager_id"}
    assert f"is assigned to user {api.member_id}, who is deactivated" in errors["template_id"][0]
    task = tasks(api, template)[0]["id"]
    api.patch(f"/tasks/{task}", {"assignee_id": None})
    assert api.create("/projects", template_id=template, manager_id=None).status == 201


def test_a_copied_task_leaves_the_ticket_to_its_template(api):
    client = api.make("/clients")["id"]
    template = api.make("/projects", client_id=client, is_template=True)["id"]
    ticket = api.make("/tickets", client_id=client)["id"]
    api.make("/tasks", project_id=template, ticket_id=ticket)
    other = api.make("/clients")["id"]
    _, (copy,) = from_template(api, template, client_id=other)
    assert (copy["client_id"], copy["ticket_id"]) == (other, None)


def test_copied_tasks_are_billable_only_in_projects_that_are(api):
    template = api.make("/projects", is_template=True)["id"]
    for billable in (True, False):
        api.make("/tasks", project_id=template, billable=billable)
    _, copies = from_template(api, template, billing_type="non_billable")
    assert [task["billable"] for task in copies] == [False, False]
    _, copies = from_template(api, template)
    assert [task["billable"] for task in copies] == [True, False]


def test_only_templates_are_copied_and_only_into_new_projects(api, other_tenant, template):
    plain, foreign = api.make("/projects")["id"], other_tenant.make("/projects", is_template=True)["id"]
    projects, work = found(api), api.get("/tasks").json["meta"]["total"]
    missing = api.post("/projects", {"name": "A", "template_id": 999}).errors
    assert missing == api.post("/projects", {"name": "A", "template_id": foreign}).errors
    assert missing == {"template_id": ["There is no such project in this account."]}
    answer = api.post("/projects", {"name": "A", "template_id": plain})
    assert answer.errors == {"template_id": [f"Project {plain} is not a template: its is_template is false."]}
    answer = api.patch(f"/projects/{plain}", {"template_id": template})
    assert answer.errors == {"template_id": ["Can be set only when the record is created. Leave it out."]}
    assert (found(api), api.get("/tasks").json["meta"]["total"]) == (projects, work)
    slices, copies = from_template(api, None)
    assert slices == copies == []


def work_totals(api, project):
    """What the work on a project is told to have come to: all, billable and unbilled minutes, and their values."""
    shown = api.get(f"/projects/{project}").data
    assert api.get("/projects", {"ids": project}).data == [shown]
    names = ("tracked_minutes", "billable_minutes", "unbilled_minutes", "billable_amount", "unbilled_amount")
    return tuple(shown[name] for name in names)


def test_what_work_came_to_is_counted_by_minute_and_cent(api):
    project = api.make("/projects", hourly_rate="100")["id"]
    task = api.make("/tasks", project_id=project)["id"]
    api.make("/time-entries", duration_minutes=90, project_id=project)
    api.make("/time-entries", duration_minutes=50, task_id=task)  # 83.333 becomes 83.33
    api.make("/time-entries", duration_minutes=30, project_id=project, billable=False)
    api.make("/time-entries", duration_minutes=60, project_id=api.make("/projects")["id"])
    api.make("/time-entries", duration_minutes=60)
    assert work_totals(api, project) == (170, 140, 140, "233.33", "233.33")
    changed = api.patch(f"/projects/{project}", {"hourly_rate": "1", "tracked_minutes": 5}).data
    assert (changed["tracked_minutes"], changed["unbilled_amount"]) == (170, "233.33")


def test_what_work_came_to_follows_every_change_of_it(api):
    slow, fast = (api.make("/projects", hourly_rate=rate)["id"] for rate in ("60", "100"))
    api.make("/time-entries", duration_minutes=3, project_id=slow)
    zero, rest = (0, 0, 0, "0.00", "0.00"), (3, 3, 3, "3.00", "3.00")
    path = f"/time-entries/{api.make('/time-entries', duration_minutes=90, project_id=fast)['id']}"
    for change, on_slow, on_fast in (
        ({}, rest, (90, 90, 90, "150.00", "150.00")),
        ({"duration_minutes": 60}, rest, (60, 60, 60, "100.00", "100.00")),
        ({"hourly_rate": "10"}, rest, (60, 60, 60, "10.00", "10.00")),
        ({"billable": False}, rest, (60, 0, 0, "0.00", "0.00")),
        ({"duration_minutes": 0}, rest, (60, 0, 0, "0.00", "0.00")),  # refused
        ({"billable": True, "project_id": slow}, (63, 63, 63, "13.00", "13.00"), zero),
        ({"hourly_rate": None}, (63, 63, 63, "63.00", "63.00"), zero),
        ({"project_id": None}, rest, zero),
        ({"project_id": fast}, rest, (60, 60, 60, "100.00", "100.00")),
    ):
        api.patch(path, change)
        assert (work_totals(api, slow), work_totals(api, fast)) == (on_slow, on_fast), change
    assert api.delete(path).status == 204
    assert (work_totals(api, slow), work_totals(api, fast)) == (rest, zero)


@pytest.mark.parametrize(
    ("budgets", "percent"),
    [
        ({}, None),
        ({"budget_amount": "1000"}, 23.33),
        ({"budget_amount": "500"}, 46.67),
        ({"budget_amount": "100"}, 233.33),
        ({"budget_minutes": 600}, 28.33),
        ({"budget_minutes": 40_000}, 0.43),  # 0.425 exactly
        ({"budget_amount": "1000", "budget_minutes": 600}, 28.33),
        ({"budget_amount": "500", "budget_minutes": 600}, 46.67),
        ({"budget_amount": "0", "budget_minutes": 600}, 28.33),
        ({"budget_amount": "1000", "budget_minutes": 0}, 23.33),
        ({"budget_amount": "0", "budget_minutes": 0}, None),
    ],
)
def test_the_budget_is_used_by_value_or_by_time_whichever_is_further_on(api, budgets, percent):
    project = api.make("/projects", hourly_rate="100", **budgets)["id"]
    api.make("/time-entries", duration_minutes=140, project_id=project)  # 233.33
    api.make("/time-entries", duration_minutes=30, project_id=project, billable=False)
    assert api.get(f"/projects/{project}").data["budget_used_percent"] == percent


def test_amounts_of_different_currencies_are_never_added(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    project, left = (
        api.make("/projects", client_id=client_id, hourly_rate="100", budget_amount="200")["id"]
        for client_id in (client, other)
    )
    api.make("/time-entries", duration_minutes=30, project_id=left, client_id=other)
    former = api.make("/time-entries", duration_minutes=60, project_id=project, client_id=client)
    api.patch(f"/clients/{client}", {"currency": "USD"})
    api.make("/time-entries", duration_minutes=30, project_id=project, client_id=client)
    api.make("/time-entries", duration_minutes=30, project_id=project, client_id=client, billable=False)
    assert work_totals(api, project) == (120, 90, 90, "50.00", "50.00")
    assert api.get(f"/projects/{project}").data["budget_used_percent"] == 25.0
    api.patch(f"/time-entries/{former['id']}", {"duration_minutes": 120})
    assert work_totals(api, project) == (180, 150, 150, "50.00", "50.00")
    api.patch(f"/time-entries/{former['id']}", {"duration_minutes": 50})
    api.patch(f"/clients/{client}", {"currency": "EUR"})
    assert work_totals(api, project) == (110, 80, 80, "83.33", "83.33")
    assert api.patch(f"/clients/{client}", {"currency": "JPY"}).status == 200  # though yen cannot hold 83.33
    assert work_totals(api, project) == (110, 80, 80, "0", "0")
    assert work_totals(api, left) == (30, 30, 30, "50.00", "50.00")


@pytest.mark.parametrize(
    ("statuses", "percent"),
    [
        ([], None),
        (["cancelled"], None),
        (["todo", "in_progress", "in_review"], 0.0),
        (["done", "todo", "in_review", "cancelled"], 33.33),
        (["done", "done", "todo"], 66.67),
        (["done", "cancelled"], 100.0),
    ],
)
def test_progress_is_the_share_of_done_tasks_without_the_cancelled(api, statuses, percent):
    project = api.make("/projects")["id"]
    api.make("/tasks", project_id=api.make("/projects")["id"], status="done")
    for status in statuses:
        api.make("/tasks", project_id=project, status=status)
    assert api.get(f"/projects/{project}").data["progress_percent"] == percent


def test_overdue_is_what_is_still_open_after_its_day_in_the_accounts_zone(api):
    with time_machine.travel("2027-03-09T23:30:00Z", tick=False):  # the 10th in Berlin
        late = [api.make("/projects", due_date="2027-03-09", status=status)["id"] for status in MOVES]
        today = api.make("/projects", due_date="2027-03-10")["id"]
        never = api.make("/projects")["id"]
        assert found(api, overdue="true", sort="id") == late[:3]
        assert found(api, overdue="false", sort="id") == [*late[3:], today, never]


def test_over_budget_is_more_than_all_of_it(api):
    full, beyond = (api.make("/projects", hourly_rate="60", budget_amount="60")["id"] for _ in range(2))
    slow, free = api.make("/projects", budget_minutes=60)["id"], api.make("/projects")["id"]
    for project, minutes in ((full, 60), (beyond, 61), (slow, 61), (free, 600)):
        api.make("/time-entries", project_id=project, duration_minutes=minutes)
    assert api.get(f"/projects/{full}").data["budget_used_percent"] == 100.0
    assert found(api, over_budget="true", sort="id") == [beyond, slow]
    assert found(api, over_budget="false", sort="id") == [full, free]


def test_the_client_is_fixed_once_there_is_time_and_changes_for_tasks_too_before(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    project = api.make("/projects", client_id=client, billing_type="non_billable")["id"]
    task = api.make("/tasks", project_id=project)
    left = api.make("/tasks", client_id=client)
    path = f"/projects/{project}"
    assert api.patch(path, {"client_id": other}).data["client_id"] == other
    moved = api.get(f"/tasks/{task['id']}").data
    assert moved == task | {"client_id": other, "updated_at": moved["updated_at"]}
    assert moved["updated_at"] > task["updated_at"]
    assert api.get(f"/tasks/{left['id']}").data == left
    entry = api.make("/time-entries", client_id=other, task_id=task["id"])["id"]
    message = "Is fixed once work was recorded for the client. Move or delete 1 time entry first."
    for wanted in (client, None):
        assert api.patch(path, {"client_id": wanted}).errors == {"client_id": [message]}
    assert api.patch(path, {"client_id": other, "name": "New"}).data["name"] == "New"
    api.delete(f"/time-entries/{entry}")
    assert api.patch(path, {"client_id": None}).data["client_id"] is None
    assert api.get(f"/tasks/{task['id']}").data["client_id"] is None


def test_only_a_project_without_time_is_deleted_with_its_tasks(api):
    tag = api.make("/tags")["id"]
    doomed, other = (api.make("/projects", tag_ids=[tag])["id"] for _ in range(2))
    for project in (doomed, other):
        milestone = api.make(f"/projects/{project}/milestones")["id"]
        task = api.make("/tasks", milestone_id=milestone, tag_ids=[tag])["id"]
        api.make("/tasks", parent_id=task)
    entries = [api.make("/time-entries", project_id=doomed)["id"] for _ in range(2)]
    for entry, count in zip(entries, ("2 time entries", "1 time entry"), strict=True):
        answer = api.delete(f"/projects/{doomed}")
        assert (answer.code, answer.errors) == ("in_use", {"time_entries": [f"Move or delete {count} first."]})
        assert api.delete(f"/time-entries/{entry}").status == 204
    assert len(tasks(api, doomed)) == 2
    kept = milestones(api, other), tasks(api, other)
    assert api.delete(f"/projects/{doomed}").status == 204
    assert api.get(f"/projects/{doomed}/milestones").status == api.get(f"/projects/{doomed}").status == 404
    assert tasks(api, doomed) == []
    assert api.get("/tasks").json["meta"]["total"] == 2
    assert api.get("/tags").data[0]["usage_count"] == 2
    assert (milestones(api, other), tasks(api, other)) == kept


def test_a_client_counts_its_projects_and_stays_while_it_has_some_or_time(api):
    client = api.make("/clients")["id"]
    projects = [api.make("/projects", client_id=client)["id"] for _ in range(2)]
    api.make("/projects", client_id=None)
    entry = api.make("/time-entries", client_id=client)["id"]
    assert api.get(f"/clients/{client}").data["projects_count"] == 2
    answer = api.delete(f"/clients/{client}")
    assert answer.code == "in_use"
    assert answer.errors == {
        "projects": ["Move or delete 2 projects first."],
        "time_entries": ["Move or delete 1 time entry first."],
    }
    for project in projects:
        api.delete(f"/projects/{project}")
    assert set(api.delete(f"/clients/{client}").errors) == {"time_entries"}
    api.delete(f"/time-entries/{entry}")
    assert api.get(f"/clients/{client}").data["projects_count"] == 0
    assert api.delete(f"/clients/{client}").status == 204


def test_work_on_a_project_changes_what_a_cache_compares_and_refuses_no_change(api):
    made = api.create("/projects")
    path, seen = f"/projects/{made.data['id']}", made.headers["etag"]
    api.make("/time-entries", project_id=made.data["id"])
    assert api.get(path, headers={"If-None-Match": seen}).status == 200
    changed = api.patch(path, {"name": "New"}, headers={"If-Match": seen})
    assert changed.data["name"] == "New"
    for answer in (
        api.patch(path, {"name": "Newer"}, headers={"If-Match": seen}),
        api.delete(path, headers={"If-Match": seen}),
    ):
        assert (answer.status, answer.code) == (412, "precondition_failed")
    assert api.get(path, headers={"If-None-Match": changed.headers["etag"]}).status == 304


def test_tasks_of_an_internal_template_are_billed_as_the_new_project_is(api):
    template = api.make("/projects", client_id=None, name="Plan", is_template=True)["id"]
    assert api.make("/tasks", project_id=template)["billable"] is True
    copy = api.make("/projects", template_id=template)["id"]
    inside = api.make("/projects", client_id=None, template_id=template)["id"]
    assert [task["billable"] for task in api.get("/tasks", {"project_id": f"{copy},{inside}", "sort": "id"}).data] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    "members", [{"client_id": None}, {"billing_type": "non_billable"}, {"billing_type": "time_and_materials"}]
)
def test_a_task_of_a_template_that_is_not_billable_is_not_in_its_copies_either(api, members):
    template = api.make("/projects", **members, is_template=True)["id"]
    for billable in (True, False, None):
        api.make("/tasks", project_id=template, billable=billable)

    def billed(project):
        return [row["billable"] for row in api.get("/tasks", {"project_id": project, "sort": "id"}).data]

    assert billed(template) == [True, False, True]
    project = api.make("/projects", template_id=template, billing_type="time_and_materials")["id"]
    assert billed(project) == [True, False, True]
    again = api.make("/projects", template_id=template, is_template=True, client_id=None)["id"]
    assert billed(again) == [True, False, True]
    assert billed(api.make("/projects", template_id=template, client_id=None)["id"]) == [False, False, False]


@pytest.mark.parametrize(
    ("start", "due", "new"), [("2026-01-01", "2099-01-01", "2099-06-01"), ("2026-06-01", "2026-01-01", "1970-01-01")]
)
def test_a_start_that_moves_a_template_out_of_the_calendar_is_refused(api, start, due, new):
    template = api.make("/projects", is_template=True, start_date=start)["id"]
    api.make("/tasks", project_id=template, due_date=due)
    answer = api.create("/projects", template_id=template, start_date=new)
    assert f"Moves a date of the template from {due} to " in answer.errors["start_date"][0]
    assert api.create("/projects", template_id=template, start_date="2026-03-01").status == 201


def test_a_project_is_over_its_budget_by_a_minute(api):
    project = api.make("/projects", budget_minutes=20160)["id"]
    for day in range(10, 24):
        api.make("/time-entries", client_id=None, project_id=project, duration_minutes=1440, date=f"2026-03-{day}")
    assert api.get("/projects", {"over_budget": "true"}).data == []
    api.make("/time-entries", client_id=None, project_id=project, duration_minutes=1)
    (row,) = api.get("/projects", {"over_budget": "true"}).data
    assert (row["id"], row["budget_used_percent"]) == (project, 100.0)


def test_another_client_of_the_same_currency_leaves_milestones_as_they_are(api):
    project = api.make("/projects")["id"]
    milestone = api.make(f"/projects/{project}/milestones")
    api.patch(f"/projects/{project}", {"client_id": api.make("/clients")["id"]})
    assert api.get(f"/projects/{project}/milestones").data == [milestone]


def test_a_copy_has_the_budget_and_due_date_of_its_template(api):
    budget = {"budget_amount": "5000.00", "budget_minutes": 600}
    template = api.make("/projects", is_template=True, **budget, start_date="2026-01-10", due_date="2026-02-10")["id"]
    plain = api.make("/projects", is_template=True, due_date="2026-02-10")["id"]
    api.make("/tasks", project_id=plain, start_date="2026-02-01")
    names = ("budget_amount", "budget_minutes", "due_date")
    for members, expected in (
        ({"template_id": template, "start_date": "2026-03-10"}, ["5000.00", 600, "2026-04-10"]),
        ({"template_id": template}, ["5000.00", 600, None]),
        (
            {"template_id": template, "start_date": "2026-03-10", "due_date": "2026-03-11"},
            ["5000.00", 600, "2026-03-11"],
        ),
        ({"template_id": template, "budget_amount": "1", "budget_minutes": 1}, ["1.00", 1, None]),
        ({"template_id": plain, "start_date": "2026-03-01"}, [None, None, "2026-03-10"]),
        ({"template_id": template, "is_template": True, "start_date": "2026-01-10"}, ["5000.00", 600, "2026-02-10"]),
        ({"template_id": template, "start_date": "2026-03-10", "due_date": None}, ["5000.00", 600, None]),
    ):
        project = api.make("/projects", **members)
        assert [project[name] for name in names] == expected, members
