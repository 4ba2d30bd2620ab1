"""What records say of their children is what these come to, however they were made, moved and deleted."""

import ast
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

import retainer
from retainer.rollups import changes, doctor
from tests.contract.cases import statements_of
from tests.length import length

SRC = Path(retainer.__file__).parent
TAGGED = ("clients", "external-contacts", "projects", "tasks", "tickets", "sites")
STATUSES = ("todo", "in_progress", "done", "cancelled")


class Agency:
    """An agency in which something happens again and again; the same every time."""

    def __init__(self, api):
        self.api, self.rng = api, Random(5)
        api.set_account({"plan": "enterprise"})
        self.tags = [api.make("/tags")["id"] for _ in range(4)]
        self.main_clients = [api.make("/clients")["id"] for _ in range(2)]
        template = api.make("/projects", client_id=None, is_template=True)["id"]
        stage = api.post(f"/projects/{template}/milestones", {"name": "Launch"}).data["id"]
        task = api.make("/tasks", project_id=template, milestone_id=stage, tag_ids=self.tags[:2])["id"]
        api.make("/tasks", parent_id=task, tag_ids=self.tags[1:2])
        self.template = template

    def some(self, path, *, or_none=False):
        """The id of one of the records of a list; None when there is none, or now and then."""
        ids = [record["id"] for record in self.every(path)]
        return None if not ids or (or_none and self.rng.random() < 0.2) else self.rng.choice(ids)

    def every(self, path, **filters):
        """All records of a list."""
        found = self.api.get(path, {"per_page": 100, **filters})
        assert found.json["meta"]["last_page"] == 1
        return found.data

    def happens(self):
        """Make, change or delete a record of some kind; what is refused changes nothing."""
        kinds = (*TAGGED, "tasks", "time-entries", "time-entries", "expenses")
        project, ticket = self.some("/projects"), self.some("/tickets")
        kinds += (f"projects/{project}/milestones",) if project else ()
        kinds += (f"tickets/{ticket}/replies",) if ticket else ()
        kind, step = self.rng.choice(kinds), self.rng.random()
        body = {"tag_ids": self.rng.sample(self.tags, self.rng.randint(0, 3))} if kind in TAGGED else {}
        body |= getattr(self, kind.split("/")[-1].replace("-", "_"))()
        record_id = None if kind.endswith("replies") else self.some(f"/{kind}")
        if record_id is None or step < 0.45:
            self.api.post(f"/{kind}", body)
        elif step < 0.85:
            self.api.patch(f"/{kind}/{record_id}", body)
        else:
            self.api.delete(f"/{kind}/{record_id}")

    def clients(self):
        return {"name": "Optik", "currency": self.rng.choice(("EUR", "USD", "JPY"))}

    def external_contacts(self):
        return {"client_id": self.some("/clients"), "last_name": "Lenz"}

    def projects(self):
        copied = {"template_id": self.template} if self.rng.random() < 0.3 else {}
        paid = self.rng.choice(("time_and_materials", "retainer"))
        return {"name": "Shop", "client_id": self.rng.choice(self.main_clients), "billing_type": paid} | copied

    def sites(self):
        client = self.rng.choice((None, *self.main_clients))
        return {"url": f"https://shop{self.rng.random()}.example", "client_id": client, "project_id": None}

    def tickets(self):
        return {"subject": "The checkout is slow", "client_id": self.rng.choice(self.main_clients)}

    def replies(self):
        return {"body": "On it."}

    def milestones(self):
        return {"name": "Launch"}

    def expenses(self):
        place = {"project_id": self.some("/projects", or_none=True), "client_id": None}
        return place | {"amount": self.rng.randint(1, 99), "currency": self.rng.choice(("EUR", "USD"))}

    def time_entries(self):
        nowhere = {"client_id": None, "project_id": None, "task_id": None, "ticket_id": None}
        name = self.rng.choice(("task", "ticket"))
        return nowhere | {f"{name}_id": self.some(f"/{name}s"), "duration_minutes": self.rng.randint(1, 300)}

    def tasks(self):
        free = {"project_id": None, "client_id": None, "milestone_id": None, "parent_id": None}
        project, status = self.some("/projects", or_none=True), self.rng.choice(STATUSES)
        stage = self.some(f"/projects/{project}/milestones", or_none=True) if project else None
        places = ({"project_id": project, "milestone_id": stage}, {"parent_id": self.some("/tasks")})
        return free | self.rng.choice(places) | {"title": "Texts", "status": status}


def number(api, path, **filters):
    """How many records there are."""
    return api.get(path, filters | {"per_page": 1}).json["meta"]["total"]


def check(agency):
    """Compare what records say with what lists of their children hold."""
    api, every = agency.api, agency.every
    entries, expenses, tasks = every("/time-entries"), every("/expenses"), every("/tasks")
    for client in every("/clients"):
        assert client["contacts_count"] == number(api, "/external-contacts", client_id=client["id"])
        assert client["projects_count"] == number(api, "/projects", client_id=client["id"])
        assert client["sites_count"] == number(api, "/sites", client_id=client["id"])
    for tag in every("/tags"):
        uses = sum(number(api, f"/{kind}", tag_id=tag["id"]) for kind in TAGGED)
        templates = every("/tasks", project_id=agency.template)
        assert tag["usage_count"] == uses + sum(tag["id"] in task["tag_ids"] for task in templates)
    for ticket in every("/tickets"):
        assert ticket["replies_count"] == number(api, f"/tickets/{ticket['id']}/replies")
        assert ticket["tracked_minutes"] == minutes(entries, "ticket_id", ticket)
    for task in [*tasks, *every("/tasks", project_id=agency.template)]:
        assert task["subtasks_count"] == number(
            api, "/tasks", parent_id=task["id"], project_id=task["project_id"] or "none"
        )
        assert task["tracked_minutes"] == minutes(entries, "task_id", task)
    for project in every("/projects"):
        spent = [
            row for row in expenses if (row["project_id"], row["currency"]) == (project["id"], project["currency"])
        ]
        assert Decimal(project["expense_amount"]) == sum(Decimal(row["net_amount"]) for row in spent)
        own = [task for task in tasks if task["project_id"] == project["id"]]
        planned = [task["status"] == "done" for task in own if task["status"] != "cancelled"]
        assert project["progress_percent"] == (round(100 * sum(planned) / len(planned), 2) if planned else None)
        assert project["tracked_minutes"] == minutes(entries, "project_id", project)
        for stage in every(f"/projects/{project['id']}/milestones"):
            done = [task["status"] == "done" for task in own if task["milestone_id"] == stage["id"]]
            assert (stage["tasks_count"], stage["tasks_done_count"]) == (len(done), sum(done))


def minutes(entries, field, record):
    return sum(entry["duration_minutes"] for entry in entries if entry[field] == record["id"])


def test_whatever_happens_to_children_their_records_say_what_they_come_to(api):
    agency = Agency(api)
    for step in range(1, length(800) + 1):
        agency.happens()
        if step % 50 == 0:
            api.key = api.new_key()  # a key has no more than 3,000 requests a minute
            check(agency)
            assert doctor.inspect(api.store, repair=False) == []
    assert all(agency.every(path) for path in ("/tasks", "/time-entries", "/expenses", "/sites", "/tickets"))


def test_subtasks_that_go_with_their_task_count_where_they_go(api):
    before, after = (api.make("/projects")["id"] for _ in "12")
    stage = api.post(f"/projects/{before}/milestones", {"name": "Launch"}).data["id"]
    task = api.make("/tasks", project_id=before, status="done")["id"]
    api.make("/tasks", parent_id=task, milestone_id=stage)
    assert api.patch(f"/tasks/{task}", {"project_id": after}).status == 200
    seen = [api.get(f"/projects/{project}").data["progress_percent"] for project in (before, after)]
    assert (seen, api.get(f"/projects/{before}/milestones").data[0]["tasks_count"]) == ([None, 50.0], 0)
    assert doctor.inspect(api.store, repair=False) == []


def test_what_is_copied_from_a_template_counts_until_its_project_is_deleted(api):
    agency = Agency(api)
    uses = {tag["id"]: tag["usage_count"] for tag in agency.every("/tags")}
    copy = api.make("/projects", template_id=agency.template)["id"]
    done, _ = agency.every("/tasks", project_id=copy)
    api.patch(f"/tasks/{done['id']}", {"status": "done"})
    check(agency)
    assert doctor.inspect(api.store, repair=False) == []
    assert api.get(f"/projects/{copy}").data["progress_percent"] == 50
    assert {tag["id"]: tag["usage_count"] for tag in agency.every("/tags")} != uses
    assert api.delete(f"/projects/{copy}").status == 204
    assert {tag["id"]: tag["usage_count"] for tag in agency.every("/tags")} == uses
    assert doctor.inspect(api.store, repair=False) == []


CHILDREN = {
    "/clients": ("external_contacts", "projects", "sites"),
    "/tags": ("_tags",),
    "/projects": ("tasks",),  # `to_bill_amount` reads unbilled work, see tests/api/test_to_bill.py
    "/projects/{id}/milestones": ("tasks",),
    "/tasks": ("FROM tasks AS", "time_entries"),
    "/tickets": ("ticket_replies", "time_entries"),
}


@pytest.mark.parametrize("path", CHILDREN)
def test_neither_a_record_nor_a_page_of_them_is_read_with_a_look_at_its_children(api, path):
    path = path.replace("{id}", str(api.make("/projects")["id"]))
    record = api.make(path)["id"]
    with statements_of(api) as ran:
        api.get(path)
        api.get(f"{path}/{record}")
    names = CHILDREN.get(path, ("tasks",))
    assert ran
    assert [text for text in ran for name in names if f"FROM {name}" in text or f"{name} AS" in text] == []


def test_a_project_that_is_billed_otherwise_is_changed_without_a_look_at_its_time(api):
    project = api.make("/projects")["id"]
    api.make("/time-entries", project_id=project, hourly_rate="60", duration_minutes=90)
    seen = []
    for billing_type in ("retainer", "time_and_materials"):
        with statements_of(api) as ran:
            changed = api.patch(f"/projects/{project}", {"billing_type": billing_type}).data
        reads = (
            "SELECT CAST(json_array(projects",
            "SELECT CAST(json_build_array(projects",
        )  # the answer says how much it is
        changed_by = [text for text in ran if not text.startswith(reads)]
        assert [text for text in changed_by if "time_entries" in text] == []
        seen.append((changed["unbilled_minutes"], changed["unbilled_amount"], changed["billable_amount"]))
    assert seen == [(0, "0.00", "90.00"), (90, "90.00", "90.00")]


WRITES = {"insert", "update", "delete"}


def test_what_sums_count_is_written_by_the_one_call_that_keeps_them():
    counted = {table.name for table in changes.SOURCE_OF}
    past = [
        (path, ast.unparse(node))
        for path in SRC.rglob("*.py")
        if "demo" not in path.parts  # it rebuilds all sums at its end
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES
        if ast.unparse(node.func.value).endswith("tx") and ast.unparse(node.args[0]).split(".")[-1] in counted
    ]
    assert past == []
