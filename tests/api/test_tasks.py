from itertools import product

import pytest

STATUSES = ("todo", "in_progress", "in_review", "done", "cancelled")
OPEN = ("todo", "in_progress", "in_review")


@pytest.fixture
def world(api):
    """Two clients with a project, a milestone and a task each, an internal project, and tasks of no project."""
    made = {"a": api.make("/clients")["id"], "b": api.make("/clients")["id"]}
    made["p"] = api.make("/projects", client_id=made["a"])["id"]
    made["q"] = api.make("/projects", client_id=made["b"])["id"]
    made["internal"] = api.make("/projects", client_id=None)["id"]
    made["in p"] = api.post(f"/projects/{made['p']}/milestones", {"name": "M"}).data["id"]
    made["in q"] = api.post(f"/projects/{made['q']}/milestones", {"name": "M"}).data["id"]
    made["task of p"] = api.make("/tasks", project_id=made["p"])["id"]
    made["task of q"] = api.make("/tasks", project_id=made["q"])["id"]
    made["subtask of p"] = api.make("/tasks", parent_id=made["task of p"])["id"]
    made["task of a"] = api.make("/tasks", client_id=made["a"])["id"]
    made["loose"] = api.make("/tasks")["id"]
    return made


def ids_of(world, members):
    """The members with ids for the names of the world."""
    return {name: world.get(value, value) for name, value in members.items()}


def found(api, **query):
    return [row["id"] for row in api.get("/tasks", query).data]


def test_it_works(api, world):
    tag = api.make("/tags")["id"]
    sent = {
        "title": "  Write the texts ",
        "description": "All of them",
        "client_id": world["a"],
        "project_id": world["p"],
        "milestone_id": world["in p"],
        "parent_id": world["task of p"],
        "ticket_id": api.make("/tickets", project_id=world["p"])["id"],
        "status": "in_progress",
        "priority": "high",
        "assignee_id": api.member_id,
        "start_date": "2026-03-01",
        "due_date": "2099-03-01",
        "estimated_minutes": 600,
        "billable": False,
        "position": 7,
        "external_id": "jira-1",
        "tag_ids": [tag],
    }
    answer = api.post("/tasks", sent)
    assert answer.status == 201
    task = answer.data
    made = task["created_at"]
    assert task == sent | {
        "id": task["id"],
        "created_at": made,
        "updated_at": made,
        "title": "Write the texts",
        "created_by_id": api.admin_id,
        "started_at": made,
        "completed_at": None,
        "tracked_minutes": 0,
        "remaining_minutes": 600,
        "is_overdue": False,
        "subtasks_count": 0,
    }
    assert answer.headers["location"].endswith(f"/tasks/{task['id']}")
    assert api.get(f"/tasks/{task['id']}").data == task
    assert api.get("/tasks", {"ids": task["id"]}).data == [task]


def test_a_title_is_enough(api):
    task = api.post("/tasks", {"title": "Call back"}).data
    filled = {"status": "todo", "priority": "normal", "billable": False, "position": 1, "tag_ids": []}
    counted = {"tracked_minutes": 0, "subtasks_count": 0, "is_overdue": False}
    given = {"title": "Call back", "created_by_id": api.admin_id}
    assert task == dict.fromkeys(task) | given | filled | counted | {
        name: task[name] for name in ("id", "created_at", "updated_at")
    }
    members_key = api.new_key(user_id=api.member_id)
    assert api.post("/tasks", {"title": "x"}, key=members_key).data["created_by_id"] == api.member_id


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("title", None, "null"),
        ("status", None, "null"),
        ("assignee_id", "ME", 'the id of a user, or "me"'),
        ("assignee_id", -1, 'the id of a user, or "me"'),
        ("assignee_id", True, 'the id of a user, or "me"'),
        ("estimated_minutes", -1, "from 0 to 1000000"),
        ("estimated_minutes", 1_000_001, "from 0 to 1000000"),
        ("external_id", "taken", "Is already taken"),
    ],
)
def test_an_invalid_field_is_reported_in_a_sentence_on_create_and_change(api, member, value, message):
    good = api.make("/tasks", external_id="taken")
    other = api.make("/tasks")
    for answer in (
        api.post("/tasks", {"title": "Good", member: value}),
        api.patch(f"/tasks/{other['id']}", {member: value}),
    ):
        assert message in answer.errors[member][0]
        assert set(answer.errors) == {member}
    assert api.get("/tasks").data == [other, good]


def test_all_errors_are_reported_together(api):
    api.make("/tasks", external_id="x")
    deactivated = api.member_id
    api.set_user(deactivated, {"is_active": False})
    faulty = {"titel": "x", "status": "x", "parent_id": 98, "tag_ids": [99], "external_id": "x"}
    named = {"title", "titel", "status", "parent_id", "tag_ids.0", "external_id"}
    assert set(api.post("/tasks", faulty).errors) == named
    faulty = {"title": "x", "assignee_id": deactivated, "start_date": "2026-03-02", "due_date": "2026-03-01"}
    named = {"assignee_id", "due_date", "milestone_id"}
    assert set(api.post("/tasks", faulty | {"milestone_id": 97}).errors) == named


RELATED = [
    ({}, (None, None)),
    ({"client_id": "a"}, ("a", None)),
    ({"project_id": "p"}, ("a", "p")),
    ({"project_id": "internal"}, (None, "internal")),
    ({"client_id": "a", "project_id": "p"}, ("a", "p")),
    ({"client_id": None, "project_id": "p"}, ("a", "p")),
    ({"milestone_id": "in p"}, ("a", "p")),
    ({"project_id": None, "milestone_id": "in p"}, ("a", "p")),
    ({"parent_id": "task of p"}, ("a", "p")),
    ({"parent_id": "task of a"}, ("a", None)),
    ({"parent_id": "loose"}, (None, None)),
    ({"milestone_id": "in p", "parent_id": "task of p"}, ("a", "p")),
    ({"client_id": "a", "project_id": "p", "milestone_id": "in p", "parent_id": "task of p"}, ("a", "p")),
    ({"client_id": "b", "project_id": "p"}, {"project_id"}),
    ({"client_id": "a", "project_id": "internal"}, {"project_id"}),
    ({"project_id": "q", "milestone_id": "in p"}, {"milestone_id"}),
    ({"project_id": "internal", "milestone_id": "in p"}, {"milestone_id"}),
    ({"project_id": "q", "parent_id": "task of p"}, {"parent_id"}),
    ({"project_id": "p", "parent_id": "task of a"}, {"parent_id"}),
    ({"project_id": "p", "parent_id": "loose"}, {"parent_id"}),
    ({"client_id": "b", "parent_id": "task of a"}, {"parent_id"}),
    ({"milestone_id": "in q", "parent_id": "task of p"}, {"parent_id"}),
    ({"parent_id": "subtask of p"}, {"parent_id"}),
    ({"client_id": "b", "project_id": "p", "milestone_id": "in q"}, {"project_id", "milestone_id"}),
]
"""What is sent, and the client and project of the task, or the members that are refused."""


def test_the_broader_relation_follows_and_must_agree_on_create_and_change(api, world):
    for sent, expected in RELATED:
        members, plain = ids_of(world, sent), api.make("/tasks")
        for answer in (api.create("/tasks", **members), api.patch(f"/tasks/{plain['id']}", members)):
            if isinstance(expected, set):
                assert set(answer.errors) == expected, sent
            else:
                related = dict(zip(("client_id", "project_id"), map(world.get, expected), strict=True))
                related |= {name: value for name, value in members.items() if value is not None}
                assert answer.data == answer.data | related, sent
        if isinstance(expected, set):
            assert api.get(f"/tasks/{plain['id']}").data == plain


def test_a_change_of_the_narrower_relation_takes_the_broader_along(api, world):
    task = api.make("/tasks", milestone_id=world["in p"])["id"]

    def change(**members):
        return api.patch(f"/tasks/{task}", ids_of(world, members))

    def place():
        return tuple(api.get(f"/tasks/{task}").data[name] for name in ("client_id", "project_id", "milestone_id"))

    assert change(milestone_id="in q").status == 200
    assert place() == (world["b"], world["q"], world["in q"])
    assert set(change(project_id="p").errors) == {"milestone_id"}
    assert set(change(client_id="a").errors) == {"project_id"}
    assert change(project_id="p", milestone_id=None).status == 200
    assert place() == (world["a"], world["p"], None)
    assert change(parent_id="task of q").data["project_id"] == world["q"]
    assert set(change(project_id="p").errors) == {"parent_id"}
    assert set(change(milestone_id="in p").errors) == {"parent_id"}
    assert change(parent_id=None).data["project_id"] == world["q"]
    assert change(project_id=None).status == 200
    assert place() == (world["b"], None, None)
    assert change(client_id=None).status == 200
    assert place() == (None, None, None)


def test_subtasks_are_one_level_deep_and_never_in_a_circle(api):
    a, b, c = (api.make("/tasks")["id"] for _ in "abc")
    sub = api.make("/tasks", parent_id=a)["id"]
    for task, parent in ((a, a), (c, c), (a, sub), (sub, sub), (a, b), (b, sub)):
        assert "one level" in api.patch(f"/tasks/{task}", {"parent_id": parent}).errors["parent_id"][0]
    assert "one level" in api.create("/tasks", parent_id=sub).errors["parent_id"][0]
    assert api.patch(f"/tasks/{sub}", {"parent_id": b}).data["parent_id"] == b
    assert api.get(f"/tasks/{a}").data["subtasks_count"] == 0
    assert api.patch(f"/tasks/{a}", {"parent_id": b}).data["parent_id"] == b
    assert api.get(f"/tasks/{b}").data["subtasks_count"] == 2
    assert api.patch(f"/tasks/{a}", {"parent_id": None}).data["parent_id"] is None
    assert api.patch(f"/tasks/{a}", {"parent_id": c}).status == 200


def test_a_member_deletes_no_task_with_a_subtask_of_a_colleague(api):
    key, task = api.new_key(user_id=api.member_id), api.make("/tasks", assignee_id=api.member_id)["id"]
    subtask = api.make("/tasks", parent_id=task, assignee_id=api.admin_id)["id"]
    refused = api.delete(f"/tasks/{task}", key=key)
    whose = f"Its subtask {subtask} is assigned to Ana Admin (user {api.admin_id})."
    message = f"{whose} Delete that one first, or ask an admin or a manager to delete both."
    assert (refused.code, refused.errors) == ("not_owner", {"tasks": [message]})
    for assignee in (api.member_id, None):
        api.patch(f"/tasks/{subtask}", {"assignee_id": assignee})
        assert api.delete(f"/tasks/{task}", key=key).status == 204
        task = api.make("/tasks")["id"]
        subtask = api.make("/tasks", parent_id=task)["id"]
    api.patch(f"/tasks/{subtask}", {"assignee_id": api.member_id})
    assert api.delete(f"/tasks/{task}").status == 204


def test_subtasks_without_time_go_with_their_task_into_another_project(api, world):
    task, sub = world["task of p"], world["subtask of p"]
    api.patch(f"/tasks/{sub}", {"milestone_id": world["in p"]})

    def family():
        return [api.get(f"/tasks/{task_id}").data for task_id in (task, sub)]

    moved = api.patch(f"/tasks/{task}", {"milestone_id": world["in q"]}).data
    parent, child = family()
    assert parent == moved
    assert (child["client_id"], child["project_id"], child["milestone_id"]) == (world["b"], world["q"], None)
    assert child["updated_at"] == parent["updated_at"]
    for worked_on in (task, sub):
        entry = api.make("/time-entries", client_id=None, task_id=worked_on)["id"]
        before = family()
        for members in ({"project_id": world["p"], "milestone_id": None}, {"milestone_id": world["in p"]}):
            assert "1 time entry is on the task" in api.patch(f"/tasks/{task}", members).errors["project_id"][0]
        assert family() == before
        assert api.patch(f"/tasks/{task}", {"title": "Same place", "milestone_id": None}).status == 200
        assert api.delete(f"/time-entries/{entry}").status == 204
        assert api.patch(f"/tasks/{task}", {"project_id": world["p"]}).status == 200
        assert {(row["client_id"], row["project_id"]) for row in family()} == {(world["a"], world["p"])}
        api.patch(f"/tasks/{task}", {"milestone_id": world["in q"]})


def test_subtasks_of_a_task_without_a_project_have_its_client(api, world):
    sub = api.make("/tasks", parent_id=world["task of a"])["id"]
    api.patch(f"/tasks/{world['task of a']}", {"client_id": world["b"]})
    assert api.get(f"/tasks/{sub}").data["client_id"] == world["b"]
    assert set(api.patch(f"/tasks/{sub}", {"client_id": world["a"]}).errors) == {"parent_id"}
    entry = api.make("/time-entries", client_id=None, task_id=sub)["id"]
    moved = {"client_id": world["a"]}
    assert api.patch(f"/tasks/{world['task of a']}", moved).status == 422
    assert api.get(f"/tasks/{sub}").data["client_id"] == world["b"]
    api.delete(f"/time-entries/{entry}")
    assert api.patch(f"/tasks/{world['task of a']}", moved).status == 200


@pytest.mark.parametrize("sent", [{"project_id": "p"}, {"milestone_id": "in p"}, {"parent_id": "task of p"}])
def test_an_archived_project_accepts_no_new_tasks_and_keeps_those_it_has_editable(api, world, sent):
    members, mover = ids_of(world, sent), api.make("/tasks")["id"]
    assert api.patch(f"/projects/{world['p']}", {"status": "archived"}).status == 200
    (member,) = sent
    assert "archived" in api.create("/tasks", **members).errors[member][0]
    assert "archived" in api.patch(f"/tasks/{mover}", members).errors[member][0]
    subtask = api.get(f"/tasks/{world['subtask of p']}").data
    assert api.patch(f"/tasks/{subtask['id']}", {"status": "done", "title": "Still"}).data["title"] == "Still"
    assert api.put(f"/tasks/{subtask['id']}", subtask).data["title"] == subtask["title"]
    assert api.patch(f"/projects/{world['p']}", {"status": "active"}).status == 200
    assert api.create("/tasks", **members).status == 201
    assert api.patch(f"/tasks/{mover}", members).status == 200


def test_a_template_takes_tasks(api):
    template = api.make("/projects", is_template=True)["id"]
    task = api.make("/tasks", project_id=template)
    assert api.make("/tasks", parent_id=task["id"])["project_id"] == template
    assert found(api, project_id=template, parent_id="none") == [task["id"]]


def test_me_is_the_keys_user_in_body_and_filter(api):
    members_key = api.new_key(user_id=api.member_id)
    members_task = api.post("/tasks", {"title": "x", "assignee_id": "me"}, key=members_key).data
    assert members_task["assignee_id"] == api.member_id
    mine, unassigned = api.make("/tasks", assignee_id=" me "), api.make("/tasks")["id"]
    assert mine["assignee_id"] == api.admin_id
    assert found(api, assignee_id="me") == [mine["id"]]
    assert found(api, assignee_id="none") == [unassigned]
    assert found(api, assignee_id="none,me") == [unassigned, mine["id"]]
    assert found(api, assignee_id=f"{api.member_id},me") == [mine["id"], members_task["id"]]
    assert [row["id"] for row in api.get("/tasks", "assignee_id=me", key=members_key).data] == [members_task["id"]]
    assert api.patch(f"/tasks/{unassigned}", {"assignee_id": "me"}).data["assignee_id"] == api.admin_id
    assert api.patch(f"/tasks/{unassigned}", {"assignee_id": None}).data["assignee_id"] is None


def test_a_deactivated_user_is_assigned_nothing_new_and_keeps_what_was_assigned(api):
    kept, free = api.make("/tasks", assignee_id=api.member_id), api.make("/tasks")["id"]
    new = {"assignee_id": api.member_id}
    api.set_user(api.member_id, {"is_active": False})
    assert "deactivated" in api.create("/tasks", **new).errors["assignee_id"][0]
    assert "deactivated" in api.patch(f"/tasks/{free}", new).errors["assignee_id"][0]
    path = f"/tasks/{kept['id']}"
    assert api.patch(path, {"title": "New"}).data["assignee_id"] == api.member_id
    assert api.put(path, kept | {"status": "done"}).data["assignee_id"] == api.member_id
    assert api.patch(path, {"assignee_id": None}).status == 200
    assert "deactivated" in api.patch(path, new).errors["assignee_id"][0]
    api.set_user(api.member_id, {"is_active": True})
    assert api.patch(path, new).status == 200


def test_a_status_moves_to_any_other_and_the_moments_follow(api):
    for first, second in product(STATUSES, repeat=2):
        task = api.make("/tasks", status=first)
        changed = api.patch(f"/tasks/{task['id']}", {"status": second}).data
        assert changed["status"] == second
        began = {"in_progress": task["created_at"]}.get(first)
        assert task["started_at"] == began
        assert changed["started_at"] == (began or (changed["updated_at"] if second == "in_progress" else None))
        ended = None if first in OPEN else task["created_at"]
        assert task["completed_at"] == ended
        assert changed["completed_at"] == (None if second in OPEN else ended or changed["updated_at"])


def test_a_task_that_is_reopened_keeps_its_start_and_is_completed_again(api):
    path = f"/tasks/{api.make('/tasks', status='done')['id']}"
    done = api.get(path).data["completed_at"]
    begun = api.patch(path, {"status": "in_progress"}).data["started_at"]
    assert api.patch(path, {"status": "todo"}).data["started_at"] == begun
    again = api.patch(path, {"status": "in_progress", "started_at": None, "completed_at": done}).data
    assert (again["started_at"], again["completed_at"]) == (begun, None)
    assert api.patch(path, {"status": "done"}).data["completed_at"] > begun > done


@pytest.mark.parametrize(
    ("project", "billable"),
    [
        ({"billing_type": "time_and_materials"}, True),
        ({"billing_type": "fixed_fee"}, True),
        ({"billing_type": "retainer"}, True),
        ({"billing_type": "non_billable"}, False),
        ({"client_id": None}, False),
    ],
)
def test_whether_a_task_is_billed_follows_from_its_project_unless_it_is_sent(api, project, billable):
    project_id = api.make("/projects", **project)["id"]
    task = api.make("/tasks", project_id=project_id)
    assert task["billable"] is billable
    assert api.make("/tasks", project_id=project_id, billable=None)["billable"] is billable
    assert api.make("/tasks", project_id=project_id, billable=not billable)["billable"] is not billable
    path = f"/tasks/{task['id']}"
    assert api.patch(path, {"billable": not billable}).data["billable"] is not billable
    assert api.patch(path, {"title": "Kept"}).data["billable"] is not billable
    assert api.patch(path, {"billable": None}).data["billable"] is billable


def test_a_task_without_a_project_is_billed_when_it_has_a_client(api, world):
    assert api.make("/tasks", client_id=world["a"])["billable"] is True
    assert api.make("/tasks")["billable"] is False


def test_a_new_task_is_the_last_of_its_project(api, world):
    def place(**members):
        return api.make("/tasks", **members)["position"]

    assert [place(project_id=world["internal"]) for _ in range(3)] == [1, 2, 3]
    assert place(project_id=world["internal"], position=10) == 10
    assert place(project_id=world["internal"]) == 11
    assert place(project_id=world["internal"], position=0) == 0
    assert place(project_id=world["q"]) == 2
    assert place() == 3
    assert api.patch(f"/tasks/{world['task of q']}", {"position": None}).data["position"] == 3


def test_tracked_and_remaining_minutes_follow_the_time_on_the_task_itself(api):
    task = api.make("/tasks", estimated_minutes=100)["id"]
    sub = api.make("/tasks", parent_id=task)["id"]

    def minutes(task_id=task):
        data = api.get(f"/tasks/{task_id}").data
        return data["tracked_minutes"], data["remaining_minutes"]

    def track(task_id, duration):
        return api.make("/time-entries", client_id=None, task_id=task_id, duration_minutes=duration)["id"]

    assert minutes() == (0, 100)
    entry = track(task, 40)
    assert minutes() == (40, 60)
    track(sub, 30)
    assert (minutes(), minutes(sub)) == ((40, 60), (30, None))
    track(task, 90)
    assert minutes() == (130, 0)
    api.patch(f"/time-entries/{entry}", {"task_id": sub})
    assert (minutes(), minutes(sub)) == ((90, 10), (70, None))
    assert api.patch(f"/tasks/{task}", {"estimated_minutes": None}).data["remaining_minutes"] is None
    assert api.patch(f"/tasks/{task}", {"estimated_minutes": 0}).data["remaining_minutes"] == 0


def test_overdue_follows_from_status_and_due_date(api):
    made = {
        (status, due): api.make("/tasks", status=status, due_date=due)["id"]
        for status in STATUSES
        for due in ("2020-01-01", "2099-01-01", None)
    }
    late = {made[status, "2020-01-01"] for status in OPEN}
    for task in made.values():
        assert api.get(f"/tasks/{task}").data["is_overdue"] is (task in late)


def test_due_date_is_not_before_start_date_whichever_of_them_is_sent(api):
    path = f"/tasks/{api.make('/tasks', start_date='2026-03-02', due_date='2026-03-02')['id']}"
    for members in ({"due_date": "2026-03-01"}, {"start_date": "2026-03-03"}):
        assert "start_date" in api.patch(path, members).errors["due_date"][0]
    assert api.patch(path, {"start_date": "2026-04-01", "due_date": "2026-04-02"}).status == 200
    assert api.patch(path, {"start_date": None}).status == 200
    assert api.patch(path, {"due_date": "2020-01-01"}).status == 200


def test_deleting_takes_subtasks_and_tags_along_and_leaves_the_time(api, world):
    tag = api.make("/tags")["id"]
    task, sub = world["task of p"], world["subtask of p"]
    api.patch(f"/tasks/{sub}", {"tag_ids": [tag]})
    entries = [
        api.make("/time-entries", client_id=None, task_id=task_id) for task_id in (task, sub, world["task of q"])
    ]
    total = api.get("/tasks").json["meta"]["total"]
    assert api.delete(f"/tasks/{task}").status == 204
    assert [api.get(f"/tasks/{task_id}").status for task_id in (task, sub, world["task of q"])] == [404, 404, 200]
    assert api.get("/tasks").json["meta"]["total"] == total - 2
    assert api.get("/tags").data[0]["usage_count"] == 0
    for entry, kept in zip(entries, (None, None, world["task of q"]), strict=True):
        now = api.get(f"/time-entries/{entry['id']}").data
        assert now == entry | {"task_id": kept, "updated_at": now["updated_at"]}
    assert api.get(f"/projects/{world['p']}").data["tracked_minutes"] == 180


def test_a_task_outlives_its_client_and_its_milestone_but_not_its_project(api, world):
    assert api.delete(f"/projects/{world['p']}").status == 204
    assert api.get(f"/tasks/{world['task of p']}").status == 404
    assert api.delete(f"/clients/{world['a']}").status == 204
    assert api.get(f"/tasks/{world['task of a']}").data["client_id"] is None
    planned = api.make("/tasks", milestone_id=world["in q"])
    assert api.delete(f"/projects/{world['q']}/milestones/{world['in q']}").status == 204
    left = api.get(f"/tasks/{planned['id']}").data
    assert left == planned | {"milestone_id": None, "updated_at": left["updated_at"]}


def test_tags_are_set_changed_and_cleared(api):
    first, second = api.make("/tags")["id"], api.make("/tags")["id"]
    path = f"/tasks/{api.make('/tasks', tag_ids=[second, first, second])['id']}"
    assert api.get(path).data["tag_ids"] == [first, second]
    assert api.patch(path, {"tag_ids": [second]}).data["tag_ids"] == [second]
    assert api.patch(path, {"title": "Kept"}).data["tag_ids"] == [second]
    assert set(api.patch(path, {"tag_ids": [first, 99]}).errors) == {"tag_ids.1"}
    assert api.patch(path, {"tag_ids": []}).data["tag_ids"] == []


def test_a_record_that_was_read_can_be_sent_back(api, world):
    tag = api.make("/tags")["id"]
    api.patch(f"/tasks/{world['subtask of p']}", {"tag_ids": [tag], "status": "in_progress", "assignee_id": "me"})
    api.patch(f"/tasks/{world['subtask of p']}", {"status": "done", "estimated_minutes": 60})
    api.make("/time-entries", client_id=None, task_id=world["subtask of p"])
    for name in ("task of p", "subtask of p", "task of a", "loose"):
        read = api.get(f"/tasks/{world[name]}").data
        back = api.put(f"/tasks/{world[name]}", read).data
        assert back == read | {"updated_at": back["updated_at"]}


def test_a_task_with_subtasks_is_not_moved_to_what_does_not_exist(api, other_tenant):
    task = api.make("/tasks", project_id=api.usual("/projects"))["id"]
    api.make("/tasks", parent_id=task)
    for missing in (999, other_tenant.make("/projects")["id"] + 1000):
        assert "no such project" in api.patch(f"/tasks/{task}", {"project_id": missing}).errors["project_id"][0]
    loose = api.make("/tasks")["id"]
    api.make("/tasks", parent_id=loose)
    assert "no such client" in api.patch(f"/tasks/{loose}", {"client_id": 999}).errors["client_id"][0]


def test_a_client_that_is_fixed_is_reported_on_the_client(api):
    a, b = api.make("/clients")["id"], api.make("/clients")["id"]
    task = api.make("/tasks", client_id=a)["id"]
    api.make("/time-entries", client_id=None, task_id=task)
    assert set(api.patch(f"/tasks/{task}", {"client_id": b}).errors) == {"client_id"}
