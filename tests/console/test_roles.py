"""Roles: what each may open in the console and do through keys, for all pages and operations."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from retainer.api import RESOURCES
from retainer.console.catalogue import Catalogue
from retainer.console.own_records import HIDDEN, OWN_RECORDS
from retainer.console.routes import AREAS, CONSOLE_ROUTES, area_of
from retainer.kernel.roles import EVERYTHING, ROLES, allows
from retainer.kernel.routes import Routes, first_part
from tests.console.visitor import admin_of
from tests.databases import today
from tests.length import IS_FULL

OF_USERS = ("admin", "manager", "member")
PAGES = [path for path, route in CONSOLE_ROUTES.items() if path and not route.is_public]
OPERATIONS = Routes(RESOURCES).operations
DOCUMENT = Path(__file__).parents[2] / "docs" / "roles.md"
MAX_VISITED = 120 if IS_FULL else 40


def test_the_document_has_the_table_of_roles():
    rows = re.findall(r"^\| (\w+) \|[^|]*\|([^|]*)\|([^|]*)\|([^|]*)\|$", DOCUMENT.read_text("utf-8"), re.MULTILINE)[1:]
    shown = {role: {area for area, *cells in rows if cells[place].strip()} for place, role in enumerate(OF_USERS)}
    assert shown == {role: ROLES[role] for role in OF_USERS}
    assert {area for area, *_ in rows} == EVERYTHING


def test_each_page_has_an_area():
    assert AREAS.keys() == {first_part(path) for path in CONSOLE_ROUTES}


@pytest.mark.parametrize("role", OF_USERS)
def test_each_page_is_open_to_the_roles_of_its_area_and_to_no_other(api, person, role):
    visitor = person(role)
    task = api.make("/tasks", assignee_id=visitor.user_id)["id"]
    values = {"kind": "tasks", "record": task, "user": api.member_id, "key": api.key_id, "report": "overview"}
    noted = api.sql("SELECT max(id) FROM audit_entries")
    for path in PAGES:
        filled = "/console" + re.sub(r"\{(\w+)\}", lambda name: str(values.get(name[1], 1)), path)
        is_open = (CONSOLE_ROUTES[path].area or area_of(path)) in ROLES[role]
        if CONSOLE_ROUTES[path].show:
            assert (visitor.get(filled).status != 403) == is_open, path
        if not is_open:
            refused = visitor.post(filled, {"name": "Changed", "confirmation": "Max Member"})
            assert (refused.status, f"Your role, {role}," in refused.text) == (403, True), path
    if role != "admin":
        assert api.sql("SELECT max(id) FROM audit_entries") == noted


@pytest.mark.parametrize("role", OF_USERS)
def test_each_link_leads_to_a_page_that_the_role_may_open(api, person, role):
    visitor = person(role)
    client = api.make("/clients")["id"]
    project = api.make("/projects", client_id=client)["id"]
    task = api.make("/tasks", project_id=project, assignee_id=visitor.user_id)["id"]
    for user_id in (visitor.user_id, api.member_id):
        api.make("/time-entries", client_id=client, task_id=task, user_id=user_id)
    api.make("/tickets", client_id=client, assignee_id=visitor.user_id)
    api.make("/invoices", client_id=client)
    waiting, seen = [visitor.get("/console").location if role == "member" else "/console"], set()
    while waiting and len(seen) < MAX_VISITED:
        path = waiting.pop(0)
        if path in seen or path.endswith(("/pdf", "/xml")):
            continue
        seen.add(path)
        page = visitor.get(path)
        assert page.status in {200, 303}, f"{path}: {page.status} {page.text}"
        waiting += [
            link for link in page.links if link.partition("?")[0] not in {each.partition("?")[0] for each in seen}
        ]
    assert len(seen) > 5


def test_a_member_sees_only_their_own_records(api, person):
    visitor = person("member")
    for kind, declared in OWN_RECORDS.items():
        owner = "manager_id" if kind == "projects" else declared.owner
        own, other = (
            api.make(f"/{kind}", description=f"Text of {whose}", **{owner: whose})["id"]
            for whose in (visitor.user_id, api.member_id)
        )
        path = f"/console/records/{kind}"
        listed = visitor.get(path).html
        assert (f"/{kind}/{own}" in listed, f"/{kind}/{other}" in listed) == (True, False)
        assert f"Text of {api.member_id}" not in visitor.get(f"{path}/csv").html
        assert f"/{kind}/{other}" not in visitor.get(f"{path}?{owner}={api.member_id}").html
        assert visitor.get(f"{path}/{own}").status == 200
        for below in ("", "/edit", "/delete", "/handle", "/nothing"):
            pages = [visitor.get(f"{path}/{each}{below}") for each in (other, 999_999)]
            assert {page.status for page in pages} == {404}
            assert len({page.text.partition("Request ID")[0] for page in pages}) == 1, "nobody learns that it exists"
        for below, method in (("edit", "PATCH"), ("delete", "DELETE")):
            assert visitor.post(f"{path}/{other}/{below}", {"description": "Changed"}).status == 404
            assert (visitor.get(f"{path}/{own}/{below}").status == 200) == (method in declared.methods), below
        assert api.get(f"/{kind}/{other}").data["description"] == f"Text of {api.member_id}"
    assert visitor.get(f"/console/records/tickets/{other}/reply").status == 404


def records_of(api):
    """A record of each kind that the console shows, by the kind."""
    made = {}
    for operation in OPERATIONS:
        name = operation.path.rpartition("/")[2]
        if operation.paged and name in Catalogue(OPERATIONS, "admin").kinds and name not in made:
            made[name] = api.make(operation.path)["id"]
    return made


def paths_of(api, records):
    """Each page with the records of its kinds, and other rows of the account."""
    rows = {"user": api.member_id, "key": api.key_id, "webhook": api.make("/webhooks")["id"], "report": "overview"}
    rows["session"] = api.sql("SELECT min(id) FROM sessions")[0][0]
    for path in PAGES:
        fixed = path.split("/")[2:3] if path.startswith("/records/") else [""]
        kinds = ["clients"] if "/files" in path else records  # files are alike on all pages, and visitors have a limit
        for kind in kinds if fixed == ["{kind}"] else fixed:
            values = rows | {"kind": kind, "record": records.get(kind, 1), "suffix": "pdf"}
            yield path, "/console" + re.sub(r"\{(\w+)\}", lambda name, of=values: str(of.get(name[1], 1)), path)


SENT = {"name": "Changed", "title": "Changed", "amount": "1", "state": "x", "confirmation": "Max Member", "step": "on"}


def test_an_empty_list_of_a_member_says_nothing_of_invoices(api, person):
    api.make("/projects")
    page = person("member").get("/console/records/projects")
    assert "No projects yet. They appear here once you work on them." in page.text
    assert "invoice" not in page.text


def test_a_member_finds_no_page_and_no_form_of_other_kinds(api, person):
    visitor, records = person("member"), records_of(api)
    others = records.keys() - OWN_RECORDS
    kinds = ((path, path.split("/")[2:4]) for _, path in paths_of(api, records))
    tried = [path for path, parts in kinds if parts[:1] == ["records"] and parts[1:] and parts[1] in others]
    assert len(tried) > len(others) * 6
    noted = api.sql("SELECT max(id) FROM audit_entries")
    for path in tried:
        asked = [visitor.call(method, path, b"" if method == "POST" else None) for method in ("GET", "HEAD", "POST")]
        asked.append(visitor.post(path, SENT))
        assert {page.status for page in asked} <= {404, 405}, path
        assert {page.status for page in asked} != {405}, path
    assert api.sql("SELECT max(id) FROM audit_entries") == noted


@pytest.mark.parametrize("who", ["signed out", "deactivated", "without a second factor", "of another account"])
def test_each_page_and_form_is_shut_to_who_is(both, person, who, unlimited):
    api, other = both
    records, visitor = records_of(api), person("admin")
    user_id, paths = visitor.user_id, [*paths_of(api, records)]
    if who == "signed out":
        visitor.cookies.clear()
    if who == "deactivated":
        api.set_user(user_id, {"is_active": False})
    if who == "without a second factor":
        api.set_account({"require_second_factor": True})
    if who == "of another account":
        visitor, paths = admin_of(other), [each for each in paths if "{" in each[0].replace("{kind}", "")]
    open_to_all = {"without a second factor": {"/profile/second-factor", "/sign-out"}}.get(who, set())
    noted_in, known = "SELECT max(id) FROM audit_entries WHERE account_id = $1", api.account_id
    noted = api.sql(noted_in, known)
    for path, filled in paths:
        if path in open_to_all or (who == "of another account" and path.startswith("/reports/")):
            continue
        for page in (visitor.get(filled), visitor.call("HEAD", filled), visitor.post(filled, SENT)):
            if who == "of another account":
                assert page.status in {404, 405}, filled
            else:
                leads = page.headers.get("location", "")
                is_sign_in = leads.startswith("/console/sign-in") or page.title == "Sign in · Retainer"
                assert is_sign_in or leads == "/console/profile/second-factor", filled
    assert api.sql(noted_in, known) == noted


def test_a_member_works_on_their_own_records(api, person):
    visitor = person("member")
    project = api.make("/projects")["id"]
    task = api.make("/tasks", project_id=project, title="Wireframes", assignee_id=visitor.user_id)["id"]
    ticket = api.make("/tickets", assignee_id=visitor.user_id)["id"]
    assert visitor.submit(f"/console/records/tasks/{task}/edit", status="done").status == 200
    assert api.get(f"/tasks/{task}").data["status"] == "done"
    assert "It is in review now." in visitor.submit(f"/console/records/tasks/{task}/handle", status="in_review").text
    assert api.get(f"/tasks/{task}").data["assignee_id"] == visitor.user_id
    for kind, field in (("tasks", "title"), ("tickets", "subject")):
        created = visitor.submit(f"/console/records/{kind}/new", **{field: "My own"})
        assert (created.status, "My own" in created.text) == (200, True)
    assert f"/console/records/tasks/{task}" in visitor.get("/console/search?q=wireframes").links
    replied = visitor.submit(f"/console/records/tickets/{ticket}/reply", body="On it", visibility="public")
    assert "On it" in replied.text
    recorded = visitor.submit("/console/records/time-entries/new", project_id=str(project), duration_minutes="1:30")
    assert recorded.status == 200, recorded.text
    (entry,) = api.get("/time-entries").data
    assert (entry["user_id"], entry["duration_minutes"]) == (visitor.user_id, 90)


def test_pages_of_a_member_show_no_rate_no_amount_and_no_hours_of_others(api, person):
    visitor = person("member")
    client = api.make("/clients", hourly_rate="87.65")["id"]
    project = api.make("/projects", client_id=client, hourly_rate="98.76", budget_amount="7654.32")["id"]
    ticket = api.make("/tickets", client_id=client, project_id=project, assignee_id=visitor.user_id)["id"]
    task = api.make("/tasks", project_id=project, ticket_id=ticket, assignee_id=visitor.user_id)["id"]
    own = api.make("/time-entries", client_id=client, task_id=task, user_id=visitor.user_id, duration_minutes=60)["id"]
    other = api.make("/time-entries", client_id=client, task_id=task, user_id=api.member_id, duration_minutes=677)["id"]
    for below in (
        *("tasks", "tickets", "time-entries", f"tasks/{task}", f"tickets/{ticket}", f"time-entries/{own}"),
        *(f"tasks/{task}/edit", f"time-entries/{own}/edit", "time-entries/new", "time-entries/csv", "tasks/csv"),
        *("projects", "projects/csv", f"projects/{project}"),
    ):
        html = visitor.get(f"/console/records/{below}").html
        html = re.sub(r"[0-9a-f]{16,}|<time.*?</time>|\d{4}-\d\d-\d\dT[\d:.]+", "", html)  # states, digests, instants
        for hidden in ("87.65", "98.76", "7654.32", "11:17", "11.28", "12:17", "12.28", "677", "737"):
            assert hidden not in html, below
        assert not below.endswith("csv") or not HIDDEN & {*html.partition("\n")[0].replace('"', "").split(",")}, below
        assert f"time-entries/{other}" not in html, below
    assert "Billing status" not in visitor.get(f"/console/records/time-entries/{own}").text


def test_a_member_writes_no_field_that_their_pages_leave_out(api, person):
    visitor, project = person("member"), api.make("/projects", hourly_rate="100")["id"]
    path = "/console/records/time-entries"
    sent = {"project_id": f"{project}", "duration_minutes": "1:00", "hourly_rate": "777", "is_billable": "yes"}
    assert "777" not in visitor.get(f"{path}/new?hourly_rate=777").html
    assert visitor.post(f"{path}/new", sent).status == 303
    (entry,) = api.get("/time-entries").data
    assert entry["hourly_rate"] == "100.00"
    visitor.submit(f"{path}/{entry['id']}/edit", hourly_rate="777", description="Call")
    (entry,) = api.get("/time-entries").data
    assert (entry["hourly_rate"], entry["description"]) == ("100.00", "Call")
    visitor.post("/console/records/tasks/new", {"title": "Mine", "assignee_id": f"{api.member_id}"})
    assert [task["assignee_id"] for task in api.get("/tasks").data] == [visitor.user_id]


def test_a_member_finds_nothing_by_what_their_pages_leave_out(api, person):
    visitor = person("member")
    for name, value in (("has_rate", "true"), ("billing_status", "unbilled"), ("currency", "EUR"), ("invoice_id", "1")):
        refused = visitor.get(f"/console/records/time-entries?{name}={value}")
        assert (refused.status, "Unknown" in refused.text) == (422, True), name


def test_a_member_reads_no_names_of_tasks_and_tickets_of_others(api, person):
    visitor, client = person("member"), api.make("/clients")["id"]
    ticket = api.make("/tickets", client_id=client, subject="Secret ticket", assignee_id=api.member_id)["id"]
    task = api.make("/tasks", client_id=client, title="Secret task", assignee_id=api.member_id)["id"]
    rows = [f"ticket_id-{ticket}", f"task_id-{task}"]
    pages = [
        *(visitor.get(f"/console/records/{kind}/new") for kind in ("time-entries", "tasks", "tickets")),
        visitor.get(f"/console/records/time-entries/new?task_id={task}&ticket_id={ticket}"),
        visitor.get(f"/console/records/time-entries?task_id={task}"),
        visitor.get(f"/console/records/time-entries?ticket_id={ticket}"),
        visitor.follow(visitor.post("/console/week", {"step": "copy", "row": rows})),
    ]
    assert [page.status for page in pages] == [200] * len(pages)
    assert "Secret" not in "".join(page.html for page in pages)


@pytest.mark.parametrize(
    ("form", "field", "kind"),
    [("time-entries", "task_id", "task"), ("time-entries", "ticket_id", "ticket"), ("tasks", "parent_id", "task")],
)
def test_a_member_learns_no_name_by_referring_to_the_work_of_others(api, person, form, field, kind):
    visitor, client = person("member"), api.make("/clients")["id"]
    of_other = {"client_id": client, "assignee_id": api.member_id}
    work = {"task": api.make("/tasks", title="Secret task", **of_other)["id"]}
    work["ticket"] = api.make("/tickets", subject="Secret ticket", **of_other)["id"]
    refused = visitor.post(
        f"/console/records/{form}/new", {"title": "Mine", "duration_minutes": "1:00", field: f"#{work[kind]}"}
    )
    assert (refused.status, refused.error_of(field)) == (422, f"There is no {kind} like that.")
    assert "Secret" not in visitor.get(f"/console/records/{form}").html + refused.html


def test_work_of_others_that_a_member_tracked_time_on_has_a_name_and_no_link(api, person):
    visitor, client = person("member"), api.make("/clients")["id"]
    task = api.make("/tasks", client_id=client, title="Handed over", assignee_id=visitor.user_id)["id"]
    api.make("/time-entries", client_id=client, task_id=task, user_id=visitor.user_id, date=str(today()))
    pages = (f"/console/week?from={today()}", "/console/records/time-entries")
    for assignee, is_linked in ((visitor.user_id, True), (api.member_id, False)):
        api.patch(f"/tasks/{task}", {"assignee_id": assignee})
        week, listed = (visitor.get(path) for path in pages)
        assert ("Handed over" in week.text, f"/console/records/tasks/{task}" in week.links) == (True, is_linked)
        assert all(
            visitor.get(link).status == 200 for link in {*week.links, *listed.links} if "/records/tasks/" in link
        )


def test_the_audit_log_keeps_all_of_an_entry_that_a_member_deleted(api, person):
    visitor, client = person("member"), api.make("/clients", hourly_rate="87.65")["id"]
    entry = api.make("/time-entries", client_id=client, user_id=visitor.user_id)["id"]
    assert visitor.submit(f"/console/records/time-entries/{entry}/delete").status == 200
    assert "87.65" in str(api.sql("SELECT before FROM audit_entries WHERE action = 'record deleted'"))


def test_a_member_sees_that_their_time_is_billed_and_not_on_which_invoice(api, person):
    visitor, client = person("member"), api.make("/clients", hourly_rate="87.65")["id"]
    entry = api.make("/time-entries", client_id=client, user_id=visitor.user_id)["id"]
    api.make("/invoices", client_id=client, unbilled_work={"time": {}})
    page = visitor.get(f"/console/records/time-entries/{entry}/edit")
    assert "only its description can change" in page.text
    assert 'name="duration_minutes"' not in page.html


def test_another_role_counts_from_the_next_request_on(api, person):
    visitor = person("admin")
    assert visitor.get("/console/settings").status == 200
    api.set_user(visitor.user_id, {"role": "manager"})
    assert visitor.get("/console/settings").status == 403
    assert visitor.get("/console/records/clients").status == 200
    api.set_user(visitor.user_id, {"role": "member"})
    assert visitor.get("/console/records/clients").status == 404
    api.set_user(visitor.user_id, {"role": "admin"})
    assert visitor.get("/console/settings").status == 200


def test_a_manager_finds_no_emails_keys_or_requests(api, person):
    admin, manager = person("admin"), person("manager")
    request = api.get("/me").headers["x-request-id"]
    api.app.log.drain()
    email = api.get(f"/users/{api.member_id}").data["email"]
    for visitor, is_admin in ((admin, True), (manager, False)):
        found = visitor.get("/console/search?q=Max")
        assert (f"/console/people/{api.member_id}" in found.links, email in found.html) == (True, is_admin)
        assert (f"/console/people/{api.member_id}" in visitor.get(f"/console/search?q={email}").links) == is_admin
    assert manager.get(f"/console/search?q={request}").status == 200


@pytest.mark.parametrize("role", OF_USERS)
def test_each_operation_is_open_to_the_keys_of_the_roles_that_its_scope_allows(api, role):
    key = api.new_key(user_id=api.add_user("Pat", role=role))
    for operation in OPERATIONS:
        path = re.sub(r"\{\w+\}", "999999", operation.path)
        body = None if operation.method == "GET" else {}
        answer = api.call(operation.method, path, body, key=key)
        is_allowed = operation.scope is None or allows(role, operation.scope)
        assert (answer.status != 403) == is_allowed, operation
        if not is_allowed:
            assert answer.code == "missing_scope"
            assert f"acts as a {role}" in answer.json["message"]
    granted = api.get("/me", key=key).data["key"]["scopes"]
    assert granted == [scope for scope in api.get("/me").data["key"]["scopes"] if allows(role, scope)]


@pytest.mark.parametrize("role", OF_USERS)
def test_what_work_costs_is_shown_to_keys_of_admins_and_managers_only(api, role):
    colleague = api.add_user("Cora", cost_rate=Decimal("43.21"))
    project = api.make("/projects", hourly_rate="100")["id"]
    api.make("/time-entries", project_id=project, user_id=colleague, duration_minutes=60, date="2026-03-02")
    key = api.new_key(user_id=api.add_user("Pat", role=role))
    for query in ({}, {"project_id": project}, {"currency": "EUR"}):
        report = api.get("/reports/project-profitability", query, key=key).data
        for row in (*report["rows"], *report["totals"]):
            costs = [row["labour_cost"], row["profit"], row["margin_percent"]]
            assert costs == ([None] * 3 if role == "member" else ["43.21", "-43.21", None]), query
    if role == "member":
        for path in ("/users", f"/users/{colleague}", "/reports/utilisation", "/reports/overview", "/time-entries"):
            assert "43.21" not in api.get(path, key=key).body.decode(), path


def test_a_member_records_their_own_expenses(api, person):
    visitor, client = person("member"), api.make("/clients", name="Nordwind")["id"]
    project = api.make("/projects", client_id=client, name="Relaunch")["id"]
    api.make("/expenses", client_id=client, user_id=api.member_id, amount="777.77", vendor="Somebody's dinner")
    form = visitor.get("/console/records/expenses/new").html
    assert ('name="markup_percent"' in form, 'name="category"' in form) == (False, True)
    fields = {"amount": "49.90", "category": "travel", "project_id": f"{project}", "vendor": "Deutsche Bahn"}
    made = visitor.submit("/console/records/expenses/new", **fields, markup_percent="50")
    (expense,) = api.get("/expenses", {"user_id": visitor.user_id}).data
    assert (expense["amount"], expense["category"], expense["project_id"]) == ("49.90", "travel", project)
    assert expense["markup_percent"] == "0"
    assert "49.90 EUR" in made.text
    listed = visitor.get("/console/records/expenses")
    assert ("Deutsche Bahn" in listed.text, "dinner" in listed.html, "777.77" in listed.html) == (True, False, False)
    path = f"/console/records/expenses/{expense['id']}"
    assert visitor.submit(f"{path}/edit", amount="59.90").status == 200
    api.make("/invoices", client_id=client, unbilled_work={"expenses": {"project_ids": [project]}})
    assert "This expense is on an invoice" in visitor.get(f"{path}/edit").text
    assert "It cannot be deleted" in visitor.get(f"{path}/delete").text
    assert "/invoices/" not in visitor.get(path).html


def test_a_member_sees_the_project_that_they_work_on_without_amounts(api, person):
    visitor, client = person("member"), api.make("/clients", name="Nordwind")["id"]
    terms = {"billing_type": "fixed_fee", "fixed_fee": "7654.32", "budget_amount": "8765.43", "budget_minutes": 2400}
    project = api.make("/projects", client_id=client, name="Relaunch", description="All of the site", **terms)["id"]
    api.make(f"/projects/{project}/milestones", name="Concept agreed", amount="3210.98")
    path = f"/console/records/projects/{project}"
    assert visitor.get(path).status == 404
    task = api.make("/tasks", project_id=project, title="Wireframes", assignee_id=visitor.user_id)["id"]
    api.make("/tasks", project_id=project, title="Of a colleague", assignee_id=api.member_id)
    api.make("/time-entries", project_id=project, client_id=client, user_id=api.member_id, duration_minutes=677)
    page = visitor.get(path)
    for shown in ("Relaunch", "All of the site", "Concept agreed", "40:00 h", "Wireframes", "Start timer"):
        assert shown in page.text, shown
    for hidden in ("7,654.32", "8,765.43", "3,210.98", "EUR", "Of a colleague", "11:17", "Bill…", "Fixed fee", "Edit"):
        assert hidden not in page.text, hidden
    assert path in visitor.get(f"/console/records/tasks/{task}").links
    assert path in visitor.get("/console/records/projects").links
    for below in ("bill", "edit", "delete"):
        assert (visitor.get(f"{path}/{below}").status, visitor.post(f"{path}/{below}", SENT).status) == (404, 404)
    assert visitor.get("/console/records/projects/new").status == 404
    assert visitor.get("/console/records/projects?over_budget=true").status == 422
    api.delete(f"/tasks/{task}")
    assert visitor.get(path).status == 404


def test_a_member_deletes_no_ticket_of_a_client(api, person):
    visitor = person("member")
    ticket = api.make("/tickets", assignee_id=visitor.user_id)["id"]
    path = f"/console/records/tickets/{ticket}"
    assert "Delete…" not in visitor.get(path).text
    assert (visitor.get(f"{path}/delete").status, visitor.post(f"{path}/delete", {}).status) == (404, 404)
    assert person("manager").submit(f"{path}/delete").status == 200


def test_the_page_of_a_person_shows_hours_and_open_work(api, person):
    manager, client = person("manager"), api.make("/clients", name="Nordwind", hourly_rate="87.65")["id"]
    work = {"client_id": client, "assignee_id": api.member_id}
    api.make("/tasks", title="Wireframes", **work)
    api.make("/tasks", title="Finished", status="done", **work)
    api.make("/tickets", subject="Broken form", **work)
    api.make("/time-entries", client_id=client, user_id=api.member_id, date=str(today()), duration_minutes=450)
    api.set_user(api.member_id, {"hourly_rate": Decimal("98.76"), "target_percent": Decimal(80)})
    page = manager.get(f"/console/people/{api.member_id}")
    for shown in ("Wireframes", "Broken form", "7:30 h of", "Open tasks 1", "Unresolved tickets 1"):
        assert shown in page.text, shown
    email = api.get(f"/users/{api.member_id}").data["email"]
    for hidden in ("Finished", "98.76", email, "Password link", "Keys", "Deactivate"):
        assert hidden not in page.text, hidden
    for link in page.links:
        assert manager.get(link).status in {200, 303}, link
    listed = manager.get("/console/people")
    assert (f"/console/people/{api.member_id}" in listed.links, "98.76" in listed.html) == (True, False)
    assert "98.76" in person("admin").get(f"/console/people/{api.member_id}").text


def test_a_member_sees_their_own_page_and_no_other(api, person):
    visitor, client = person("member"), api.make("/clients", name="Nordwind", hourly_rate="87.65")["id"]
    for whose, title in ((visitor.user_id, "Wireframes"), (api.member_id, "Of a colleague")):
        api.make("/tasks", client_id=client, title=title, assignee_id=whose)
    api.make("/time-entries", client_id=client, user_id=visitor.user_id, date=str(today()), duration_minutes=450)
    own = f"/console/people/{visitor.user_id}"
    assert own in visitor.get("/console/profile").links
    page = visitor.get(own)
    assert ("Wireframes" in page.text, "7:30 h" in page.text) == (True, True)
    assert not any(hidden in page.text for hidden in ("Of a colleague", "87.65", "657.38", "EUR"))
    for link in page.links:
        assert visitor.get(link).status in {200, 303}, link
    for other in (api.member_id, 999_999):
        assert visitor.get(f"/console/people/{other}").status == 404
