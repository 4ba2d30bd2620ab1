import pytest


def test_it_works(api):
    client = api.make("/clients")["id"]
    contact = api.post(
        "/external-contacts",
        {"client_id": client, "first_name": "Jana", "last_name": "Bergmann", "email": "Jana@Bergmann.example"},
    ).data
    assert contact["name"] == "Jana Bergmann"
    assert contact["email"] == "Jana@bergmann.example"
    assert (contact["role"], contact["status"], contact["is_primary"]) == ("general", "active", True)
    assert api.get(f"/external-contacts/{contact['id']}").data == contact


def test_a_contact_has_something_to_be_called_by(api):
    client = api.make("/clients")["id"]
    answer = api.post("/external-contacts", {"client_id": client, "phone": "1"})
    assert set(answer.errors) == {"first_name"}
    named = api.post("/external-contacts", {"client_id": client, "email": "x@y.example"}).data
    assert named["name"] == "x@y.example"
    assert set(api.patch(f"/external-contacts/{named['id']}", {"email": None}).errors) == {"first_name"}


def test_a_client_has_one_primary_contact_the_first_or_the_last_that_was_made_so(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    first = api.make("/external-contacts", client_id=client)["id"]
    second = api.make("/external-contacts", client_id=client)["id"]
    elsewhere = api.make("/external-contacts", client_id=other)["id"]

    def primary():
        return [row["id"] for row in api.get("/external-contacts", {"is_primary": "true", "sort": "id"}).data]

    assert primary() == [first, elsewhere]
    assert api.patch(f"/external-contacts/{second}", {"is_primary": True}).data["is_primary"] is True
    assert primary() == [second, elsewhere]
    assert api.make("/external-contacts", client_id=client, is_primary=True)["id"] in primary()
    assert second not in primary()


@pytest.mark.parametrize("way", ["deleted", "moved"])
def test_when_the_primary_contact_goes_the_oldest_active_one_takes_its_place(api, way):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    api.make("/external-contacts", client_id=other)
    statuses = ("active", "inactive", "active", "active")
    first, inactive, third, fourth = (
        api.make("/external-contacts", client_id=client, status=status)["id"] for status in statuses
    )

    def primary():
        query = {"client_id": client, "is_primary": "true"}
        return [row["id"] for row in api.get("/external-contacts", query).data]

    def go(contact):
        path = f"/external-contacts/{contact}"
        answer = api.delete(path) if way == "deleted" else api.patch(path, {"client_id": other})
        assert answer.status in {200, 204}
        return contact

    untouched = api.get(f"/external-contacts/{fourth}").data
    before = api.get(f"/external-contacts/{third}").data["updated_at"]
    go(first)
    assert primary() == [third]
    assert api.get(f"/external-contacts/{third}").data["updated_at"] > before
    assert api.get(f"/external-contacts/{fourth}").data == untouched
    go(fourth)
    assert primary() == [third], "it was not the primary one that went"
    go(third)
    assert primary() == [], "who is inactive does not take its place"
    assert api.make("/external-contacts", client_id=client)["id"] in primary()
    assert inactive not in primary()


@pytest.mark.parametrize("collection", ["/tickets", "/quotes", "/invoices"])
def test_a_contact_stays_with_its_client_while_records_refer_to_it(api, collection):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    contact = api.make("/external-contacts", client_id=client)["id"]
    path = f"/external-contacts/{contact}"
    made = [api.make(collection, client_id=client, contact_id=contact)["id"] for _ in range(2)]
    noun = collection.strip("/")
    for count, refer in ((2, f"2 {noun} refer"), (1, f"1 {noun[:-1]} refers")):
        refused = api.patch(path, {"client_id": other})
        assert refused.code == "in_use"
        message = f"Is fixed while {refer} to this record. Create a contact at client {other} instead."
        assert refused.errors == {"client_id": [message]}, count
        record = api.get(f"{collection}/{made[0]}").data
        assert api.put(f"{collection}/{made[0]}", record).status == 200, "what was read can be sent back"
        assert api.put(path, api.get(path).data | {"notes": "New"}).status == 200
        assert api.delete(f"{collection}/{made.pop()}").status == 204
    assert api.patch(path, {"client_id": other}).data["client_id"] == other


def test_a_contact_that_is_the_first_at_its_new_client_is_its_primary_one(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    api.make("/external-contacts", client_id=client)
    second = api.make("/external-contacts", client_id=client)["id"]
    path = f"/external-contacts/{second}"
    assert api.patch(path, {"client_id": other}).data["is_primary"] is True
    assert api.patch(path, {"is_primary": None}).data["is_primary"] is True, "null leaves it to the server"


def test_an_email_is_unique_within_a_client_whatever_its_case(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    api.make("/external-contacts", client_id=client, email="a@b.example")
    again = {"client_id": client, "email": "A@B.example"}
    assert "taken" in api.post("/external-contacts", again).errors["email"][0]
    assert api.post("/external-contacts", again | {"client_id": other}).status == 201


def test_moving_to_another_client_keeps_one_primary_there(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    settled = api.make("/external-contacts", client_id=other)["id"]
    mover = api.make("/external-contacts", client_id=client)["id"]
    assert api.patch(f"/external-contacts/{mover}", {"client_id": other}).data["is_primary"] is True
    assert api.get(f"/external-contacts/{settled}").data["is_primary"] is False
    assert "no such client" in api.patch(f"/external-contacts/{mover}", {"client_id": 999}).errors["client_id"][0]


def test_the_longest_name_is_that_of_the_requester_too_and_can_be_sent_back(api):
    contact = api.make("/external-contacts", first_name="é" * 100, last_name="日" * 100)
    assert len(contact["name"]) == 201
    ticket = api.make("/tickets", client_id=contact["client_id"], contact_id=contact["id"])
    assert ticket["requester_name"] == contact["name"]
    assert api.patch(f"/tickets/{ticket['id']}", {"requester_name": contact["name"]}).status == 200


def test_one_contact_of_a_client_is_primary_whatever_is_sent(api):
    client = api.make("/clients")["id"]
    first = api.make("/external-contacts", client_id=client, last_name="A", is_primary=False)
    assert first["is_primary"] is True
    second = api.make("/external-contacts", client_id=client, last_name="B", is_primary=False)
    assert second["is_primary"] is False
    path = f"/external-contacts/{first['id']}"
    assert api.patch(path, {"is_primary": False}).data == first
    assert api.patch(f"/external-contacts/{second['id']}", {"is_primary": True}).data["is_primary"] is True
    assert api.get(path).data["is_primary"] is False
    other = api.make("/clients")["id"]
    moved = api.patch(path, {"client_id": other, "is_primary": False})
    assert moved.data["is_primary"] is True
