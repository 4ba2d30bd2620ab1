"""Imports of time: they write what the API would, once, and everything that they have made can be undone."""

from zoneinfo import ZoneInfo

import pytest

from retainer.errors import Refusal
from retainer.exchange import plans, undoing
from retainer.exchange.columns import ColumnMapping
from retainer.exchange.importers import IMPORTERS
from retainer.identity.actors import absent_user
from retainer.job_kinds import KINDS
from retainer.jobs import jobs, loop
from retainer.jobs.kinds import Job
from retainer.jobs.step import ROWS
from retainer.outbound.leases import Places
from retainer.rollups import doctor
from retainer.schema import jobs as schema
from tests.contract.cases import statements_of
from tests.databases import each_database
from tests.exchange import files

BERLIN = ZoneInfo("Europe/Berlin")
KINDS_OF_RECORDS = ("clients", "projects", "tasks", "time-entries", "users")


def start(api, text=files.HARVEST, source="harvest", kind="time", *, is_dry_run=False, **mapping):
    importer = IMPORTERS[kind]
    planned = importer.plan(text.encode(), importer.sources[source], ColumnMapping(**mapping), BERLIN)
    actor = absent_user(api.store, api.admin_id)
    with api.store.begin(actor, write=True) as tx:
        return importer.start(tx, planned.packed(), importer.sources[source], f"{source}.csv", is_dry_run=is_dry_run)


def finish(api, job_id) -> Job:
    return loop.run_to_end(api.store, KINDS, api.account_id, job_id, lambda _: None)


def run(api, *arguments, **options) -> Job:
    return finish(api, start(api, *arguments, **options))


def undo(api, job_id) -> Job:
    with api.store.begin(absent_user(api.store, api.admin_id), write=True) as tx:
        undone = undoing.start(tx, tx.get(schema.jobs, job_id, Job))
    return finish(api, undone)


def refusals(api, job):
    with api.operating() as tx:
        return [(line, cells, reason) for line, cells, reason in plans.refused_rows(tx, job)]


def everything(api):
    """Return the names of all records, which do not depend on ids."""
    found = {kind: api.get(f"/{kind}", {"per_page": 100}).data for kind in KINDS_OF_RECORDS}
    return {
        kind: sorted(str(each.get("name") or each.get("title") or each["external_id"]) for each in found[kind])
        for kind in found
    }


@each_database
def test_an_import_makes_entries_and_the_records_that_they_need(api):
    job = run(api)
    made = {"people": 2, "clients": 1, "projects": 2, "tasks": 1, "time_entries": 4, "minutes": 1200 + 90 + 90 + 15}
    assert (job.status, job.counts, job.refused) == ("done", made, 1)
    assert job.message == "4 time entries imported from harvest.csv."
    entries = api.get("/time-entries", {"sort": "date"}).data
    shown = [
        tuple(each[name] for name in ("date", "duration_minutes", "amount", "billing_status", "is_settled"))
        for each in entries
    ]
    assert shown == [
        ("2026-03-02", 1200, "2000.00", "billed", True),
        ("2026-03-03", 90, "150.00", "unbilled", False),
        ("2026-03-03", 90, "150.00", "unbilled", False),
        ("2026-03-04", 15, "0.00", "non_billable", False),
    ]
    people = {user["id"]: user for user in api.get("/users").data}
    assert {people[each["user_id"]]["name"] for each in entries} == {"Ana Ott", "Ben Lenz"}
    assert not any(people[each["user_id"]]["is_active"] for each in entries), "they are deactivated at the end"
    assert doctor.inspect(api.store, repair=False) == []


def test_the_people_of_a_large_file_are_deactivated_in_steps(api):
    rows = [f"2026-03-02,Nordwind,1:00,Person {number}" for number in range(2 * ROWS + 1)]
    job = run(api, "\n".join(["date,client,duration,person", *rows]), "csv")
    assert (job.counts["people"], job.done, job.refused) == (len(rows), job.total, 0)
    steps = api.sql("SELECT count(*) FROM audit_entries WHERE action = 'user deactivated' GROUP BY created_at")
    assert sum(count for (count,) in steps) == len(rows)
    assert max(count for (count,) in steps) <= ROWS


def test_the_tasks_of_a_project_are_read_once_in_a_step_however_many_are_new(api):
    rows = [f"2026-03-02,Nordwind,Shop,Task {number},0:10,Ana" for number in range(40)]
    job_id = start(api, "\n".join(["date,client,project,task,duration,person", *rows]), "csv")
    with statements_of(api) as ran:
        job = finish(api, job_id)
    assert (job.counts["tasks"], job.counts["time_entries"], job.refused) == (40, 40, 0)
    assert len([each for each in ran if "SELECT tasks.id, tasks.title" in each]) < 20


@each_database
def test_a_second_run_adds_nothing_and_an_overlapping_file_only_what_is_new(api):
    run(api)
    before = everything(api)
    again = run(api)
    assert (again.counts, again.refused, everything(api)) == ({"already_there": 4}, 1, before)
    newer = '2026-03-09,Nordwind,Shop,NW-1,Design,More,"2,0",Yes,No,No,Ana,Ott,,Yes,"100,0",,,,Euro - EUR,\n'
    job = run(api, files.HARVEST + newer)
    assert job.counts == {"already_there": 4, "time_entries": 1, "minutes": 120}
    assert len(everything(api)["time-entries"]) == 5


@each_database
def test_a_dry_run_counts_the_same_and_keeps_nothing(api):
    before = everything(api)
    job = run(api, is_dry_run=True)
    assert (job.counts["time_entries"], job.counts["clients"], job.refused) == (4, 1, 1)
    assert everything(api) == before
    assert run(api).counts == job.counts


@each_database
def test_records_that_exist_are_used_and_those_of_other_accounts_are_not(api, other_tenant):
    other_tenant.make("/clients", name="Nordwind")
    client = api.make("/clients", name="NORDWIND")["id"]
    project = api.make("/projects", name="Shop", client_id=client)["id"]
    task = api.make("/tasks", title="design", project_id=project)["id"]
    ana = api.add_user("ana ott")
    job = run(api)
    assert job.counts == {"people": 1, "projects": 1, "time_entries": 4, "minutes": 1395}
    entries = api.get("/time-entries", {"project_id": project}).data
    assert {(each["client_id"], each["task_id"], each["user_id"]) for each in entries} == {(client, task, ana)}
    assert len(other_tenant.get("/clients").data) == 1


def test_refused_rows_come_back_with_their_line_cells_and_reason(api):
    api.make("/clients", name="Nordwind", currency="USD")
    job = run(api)
    found = refusals(api, job)
    assert [(line, reason) for line, _, reason in found] == [
        *((line, "currency: Is in EUR, and the client is billed in USD. Correct one of them.") for line in (2, 3, 4)),
        (6, "Has no time: a time entry has at least a minute."),
    ]
    assert found[0][1][:6] == ["2026-03-02", "Nordwind", "Shop", "NW-1", "Design", "Draft"]
    corrected = [line for number, line in enumerate(files.HARVEST.splitlines(), 1) if number != 6]
    text = "\n".join(corrected).replace("Euro - EUR", "US Dollar - USD")
    assert run(api, text).counts == {"already_there": 1, "time_entries": 3, "minutes": 1380}


def test_a_day_of_more_than_24_hours_is_refused_as_the_api_refuses_it(api):
    rows = "".join(f"2026-03-02,{hours},Shop,Ana\n" for hours in (20, 5))
    job = run(api, f"date,hours,project,person\n{rows}", "csv")
    ((line, _, reason),) = refusals(api, job)
    assert (line, job.counts["minutes"]) == (3, 1200)
    assert "a day has 1440, and 240 are left" in reason


@each_database
def test_an_import_that_was_stopped_and_undone_does_not_continue(api):
    job_id = start(api, "date,hours,project,person,notes\n2026-03-02,1,Shop,Ana,a\n2026-03-03,1,Shop,Ana,b\n", "csv")
    (work,) = loop.DUE.claim(api.store, Places(1, ()), loop.LEASE)
    assert loop.do_step(api.store, KINDS, work)
    with api.operating() as tx:
        job = tx.get(schema.jobs, job_id, Job)
        jobs.stop(tx, job)
        undone = undoing.start(tx, tx.get(schema.jobs, job_id, Job))
    for _ in ("while it is undone", "afterwards"):
        with pytest.raises(Refusal, match="was undone"), api.operating() as tx:
            undoing.resume(tx, job)
        finish(api, undone)
    assert everything(api)["time-entries"] == []


def test_two_people_with_one_name_stay_two(api):
    text = "date,hours,project,person,email\n2026-03-02,1,Shop,Ana Ott,%s@x.example\n"
    both = text % "ana" + (text % "ana2").partition("\n")[2]
    job = run(api, both, "csv")
    assert (job.counts["people"], plans.options(job).sums[0]["person"]) == (2, "Ana Ott (ana2@x.example)")
    made = {user["id"]: user["email"] for user in api.get("/users").data}
    of_entries = {made[each["user_id"]] for each in api.get("/time-entries").data}
    assert of_entries == {"ana@x.example", "ana2@x.example"}
    assert run(api, both, "csv").counts == {"already_there": 2}


@each_database
def test_an_import_that_is_stopped_continues_and_what_it_has_made_is_undone(api):
    before = everything(api)
    rows = "".join(f"2026-03-{day:02},0.1,Shop {day % 7},Ana,{n}\n" for day in range(1, 29) for n in range(20))
    job_id = start(api, f"date,hours,project,person,notes\n{rows}", "csv")
    stopped = []

    def stop(job):
        if job.done and not stopped:
            with api.operating() as tx:
                jobs.stop(tx, job)
            stopped.append(job.done)

    job = loop.run_to_end(api.store, KINDS, api.account_id, job_id, stop)
    assert (job.status, 0 < job.done < 568) == ("stopped", True)
    assert len(everything(api)["projects"]) == 7
    with api.operating() as tx:
        jobs.resume(tx, tx.get(schema.jobs, job_id, Job))
    job = finish(api, job_id)
    assert (job.status, job.counts["time_entries"]) == ("done", 560)
    undone = undo(api, job_id)
    assert (undone.counts["time_entries_deleted"], undone.refused) == (560, 0)
    after = everything(api)
    assert after.pop("users") == sorted([*before.pop("users"), "Ana"]), "people stay, deactivated"
    assert after == before
    assert doctor.inspect(api.store, repair=False) == []
    with pytest.raises(Refusal, match="has made nothing that could be undone"):
        undo(api, job_id)
    assert run(api, f"date,hours,project,person,notes\n{rows}", "csv").counts["time_entries"] == 560


@each_database
def test_undoing_leaves_what_something_depends_on_and_what_was_there_before(api):
    api.make("/clients", name="Nordwind")
    first = run(api)
    entry, other = api.get("/time-entries", {"billing_status": "unbilled"}).data
    api.make("/invoices", client_id=entry["client_id"], lines=[{"time_entry_ids": [entry["id"]]}])
    api.patch(f"/time-entries/{other['id']}", {"description": "What I meant"})
    second = run(api)
    with pytest.raises(Refusal, match="has made nothing"):
        undo(api, second.id)
    undone = undo(api, first.id)
    assert {each["id"] for each in api.get("/time-entries").data} == {entry["id"], other["id"]}
    assert "Nordwind" in everything(api)["clients"]
    with api.operating() as tx:
        assert {row.name: row.message for row in jobs.list_refusals(tx, undone, 10)} == {
            "Time entry Again": f"Stays: {undoing.BILLED}",
            "Time entry What I meant": f"Stays: {undoing.CHANGED}",
            "Task Design": f"Stays: it has 2 time entries from elsewhere. {undoing.ELSEWHERE}",
            "Project Shop": f"Stays: it has 1 invoice line from elsewhere. {undoing.ELSEWHERE}",
        }
    (draft,) = api.get("/invoices").data
    for path in (f"/invoices/{draft['id']}", f"/time-entries/{entry['id']}", f"/time-entries/{other['id']}"):
        api.delete(path)
    assert (undo(api, first.id).refused, everything(api)["projects"]) == (0, []), "what it says can be done helps"


def test_people_who_never_signed_in_wake_up_for_a_later_import_and_others_do_not(api):
    run(api)
    newer = files.HARVEST.replace("2026-03-0", "2026-04-0")
    assert run(api, newer).counts == {"time_entries": 4, "minutes": 1395}
    assert [user["is_active"] for user in api.get("/users").data if user["name"] == "Ana Ott"] == [False]
    gone = api.add_user("Former Colleague")
    api.set_user(gone, {"is_active": False, "password_hash": "x"})
    job = run(api, "date,hours,project,person\n2026-03-02,1,Shop,Former Colleague\n", "csv")
    ((_, _, reason),) = refusals(api, job)
    assert reason == f"user_id: User {gone} is deactivated. Choose an active user."
