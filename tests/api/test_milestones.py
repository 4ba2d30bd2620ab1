import pytest
import time_machine


@pytest.fixture
def fixed(api):
    """The path of the milestones of a project with a fixed fee of 1000.00 euros."""
    return milestones_of(api, billing_type="fixed_fee", fixed_fee="1000")


def milestones_of(api, **members):
    return f"/projects/{api.make('/projects', **members)['id']}/milestones"


def found(api, path, **query):
    return [row["id"] for row in api.get(path, query).data]


def test_it_works(api, fixed):
    sent = {
        "name": "Launch",
        "description": "All is live",
        "status": "open",
        "start_date": "2026-03-01",
        "due_date": "2099-03-01",
        "amount": "250.50",
        "position": 4,
    }
    answer = api.post(fixed, sent | {"name": " Launch ", "project_id": None, "currency": None})
    assert answer.status == 201
    milestone = answer.data
    assert milestone == sent | {
        "id": milestone["id"],
        "project_id": int(fixed.split("/")[2]),
        "created_at": milestone["created_at"],
        "updated_at": milestone["created_at"],
        "currency": "EUR",
        "completed_at": None,
        "invoice_id": None,
        "tasks_count": 0,
        "tasks_done_count": 0,
        "is_overdue": False,
    }
    assert answer.headers["location"].endswith(f"{fixed}/{milestone['id']}")
    assert api.get(fixed).data == [milestone]


def test_a_new_milestone_is_open_and_the_last_of_its_project(api, fixed):
    other = milestones_of(api)
    api.make(other, position=50)
    made = [api.make(fixed, **members) for members in ({}, {}, {"position": 9}, {}, {"position": 0}, {"position": 9})]
    assert [milestone["position"] for milestone in made] == [1, 2, 9, 10, 0, 9]
    unknown = {"description", "start_date", "due_date", "amount", "completed_at"}
    assert (made[0]["status"], {made[0][name] for name in unknown}) == ("open", {None})
    first, second, third, fourth, fifth, sixth = (milestone["id"] for milestone in made)
    assert found(api, fixed) == [fifth, first, second, third, sixth, fourth]
    assert api.patch(f"{fixed}/{first}", {"position": None}).data["position"] == 11
    assert api.patch(f"{fixed}/{first}", {"name": "New"}).data["position"] == 11


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("amount", "-1", "an amount from 0"),
        ("amount", True, "an amount from 0"),
        ("amount", "0.001", "EUR has 2 decimal places"),
        (
            "amount",
            "1000.01",
            "Exceeds the project's fixed_fee, which is 1000.00 EUR; other milestones hold 0.00 of it.",
        ),
        ("external_id", "x", "Unknown field."),
        ("amont", "1", "Did you mean amount?"),
    ],
)
def test_an_invalid_field_is_reported_in_a_sentence(api, fixed, member, value, message):
    made = api.make(fixed)
    for answer in (
        api.post(fixed, {"name": "Good"} | {member: value}),
        api.patch(f"{fixed}/{made['id']}", {member: value}),
    ):
        assert message in answer.errors[member][0]
        assert (set(answer.errors), answer.code) == ({member}, "validation_failed")
    assert api.get(fixed).data == [made]


def test_all_errors_are_reported_together(api, fixed):
    answer = api.post(fixed, {"status": "done", "amount": "1e3", "position": -1, "due_date": 5, "titel": "A"})
    assert set(answer.errors) == {"name", "status", "amount", "position", "due_date", "titel"}
    late = {"start_date": "2026-03-02", "due_date": "2026-03-01"}
    assert set(api.post(fixed, {"name": "A", "amount": "1001", **late}).errors) == {"amount", "due_date"}


def test_the_due_date_is_not_before_the_start_whichever_changes(api, fixed):
    path = f"{fixed}/{api.make(fixed, due_date='2026-03-01')['id']}"
    message = "Must not be before start_date, which is 2026-03-02."
    assert api.patch(path, {"start_date": "2026-03-02"}).errors == {"due_date": [message]}
    assert api.patch(path, {"start_date": "2026-03-01"}).status == 200
    assert set(api.patch(path, {"due_date": "2026-02-28"}).errors) == {"due_date"}
    assert api.patch(path, {"start_date": "2026-03-02", "due_date": None}).data["due_date"] is None


def test_the_moment_of_completing_is_kept_until_a_milestone_is_opened_again(api, fixed):
    path = f"{fixed}/{api.make(fixed)['id']}"
    done = api.patch(path, {"status": "completed", "completed_at": "2026-03-01T00:00:00Z"}).data
    assert done["completed_at"] == done["updated_at"]
    assert api.patch(path, {"name": "New", "completed_at": None}).data["completed_at"] == done["completed_at"]
    assert api.patch(path, {"status": "open"}).data["completed_at"] is None
    made = api.make(fixed, status="completed")
    assert made["completed_at"] == made["created_at"]


def test_amounts_stay_within_the_fixed_fee_together(api, fixed):
    first = f"{fixed}/{api.make(fixed, amount='600')['id']}"
    second = f"{fixed}/{api.make(fixed, amount=400)['id']}"
    room = "Exceeds the project's fixed_fee, which is 1000.00 EUR; other milestones hold {} of it."
    assert api.create(fixed, amount="0.01").errors == {"amount": [room.format("1000.00")]}
    assert api.patch(second, {"amount": "400.01"}).errors == {"amount": [room.format("600.00")]}
    assert api.patch(second, {"amount": "400.00", "name": "New"}).status == 200
    assert api.patch(first, {"amount": None}).data["amount"] is None
    assert api.patch(second, {"amount": "1000"}).data["amount"] == "1000.00"
    assert api.patch(first, {"amount": "0.01"}).errors == {"amount": [room.format("1000.00")]}
    api.delete(second)
    assert api.create(milestones_of(api, billing_type="fixed_fee", fixed_fee="1"), amount="1").status == 201
    assert api.patch(first, {"amount": "1000"}).data["amount"] == "1000.00"


@pytest.mark.parametrize("billing_type", ["time_and_materials", "retainer", "non_billable", "fixed_fee"])
def test_only_a_project_with_a_fixed_fee_has_slices_of_it(api, billing_type):
    path = milestones_of(api, billing_type=billing_type)
    only = "Only projects with a fixed fee have milestones with an amount."
    reason = f"{only} The billing type of this project is `{billing_type}`."
    if billing_type == "fixed_fee":
        reason = "Exceeds the project's fixed_fee, which is not set; other milestones hold 0.00 of it."
    assert api.create(path, amount="1").errors == {"amount": [reason]}
    milestone = f"{path}/{api.make(path)['id']}"
    assert api.patch(milestone, {"amount": "1"}).errors == {"amount": [reason]}
    api.patch(path.removesuffix("/milestones"), {"billing_type": "fixed_fee", "fixed_fee": "1"})
    assert api.patch(milestone, {"amount": "1"}).data["amount"] == "1.00"


def test_a_fixed_fee_stays_above_its_milestones_and_with_them(api, fixed):
    project = fixed.removesuffix("/milestones")
    before = api.get(project).data
    milestones = [f"{fixed}/{api.make(fixed, amount=amount)['id']}" for amount in ("600", "99.50")]
    held = "Must be at least the sum of its milestones, 699.50 EUR. Reduce their amounts first."
    for change in ({"fixed_fee": "699.49"}, {"fixed_fee": None}, {"billing_type": "retainer", "fixed_fee": None}):
        assert api.patch(project, change).errors == {"fixed_fee": [held]}
    only = "Is only for the billing_type `fixed_fee`, not for `retainer`. Send null."
    assert api.patch(project, {"billing_type": "retainer"}).errors == {"fixed_fee": [only]}
    assert api.get(project).data == before
    assert api.patch(project, {"fixed_fee": "699.50"}).data["fixed_fee"] == "699.50"
    for milestone in milestones:
        api.patch(milestone, {"amount": None})
    assert api.patch(project, {"billing_type": "retainer", "fixed_fee": None}).status == 200


def test_tasks_are_counted_all_and_done(api, fixed):
    first, second = (api.make(fixed)["id"] for _ in range(2))
    for status in ("todo", "done", "done", "cancelled"):
        api.make("/tasks", milestone_id=first, status=status)
    task = api.make("/tasks", milestone_id=second)["id"]
    api.make("/tasks", project_id=int(fixed.split("/")[2]), status="done")

    def counts():
        return [(milestone["tasks_count"], milestone["tasks_done_count"]) for milestone in api.get(fixed).data]

    assert counts() == [(4, 2), (1, 0)]
    api.patch(f"/tasks/{task}", {"status": "done", "milestone_id": first})
    assert counts() == [(5, 3), (0, 0)]


def test_overdue_is_what_is_still_open_after_its_day_in_the_accounts_zone(api, fixed):
    with time_machine.travel("2027-03-09T23:30:00Z", tick=False):  # the 10th in Berlin
        late = api.make(fixed, due_date="2027-03-09")
        done = api.make(fixed, due_date="2027-03-09", status="completed")
        today, never = api.make(fixed, due_date="2027-03-10"), api.make(fixed)
        assert [milestone["is_overdue"] for milestone in (late, done, today, never)] == [True, False, False, False]
        assert found(api, fixed, overdue="true") == [late["id"]]
        assert found(api, fixed, overdue="false") == [done["id"], today["id"], never["id"]]
        assert api.patch(f"{fixed}/{late['id']}", {"status": "completed"}).data["is_overdue"] is False


def test_a_milestone_of_another_project_is_nothing_there(api, fixed):
    other, milestone = milestones_of(api), api.make(fixed)
    for method, body in (("PATCH", {"name": "Mine"}), ("PATCH", {"name": 5}), ("DELETE", None)):
        answer = api.call(method, f"{other}/{milestone['id']}", body)
        assert (answer.status, answer.code) == (404, "not_found")
        assert "no such milestone" in answer.json["message"]
    assert (api.get(fixed).data, api.get(other).data) == ([milestone], [])
    assert api.patch(f"{fixed}/{milestone['id']}", {"name": "Mine"}).status == 200
    assert api.delete(f"{fixed}/{milestone['id']}").status == 204


def test_an_archived_project_accepts_no_new_milestone_and_old_ones_can_be_changed(api, fixed):
    project, old = fixed.removesuffix("/milestones"), f"{fixed}/{api.make(fixed)['id']}"
    api.patch(project, {"status": "archived"})
    number = project.split("/")[2]
    assert api.create(fixed).errors == {"project_id": [f"Project {number} is archived. Make it active first."]}
    assert api.patch(old, {"status": "completed", "amount": "1"}).data["status"] == "completed"
    assert len(api.get(fixed).data) == 1
    assert api.delete(old).status == 204
    api.patch(project, {"status": "active"})
    assert api.create(fixed).status == 201


def test_an_archived_client_accepts_no_new_milestone(api, fixed):
    project = api.get(fixed.removesuffix("/milestones")).data
    old = f"{fixed}/{api.make(fixed)['id']}"
    api.patch(f"/clients/{project['client_id']}", {"status": "archived"})
    message = f"Client {project['client_id']} is archived. Make it active first."
    assert api.create(fixed).errors == {"project_id": [message]}
    assert api.patch(old, {"name": "New"}).status == 200


def test_a_milestone_only_changes_in_the_state_that_its_caller_knows(api, fixed):
    made = api.create(fixed)
    path, seen = f"{fixed}/{made.data['id']}", {"If-Match": made.headers["etag"]}
    changed = api.patch(path, {"name": "New"}, headers=seen)
    assert changed.data["name"] == "New"
    for answer in (api.patch(path, {"name": "Newer"}, headers=seen), api.delete(path, headers=seen)):
        assert (answer.status, answer.code) == (412, "precondition_failed")
    seen = {"If-Match": changed.headers["etag"]}
    api.make(
        "/tasks", milestone_id=made.data["id"]
    )  # a figure that follows from others, and no change of the milestone
    assert api.patch(path, {}).headers["etag"] != changed.headers["etag"]
    assert api.delete(path, headers=seen).status == 204


def test_a_deleted_milestone_leaves_its_tasks_without_one(api, fixed):
    doomed, other = (api.make(fixed)["id"] for _ in range(2))
    task, left = (api.make("/tasks", milestone_id=milestone) for milestone in (doomed, other))
    entry = api.make("/time-entries", task_id=task["id"])
    assert api.delete(f"{fixed}/{doomed}").status == 204
    kept = api.get(f"/tasks/{task['id']}").data
    assert kept["updated_at"] > task["updated_at"]
    derived = {"updated_at": kept["updated_at"], "tracked_minutes": entry["duration_minutes"]}
    assert kept == task | {"milestone_id": None} | derived
    assert api.get(f"/tasks/{left['id']}").data == left
    assert api.get(f"/time-entries/{entry['id']}").data == entry
    assert found(api, fixed) == [other]


def test_behind_the_last_possible_position_there_is_none(api):
    path = api.at("/projects/{project_id}/milestones")
    api.make(path, position=1_000_000_000)
    assert api.make(path)["position"] == 1_000_000_000
