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


def test_a_client_whose_primary_contact_is_deleted_has_none_until_one_is_set_or_made(api):
    client = api.make("/clients")["id"]
    first, second = (api.make("/external-contacts", client_id=client)["id"] for _ in range(2))

    def primary():
        return [row["id"] for row in api.get("/external-contacts", {"is_primary": "true"}).data]

    assert api.delete(f"/external-contacts/{first}").status == 204
    assert primary() == []
    third = api.make("/external-contacts", client_id=client)["id"]
    assert primary() == [third]
    assert api.delete(f"/external-contacts/{third}").status == 204
    assert api.patch(f"/external-contacts/{second}", {"is_primary": True}).status == 200
    assert primary() == [second]


def test_an_email_is_unique_within_a_client_whatever_its_case(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    api.make("/external-contacts", client_id=client, email="a@b.example")
    again = {"client_id": client, "email": "A@B.example"}
    assert "taken" in api.post("/external-contacts", again).errors["email"][0]
    assert api.post("/external-contacts", again | {"client_id": other}).status == 201


def test_filters_select(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    a = api.make("/external-contacts", client_id=client, last_name="Adler", role="billing", email="A@x.example")["id"]
    b = api.make("/external-contacts", client_id=other, last_name="böhm", first_name="Ute", status="inactive")["id"]

    def found(**query):
        return [row["id"] for row in api.get("/external-contacts", query).data]

    assert found() == [a, b]
    assert found(client_id=str(other)) == [b]
    assert found(role="billing,technical") == [a]
    assert found(email="a@X.example") == [a]
    assert found(status="inactive") == [b]
    assert found(is_primary="false") == []
    assert found(q="UTE BÖ") == [b]
    assert found(sort="-last_name") == [b, a]
    assert found(sort="email") == [a, b]


def test_moving_to_another_client_keeps_one_primary_there(api):
    client, other = api.make("/clients")["id"], api.make("/clients")["id"]
    settled = api.make("/external-contacts", client_id=other)["id"]
    mover = api.make("/external-contacts", client_id=client)["id"]
    assert api.patch(f"/external-contacts/{mover}", {"client_id": other}).data["is_primary"] is True
    assert api.get(f"/external-contacts/{settled}").data["is_primary"] is False
    assert "no such client" in api.patch(f"/external-contacts/{mover}", {"client_id": 999}).errors["client_id"][0]
