"""Tasks of templates are a plan, not work: lists and counts leave them out unless they are named."""

import pytest


@pytest.fixture
def plan(api):
    """A template of the usual client with a task and its subtask, and a project that began with it, all overdue."""
    client = api.usual("/clients")
    template = api.make("/projects", client_id=client, is_template=True)["id"]
    late = {"due_date": "2020-01-01", "assignee_id": api.admin_id, "external_id": "x"}
    task = api.make("/tasks", project_id=template, **late)["id"]
    subtask = api.make("/tasks", parent_id=task, status="done")["id"]
    project = api.make("/projects", client_id=client)["id"]
    live = api.make("/tasks", project_id=project, **late | {"external_id": None})["id"]
    loose = api.make("/tasks", due_date="2020-01-01")["id"]
    return {"template": template, "task": task, "subtask": subtask, "project": project, "live": live, "loose": loose}


def found(api, **query):
    """The tasks of a list, which says as many in its total, on this page and on the next."""
    answers = [api.get("/tasks", {"sort": "id"} | query | {"per_page": 3, "page": page}) for page in (1, 2, 3)]
    rows = [row["id"] for answer in answers for row in answer.data]
    assert {answer.json["meta"]["total"] for answer in answers} == {len(rows)}
    return rows


def test_lists_leave_out_tasks_of_templates_unless_named(api, plan):
    template, task, subtask, project, live, loose = plan.values()
    work = [live, loose]
    for query, those in (
        ({}, work),
        ({"overdue": "true"}, work),
        ({"assignee_id": "me", "open": "true"}, [live]),
        ({"client_id": api.usual("/clients")}, [live]),
        ({"status": "done"}, []),
        ({"parent_id": task}, []),
        ({"parent_id": "none"}, work),
        ({"external_id": "x"}, []),
        ({"q": "texts"}, work),
        ({"due_date_to": "2020-01-01"}, work),
        ({"project_id": "none"}, [loose]),
        ({"project_id": project}, [live]),
        ({"project_id": template}, [task, subtask]),
        ({"project_id": f"{project},{template},none"}, [task, subtask, live, loose]),
        ({"project_id": template, "open": "true"}, [task]),
        ({"project_id": template, "parent_id": task}, [subtask]),
        ({"ids": f"{task},{live}"}, [task, live]),
    ):
        assert found(api, **query) == those, query
    shown = api.get(f"/tasks/{task}").data
    assert (shown["project_id"], shown["subtasks_count"], shown["is_overdue"]) == (template, 1, True)


def test_the_total_follows_whatever_becomes_of_tasks_in_and_outside_of_templates(api, plan):
    template, task, subtask, project, live, loose = plan.values()

    def moved(task_id, target):
        assert api.patch(f"/tasks/{task_id}", {"project_id": target, "client_id": None}).status == 200
        return found(api)

    assert moved(live, template) == [loose]
    assert moved(live, project) == [live, loose]
    assert moved(task, project) == [task, subtask, live, loose]
    assert moved(task, template) == [live, loose]
    assert api.make("/projects", template_id=template, is_template=True)["is_template"] is True
    assert found(api) == [live, loose]
    copy = api.make("/projects", template_id=template)["id"]
    copies = found(api, project_id=copy)
    assert (len(copies), found(api)) == (2, [live, loose, *copies])
    assert api.delete(f"/tasks/{task}").status == 204
    assert found(api) == [live, loose, *copies]
    for gone, left in ((template, [live, loose, *copies]), (copy, [live, loose])):
        assert api.delete(f"/projects/{gone}").status == 204
        assert found(api) == left


def test_a_quote_becomes_a_project_that_takes_money_and_not_a_template(api):
    quote = api.make("/quotes", lines=[{"description": "Design", "unit_price": "500"}], status="accepted")["id"]
    refused = api.post("/projects", {"quote_id": quote, "is_template": True})
    assert set(refused.errors) == {"is_template"}
    assert api.post("/projects", {"quote_id": quote}).status == 201


def test_neither_the_overview_nor_a_clients_projects_count_templates(api, plan):
    counts = {"open": 2, "overdue": 2, "completed": 0}
    assert api.get("/reports/overview").data["tasks"] == counts
    client = api.usual("/clients")
    assert api.get("/reports/overview", {"client_id": client}).data["tasks"] == counts | {"open": 1, "overdue": 1}
    assert api.get(f"/clients/{client}").data["projects_count"] == 1
    assert [row["projects_count"] for row in api.get("/clients").data] == [1]
    assert api.patch(f"/tasks/{plan['live']}", {"status": "done"}).status == 200
    assert api.get("/reports/overview").data["tasks"] == {"open": 1, "overdue": 1, "completed": 1}
