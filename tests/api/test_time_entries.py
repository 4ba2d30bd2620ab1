from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
import time_machine
from tests.reference.arithmetic import half_up

from retainer.work.time_rules import MAX_AMOUNT

NINE, HALF_PAST_TEN = "2026-03-10T09:00:00.000000Z", "2026-03-10T10:30:00.000000Z"
LEVELS = ("project", "client", "user", "account")
RATES = {"project": "100.00", "client": "90.00", "user": "80.00", "account": "70.00"}


@pytest.fixture
def world(api):
    """Three clients, two with a project and a task, an internal project with a task, and tasks of no project."""
    made = {name: api.make("/clients")["id"] for name in ("a", "b", "c")}
    made["p"] = api.make("/projects", client_id=made["a"])["id"]
    made["q"] = api.make("/projects", client_id=made["b"])["id"]
    made["internal"] = api.make("/projects", client_id=None)["id"]
    for name in ("p", "q", "internal"):
        made[f"task of {name}"] = api.make("/tasks", project_id=made[name])["id"]
    made["subtask of p"] = api.make("/tasks", parent_id=made["task of p"])["id"]
    made["task of a"] = api.make("/tasks", client_id=made["a"])["id"]
    made["loose"] = api.make("/tasks")["id"]
    return made


def ids_of(world, members):
    """The members with ids for the names of the world."""
    return {name: world.get(value, value) for name, value in members.items()}


def log(api, **members):
    """The answer to an entry with these members, of 90 minutes if nothing else is said; it needs no client."""
    return api.create("/time-entries", **{"client_id": None} | members)


def entry_of(api, **members):
    return log(api, **members).data


def change(api, entry, **members):
    return api.patch(f"/time-entries/{entry['id']}", members)


def again(api, entry):
    return api.get(f"/time-entries/{entry['id']}").data


def set_rates(api, project, client, /, **rates):
    """Set the rates of the levels that are named; null takes one away."""
    for level, rate in rates.items():
        if level == "user":
            api.set_user(api.admin_id, {"hourly_rate": rate and Decimal(rate)})
        elif level == "account":
            api.set_account({"hourly_rate": rate and Decimal(rate)})
        else:
            path = f"/projects/{project}" if level == "project" else f"/clients/{client}"
            assert api.patch(path, {"hourly_rate": rate}).status == 200


def found(api, **query):
    return [row["id"] for row in api.get("/time-entries", query).data]


def test_the_four_fields_of_the_specification_are_enough(api, world):
    sent = {"client_id": world["a"], "project_id": world["p"], "duration_minutes": 90, "billable": True}
    set_rates(api, world["p"], world["a"], account="70")
    answer = api.post("/time-entries", sent)
    assert answer.status == 201
    entry = answer.data
    assert entry == sent | {
        "id": entry["id"],
        "created_at": entry["created_at"],
        "updated_at": entry["created_at"],
        "task_id": None,
        "ticket_id": None,
        "user_id": api.admin_id,
        "date": entry["date"],
        "started_at": None,
        "ended_at": None,
        "description": None,
        "hourly_rate": "70.00",
        "amount": "105.00",
        "currency": "EUR",
        "billing_status": "unbilled",
        "is_settled": False,
        "invoice_id": None,
        "invoice_line_id": None,
        "is_locked": False,
        "external_id": None,
    }
    assert len(entry["date"]) == 10
    assert answer.headers["location"].endswith(f"/time-entries/{entry['id']}")
    assert again(api, entry) == entry
    assert api.get("/time-entries").data == [entry]


def test_everything_can_be_sent(api, world):
    sent = {
        "client_id": world["a"],
        "project_id": world["p"],
        "task_id": world["task of p"],
        "user_id": api.member_id,
        "date": "2026-03-11",
        "duration_minutes": 90,
        "billable": False,
        "started_at": "2026-03-10T10:00:00+01:00",
        "ended_at": "2026-03-10T10:30:00Z",
        "description": "  Texts ",
        "hourly_rate": 99.5,
        "external_id": "toggl-1",
    }
    entry = api.post("/time-entries", sent).data
    shown = {"started_at": NINE, "ended_at": HALF_PAST_TEN, "description": "Texts", "hourly_rate": "99.50"}
    money = {"amount": "0.00", "currency": "EUR", "billing_status": "non_billable"}
    assert entry == entry | sent | shown | money


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("user_id", "ME", 'the id of a user, or "me"'),
        ("user_id", -1, 'the id of a user, or "me"'),
        ("duration_minutes", 0, "from 1 to 1440"),
        ("duration_minutes", 1441, "from 1 to 1440"),
        ("duration_minutes", None, "Is required, unless started_at and ended_at are given"),
        ("started_at", "2026-03-10T09:00:00", "a timestamp with an offset"),
        ("ended_at", "2026-03-10", "a timestamp with an offset"),
        ("hourly_rate", "-1", "an amount from 0"),
        ("hourly_rate", "12.345", "EUR has 2 decimal places"),
        ("external_id", "taken", "Is already taken"),
    ],
)
def test_an_invalid_field_is_reported_in_a_sentence_on_create_and_change(api, member, value, message):
    client = api.usual("/clients")
    taken = entry_of(api, client_id=client, external_id="taken")
    other = entry_of(api, client_id=client)
    sent = {"client_id": client, "duration_minutes": 90} | {member: value}
    for answer in (api.post("/time-entries", sent), change(api, other, **{member: value})):
        assert message in answer.errors[member][0]
        assert set(answer.errors) == {member}
    assert api.get("/time-entries").data == [other, taken]


def test_all_errors_are_reported_together(api, world):
    faulty = {"client": 1, "task_id": 99, "date": "x", "user_id": 98, "hourly_rate": "-1"}
    assert set(api.post("/time-entries", faulty).errors) == {*faulty, "duration_minutes"}
    api.set_user(api.member_id, {"is_active": False})
    api.patch(f"/projects/{world['p']}", {"status": "archived"})
    faulty = ids_of(world, {"client_id": "b", "task_id": "task of a", "user_id": api.member_id})
    named = {"task_id", "user_id", "hourly_rate", "duration_minutes"}
    assert set(api.post("/time-entries", faulty | {"hourly_rate": "0.001"}).errors) == named
    archived = api.post("/time-entries", {"project_id": world["p"], "user_id": api.member_id}).errors
    assert set(archived) == {"project_id", "user_id", "duration_minutes"}


RELATED = [
    ({"client_id": "a"}, ("a", None, None)),
    ({"project_id": "p"}, ("a", "p", None)),
    ({"project_id": "internal"}, (None, "internal", None)),
    ({"client_id": None, "project_id": "p"}, ("a", "p", None)),
    ({"client_id": "a", "project_id": "p"}, ("a", "p", None)),
    ({"task_id": "task of p"}, ("a", "p", "task of p")),
    ({"task_id": "subtask of p"}, ("a", "p", "subtask of p")),
    ({"task_id": "task of internal"}, (None, "internal", "task of internal")),
    ({"task_id": "task of a"}, ("a", None, "task of a")),
    ({"client_id": None, "project_id": None, "task_id": "task of p"}, ("a", "p", "task of p")),
    ({"client_id": "a", "task_id": "task of p"}, ("a", "p", "task of p")),
    ({"project_id": "p", "task_id": "task of p"}, ("a", "p", "task of p")),
    ({"client_id": "a", "project_id": "p", "task_id": "task of p"}, ("a", "p", "task of p")),
    ({"client_id": "b", "project_id": "p"}, {"project_id"}),
    ({"client_id": "a", "project_id": "internal"}, {"project_id"}),
    ({"project_id": "q", "task_id": "task of p"}, {"task_id"}),
    ({"project_id": "internal", "task_id": "task of p"}, {"task_id"}),
    ({"project_id": "p", "task_id": "task of internal"}, {"task_id"}),
    ({"client_id": "b", "task_id": "task of a"}, {"task_id"}),
    ({"client_id": "a", "project_id": "q", "task_id": "task of p"}, {"task_id"}),
    ({"client_id": "b", "project_id": "p", "task_id": "task of p"}, {"project_id"}),
]
"""What is sent, and the client, project and task of the entry, or the members that are refused."""


def test_the_broader_relation_follows_and_must_agree_on_create_and_change(api, world):
    for sent, expected in RELATED:
        members, elsewhere = (
            ids_of(world, sent),
            entry_of(api, client_id=world["c"], billable=False, duration_minutes=1),
        )
        made = api.post("/time-entries", {"duration_minutes": 1} | members)
        for answer in (made, change(api, elsewhere, **members)):
            if isinstance(expected, set):
                assert set(answer.errors) == expected, sent
            else:
                related = tuple(answer.data[name] for name in ("client_id", "project_id", "task_id"))
                assert related == tuple(map(world.get, expected)), sent
        if isinstance(expected, set):
            assert again(api, elsewhere) == elsewhere


def test_something_must_be_said_of_what_the_time_was_for(api, world):
    anchors = {"client_id", "project_id", "task_id", "ticket_id"}
    assert set(api.post("/time-entries", {"duration_minutes": 90}).errors) == {"client_id"}
    assert set(api.post("/time-entries", dict.fromkeys(anchors) | {"duration_minutes": 90}).errors) == {"client_id"}
    loose = entry_of(api, task_id=world["loose"])
    assert (loose["client_id"], loose["project_id"], loose["task_id"]) == (None, None, world["loose"])
    for entry, last in (
        (entry_of(api, client_id=world["a"]), "client_id"),
        (entry_of(api, project_id=world["internal"]), "project_id"),
        (loose, "task_id"),
    ):
        assert set(change(api, entry, **{last: None}).errors) - {"billable"} == {"client_id"}
        assert again(api, entry) == entry


def test_a_change_of_the_narrower_relation_takes_the_broader_along(api, world):
    entry = entry_of(api, task_id=world["task of p"])

    def moved(**members):
        answer = change(api, entry, **ids_of(world, members))
        return set(answer.errors) if answer.status == 422 else answer.status

    def place():
        now = again(api, entry)
        return now["client_id"], now["project_id"], now["task_id"]

    assert moved(task_id="task of q") == 200
    assert place() == (world["b"], world["q"], world["task of q"])
    assert moved(project_id="p") == {"task_id"}
    assert moved(client_id="a") == {"project_id"}
    assert moved(project_id="p", task_id=None) == 200
    assert place() == (world["a"], world["p"], None)
    assert moved(client_id="b") == {"project_id"}
    assert moved(project_id="internal") == {"billable"}
    assert moved(project_id="internal", billable=False) == 200
    assert place() == (None, world["internal"], None)
    assert moved(project_id=None, client_id="b") == 200
    assert place() == (world["b"], None, None)
    assert moved(task_id="task of a") == 200
    assert place() == (world["a"], None, world["task of a"])
    assert moved(client_id="b") == {"task_id"}
    assert moved(client_id="b", task_id=None) == 200
    assert moved(project_id="q") == 200
    assert place() == (world["b"], world["q"], None)
    assert moved(project_id=None) == 200
    assert place() == (world["b"], None, None)


@pytest.mark.parametrize(
    ("what", "sent", "member"),
    [
        ("client", ("client_id",), "client_id"),
        ("client", ("project_id",), "project_id"),
        ("client", ("task_id",), "task_id"),
        ("client", ("client_id", "project_id"), "client_id"),
        ("client", ("client_id", "project_id", "task_id"), "client_id"),
        ("project", ("project_id",), "project_id"),
        ("project", ("task_id",), "task_id"),
        ("project", ("client_id", "project_id"), "project_id"),
        ("project", ("client_id", "task_id"), "task_id"),
        ("project", ("project_id", "task_id"), "project_id"),
        ("template", ("project_id",), "project_id"),
        ("template", ("task_id",), "task_id"),
        ("template", ("client_id", "project_id", "task_id"), "project_id"),
    ],
)
def test_archived_records_and_templates_accept_no_time(api, world, what, sent, member):
    project = api.make("/projects", client_id=world["a"], is_template=what == "template")["id"]
    task = api.make("/tasks", project_id=project)["id"]
    members = {name: {"client_id": world["a"], "project_id": project, "task_id": task}[name] for name in sent}
    mover = entry_of(api, client_id=world["c"])
    path = {"client": f"/clients/{world['a']}", "project": f"/projects/{project}"}.get(what)
    if path:
        assert log(api, **members).status == 201
        assert api.patch(path, {"status": "archived"}).status == 200
    for answer in (log(api, **members), change(api, mover, **members)):
        assert set(answer.errors) == {member}
        assert ("a template" if what == "template" else "archived") in answer.errors[member][0]
    assert again(api, mover) == mover
    if path:
        assert api.patch(path, {"status": "active"}).status == 200
        assert log(api, **members).status == 201
        assert change(api, mover, **members).status == 200


@pytest.mark.parametrize("path", ["/clients/{a}", "/projects/{p}"])
def test_time_that_was_recorded_before_the_archive_stays_editable_and_can_leave_it(api, world, path):
    entry = entry_of(api, task_id=world["task of p"], hourly_rate="60")
    api.patch(path.format(**world), {"status": "archived"})
    changed = change(api, entry, description="x", duration_minutes=60, date="2026-01-02", billable=False).data
    assert (changed["duration_minutes"], changed["date"], changed["billable"]) == (60, "2026-01-02", False)
    assert change(api, entry, user_id=api.member_id, hourly_rate="10", billable=True).data["amount"] == "10.00"
    sent_back = api.put(f"/time-entries/{entry['id']}", again(api, entry))
    assert sent_back.status == 200
    assert change(api, entry, task_id=world["task of q"]).data["client_id"] == world["b"]
    assert change(api, entry, task_id=world["task of p"]).status == 422
    assert api.delete(f"/time-entries/{entry['id']}").status == 204


def test_only_an_admin_or_manager_records_time_for_another_user(api, world):
    members_key = api.new_key(user_id=api.member_id)
    sent = {"client_id": world["a"], "duration_minutes": 90}

    def recorded(key, **members):
        answer = api.post("/time-entries", sent | members, key=key)
        return answer.errors["user_id"][0] if answer.status == 422 else answer.data["user_id"]

    assert recorded(api.key) == recorded(api.key, user_id="me") == api.admin_id
    assert recorded(api.key, user_id=api.member_id) == api.member_id
    assert recorded(members_key) == recorded(members_key, user_id="me") == recorded(members_key, user_id=None)
    assert recorded(members_key, user_id=api.member_id) == api.member_id
    assert "Only an admin's or manager's key" in recorded(members_key, user_id=api.admin_id)
    managers_key = api.new_key(user_id=api.add_user("Mo Manager", role="manager"))
    assert recorded(managers_key, user_id=api.admin_id) == api.admin_id
    entry = api.post("/time-entries", sent, key=members_key).data
    path = f"/time-entries/{entry['id']}"
    assert set(api.patch(path, {"user_id": api.admin_id}, key=members_key).errors) == {"user_id"}
    assert api.patch(path, entry | {"duration_minutes": 60}, key=members_key).data["user_id"] == api.member_id
    assert api.patch(path, {"user_id": "me"}).data["user_id"] == api.admin_id


def test_no_time_is_recorded_for_a_deactivated_user_and_theirs_stays_editable(api, world):
    theirs, mine = (entry_of(api, client_id=world["a"], user_id=user) for user in (api.member_id, "me"))
    api.set_user(api.member_id, {"is_active": False})
    for answer in (log(api, client_id=world["a"], user_id=api.member_id), change(api, mine, user_id=api.member_id)):
        assert "deactivated" in answer.errors["user_id"][0]
    assert change(api, theirs, duration_minutes=5).data["user_id"] == api.member_id
    assert api.put(f"/time-entries/{theirs['id']}", theirs).data["user_id"] == api.member_id
    api.set_user(api.member_id, {"is_active": True})
    assert change(api, mine, user_id=api.member_id).status == 200


CLOCKS = [
    (None, None, 60, 60),
    ("T09:00:00Z", None, 60, 60),
    (None, "T10:30:00Z", 60, 60),
    ("T09:00:00Z", "T10:30:00Z", None, 90),
    ("T09:00:00Z", "T10:30:00Z", 90, 90),
    ("T09:00:00+01:00", "T08:30:00Z", None, 30),
    ("T23:30:00-12:00", "T12:00:00+00:00", None, "ended_at"),
    ("T00:00:00Z", "T24:00:00Z", None, "ended_at"),
    ("T00:00:00+01:00", "T23:00:00Z", None, 1440),
    ("T00:00:00+01:00", "T23:00:00.000001Z", None, "ended_at"),
    ("T09:00:00Z", "T10:30:29.999999Z", None, 90),
    ("T09:00:00Z", "T10:30:30Z", None, 91),
    ("T09:00:00Z", "T10:30:30Z", 90, 90),
    ("T09:00:00Z", "T10:30:30Z", 91, 91),
    ("T09:00:00Z", "T10:30:30Z", 92, "duration_minutes"),
    ("T09:00:00Z", "T10:30:30Z", 89, "duration_minutes"),
    ("T09:00:00Z", "T09:00:01Z", None, 1),
    ("T09:00:00Z", "T10:30:00Z", 89, "duration_minutes"),
    ("T09:00:00Z", "T10:30:00Z", 91, "duration_minutes"),
    ("T09:00:00Z", "T09:00:00Z", None, "ended_at"),
    ("T09:00:00Z", "T08:59:59Z", 1, "ended_at"),
    ("T09:00:00Z", None, None, "duration_minutes"),
    (None, "T10:30:00Z", None, "duration_minutes"),
    (None, None, None, "duration_minutes"),
]
"""Start, end and duration on a day, and the duration of the entry, or the member that is refused."""


def test_start_and_end_say_the_duration_and_one_that_is_sent_must_agree(api):
    client = api.usual("/clients")
    for started, ended, duration, expected in CLOCKS:
        members = {"started_at": started and f"2026-03-10{started}", "ended_at": ended and f"2026-03-10{ended}"}
        members |= {"duration_minutes": duration}
        before = entry_of(api, client_id=client, date="2026-03-09")
        left_out = {name: value for name, value in members.items() if value is not None}
        for send in (
            lambda sent=left_out: api.post("/time-entries", {"client_id": client} | sent),
            lambda sent=members: log(api, client_id=client, **sent),
            lambda sent=members, entry=before: change(api, entry, **sent),
        ):
            answer = send()
            if isinstance(expected, str):
                assert set(answer.errors) == {expected}, members
            else:
                assert answer.data["duration_minutes"] == expected, members
                assert api.delete(f"/time-entries/{answer.data['id']}").status == 204  # a day has 1440 minutes


RETIMED = [
    ({"description": "x"}, (90, "09:00", "10:30")),
    ({"duration_minutes": None}, (90, "09:00", "10:30")),
    ({"duration_minutes": 90}, (90, "09:00", "10:30")),
    ({"ended_at": "11:00"}, (120, "09:00", "11:00")),
    ({"started_at": "10:00"}, (90, "10:00", "11:30")),
    ({"started_at": "11:00", "ended_at": "11:20"}, (20, "11:00", "11:20")),
    ({"ended_at": "11:00", "duration_minutes": 120}, (120, "09:00", "11:00")),
    ({"ended_at": "11:00", "duration_minutes": None}, (120, "09:00", "11:00")),
    ({"started_at": None}, (90, None, "10:30")),
    ({"ended_at": None}, (90, "09:00", None)),
    ({"started_at": None, "ended_at": None}, (90, None, None)),
    ({"ended_at": None, "duration_minutes": 60}, (60, "09:00", None)),
    ({"duration_minutes": 60}, (60, "09:00", "10:00")),
    ({"started_at": "10:30"}, (90, "10:30", "12:00")),
    ({"started_at": "10:00", "duration_minutes": 60}, (60, "10:00", "11:00")),
    ({"started_at": "10:00", "duration_minutes": None}, (30, "10:00", "10:30")),
    ({"ended_at": "11:00", "duration_minutes": 90}, "duration_minutes"),
    ({"ended_at": None, "duration_minutes": None}, "duration_minutes"),
    ({"ended_at": "08:00"}, "ended_at"),
]
"""What is sent to an entry from 09:00 to 10:30, and its duration, start and end, or the member that is refused."""


def test_a_start_takes_its_end_with_it_and_an_end_that_is_sent_says_the_duration(api):
    def moment(time):
        return time and f"2026-03-10T{time}:00.000000Z"

    for sent, expected in RETIMED:
        entry = entry_of(api, client_id=api.usual("/clients"), started_at=NINE, ended_at=HALF_PAST_TEN)
        members = {name: moment(value) if name.endswith("_at") else value for name, value in sent.items()}
        answer = change(api, entry, **members)
        if isinstance(expected, str):
            assert set(answer.errors) == {expected}, sent
            assert again(api, entry) == entry
        else:
            minutes, started, ended = expected
            shown = {"duration_minutes": minutes, "started_at": moment(started), "ended_at": moment(ended)}
            assert answer.data == answer.data | shown | {"date": "2026-03-10"}, sent
        assert api.delete(f"/time-entries/{entry['id']}").status == 204


def test_the_end_follows_from_start_and_duration(api):
    entry = entry_of(api, client_id=api.usual("/clients"), started_at="2026-03-10T23:30:00Z", duration_minutes=45)
    assert entry["ended_at"] == "2026-03-11T00:15:00.000000Z"
    assert change(api, entry, ended_at=None).data["ended_at"] is None
    assert change(api, entry, description="New").data["ended_at"] is None
    assert change(api, entry, duration_minutes=60).data["ended_at"] == "2026-03-11T00:30:00.000000Z"
    assert entry_of(api, client_id=api.usual("/clients"), ended_at="2026-03-10T09:00:00Z")["started_at"] is None


def test_a_user_has_1440_minutes_on_a_day(api):
    day, client = "2026-03-10", api.usual("/clients")
    big = entry_of(api, client_id=client, date=day, duration_minutes=1000)
    fits = entry_of(api, client_id=client, date=day, duration_minutes=440)
    other = entry_of(api, client_id=client, date="2026-03-11", duration_minutes=1)
    message = "Makes {} minutes on 2026-03-10 for user {}: a day has 1440, and {} are left. "
    message += "Record less, or choose another day."
    for answer, field, total, room in (
        (log(api, client_id=client, date=day, duration_minutes=1), "duration_minutes", 1441, 0),
        (change(api, fits, duration_minutes=441), "duration_minutes", 1441, 440),
        (change(api, other, date=day), "date", 1441, 0),
        (change(api, other, started_at=f"{day}T09:00:00Z"), "date", 1441, 0),
    ):
        assert answer.errors == {field: [message.format(total, api.admin_id, room)]}
    theirs = entry_of(api, client_id=client, date=day, duration_minutes=1, user_id=api.member_id)
    refused = change(api, theirs, user_id=api.admin_id)
    assert refused.errors == {"user_id": [message.format(1441, api.admin_id, 0)]}
    assert change(api, fits, duration_minutes=440, description="Same").status == 200
    api.sql("UPDATE time_entries SET duration_minutes = 1440 WHERE id = $1", fits["id"])  # as before there was a limit
    assert change(api, fits, description="New").data["description"] == "New"
    assert change(api, fits, duration_minutes=1439).data["duration_minutes"] == 1439
    assert set(change(api, big, duration_minutes=1001).errors) == {"duration_minutes"}


RESTARTED = [
    ({}, {"started_at": "2026-03-12T09:00:00Z"}, "2026-03-12"),
    ({}, {"started_at": "2026-03-10T22:30:00Z"}, "2026-03-10"),
    ({}, {"started_at": "2026-03-10T23:30:00Z"}, "2026-03-11"),
    ({}, {"started_at": "2026-03-12T09:00:00Z", "date": "2026-03-01"}, "2026-03-01"),
    ({}, {"started_at": "2026-03-12T09:00:00Z", "date": None}, "2026-03-12"),
    ({}, {"started_at": None}, "2026-03-10"),
    ({}, {"description": "x"}, "2026-03-10"),
    ({"date": "2026-03-01"}, {"started_at": "2026-03-10T12:00:00Z"}, "2026-03-01"),
    ({"date": "2026-03-01"}, {"started_at": "2026-03-12T09:00:00Z"}, "2026-03-12"),
    ({"started_at": None, "date": "2026-03-01"}, {"started_at": "2026-03-12T09:00:00Z"}, "2026-03-12"),
    ({"started_at": None, "date": "2026-03-12"}, {"started_at": "2026-03-12T09:00:00Z"}, "2026-03-12"),
]
"""What an entry that started on 10 March says beside, what is sent to it, and its day in Berlin then."""


def test_the_day_follows_a_start_on_another_day_unless_it_is_sent(api):
    for made_with, sent, day in RESTARTED:
        entry = entry_of(api, **{"client_id": api.usual("/clients"), "started_at": NINE} | made_with)
        assert change(api, entry, **sent).data["date"] == day, (made_with, sent)


def test_a_duration_within_the_started_minute_stays_when_something_else_changes(api):
    members = {"client_id": api.usual("/clients"), "started_at": NINE, "ended_at": "2026-03-10T10:30:40Z"}
    entry = entry_of(api, **members, duration_minutes=90)
    assert change(api, entry, description="x", user_id=api.member_id).data["duration_minutes"] == 90
    assert api.put(f"/time-entries/{entry['id']}", entry).data["duration_minutes"] == 90
    assert change(api, entry, ended_at=members["ended_at"]).data["duration_minutes"] == 91


@pytest.mark.parametrize(
    ("project", "task", "billable"),
    [
        (None, None, True),
        ({"billing_type": "time_and_materials"}, None, True),
        ({"billing_type": "fixed_fee"}, None, True),
        ({"billing_type": "retainer"}, None, True),
        ({"billing_type": "non_billable"}, None, False),
        ({"billing_type": "time_and_materials"}, False, False),
        ({"billing_type": "non_billable"}, True, True),
        (None, True, True),
        (None, False, False),
    ],
)
def test_billable_follows_from_the_task_else_the_project(api, project, task, billable):
    members = {"client_id": api.usual("/clients"), "hourly_rate": "60"}
    if project:
        members["project_id"] = api.make("/projects", client_id=members["client_id"], **project)["id"]
    if task is not None:
        parents = {name: members[name] for name in ("client_id", "project_id") if name in members}
        members["task_id"] = api.make("/tasks", **parents, billable=task)["id"]

    def billing_state(answer):
        return tuple(answer.data[name] for name in ("billable", "billing_status", "amount"))

    is_covered = (project or {}).get("billing_type") in {"fixed_fee", "retainer"}
    state = "covered" if is_covered else "unbilled"
    billed = {True: (True, state, "90.00"), False: (False, "non_billable", "0.00")}
    assert billing_state(log(api, **members)) == billed[billable]
    assert billing_state(log(api, **members, billable=None)) == billed[billable]
    entry = entry_of(api, **members, billable=not billable)
    assert billing_state(change(api, entry)) == billed[not billable]
    assert billing_state(change(api, entry, description="x")) == billed[not billable]
    assert billing_state(change(api, entry, billable=None)) == billed[billable]


def test_time_without_a_client_is_never_billed(api, world):
    api.patch(f"/tasks/{world['loose']}", {"billable": True})
    api.patch(f"/tasks/{world['task of internal']}", {"billable": True})
    for members in ({"project_id": "internal"}, {"task_id": "task of internal"}, {"task_id": "loose"}):
        related = ids_of(world, members)
        assert entry_of(api, **related)["billable"] is False
        assert entry_of(api, **related, billable=False)["billing_status"] == "non_billable"
        assert "without a client" in log(api, **related, billable=True).errors["billable"][0]
    billed = entry_of(api, client_id=world["a"], hourly_rate="60")
    internal = {"project_id": world["internal"]}
    assert set(change(api, billed, **internal, billable=True).errors) == {"billable"}
    assert set(change(api, billed, **internal).errors) == {"billable"}
    assert again(api, billed) == billed
    moved = change(api, billed, **internal, billable=False).data
    assert (moved["billable"], moved["billing_status"], moved["amount"]) == (False, "non_billable", "0.00")
    assert set(change(api, billed, billable=True).errors) == {"billable"}
    assert change(api, billed, billable=None, client_id=world["a"], project_id=None).data["billable"] is True
    assert change(api, billed, billable=None, **internal).data["billable"] is False


def test_the_rate_is_that_of_the_project_else_the_client_the_user_the_account(api):
    client = api.make("/clients")["id"]
    project = api.make("/projects", client_id=client)["id"]

    def price(**members):
        entry = entry_of(api, **members)
        api.delete(f"/time-entries/{entry['id']}")
        assert (entry["billable"], entry["currency"]) == (True, "EUR")
        return entry["hourly_rate"], entry["amount"]

    for rates in product(*((rate, None) for rate in RATES.values())):
        have = dict(zip(LEVELS, rates, strict=True))
        set_rates(api, project, client, **have)

        def first(*levels, have=have):
            rate = next((have[level] for level in levels if have[level]), None)
            return rate, f"{Decimal(rate) * 3 / 2:.2f}" if rate else None

        assert price(project_id=project) == first("project", "client", "user", "account")
        assert price(client_id=client) == first("client", "user", "account")
        assert price(client_id=client, user_id=api.member_id) == first("client", "account")
        assert price(project_id=project, hourly_rate="12.34", duration_minutes=60) == ("12.34", "12.34")


def test_a_rate_of_nothing_is_a_rate(api, world):
    set_rates(api, world["p"], world["a"], **RATES | {"project": "0"})
    assert entry_of(api, project_id=world["p"])["hourly_rate"] == "0.00"
    assert entry_of(api, project_id=world["q"], hourly_rate=0)["amount"] == "0.00"


def test_a_later_change_of_any_rate_changes_no_price(api, world):
    unpriced = entry_of(api, project_id=world["p"])
    set_rates(api, world["p"], world["a"], account="70")
    entries = [entry_of(api, **ids_of(world, names)) for names in ({"project_id": "p"}, {"client_id": "a"})]
    assert [entry["amount"] for entry in entries] == ["105.00", "105.00"]
    for level in reversed(LEVELS):
        set_rates(api, world["p"], world["a"], **{level: "500"})
        assert [again(api, entry) for entry in entries] == entries
    for entry in entries:
        back = api.put(f"/time-entries/{entry['id']}", entry).data
        assert back == entry | {"updated_at": back["updated_at"]}
        longer = change(api, entry, duration_minutes=120, description="x", billable=True, date="2026-01-01").data
        assert (longer["hourly_rate"], longer["amount"]) == ("70.00", "140.00")
    assert entry_of(api, project_id=world["p"])["hourly_rate"] == "500.00"
    for answer in (api.put(f"/time-entries/{unpriced['id']}", unpriced), change(api, unpriced, description="x")):
        assert (answer.data["hourly_rate"], answer.data["amount"]) == (None, None)
    set_rates(api, world["p"], world["a"], **dict.fromkeys(LEVELS))
    assert again(api, entries[0])["amount"] == "140.00"


def test_another_client_project_or_user_brings_its_rate_and_another_task_does_not(api, world):
    set_rates(api, world["p"], world["a"], project="100", client="90", user="80")
    set_rates(api, world["q"], world["b"], project="200", account="70")
    entry = entry_of(api, task_id=world["task of p"], duration_minutes=60)

    def priced(**members):
        changed = change(api, entry, **ids_of(world, members)).data
        assert changed["amount"] == changed["hourly_rate"]
        return changed["hourly_rate"]

    set_rates(api, world["p"], world["a"], project="111")
    assert priced(task_id="subtask of p") == "100.00"
    assert priced(task_id="task of q") == "200.00"
    assert priced(task_id="task of p") == "111.00"
    assert priced(task_id=None, project_id=None) == "90.00"
    assert priced(client_id="b") == "80.00"
    assert priced(user_id=api.member_id) == "70.00"
    assert priced(user_id="me") == "80.00"
    assert priced(hourly_rate="33.33") == "33.33"
    assert priced(description="x", client_id="b", user_id=api.admin_id) == "33.33"
    assert priced(project_id="q", hourly_rate="44.44") == "44.44"
    assert priced(hourly_rate=None) == "200.00"
    assert priced(hourly_rate="55.55") == "55.55"
    assert priced(project_id="p") == "55.55"
    assert priced(user_id=api.member_id) == "55.55"
    assert priced(task_id="task of q", user_id="me") == "55.55"
    assert priced(project_id="q", hourly_rate=None) == "200.00"
    assert priced(hourly_rate="") == "200.00"


def test_a_rate_that_was_sent_stays_wherever_the_entry_goes_until_it_is_taken_back(api, world):
    set_rates(api, world["p"], world["a"], project="100")
    set_rates(api, world["q"], world["b"], project="200", account="70")
    entry = entry_of(api, project_id=world["p"], hourly_rate="99")
    for members in ({"project_id": "q"}, {"user_id": api.member_id}, {"project_id": None, "client_id": "c"}):
        moved = change(api, entry, **ids_of(world, members)).data
        assert (moved["hourly_rate"], moved["amount"]) == ("99.00", "148.50")
    back = api.put(f"/time-entries/{entry['id']}", again(api, entry) | {"client_id": world["b"]}).data
    assert (back["client_id"], back["hourly_rate"]) == (world["b"], "99.00")
    assert change(api, entry, hourly_rate=None).data["hourly_rate"] == "70.00"
    assert change(api, entry, project_id=world["p"]).data["hourly_rate"] == "100.00"


def test_a_derived_rate_that_is_sent_back_as_it_was_read_is_still_a_derived_one(api, world):
    set_rates(api, world["p"], world["a"], project="100")
    set_rates(api, world["q"], world["b"], project="200")
    one, other = (entry_of(api, project_id=world["p"]) for _ in range(2))
    moved = {"client_id": world["b"], "project_id": world["q"]}
    assert change(api, one, **moved).data["hourly_rate"] == "200.00"
    assert api.put(f"/time-entries/{other['id']}", other | moved).data["hourly_rate"] == "200.00"
    assert change(api, other, hourly_rate="200").data["hourly_rate"] == "200.00"
    assert change(api, other, project_id=world["p"]).data["hourly_rate"] == "100.00"
    assert change(api, other, hourly_rate="200").data["hourly_rate"] == "200.00"
    assert change(api, other, user_id=api.member_id).data["hourly_rate"] == "200.00"


def test_a_rate_in_another_currency_than_the_entrys_is_passed_over(api):
    set_rates(api, None, None, user="80", account="70")
    client = api.make("/clients", currency="JPY")["id"]
    project = api.make("/projects", client_id=client)["id"]

    def price(**members):
        entry = entry_of(api, **members)
        return entry["hourly_rate"], entry["amount"], entry["currency"]

    assert price(project_id=project) == (None, None, "JPY")
    set_rates(api, project, client, client="9001")
    assert price(project_id=project) == price(client_id=client) == ("9001", "13502", "JPY")
    set_rates(api, project, client, project="10000")
    assert price(project_id=project) == ("10000", "15000", "JPY")
    assert set(log(api, project_id=project, hourly_rate="99.5").errors) == {"hourly_rate"}
    internal = api.make("/projects", client_id=None)["id"]
    assert price(project_id=internal) == ("80.00", "0.00", "EUR")


def test_moving_to_a_client_with_another_currency_derives_the_price_again(api):
    euros, yen = api.make("/clients", hourly_rate="60.5")["id"], api.make("/clients", currency="JPY")["id"]
    entry = entry_of(api, client_id=euros, duration_minutes=60)

    def moved(**members):
        changed = change(api, entry, **members).data
        return changed["hourly_rate"], changed["amount"], changed["currency"]

    assert "JPY has no decimal places" in change(api, entry, client_id=yen, hourly_rate="1.5").errors["hourly_rate"][0]
    assert again(api, entry) == entry
    assert moved(client_id=yen) == (None, None, "JPY")
    assert moved(hourly_rate="9000") == ("9000", "9000", "JPY")
    message = "Was sent in JPY, but the entry is now in EUR. Send the rate in EUR, or null for the default rate."
    assert change(api, entry, client_id=euros).errors == {"hourly_rate": [message]}
    assert moved(client_id=euros, hourly_rate=None) == ("60.50", "60.50", "EUR")
    assert moved(client_id=yen, hourly_rate=7000) == ("7000", "7000", "JPY")


def test_an_entry_keeps_its_currency_when_its_client_gets_another(api):
    client = api.make("/clients", hourly_rate="60")["id"]
    project = api.make("/projects", client_id=client)["id"]
    entry = entry_of(api, project_id=project)
    assert api.patch(f"/clients/{client}", {"currency": "USD", "hourly_rate": "75"}).status == 200
    assert again(api, entry) == entry
    assert change(api, entry, duration_minutes=60).data["amount"] == "60.00"
    new = entry_of(api, project_id=project)
    assert (new["amount"], new["currency"]) == ("112.50", "USD")
    shown = api.get(f"/projects/{project}").data
    assert (shown["unbilled_amount"], shown["currency"], shown["tracked_minutes"]) == ("112.50", "USD", 150)
    assert change(api, entry, duration_minutes=30).status == 200
    assert api.delete(f"/time-entries/{new['id']}").status == 204
    shown = api.get(f"/projects/{project}").data
    assert (shown["unbilled_amount"], shown["currency"], shown["tracked_minutes"]) == ("0.00", "USD", 30)
    assert api.patch(f"/clients/{client}", {"currency": "EUR"}).status == 200
    assert api.get(f"/projects/{project}").data["unbilled_amount"] == "30.00"


@pytest.mark.parametrize(("currency", "digits"), [("EUR", 2), ("JPY", 0), ("KWD", 3)])
def test_amounts_are_exact_and_round_half_up(api, currency, digits):
    entry = entry_of(api, client_id=api.make("/clients", currency=currency)["id"])
    units = [1, 3, 99, 101, 12_345, 8_000_001, 41_666_665 * 10**digits + 1, 41_666_666 * 10**digits]
    minutes = [1, 7, 10, 30, 59, 90, 1439, 1440]
    halves = 0
    for rate_units, duration in product(units, minutes):
        rate = f"{Decimal(rate_units).scaleb(-digits):f}"
        exact = Fraction(rate) * duration / 60 * 10**digits
        amount = half_up(exact)
        halves += exact.denominator == 2
        changed = change(api, entry, hourly_rate=rate, duration_minutes=duration).data
        assert changed["hourly_rate"] == rate
        assert changed["amount"] == f"{Decimal(amount).scaleb(-digits):f}", (rate, duration)
    assert halves > 10


def test_what_an_entry_is_worth_has_a_limit(api):
    client = api.usual("/clients")
    entry = entry_of(api, client_id=client, duration_minutes=60, hourly_rate=MAX_AMOUNT)
    assert entry["amount"] == f"{MAX_AMOUNT}.00"
    for answer in (
        change(api, entry, duration_minutes=61),
        change(api, entry, hourly_rate=f"{MAX_AMOUNT}.01"),
        log(api, client_id=client, duration_minutes=90, hourly_rate=MAX_AMOUNT),
    ):
        assert f"at most {MAX_AMOUNT}" in answer.errors["hourly_rate"][0]
    assert again(api, entry) == entry
    assert change(api, entry, duration_minutes=61, billable=False).status == 200


def test_time_that_is_not_billed_is_worth_nothing_and_keeps_its_rate(api, world):
    entry = entry_of(api, client_id=world["a"], hourly_rate="60")
    for billable, amount in ((False, "0.00"), (True, "90.00")):
        changed = change(api, entry, billable=billable).data
        assert (changed["amount"], changed["hourly_rate"]) == (amount, "60.00")
    yen = api.make("/clients", currency="JPY")["id"]
    assert entry_of(api, client_id=yen, billable=False, hourly_rate="60")["amount"] == "0"


def test_the_sums_of_project_and_task_follow_every_entry(api, world):
    p, q, task = world["p"], world["q"], world["task of p"]
    api.patch(f"/tasks/{task}", {"estimated_minutes": 200})

    def sums(project):
        data = api.get(f"/projects/{project}").data
        assert data["unbilled_minutes"] == data["billable_minutes"]
        assert next(row for row in api.get("/projects").data if row["id"] == project) == data
        return data["tracked_minutes"], data["billable_minutes"], data["unbilled_amount"]

    def on_task():
        data = api.get(f"/tasks/{task}").data
        return data["tracked_minutes"], data["remaining_minutes"]

    assert (sums(p), sums(q), on_task()) == ((0, 0, "0.00"), (0, 0, "0.00"), (0, 200))
    entry = entry_of(api, task_id=task, hourly_rate="60")
    assert (sums(p), on_task()) == ((90, 90, "90.00"), (90, 110))
    other = entry_of(api, project_id=p, hourly_rate="60", billable=False, duration_minutes=30)
    assert (sums(p), on_task()) == ((120, 90, "90.00"), (90, 110))
    change(api, entry, duration_minutes=100)
    assert (sums(p), on_task()) == ((130, 100, "100.00"), (100, 100))
    change(api, other, billable=True)
    assert sums(p) == (130, 130, "130.00")
    change(api, entry, task_id=None, project_id=q, hourly_rate="6")
    assert (sums(p), sums(q), on_task()) == ((30, 30, "30.00"), (100, 100, "10.00"), (0, 200))
    change(api, entry, task_id=task, hourly_rate="6")
    assert (sums(p), sums(q), on_task()) == ((130, 130, "40.00"), (0, 0, "0.00"), (100, 100))
    assert api.delete(f"/time-entries/{entry['id']}").status == 204
    assert (sums(p), on_task()) == ((30, 30, "30.00"), (0, 200))
    assert api.get(f"/time-entries/{entry['id']}").status == 404
    assert api.get("/time-entries").json["meta"]["total"] == 1


def test_what_has_time_on_it_is_not_deleted(api, world):
    entry_of(api, project_id=world["p"])
    for path, name in ((f"/projects/{world['p']}", "time_entries"), (f"/clients/{world['a']}", "time_entries")):
        answer = api.delete(path)
        assert (answer.code, answer.errors[name]) == ("in_use", ["Move or delete 1 time entry first."])


@pytest.mark.parametrize(
    ("zone", "moment"), [("America/Los_Angeles", "0001-01-01T00:00:00Z"), ("Europe/Berlin", "9999-12-31T23:30:00Z")]
)
def test_a_start_at_the_edge_of_the_calendar_is_refused(api, zone, moment):
    api.set_account({"timezone": zone})
    for members in ({}, {"date": "2026-01-01"}):
        assert set(api.create("/time-entries", started_at=moment, **members).errors) == {"started_at"}


@time_machine.travel("2026-03-31T10:00:00Z", tick=False)
@pytest.mark.parametrize(("day", "is_taken"), [
    ("0201-03-10", False), ("1969-12-31", False), ("1970-01-01", True), ("2126-03-31", True), ("2126-04-01", False),
])  # fmt: skip
def test_a_day_lies_from_1970_to_a_hundred_years_ahead(api, day, is_taken):
    message = f"Must be from 1970-01-01 to 2126-03-31; this is {day}. Check the year."
    for collection, name, value in (
        ("/time-entries", "date", day),
        ("/time-entries", "started_at", f"{day}T12:00:00Z"),
        ("/expenses", "date", day),
        ("/invoices", "issue_date", day),
        ("/tasks", "due_date", day),
        ("/tickets", "due_at", f"{day}T12:00:00Z"),
    ):
        record, refused = api.make(collection), not is_taken and {name: [message]}
        for answer in (
            api.create(collection, **{name: value}),
            api.patch(f"{collection}/{record['id']}", {name: value}),
        ):
            assert (answer.status == 422 and answer.errors) == refused, (collection, answer)
    assert api.get("/time-entries", {"date_from": day}).status == 200, "a filter takes any day"


def test_only_the_client_that_is_archived_is_said_to_be(api):
    active, archived = api.make("/clients")["id"], api.make("/clients")["id"]
    project = api.make("/projects", client_id=archived)["id"]
    api.patch(f"/clients/{archived}", {"status": "archived"})
    errors = api.create("/time-entries", client_id=active, project_id=project).errors
    assert not any(f"Client {active} is archived" in message for messages in errors.values() for message in messages)


def test_a_contradiction_is_reported_on_the_narrower_of_the_fields_that_were_sent(api):
    a, b = api.make("/clients")["id"], api.make("/clients")["id"]
    project = api.make("/projects", client_id=a)["id"]
    task = api.make("/tasks", project_id=project)["id"]
    milestone = api.post(f"/projects/{project}/milestones", {"name": "M"}).data["id"]
    assert set(api.create("/time-entries", client_id=b, task_id=task).errors) == {"task_id"}
    assert set(api.create("/tasks", client_id=b, milestone_id=milestone).errors) == {"milestone_id"}
    assert set(api.create("/tasks", client_id=b, parent_id=task).errors) == {"parent_id"}
    of_a = api.make("/tasks", client_id=a)["id"]
    internal = api.make("/projects", client_id=None)["id"]
    refused = api.create("/time-entries", client_id=None, project_id=internal, task_id=of_a)
    assert set(refused.errors) == {"task_id"}


def test_a_user_that_does_not_exist_hides_no_other_fault(api):
    a, b = api.make("/clients")["id"], api.make("/clients")["id"]
    project = api.make("/projects", client_id=a)["id"]
    errors = api.create("/time-entries", client_id=b, project_id=project, user_id=999).errors
    assert set(errors) == {"user_id", "project_id"}


def test_time_whose_only_relation_was_deleted_stays_editable(api):
    task = api.make("/tasks")["id"]
    entry = api.make("/time-entries", client_id=None, task_id=task)["id"]
    assert api.delete(f"/tasks/{task}").status == 204
    assert api.patch(f"/time-entries/{entry}", {"description": "x"}).status == 200
    assert api.put(f"/time-entries/{entry}", api.get(f"/time-entries/{entry}").data).status == 200


def test_null_is_not_answered_with_success_and_no_effect(api):
    task = api.make("/tasks", project_id=api.usual("/projects"))["id"]
    entry = api.make("/time-entries", client_id=None, task_id=task)["id"]
    for path, members in (
        (f"/time-entries/{entry}", {"project_id": None}),
        (f"/time-entries/{entry}", {"client_id": None}),
        (f"/tasks/{task}", {"client_id": None}),
    ):
        answer = api.patch(path, members)
        (member,) = members
        assert answer.status == 422 or answer.data[member] is None


@pytest.mark.parametrize("collection", ["/time-entries", "/expenses"])
def test_a_member_changes_and_deletes_only_their_own_and_an_admin_all(api, collection):
    key = api.new_key(user_id=api.member_id)
    admins, members_own = api.make(collection), api.make(collection, user_id=api.member_id)
    path, what = f"{collection}/{admins['id']}", "time entry" if collection == "/time-entries" else "expense"
    whose = f"This {what} belongs to Ana Admin (user {api.admin_id})."
    message = f"{whose} Use that user's key, an admin's or a manager's to change or delete it."
    for members in ({}, {"description": "x"}, {"user_id": "me"}, {"user_id": None}, {"user_id": api.member_id}, admins):
        refused = api.patch(path, members, key=key)
        assert (refused.code, refused.errors) == ("not_owner", {"user_id": [message]})
    both = api.patch(path, {"external_id": "x", "client_id": 999}, key=key)
    assert (both.code, set(both.errors)) == ("validation_failed", {"user_id", "client_id"})
    stale = {"If-Match": '"stale"'}
    assert api.patch(path, {"description": "x"}, key=key, headers=stale).status == 412
    assert api.delete(path, key=key, headers=stale).status == 412
    refused = api.delete(path, key=key)
    assert (refused.code, refused.errors) == ("not_owner", {"user_id": [message]})
    assert api.get(path, key=key).data == admins
    assert api.patch(f"{collection}/{members_own['id']}", {"description": "x"}, key=key).status == 200
    assert api.delete(f"{collection}/{members_own['id']}", key=key).status == 204
    assert api.patch(path, {"user_id": api.member_id}).data["user_id"] == api.member_id
    assert api.patch(path, {"description": "x"}, key=key).data["description"] == "x"
    assert api.patch(path, {"user_id": "me"}).data["user_id"] == api.admin_id
    assert api.delete(path).status == 204


def test_time_in_an_archived_project_can_lose_its_task(api):
    project = api.make("/projects")["id"]
    task = api.make("/tasks", project_id=project)["id"]
    entry = api.make("/time-entries", client_id=None, task_id=task)["id"]
    api.patch(f"/projects/{project}", {"status": "archived"})
    assert api.patch(f"/time-entries/{entry}", {"task_id": None}).status == 200
