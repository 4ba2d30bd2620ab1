import pytest
import time_machine

NOW = "2027-03-01T10:00:00.000000Z"


def at(moment):
    return time_machine.travel(f"2027-03-01T{moment}Z", tick=False)


@pytest.fixture
def contact(api):
    """The id of a contact of a client."""
    return api.make("/external-contacts", last_name="Lenz")["id"]


def ticket_of(api, **members):
    """The path of a new ticket."""
    return f"/tickets/{api.make('/tickets', **members)['id']}"


def reply(api, path, **members):
    """Reply to a ticket; return what became of it."""
    answer = api.create(f"{path}/replies", **members)
    assert answer.status == 201, answer
    return answer.json["meta"]["ticket"]


def found(api, path, **query):
    return [row["id"] for row in api.get(f"{path}/replies", query).data]


def test_it_works(api, contact):
    path = ticket_of(api, contact_id=contact)
    made = []
    for sent, derived in (
        ({"body": "We look into it."}, {"author_type": "user", "user_id": api.admin_id}),
        ({"body": "A note", "is_internal": True}, {"author_type": "user", "user_id": api.admin_id}),
        ({"body": "Thanks", "author_type": "contact"}, {"contact_id": contact}),
    ):
        others = {"id": 99, "ticket_id": 99, "user_id": 99, "created_at": "2020-01-01T00:00:00Z"}  # read-only
        assert api.post(f"{path}/replies", sent | others).errors.keys() == others.keys()
        answer = api.post(f"{path}/replies", sent | dict.fromkeys(others))
        assert answer.status == 201
        assert answer.json.keys() == {"data", "meta"}
        assert answer.json["meta"] == {"ticket": api.get(path).data}
        (reply_id, moment) = (answer.data[name] for name in ("id", "created_at"))
        about = {"id": reply_id, "created_at": moment, "updated_at": moment, "ticket_id": int(path.split("/")[2])}
        nobody = {"user_id": None, "contact_id": None, "is_internal": False}
        assert answer.data == about | nobody | sent | derived
        assert moment > "2026"
        made.append(answer.data)
    assert api.get(f"{path}/replies").data == made
    ticket = api.get(path).data
    assert (ticket["replies_count"], ticket["last_reply_at"]) == (3, made[2]["created_at"])
    assert ticket["updated_at"] == made[2]["created_at"]


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("body", None, "this is null"),
        ("body", " \n ", "Must be text of 1 to 50000 characters"),
        ("body", "x" * 50001, "this has 50001"),
        ("body", "a\ud800", "unpaired surrogates"),
        ("author_type", "agent", "Must be one of: user, contact."),
        ("contact_id", 999, "There is no such external contact in this account."),
        ("is_internal", "true", "Must be true or false; this is text. Leave out the quotes."),
        ("is_internal", True, "Must be false for replies by contacts."),
        ("status", "unresolved", "Must be one of: open, pending, on_hold, resolved, closed; did you mean resolved?"),
        ("assignee_id", "you", 'Must be the id of a user, or "me"'),
        ("assignee_id", 999, "There is no such user in this account."),
        ("boddy", "x", "Did you mean body?"),
    ],
)
def test_a_refused_reply_changes_nothing_of_the_ticket(api, contact, member, value, message):
    path = ticket_of(api, contact_id=contact, status="closed")
    before = api.get(path)
    good = {"body": "x", "author_type": "contact", "status": "pending", "assignee_id": "me"}
    answer = api.post(f"{path}/replies", good | {member: value})
    assert message in answer.errors[member][0]
    assert (set(answer.errors), answer.code) == ({member}, "validation_failed")
    assert (api.get(path).data, found(api, path)) == (before.data, [])
    assert api.get(path).headers["etag"] == before.headers["etag"]
    assert api.post(f"{path}/replies", good).json["meta"]["ticket"]["status"] == "pending"


def test_the_body_is_required_and_faults_are_named_together(api):
    path = ticket_of(api)
    assert api.post(f"{path}/replies").errors == {"body": ["Is required."]}
    answer = api.post(f"{path}/replies", {"author_type": "x", "is_internal": 1, "status": 1, "assignee_id": 0})
    assert set(answer.errors) == {"body", "author_type", "is_internal", "status", "assignee_id"}


def test_a_contact_is_the_tickets_or_another_of_its_client(api, contact, other_tenant):
    client = api.get(f"/external-contacts/{contact}").data["client_id"]
    colleague = api.make("/external-contacts", client_id=client, last_name="Opel")["id"]
    other = api.make("/external-contacts")
    path = ticket_of(api, contact_id=contact)
    for sent, who in (({}, contact), ({"contact_id": colleague}, colleague), ({"contact_id": None}, contact)):
        assert api.make(f"{path}/replies", author_type="contact", **sent)["contact_id"] == who
    wrong = f"Is a contact of client {other['client_id']}; the ticket belongs to client {client}."
    refused = api.create(f"{path}/replies", author_type="contact", contact_id=other["id"])
    assert refused.errors == {"contact_id": [wrong]}
    foreign = api.create(f"{path}/replies", author_type="contact", contact_id=10**9)
    theirs = other_tenant.make("/external-contacts", last_name="Strange")["id"]
    same = api.create(f"{path}/replies", author_type="contact", contact_id=theirs)
    assert foreign.errors == same.errors == {"contact_id": ["There is no such external contact in this account."]}
    assert len(found(api, path)) == 3


def test_a_ticket_without_a_contact_or_client_takes_what_its_requester_writes(api, contact):
    path = ticket_of(api, requester_email="lea@bergmann.example")
    assert api.make(f"{path}/replies", author_type="contact")["contact_id"] is None
    assert api.make(f"{path}/replies", author_type="contact", contact_id=contact)["contact_id"] == contact
    assert api.get(path).data["contact_id"] is None


def test_a_user_replies_as_the_keys_own(api, contact):
    path = ticket_of(api, contact_id=contact, assignee_id=api.admin_id)
    key = api.new_key(["tickets:write"], user_id=api.member_id)
    answer = api.post(f"{path}/replies", {"body": "x", "assignee_id": "me"}, key=key)
    assert answer.data["user_id"] == api.member_id
    assert answer.json["meta"]["ticket"]["assignee_id"] == api.member_id
    refused = api.create(f"{path}/replies", contact_id=contact)
    assert refused.errors == {"contact_id": ["Is only for replies with the author_type contact."]}
    assert len(found(api, path)) == 1


def test_a_deleted_contact_leaves_what_it_said(api, contact):
    path = ticket_of(api, contact_id=contact)
    reply = api.make(f"{path}/replies", author_type="contact")
    assert api.delete(f"/external-contacts/{contact}").status == 204
    (left,) = api.get(f"{path}/replies").data
    assert left == reply | {"contact_id": None, "updated_at": left["updated_at"]}


def test_replies_are_only_added(api):
    path = ticket_of(api)
    made = api.make(f"{path}/replies")
    for method in ("PUT", "PATCH", "DELETE"):
        body = None if method == "DELETE" else {"body": "Never said"}
        answer = api.call(method, f"{path}/replies", body)
        assert (answer.status, answer.code) == (405, "method_not_allowed")
        assert {"GET", "POST"} <= set(answer.headers["allow"].split(", "))
        assert api.call(method, f"{path}/replies/{made['id']}", body).status in {404, 405}
    assert api.get(f"{path}/replies").data == [made]


def test_a_reply_is_kept_as_it_was_sent(api):
    path = ticket_of(api)
    body = """<img src=x onerror="alert('1')"> &amp; 👩‍🔧 \\n \u202e\r\n> quoted\n\n\tindented {0} %s"""
    api.make(f"{path}/replies", body=f" \n{body}\n\t")
    api.make(f"{path}/replies", body="x" * 50000)
    assert [reply["body"] for reply in api.get(f"{path}/replies").data] == [body, "x" * 50000]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, [None, None, "us", None, None]),
        ({"is_internal": False}, ["user", NOW, "requester", NOW, 7]),
        ({"is_internal": True}, [None, None, "us", None, None]),
        ({"author_type": "contact"}, ["contact", NOW, "us", None, None]),
        ({"status": "pending"}, ["user", NOW, "requester", NOW, 7]),
        ({"status": "on_hold"}, ["user", NOW, "requester", NOW, 7]),
        ({"status": "resolved"}, ["user", NOW, None, NOW, 7]),
        ({"status": "closed"}, ["user", NOW, None, NOW, 7]),
        ({"status": "closed", "is_internal": True}, [None, None, None, None, None]),
        ({"status": "resolved", "author_type": "contact"}, ["contact", NOW, None, None, None]),
    ],
)
def test_a_first_public_reply_sets_which_party_has_to_answer(api, contact, sent, expected):
    with at("09:52:31"):  # 7 minutes and 29 seconds before
        path = ticket_of(api, contact_id=contact)
    with at("10:00:00"):
        if sent:
            reply(api, path, **sent)
        ticket = api.get(path).data
    names = ("last_reply_by", "last_reply_at", "awaiting", "first_response_at", "first_response_minutes")
    assert [ticket[name] for name in names] == expected


def test_the_turn_goes_back_and_forth_and_the_first_response_stays(api, contact):
    with at("10:00:00"):
        path = ticket_of(api, contact_id=contact)
    by_contact = {"author_type": "contact"}
    for moment, sent, turn, last in (
        ("10:01:00", by_contact, "us", "10:01"),
        ("10:02:00", {"is_internal": True}, "us", "10:01"),
        ("10:03:30", {}, "requester", "10:03"),  # 3.5 minutes are 4
        ("10:04:00", {"is_internal": True}, "requester", "10:03"),
        ("10:05:00", by_contact, "us", "10:05"),
        ("10:06:00", {"status": "resolved"}, None, "10:06"),
        ("10:07:00", {"is_internal": True, "status": "open"}, "requester", "10:06"),
        ("10:08:00", by_contact, "us", "10:08"),
        ("10:09:00", by_contact | {"status": "closed"}, None, "10:09"),
        ("10:10:00", {"is_internal": True, "status": "pending"}, "us", "10:09"),
    ):
        with at(moment):
            ticket = reply(api, path, **sent)
        assert (ticket["awaiting"], ticket["last_reply_at"][11:16]) == (turn, last), moment
        first = (None, None) if moment < "10:03" else ("2027-03-01T10:03:30.000000Z", 4)
        assert (ticket["first_response_at"], ticket["first_response_minutes"]) == first, moment
    assert ticket["replies_count"] == 10
    assert api.patch(path, {"status": "resolved"}).data["awaiting"] is None
    assert api.patch(path, {"status": "on_hold"}).data["awaiting"] == "us"


@pytest.mark.parametrize(
    ("before", "after", "reopened"),
    [
        ("open", "open", 0),
        ("pending", "open", 0),
        ("on_hold", "on_hold", 0),
        ("resolved", "open", 1),
        ("closed", "open", 1),
    ],
)
def test_what_the_contact_writes_opens_a_ticket_again(api, contact, before, after, reopened):
    path = ticket_of(api, contact_id=contact, status=before)
    for sent in ({}, {"is_internal": True}):
        assert reply(api, path, **sent)["status"] == before
    ticket = reply(api, path, author_type="contact")
    assert (ticket["status"], ticket["reopened_count"], ticket["awaiting"]) == (after, reopened, "us")
    unresolved = [ticket[name] for name in ("resolved_at", "closed_at", "resolution_minutes")]
    assert unresolved == [None, None, None]


@pytest.mark.parametrize("author_type", ["user", "contact"])
@pytest.mark.parametrize(
    ("before", "after", "reopened"),
    [
        ("resolved", "open", 1),
        ("resolved", "pending", 1),
        ("closed", "on_hold", 1),
        ("closed", "resolved", 0),
        ("resolved", "closed", 0),
        ("open", "pending", 0),
        ("open", "resolved", 0),
    ],
)
def test_the_status_of_a_reply_is_the_tickets(api, contact, author_type, before, after, reopened):
    with at("10:00:00"):
        path = ticket_of(api, contact_id=contact, status=before)
    with at("10:30:00"):
        ticket = reply(api, path, author_type=author_type, status=after, assignee_id=api.member_id)
    assert (ticket["status"], ticket["reopened_count"]) == (after, reopened)
    assert ticket["assignee_id"] == api.member_id
    resolved_at = {"open": "2027-03-01T10:30:00.000000Z"}.get(before, "2027-03-01T10:00:00.000000Z")
    is_resolved = after in {"resolved", "closed"}
    assert ticket["resolved_at"] == (resolved_at if is_resolved else None)
    assert ticket["resolution_minutes"] == ((30 if before == "open" else 0) if is_resolved else None)
    assert ticket["closed_at"] == ("2027-03-01T10:30:00.000000Z" if after == "closed" else None)


def test_a_reply_assigns_active_users_only_and_keeps_the_assignee_otherwise(api):
    path = ticket_of(api, assignee_id=api.member_id)
    assert reply(api, path)["assignee_id"] == api.member_id
    other = ticket_of(api)
    api.set_user(api.member_id, {"is_active": False})
    before = api.get(other).data
    refused = api.create(f"{other}/replies", assignee_id=api.member_id, status="closed")
    assert refused.errors == {"assignee_id": [f"User {api.member_id} is deactivated. Choose an active user."]}
    assert (api.get(other).data, found(api, other)) == (before, [])
    assert reply(api, path, assignee_id=api.member_id)["assignee_id"] == api.member_id
    assert reply(api, path, assignee_id="me", is_internal=True)["assignee_id"] == api.admin_id


def test_replies_are_read_oldest_first_and_by_author(api, contact):
    path, other = ticket_of(api, contact_id=contact), ticket_of(api)
    elsewhere = api.make(f"{other}/replies", body="Delay")["id"]
    a = api.make(f"{path}/replies", body="The DELAY is ours")["id"]
    b = api.make(f"{path}/replies", body="Note", is_internal=True)["id"]
    c = api.make(f"{path}/replies", body="Why the delay?", author_type="contact")["id"]
    for expected, query in (
        ([a, b, c], {}),
        ([c, b, a], {"sort": "-created_at"}),
        ([b], {"is_internal": "true"}),
        ([a, c], {"is_internal": "false"}),
        ([a, b], {"author_type": "user"}),
        ([c], {"author_type": "contact"}),
        ([a, b, c], {"author_type": "contact,user"}),
        ([a], {"author_type": "user", "is_internal": "false"}),
        ([a, c], {"q": "delay"}),
        ([b, c], {"ids": f"{c},{b},{elsewhere}"}),
        ([c], {"per_page": 2, "page": 2}),
    ):
        answer = api.get(f"{path}/replies", query)
        assert [reply["id"] for reply in answer.data] == expected, query
    assert set(api.get(f"{path}/replies", {"author_type": "me", "status": "open"}).errors) == {"author_type", "status"}


def test_only_a_public_reply_by_a_user_answers_a_ticket(api, contact):
    quiet, noted, asked, answered = (ticket_of(api, contact_id=contact) for _ in range(4))
    resolved = ticket_of(api, status="resolved")
    reply(api, noted, is_internal=True)
    reply(api, asked, author_type="contact")
    reply(api, answered)
    for name, value, expected in (
        ("unanswered", "true", [asked, noted, quiet]),
        ("unanswered", "false", [resolved, answered]),
        ("awaiting", "us", [asked, noted, quiet]),
        ("awaiting", "requester", [answered]),
        ("awaiting", "us,requester", [answered, asked, noted, quiet]),
    ):
        ids = [ticket["id"] for ticket in api.get("/tickets", {name: value}).data]
        assert [f"/tickets/{ticket_id}" for ticket_id in ids] == expected, (name, value)
    ids = [ticket["id"] for ticket in api.get("/tickets", {"sort": "-last_reply_at,id"}).data]
    assert [f"/tickets/{ticket_id}" for ticket_id in ids[:2]] == [answered, asked]


def test_a_ticket_that_is_missing_accepts_no_reply(api, other_tenant):
    gone, theirs = ticket_of(api), ticket_of(other_tenant)
    api.delete(gone)
    for path in (gone, theirs):
        for answer in (api.post(f"{path}/replies", {"body": "x"}), api.get(f"{path}/replies")):
            assert (answer.status, answer.code) == (404, "not_found")
    assert other_tenant.get(f"{theirs}/replies").data == []
