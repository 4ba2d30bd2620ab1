"""My week: the table of the signed-in user's hours."""

import re
from datetime import date, timedelta

import pytest
import time_machine

from retainer.console import names
from retainer.rollups import doctor
from retainer.values.exact import instant_after, utcnow
from tests.console.visitor import Fields

WEEK = "/console/week"
MONDAY = date(2026, 3, 2)
FROM = f"{WEEK}?from={MONDAY}"


@pytest.fixture
def visitor(person):
    return person("member")


@pytest.fixture
def project(api):
    return api.make("/projects", client_id=api.make("/clients", name="Nordwind")["id"], name="Relaunch")["id"]


def save(visitor, cells, path=FROM, **others):
    """Send the form of a week as it is, with other texts in these cells."""
    form = [pair for pair in Fields(visitor.get(path).html).forms[WEEK] if pair[0] not in {*cells, *others}]
    return visitor.post(WEEK, [*form, *cells.items(), *others.items()])


def entries(api):
    found = api.get("/time-entries", {"sort": "date"}).data
    return [(each["project_id"], each["date"], each["duration_minutes"], each["user_id"]) for each in found]


def cell(project, day=0):
    return f"project_id-{project}.{MONDAY + timedelta(day)}"


def test_an_empty_week_leads_to_a_project_and_to_the_time_of_a_client(api, person):
    api.make("/clients")
    assert "create a project , or record time of a client ." in person("admin").get(WEEK).text


def test_a_week_is_filled_in_changed_and_emptied(api, visitor, project):
    row = f"project_id-{project}"
    added = visitor.follow(save(visitor, {}, new=row))
    assert (added.status, f'name="{cell(project)}"' in added.html) == (200, True)
    assert "inputmode" not in added.html, "the keys for decimals have no colon"
    saved = visitor.follow(save(visitor, {"new.2026-03-02": "1:30", "new.2026-03-06": "45m"}, new=row))
    assert "Week saved." in saved.text
    assert "2:15" in saved.text
    me = visitor.user_id
    assert entries(api) == [(project, "2026-03-02", 90, me), (project, "2026-03-06", 45, me)]
    save(visitor, {cell(project): "2", cell(project, 4): " "})
    assert entries(api) == [(project, "2026-03-02", 120, me)]
    assert 'notice warn" role="status">Nothing was changed.' in visitor.follow(save(visitor, {})).html


def test_the_blank_row_asks_for_its_work_and_keeps_what_was_typed(api, visitor, project):
    typed = {"new.2026-03-03": "1:30", "new.2026-03-03.note": "Workshop"}
    refused = save(visitor, typed)
    assert (refused.status, refused.error_of("new")) == (422, "Choose the work of these hours.")
    assert {'value="1:30"', 'value="Workshop"'} <= {*re.findall(r'value="[^"]+"', refused.html)}
    assert "no longer offered" in save(visitor, typed, new="project_id-999999").error_of("new")
    odd = save(visitor, {"new.2026-03-03": "a lot"}, new=f"project_id-{project}")
    assert "Must be a time like" in odd.error_of(cell(project, 1))
    assert entries(api) == []
    save(visitor, typed, new=f"project_id-{project}", step="later")
    (entry,) = api.get("/time-entries").data
    assert (entry["project_id"], entry["duration_minutes"], entry["description"]) == (project, 90, "Workshop")


def test_a_billed_cell_says_that_it_is_locked(api, visitor, project):
    entry = {"project_id": project, "client_id": None, "user_id": visitor.user_id, "hourly_rate": "60"}
    api.make("/time-entries", **entry, date=f"{MONDAY}")
    assert "Billed hours are locked." not in visitor.get(FROM).text
    client = api.get(f"/projects/{project}").data["client_id"]
    api.make("/invoices", client_id=client, unbilled_work={"time": {}}, status="sent")
    page = visitor.get(FROM)
    (fixed,) = [each for each in page.all("td", "number") if "billed" in each.text]
    assert fixed["data-minutes"] == "90"
    assert "1:30" in fixed.text
    assert "Billed hours are locked." in page.text


def test_the_rows_of_the_week_before_are_copied_without_their_hours(api, visitor, project):
    api.make("/time-entries", project_id=project, client_id=None, user_id=visitor.user_id, date="2026-02-27")
    copied = visitor.follow(save(visitor, {}, step="copy"))
    assert "Relaunch" in copied.text
    assert f'name="{cell(project)}" value=""' in copied.html
    assert len(entries(api)) == 1


def test_deleted_work_of_the_week_before_is_not_copied(api, visitor, project):
    task = api.make("/tasks", project_id=None, client_id=None)["id"]
    only = {"task_id": task, "client_id": None, "project_id": None, "user_id": visitor.user_id}
    api.make("/time-entries", **only, billable=False, date="2026-02-27")
    assert api.delete(f"/tasks/{task}").status == 204
    (entry,) = api.get("/time-entries").data
    assert {entry[name] for name in ("client_id", "project_id", "task_id", "ticket_id")} == {None}
    assert "Other" not in visitor.follow(save(visitor, {}, step="copy")).text


def test_errors_of_a_cell_stand_in_it_and_nothing_is_saved(api, visitor, project):
    sent = {"row": f"project_id-{project}"}
    for text, sentence in (("a lot", "Must be a time like"), ("25", "Must be from"), ("1.001", "whole number")):
        refused = save(visitor, {cell(project): "1:00", cell(project, 1): text}, **sent)
        assert (refused.status, sentence in refused.text) == (422, True)
        assert f'value="{text}" ' in refused.html
        assert f'<a href="#{cell(project, 1)}">Relaunch, Tuesday</a>: ' in refused.html
    api.patch(f"/projects/{project}", {"status": "archived"})
    refused = save(visitor, {cell(project): "1:00"}, **sent)
    assert (refused.status, "archived" in refused.text) == (422, True)
    assert entries(api) == []


def test_a_week_that_has_changed_meanwhile_is_not_overwritten(api, visitor, project):
    entry = api.make("/time-entries", project_id=project, client_id=None, user_id=visitor.user_id, date=f"{MONDAY}")
    form = Fields(visitor.get(FROM).html).forms[WEEK]
    api.patch(f"/time-entries/{entry['id']}", {"duration_minutes": 77})
    late = visitor.post(WEEK, [*(pair for pair in form if pair[0] != cell(project)), (cell(project), "5")])
    assert (late.status, "Your week has changed" in late.text) == (412, True)
    assert [minutes for _, _, minutes, _ in entries(api)] == [77]


def test_a_cell_with_several_or_billed_entries_is_not_an_input(api, visitor, project):
    for day, times in ((MONDAY, 2), (MONDAY + timedelta(1), 1)):
        for _ in range(times):
            client = api.get(f"/projects/{project}").data["client_id"]
            api.make(
                "/time-entries", project_id=project, client_id=client, user_id=visitor.user_id, date=f"{day}",
                duration_minutes=60, hourly_rate="80",
            )  # fmt: skip
    api.make("/invoices", client_id=client, unbilled_work={"time": {"from": "2026-03-03"}})
    page = visitor.get(FROM)
    assert cell(project) not in page.html
    assert cell(project, 1) not in page.html
    assert "2 entries" in page.text
    assert "Several entries of a day are changed one by one" in page.text
    save(visitor, {cell(project): "9:00", cell(project, 1): "9:00"})
    assert {minutes for _, _, minutes, _ in entries(api)} == {60}


def test_only_the_own_time_is_shown_and_counted(api, visitor, project):
    for user_id, minutes in ((visitor.user_id, 60), (api.member_id, 677)):
        api.make(
            "/time-entries", project_id=project, client_id=None, user_id=user_id, date=f"{MONDAY}",
            duration_minutes=minutes,
        )  # fmt: skip
    page = visitor.get(FROM)
    assert "1:00" in page.text
    for hidden in ("11:17", "12:17"):
        assert hidden not in page.html
    assert visitor.get(f"{WEEK}?from=odd").status == visitor.get(f"{WEEK}?from=0001-01-01").status == 404


@pytest.mark.parametrize(
    ("step", "then"),
    [("earlier", "from=2026-02-23"), ("later", "from=2026-03-09"), ("copy", "row=task_id-"), ("", "row=project_id-")],
)
def test_no_button_loses_the_hours_that_were_typed(api, visitor, project, step, then):
    client = api.get(f"/projects/{project}").data["client_id"]
    task = api.make("/tasks", project_id=project, client_id=client, assignee_id=visitor.user_id)["id"]
    api.make("/time-entries", task_id=task, client_id=client, user_id=visitor.user_id, date="2026-02-27")
    other = api.make("/projects", name="Webshop")["id"]
    rows = [f"project_id-{project}", *([f"project_id-{other}"] if not step else [])]
    sent = [("from", f"{MONDAY}"), ("state", dict(Fields(visitor.get(FROM).html).forms[WEEK])["state"])]
    typed = [*sent, *(("row", row) for row in rows), (cell(project), "1:30"), ("step", step)]
    saved = visitor.post(WEEK, typed)
    assert then in saved.location
    assert "Week saved." in visitor.follow(saved).text
    assert (project, "2026-03-02", 90, visitor.user_id) in entries(api)
    refused = visitor.post(WEEK, [*sent, *(("row", row) for row in rows), (cell(project, 1), "a lot"), ("step", step)])
    assert (refused.status, 'value="a lot"' in refused.html) in {(422, True), (412, True)}
    assert "Week saved." not in visitor.follow(save(visitor, {}, step=step)).text


def test_a_note_is_written_beside_its_hours(api, visitor, project):
    row = {"row": f"project_id-{project}"}
    refused = save(visitor, {f"{cell(project)}.note": "Workshop"}, **row)
    assert "Enter the hours of this note." in refused.error_of(cell(project))
    assert 'value="Workshop"' in refused.html
    save(visitor, {cell(project): "2", f"{cell(project)}.note": "Workshop"}, **row)
    (entry,) = api.get("/time-entries").data
    assert (entry["duration_minutes"], entry["description"]) == (120, "Workshop")
    save(visitor, {f"{cell(project)}.note": "Workshop with Ana"})
    (entry,) = api.get("/time-entries").data
    assert (entry["duration_minutes"], entry["description"]) == (120, "Workshop with Ana")
    assert "Nothing was changed." in visitor.follow(save(visitor, {})).text
    save(visitor, {f"{cell(project)}.note": ""})
    assert api.get(f"/time-entries/{entry['id']}").data["description"] is None


def test_a_note_of_several_lines_is_changed_on_its_own_page(api, visitor, project):
    entry = api.make(
        "/time-entries", project_id=project, client_id=None, user_id=visitor.user_id, date=f"{MONDAY}",
        description="One\nTwo",
    )  # fmt: skip
    page = visitor.get(FROM)
    assert f'name="{cell(project)}.note"' not in page.html
    assert f"/console/records/time-entries/{entry['id']}/edit" in page.links
    save(visitor, {cell(project): "3"})
    assert api.get(f"/time-entries/{entry['id']}").data["description"] == "One\nTwo"


def timer(visitor, **fields):
    return visitor.follow(visitor.post(f"{WEEK}/timer", fields))


def test_a_timer_becomes_a_time_entry_when_it_is_stopped(api, visitor, project):
    work = f"project_id-{project}"
    assert "Timer started." in timer(visitor, timer="start", work=work, description="Workshop").text
    assert "Relaunch: Workshop Running since" in visitor.get(WEEK).text
    api.sql("UPDATE timers SET started_at = '2026-03-02T09:00:00.000000Z'")
    with time_machine.travel("2026-03-02T10:29:40+00:00", tick=False):
        assert "1:30 recorded." in timer(visitor, timer="stop").text
    (entry,) = api.get("/time-entries").data
    assert (entry["duration_minutes"], entry["description"], entry["user_id"]) == (90, "Workshop", visitor.user_id)
    assert entry["started_at"] == "2026-03-02T09:00:00.000000Z"
    assert "No timer is running." in timer(visitor, timer="stop").text


def test_a_running_timer_is_in_the_top_bar_of_each_page_and_stopped_there(api, person, project):
    visitor = person("manager")
    timer(visitor, timer="start", work=f"project_id-{project}", description="Workshop")
    for path in (
        "",
        "/records/clients?status=active",
        f"/records/projects/{project}",
        "/records/tasks/new",
        "/profile",
    ):
        page = visitor.get(f"/console{path}")
        (bar,) = page.all("form", "running")
        assert "Relaunch 0:00 Stop" in bar.text, path
        (back,) = bar.all("input", name="next")
        assert back["value"] == (path or "/")
    refused = visitor.post("/console/records/tasks/new", {"due_date": "odd"})
    assert refused.all("form", "running")
    api.sql("UPDATE timers SET started_at = $1", instant_after(utcnow(), -timedelta(minutes=90)))
    stopped = visitor.post(f"{WEEK}/timer", {"timer": "stop", "next": "/records/clients?status=active"})
    assert stopped.location == "/console/records/clients?status=active"
    page = visitor.follow(stopped)
    assert ("1:30 recorded." in page.text, page.all("form", "running")) == (True, [])
    (entry,) = api.get("/time-entries").data
    assert (entry["description"], entry["duration_minutes"]) == ("Workshop", 90)
    assert visitor.post(f"{WEEK}/timer", {"timer": "stop", "next": "//evil.example"}).location == "/console/week"


@pytest.mark.parametrize("role", ["manager", "member"])
def test_a_timer_starts_on_the_page_of_its_work_and_records_the_one_that_runs(api, person, project, role):
    visitor, client = person(role), api.get(f"/projects/{project}").data["client_id"]
    own = {"client_id": client, "assignee_id": visitor.user_id}
    task = api.make("/tasks", project_id=project, title="Concept", **own)["id"]
    ticket = api.make("/tickets", subject="Broken form", **own)["id"]
    started = visitor.submit(f"/console/records/tasks/{task}", action="/console/week/timer", timer="start")
    assert "Timer started." in started.text
    assert "Start timer" not in started.text
    assert "Concept 0:00" in started.all("form", "running")[0].text
    api.sql("UPDATE timers SET started_at = $1", instant_after(utcnow(), -timedelta(minutes=45)))
    page = visitor.get(f"/console/records/tickets/{ticket}")
    form = next(form for form in page.all("form", action="/console/week/timer") if form.all("input", name="work"))
    sent = {field["name"]: field["value"] for field in form.all("input")}
    other = visitor.follow(visitor.post("/console/week/timer", sent | {"timer": "start"}))
    assert "0:45 recorded. Timer started." in other.text
    (entry,) = api.get("/time-entries").data
    assert (entry["task_id"], entry["duration_minutes"]) == (task, 45)
    api.patch(f"/tasks/{task}", {"status": "done"})
    assert "Start timer" not in visitor.get(f"/console/records/tasks/{task}").text


def test_a_member_starts_no_timer_on_work_that_they_do_not_see(api, visitor, project):
    secret = api.make("/tasks", title="Secret task", assignee_id=api.member_id)["id"]
    refused = timer(visitor, timer="start", work=f"task_id-{secret}")
    assert (refused.status, "Choose the work" in refused.text, "Secret" in refused.html) == (422, True, False)


def test_a_timer_that_has_ended_is_counted_no_more(api, visitor, project):
    for step in ("discard", "stop", "stop"):
        timer(visitor, timer="start", work=f"project_id-{project}")
        api.sql("UPDATE timers SET started_at = $1", instant_after(utcnow(), -timedelta(hours=1)))
        timer(visitor, timer=step)
        assert doctor.inspect(api.store, repair=False) == []


def test_a_timer_does_not_begin_with_a_description_that_no_entry_can_have(api, visitor, project):
    refused = timer(visitor, timer="start", work=f"project_id-{project}", description="x" * 5001)
    assert "5000" in refused.error_of("description")
    assert "Running since" not in visitor.get(WEEK).text


def test_a_timer_that_cannot_be_recorded_goes_on_until_it_is_discarded(api, visitor, project):
    for work in ("", "project_id-999999", f"client_id-{api.make('/clients')['id']}"):
        assert "Choose the work" in timer(visitor, timer="start", work=work).text
    timer(visitor, timer="start", work=f"project_id-{project}")
    api.patch(f"/projects/{project}", {"status": "archived"})
    assert "is archived" in timer(visitor, timer="stop").text
    api.patch(f"/projects/{project}", {"status": "active"})
    api.sql("UPDATE timers SET started_at = '2026-03-02T09:00:00.000000Z'")
    assert "more than a day" in timer(visitor, timer="stop").text
    assert "Nothing was recorded." in timer(visitor, timer="discard").text
    assert entries(api) == []


@pytest.mark.parametrize("gone", ["deleted", "archived"])
def test_a_timer_whose_work_is_gone_is_recorded_on_other_work(api, visitor, project, gone):
    lost, other = api.make("/projects")["id"], f"project_id-{project}"
    timer(visitor, timer="start", work=f"project_id-{lost}", description="Workshop")
    api.sql("UPDATE timers SET started_at = $1", instant_after(utcnow(), -timedelta(minutes=90)))
    if gone == "deleted":
        assert api.delete(f"/projects/{lost}").status == 204
    else:
        api.patch(f"/projects/{lost}", {"status": "archived"})
    refused = timer(visitor, timer="stop")
    form = dict(Fields(refused.html).forms[f"{WEEK}/timer"])
    assert (refused.status, form["description"]) == (422, "Workshop")
    assert ("Choose other work to record them." in refused.text) is (gone == "deleted")
    assert "1:30 recorded." in timer(visitor, **form | {"timer": "stop", "work": other}).text
    (entry,) = api.get("/time-entries").data
    assert (entry["project_id"], entry["duration_minutes"], entry["description"]) == (project, 90, "Workshop")


def test_a_timer_is_stopped_only_for_work_that_is_offered(api, visitor, project):
    timer(visitor, timer="start", work=f"project_id-{project}")
    for work in ("project_id-999999", "odd", f"client_id-{api.make('/clients')['id']}"):
        assert "Choose the work" in timer(visitor, timer="stop", work=work).text
    assert entries(api) == []


def test_a_timer_is_of_its_user_alone(api, visitor, person, project):
    timer(visitor, timer="start", work=f"project_id-{project}")
    other = person("manager")
    assert "No timer is running." in timer(other, timer="stop").text
    timer(other, timer="start", work=f"project_id-{project}")
    timer(other, timer="discard")
    assert "Running since" not in other.get(WEEK).text
    assert "Running since" in visitor.get(WEEK).text


def test_of_more_projects_than_a_choice_offers_the_newest_are_offered(api, visitor, project, monkeypatch):
    newest = api.make("/projects", name="Webshop")["id"]
    monkeypatch.setattr(names, "MAX_CHOICES", 1)
    page = visitor.get(WEEK).html
    assert f'value="project_id-{newest}"' in page
    assert f'value="project_id-{project}"' not in page


def test_a_week_without_any_work_says_who_can_add_some(api, visitor):
    page = visitor.get("/console/week")
    assert "Ask an admin for a project or a task." in page.text
    assert "Copy last week" not in page.text
    assert 'action="/console/week/timer"' not in page.html
