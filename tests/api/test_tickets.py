from itertools import product

import pytest
import time_machine

UNRESOLVED = ("open", "pending", "on_hold")
STATES = (*UNRESOLVED, "resolved", "closed")
BELONGS = "Belongs to client {}, not to client {}. Send matching values, or only {}."
FIXED = "Is fixed while {} on the ticket or its tasks. Move them first."
OBSERVED = (
    *("first_response_at", "first_response_minutes", "resolved_at", "closed_at", "resolution_minutes"),
    *("last_reply_at", "last_reply_by"),
)
RELATIONS = ("client_id", "contact_id", "site_id", "project_id")


def at(moment):
    return time_machine.travel(f"2027-03-01T{moment}Z", tick=False)


def new(api, collection, **members):
    return api.make(collection, **members)["id"]


def ticket_of(api, **members):
    """The path of a new ticket."""
    return f"/tickets/{new(api, '/tickets', **members)}"


def found(api, path, **query):
    return [row["id"] for row in api.get(path, query).data]


def related_records(api):
    """A client with a contact, a site and a project."""
    client = new(api, "/clients")
    narrower = {"contact_id": "/external-contacts", "site_id": "/sites", "project_id": "/projects"}
    return {"client_id": client} | {
        name: new(api, collection, client_id=client) for name, collection in narrower.items()
    }


def test_it_works(api):
    sent = related_records(api) | {
        "subject": "The checkout is slow",
        "description": "Since the update.",
        "requester_name": "Lea Lenz",
        "requester_email": "lea@bergmann.example",
        "status": "pending",
        "priority": "urgent",
        "type": "incident",
        "assignee_id": api.member_id,
        "due_at": "2027-03-01T12:00:00.000000Z",
        "external_id": "zendesk-1",
        "tag_ids": [new(api, "/tags")],
    }
    answer = api.post("/tickets", sent | {"subject": " The checkout is slow ", "number": None, "reopened_count": None})
    assert answer.status == 201
    ticket = answer.data
    assert ticket == sent | dict.fromkeys(OBSERVED) | {
        "id": ticket["id"],
        "created_at": ticket["created_at"],
        "updated_at": ticket["created_at"],
        "number": 1001,
        "reopened_count": 0,
        "awaiting": "us",
        "replies_count": 0,
        "tracked_minutes": 0,
    }
    assert answer.headers["location"].endswith(f"/tickets/{ticket['id']}")
    assert api.get(f"/tickets/{ticket['id']}").data == ticket
    assert api.get("/tickets").data == [ticket]


def test_a_subject_is_enough(api):
    answer = api.post("/tickets", {"subject": "Help"})
    ticket = answer.data
    unknown = ("description", "requester_name", "requester_email", "assignee_id", "due_at", "external_id")
    assert (answer.status, {ticket[name] for name in (*unknown, *OBSERVED, *RELATIONS)}) == (201, {None})
    assert [ticket[name] for name in ("status", "priority", "type", "tag_ids")] == ["open", "normal", "question", []]
    assert [ticket[name] for name in ("awaiting", "reopened_count", "replies_count")] == ["us", 0, 0]


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("requester_email", "lea@", "Must be an email address"),
        ("assignee_id", "you", 'Must be the id of a user, or "me"'),
        ("due_at", "2027-03-01", "a timestamp with an offset"),
        ("external_id", "taken", "Is already taken by ticket"),
        ("titel", "A", "Unknown field."),
    ],
)
def test_an_invalid_field_is_reported_and_uses_no_number(api, member, value, message):
    api.make("/tickets", external_id="taken")
    made = api.make("/tickets")
    for answer in (api.create("/tickets", **{member: value}), api.patch(f"/tickets/{made['id']}", {member: value})):
        assert (len(answer.errors), answer.code) == (1, "validation_failed")
        assert member in next(iter(answer.errors)), answer
        assert message in answer.errors.popitem()[1][0]
    assert api.get(f"/tickets/{made['id']}").data == made
    assert [made["number"], api.make("/tickets")["number"]] == [1002, 1003]


def test_numbers_count_in_each_account_and_are_not_given_twice(api, other_tenant):
    first, second = api.make("/tickets"), api.make("/tickets")
    assert [first["number"], second["number"], other_tenant.make("/tickets")["number"]] == [1001, 1002, 1001]
    api.delete(f"/tickets/{second['id']}")
    assert api.make("/tickets")["number"] == 1003
    assert list(api.patch(f"/tickets/{first['id']}", {"number": 5}).errors) == ["number"]
    assert api.patch(f"/tickets/{first['id']}", {"number": 1001}).data["number"] == 1001
    assert list(api.create("/tickets", number=1).errors) == ["number"]


@pytest.mark.parametrize("member", ["contact_id", "site_id", "project_id"])
def test_the_client_follows_from_any_narrower_relation_when_made_and_when_moved(api, member):
    first, second = related_records(api), related_records(api)
    ticket = api.make("/tickets", **{member: first[member]})
    assert ticket["client_id"] == first["client_id"]
    moved = api.patch(f"/tickets/{ticket['id']}", {member: second[member]}).data
    assert moved["client_id"] == second["client_id"]
    assert api.patch(f"/tickets/{ticket['id']}", {member: None}).data["client_id"] == second["client_id"]
    null_beside_it = {"client_id": None, member: first[member]}
    assert api.patch(f"/tickets/{ticket['id']}", null_beside_it).data["client_id"] == first["client_id"]


@pytest.mark.parametrize(
    ("first_members", "second_members"),
    [
        (["client_id"], ["contact_id"]),
        (["client_id"], ["site_id"]),
        (["client_id"], ["project_id"]),
        (["client_id"], ["contact_id", "project_id", "site_id"]),
        (["project_id"], ["site_id"]),
        (["project_id"], ["contact_id"]),
        (["project_id"], ["contact_id", "site_id"]),
        (["site_id"], ["contact_id"]),
    ],
)
def test_a_contradiction_is_reported_on_each_narrower_field(api, first_members, second_members):
    one, other = related_records(api), related_records(api)
    first, second = {name: one[name] for name in first_members}, {name: other[name] for name in second_members}
    expected = {name: [BELONGS.format(other["client_id"], one["client_id"], name)] for name in second_members}
    assert api.create("/tickets", **first, **second).errors == expected
    ticket = api.make("/tickets", **first)
    assert api.patch(f"/tickets/{ticket['id']}", first | second).errors == expected
    if first_members != ["client_id"]:  # what was not sent has its say all the same
        back = BELONGS.format(one["client_id"], other["client_id"], first_members[0])
        assert back in str(
            api.patch(f"/tickets/{ticket['id']}", {"client_id": other["client_id"]}).errors[first_members[0]]
        )
    assert found(api, "/tickets") == [ticket["id"]]
    assert api.get(f"/tickets/{ticket['id']}").data == ticket


def test_the_requester_is_the_contact_unless_another_is_named(api):
    client = new(api, "/clients")
    lea = {"first_name": "Lea", "last_name": "Lenz", "email": "lea@bergmann.example"}
    contact = new(api, "/external-contacts", client_id=client, **lea)
    other = new(api, "/external-contacts", client_id=client, last_name="Opel")

    def requester(ticket):
        return ticket["requester_name"], ticket["requester_email"]

    for empty in ({}, {"requester_name": None, "requester_email": ""}):
        ticket = api.make("/tickets", contact_id=contact, **empty)
        assert requester(ticket) == ("Lea Lenz", "lea@bergmann.example")
    path = f"/tickets/{ticket['id']}"
    named = api.make("/tickets", contact_id=contact, requester_name="Shop floor")
    assert requester(named) == ("Shop floor", "lea@bergmann.example")
    api.patch(f"/external-contacts/{contact}", {"last_name": "Lang"})
    assert requester(api.patch(path, {"subject": "New"}).data) == ("Lea Lenz", "lea@bergmann.example")
    assert requester(api.patch(path, {"contact_id": other}).data) == ("Opel", None)
    assert requester(api.patch(path, {"requester_name": "Otto Opel"}).data) == ("Otto Opel", None)
    assert requester(api.patch(path, {"contact_id": None}).data) == ("Otto Opel", None)


def test_a_deleted_contact_leaves_its_name_and_address(api):
    contact = api.make("/external-contacts", last_name="Lenz", email="lea@bergmann.example")
    ticket = api.make("/tickets", contact_id=contact["id"])
    assert api.delete(f"/external-contacts/{contact['id']}").status == 204
    left = api.get(f"/tickets/{ticket['id']}").data
    assert left == ticket | {"contact_id": None, "updated_at": left["updated_at"]}
    assert (left["requester_name"], left["requester_email"]) == ("Lenz", "lea@bergmann.example")
    assert left["updated_at"] > ticket["updated_at"]


@pytest.mark.parametrize(("before", "after"), [*product(STATES, STATES)])
def test_any_status_leads_to_any_and_reopening_counts(api, before, after):
    with at("10:00:00"):
        made = api.make("/tickets", status=before)
    then, now = made["created_at"], "2027-03-01T10:07:00.000000Z"
    with at("10:07:00"):
        ticket = api.patch(f"/tickets/{made['id']}", {"status": after}).data
    assert made["resolved_at"] == (None if before in UNRESOLVED else then)
    assert made["resolution_minutes"] == (None if before in UNRESOLVED else 0)
    assert made["closed_at"] == (then if before == "closed" else None)
    open_before, open_after = before in UNRESOLVED, after in UNRESOLVED
    assert ticket["reopened_count"] == (1 if open_after and not open_before else 0)
    assert ticket["resolved_at"] == (None if open_after else now if open_before else then)
    assert ticket["resolution_minutes"] == (None if open_after else 7 if open_before else 0)
    assert ticket["closed_at"] == (None if after != "closed" else then if before == "closed" else now)
    assert ticket["awaiting"] == ("us" if open_after else None)


def test_each_reopening_counts_and_resolving_again_counts_from_the_creation(api):
    with at("10:00:00"):
        path = ticket_of(api)
    for count, (moment, status, minutes) in enumerate(
        [
            ("10:00:29", "resolved", 0),
            ("10:01:29", "closed", 1),
            ("10:01:30", "resolved", 2),
            ("12:00:31", "closed", 121),
        ]
    ):
        with at(moment):
            resolved = api.patch(path, {"status": status}).data
            assert (resolved["resolution_minutes"], resolved["reopened_count"]) == (minutes, count)
            assert api.patch(path, {"status": "on_hold"}).data["reopened_count"] == count + 1
            assert api.patch(path, {"status": "open", "subject": "New"}).data["reopened_count"] == count + 1


def test_an_assignee_is_an_active_user_or_me_or_null(api):
    path = ticket_of(api, assignee_id=api.member_id)
    assert api.patch(path, {"assignee_id": "me"}).data["assignee_id"] == api.admin_id
    assert api.patch(path, {"assignee_id": None}).data["assignee_id"] is None
    kept = ticket_of(api, assignee_id=api.member_id)
    api.set_user(api.member_id, {"is_active": False})
    refused = {"assignee_id": [f"User {api.member_id} is deactivated. Choose an active user."]}
    assert api.patch(path, {"assignee_id": api.member_id}).errors == refused
    assert api.create("/tickets", assignee_id=api.member_id).errors == refused
    assert api.patch(kept, {"subject": "New", "assignee_id": api.member_id}).data["assignee_id"] == api.member_id
    assert len(found(api, "/tickets")) == 2


def test_text_is_kept_as_it_was_sent(api):
    text = """<script>alert('1')</script> & "quotes" \\ 🛒 ß\r\n\tindented  twice %s {0}"""
    line = " ".join(text.split())
    ticket = api.make("/tickets", subject=f"<b>{line}", description=f"\n  {text}\u3000 ", requester_name=line)
    ticket = api.get(f"/tickets/{ticket['id']}").data
    assert [ticket[name] for name in ("subject", "description", "requester_name")] == [f"<b>{line}", text, line]
    assert api.patch(f"/tickets/{ticket['id']}", {"description": " "}).data["description"] is None
    long = {"subject": "x" * 255, "description": "x" * 50000}
    assert api.patch(f"/tickets/{ticket['id']}", long).data["description"] == long["description"]


def test_a_ticket_that_was_read_can_be_sent_back(api):
    ticket = api.make("/tickets", **related_records(api), status="closed", tag_ids=[new(api, "/tags")])
    others = dict.fromkeys(("reopened_count", "replies_count", "tracked_minutes"), 99)
    others |= {name: "2020-01-01T00:00:00Z" for name in ticket if name.endswith("_at") and name != "due_at"}
    for body in (ticket, ticket | others | {"awaiting": "us", "last_reply_by": "contact", "resolution_minutes": -1}):
        again = api.put(f"/tickets/{ticket['id']}", body).data
        assert again == ticket | {"updated_at": again["updated_at"]}


def test_overdue_is_what_is_not_resolved_when_it_is_due(api):
    due = {"due_at": "2027-03-01T12:00:00+02:00"}
    late, done, closed = (new(api, "/tickets", status=status, **due) for status in ("on_hold", "resolved", "closed"))
    never = new(api, "/tickets")
    with at("10:00:00"):
        assert found(api, "/tickets", overdue="true") == []
    with at("10:00:01"):
        assert found(api, "/tickets", overdue="true") == [late]
        assert found(api, "/tickets", overdue="false") == [never, closed, done]


def test_a_ticket_only_changes_in_the_state_that_its_caller_knows(api):
    made = api.create("/tickets")
    path = f"/tickets/{made.data['id']}"
    for change in (lambda: api.make(f"{path}/replies"), lambda: api.make(f"{path}/replies", is_internal=True)):
        seen = api.get(path).headers["etag"]
        assert api.get(path, headers={"If-None-Match": seen}).status == 304
        moment = api.get(path).data["updated_at"]
        change()
        assert api.get(path, headers={"If-None-Match": seen}).status == 200
        before = api.get(path).data
        assert before["updated_at"] > moment
        for answer in (
            api.patch(path, {"subject": "New"}, headers={"If-Match": seen}),
            api.delete(path, headers={"If-Match": seen}),
        ):
            assert (answer.status, answer.code) == (412, "precondition_failed")
        assert api.get(path).data == before
    now = {"If-Match": api.get(path).headers["etag"]}
    now = {"If-Match": api.patch(path, {"subject": "New"}, headers=now).headers["etag"]}
    api.post("/time-entries", {"ticket_id": made.data["id"], "duration_minutes": 5})  # a figure, and no change of it
    assert api.get(path, headers={"If-None-Match": now["If-Match"]}).status == 200
    assert api.delete(path, headers=now).status == 204


def test_a_deleted_ticket_takes_its_replies_and_leaves_its_time_and_tasks(api):
    related = related_records(api)
    doomed, other = (api.make("/tickets", project_id=related["project_id"]) for _ in range(2))
    for ticket in (doomed, other):
        api.make(f"/tickets/{ticket['id']}/replies")
    task = api.make("/tasks", ticket_id=doomed["id"])
    entry = api.post("/time-entries", {"ticket_id": doomed["id"], "duration_minutes": 60}).data
    left = api.make("/tasks", ticket_id=other["id"])
    assert api.delete(f"/tickets/{doomed['id']}").status == 204
    for path in (f"/tickets/{doomed['id']}", f"/tickets/{doomed['id']}/replies"):
        assert (api.get(path).status, api.get(path).code) == (404, "not_found")
    for path, former in ((f"/tasks/{task['id']}", task), (f"/time-entries/{entry['id']}", entry)):
        kept = api.get(path).data
        assert kept == former | {"ticket_id": None, "updated_at": kept["updated_at"]}
        assert kept["updated_at"] > former["updated_at"]
    assert api.get(f"/tasks/{left['id']}").data == left
    assert api.get(f"/tickets/{other['id']}").data["replies_count"] == 1


@pytest.mark.parametrize("collection", ["/time-entries", "/tasks"])
def test_time_and_tasks_on_a_ticket_belong_where_it_does(api, collection):
    related, body = (
        related_records(api),
        {"/time-entries": {"duration_minutes": 30}, "/tasks": {"title": "Fix it"}}[collection],
    )
    in_project = new(api, "/tickets", project_id=related["project_id"])
    of_client, of_none = new(api, "/tickets", client_id=related["client_id"]), new(api, "/tickets")
    for ticket, client, project in (
        (in_project, related["client_id"], related["project_id"]),
        (of_client, related["client_id"], None),
        (of_none, None, None),
    ):
        made = api.post(collection, body | {"ticket_id": ticket}).data
        assert [made[name] for name in ("ticket_id", "client_id", "project_id")] == [ticket, client, project]
        agreeing = {"ticket_id": ticket, "client_id": client, "project_id": project}
        assert api.post(collection, body | agreeing).status == 201
        assert len(found(api, collection, ticket_id=ticket)) == 2
    assert api.post(collection, body | {"ticket_id": of_client, "project_id": related["project_id"]}).status == 201


@pytest.mark.parametrize("collection", ["/time-entries", "/tasks"])
def test_what_contradicts_the_ticket_is_reported_on_it(api, collection):
    related, other = related_records(api), related_records(api)
    body = {"/time-entries": {"duration_minutes": 30}, "/tasks": {"title": "Fix it"}}[collection]
    in_project = new(api, "/tickets", project_id=related["project_id"])
    of_client = new(api, "/tickets", client_id=related["client_id"])
    of_other = f"Belongs to client {related['client_id']}, not to client {other['client_id']}."
    elsewhere = f"Belongs to project {related['project_id']}, not to project {other['project_id']}."
    for ticket, member, message in (
        (in_project, "client_id", of_other),
        (in_project, "project_id", elsewhere),
        (of_client, "client_id", of_other),
        (of_client, "project_id", of_other),
    ):
        answer = api.post(collection, body | {"ticket_id": ticket, member: other[member]})
        assert list(answer.errors) == ["ticket_id"], answer
        assert message in answer.errors["ticket_id"][0]
    assert found(api, collection) == []


def test_tracked_minutes_are_those_of_the_ticket_and_of_its_tasks(api):
    first, second = (new(api, "/tickets") for _ in range(2))
    task = new(api, "/tasks", ticket_id=first)
    on_task = api.post("/time-entries", {"task_id": task, "duration_minutes": 25}).data
    assert on_task["ticket_id"] == first
    entry = api.post("/time-entries", {"ticket_id": first, "duration_minutes": 60}).data["id"]
    api.post("/time-entries", {"ticket_id": second, "duration_minutes": 7})

    def tracked():
        return [ticket["tracked_minutes"] for ticket in api.get("/tickets", {"sort": "number"}).data]

    assert tracked() == [85, 7]
    api.patch(f"/time-entries/{entry}", {"ticket_id": second})
    assert tracked() == [25, 67]
    api.delete(f"/time-entries/{entry}")
    assert tracked() == [25, 7]
    other = api.post("/time-entries", {"ticket_id": second, "task_id": task, "duration_minutes": 5})
    assert list(other.errors) == ["task_id"]


@pytest.mark.parametrize("through_a_task", [False, True])
def test_a_tickets_client_and_project_are_fixed_while_time_is_on_it_or_on_its_tasks(api, through_a_task):
    related, other = related_records(api), related_records(api)
    sibling = new(api, "/projects", client_id=related["client_id"])
    path = ticket_of(api, project_id=related["project_id"])
    number = int(path.split("/")[2])
    on = {"task_id": new(api, "/tasks", ticket_id=number)} if through_a_task else {"ticket_id": number}
    entries = [api.post("/time-entries", on | {"duration_minutes": 5}).data for _ in range(2)]
    before = api.get(path).data
    for count in ("2 time entries are", "1 time entry is"):
        for project in (sibling, other["project_id"], None):
            assert api.patch(path, {"project_id": project}).errors == {"project_id": [FIXED.format(count)]}
        assert api.get(path).data["project_id"] == before["project_id"]
        assert api.patch(path, {"status": "closed", "project_id": related["project_id"]}).status == 200
        described = api.patch(f"/time-entries/{entries[1]['id']}", {"description": count}).data
        assert described == entries[1] | {"description": count, "updated_at": described["updated_at"]}
        if count.startswith("2"):
            api.delete(f"/time-entries/{entries[0]['id']}")
    api.delete(f"/time-entries/{entries[1]['id']}")
    if through_a_task:
        refused = api.patch(path, {"project_id": other["project_id"]})
        assert refused.errors == {"project_id": ["Is fixed while 1 task belongs to the ticket. Move them first."]}
        api.delete(f"/tasks/{on['task_id']}")
    assert api.patch(path, {"project_id": other["project_id"]}).data["client_id"] == other["client_id"]


def test_a_client_stays_and_a_deleted_project_goes_from_its_tickets(api):
    related = related_records(api)
    ticket = api.make("/tickets", project_id=related["project_id"])
    for other in ("site_id", "project_id"):
        collection = {"site_id": "/sites", "project_id": "/projects"}[other]
        assert api.delete(f"{collection}/{related[other]}").status == 204
    left = api.get(f"/tickets/{ticket['id']}").data
    assert left == ticket | {"project_id": None, "updated_at": left["updated_at"]}
    blocked = api.delete(f"/clients/{related['client_id']}")
    assert (blocked.code, blocked.errors) == ("in_use", {"tickets": ["Move or delete 1 ticket first."]})
    api.delete(f"/tickets/{ticket['id']}")
    assert api.delete(f"/clients/{related['client_id']}").status == 204


def test_a_projects_client_is_fixed_while_tickets_refer_to_it(api):
    related, other = related_records(api), related_records(api)
    path = f"/projects/{related['project_id']}"
    ticket = ticket_of(api, project_id=related["project_id"])
    fixed = {"client_id": ["Is fixed while tickets or sites refer to the project. Move them first."]}
    for client in (other["client_id"], None):
        assert api.patch(path, {"client_id": client, "billing_type": "non_billable"}).errors == fixed
    assert api.patch(path, {"name": "New", "client_id": related["client_id"]}).status == 200
    api.patch(ticket, {"project_id": None})
    assert api.patch(path, {"client_id": other["client_id"]}).data["client_id"] == other["client_id"]


def test_a_change_that_speaks_of_no_relation_moves_nothing(api):
    old_client, new_client = (api.make("/clients")["id"] for _ in range(2))
    contact = api.make("/external-contacts", client_id=old_client)["id"]
    ticket = api.make("/tickets", contact_id=contact)
    task = api.make("/tasks", client_id=old_client)["id"]
    entry = api.make("/time-entries", client_id=None, task_id=task, hourly_rate="60")["id"]
    api.make("/invoices", client_id=old_client, lines=[{"time_entry_ids": [entry]}])
    api.patch(f"/external-contacts/{contact}", {"client_id": new_client})
    assert api.patch(f"/tickets/{ticket['id']}", {"subject": "New"}).data["client_id"] == old_client
    replied = api.post(f"/tickets/{ticket['id']}/replies", {"body": "Hello", "author_type": "contact"})
    assert replied.data["contact_id"] == contact
    fixed = api.patch(f"/tasks/{task}", {"ticket_id": api.make("/tickets", client_id=old_client)["id"]})
    assert "1 time entry is" in fixed.errors["ticket_id"][0]
    assert api.patch(f"/time-entries/{entry}", {"description": "New"}).status == 200


def test_an_internal_project_and_a_client_contradict_each_other(api):
    internal, client = api.make("/projects", client_id=None)["id"], api.make("/clients")["id"]
    for collection in ("/tickets", "/sites"):
        refused = api.create(collection, project_id=internal, client_id=client)
        assert list(refused.errors) == ["project_id"]
        api.make(collection, project_id=internal)
    assert "client_id" in api.patch(f"/projects/{internal}", {"client_id": client}).errors


def test_the_contact_with_the_requesters_address_becomes_the_tickets(api):
    related = related_records(api)
    client, site = related["client_id"], related["site_id"]
    lea = new(api, "/external-contacts", client_id=client, first_name="Lea", last_name="Lenz", email="Lea@Lenz.example")
    elsewhere = new(api, "/external-contacts", client_id=new(api, "/clients"), email="lea@lenz.example")
    asked = {"requester_email": "LEA@lenz.example"}
    for place in ({"client_id": client}, {"site_id": site}, {"client_id": client, "contact_id": None}):
        ticket = api.make("/tickets", **asked, **place)
        assert [ticket[name] for name in ("contact_id", "requester_name", *asked)] == [lea, "Lea Lenz", *asked.values()]
    named = api.make("/tickets", **asked, client_id=client, requester_name="L.")
    assert (named["contact_id"], named["requester_name"]) == (lea, "L.")
    said = api.make("/tickets", **asked, client_id=client, contact_id=related["contact_id"])
    assert said["contact_id"] == related["contact_id"], "the body says who it is"
    unknown = api.make("/tickets", client_id=client, requester_email="nobody@lenz.example")
    assert unknown["contact_id"] is None
    assert api.make("/tickets", **asked)["contact_id"] is None, "without a client there is no contact of the client"
    path = f"/tickets/{unknown['id']}"
    assert api.patch(path, asked | {"contact_id": None}).data["contact_id"] is None
    assert api.patch(path, asked).data["contact_id"] is None, "nothing new was said"
    assert api.patch(path, {"requester_email": "lea@lenz.example"}).data["contact_id"] == lea
    assert elsewhere not in {row["contact_id"] for row in api.get("/tickets").data}
