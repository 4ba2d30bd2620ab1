import pytest


def test_it_works(api):
    tag = api.make("/tags")["id"]
    sent = {
        "name": "  Bergmann Optik ",
        "number": "K-7",
        "status": "prospect",
        "email": "office@bergmann.example",
        "invoice_email": "rechnung@bergmann.example",
        "phone": "+49 40 123",
        "website": "https://bergmann.example",
        "language": "de",
        "address_line1": "Markt 1",
        "address_line2": "Hof",
        "city": "Hamburg",
        "region": "HH",
        "postal_code": "20095",
        "country": "DE",
        "vat_number": "DE123456789",
        "registration_number": "HRB 1",
        "currency": "JPY",
        "hourly_rate": "12000",
        "tax_rate": "7.50",
        "payment_terms_days": 14,
        "early_payment_discount_percent": "2",
        "early_payment_discount_days": 7,
        "notes": "Pays late",
        "external_id": "crm-1",
        "tag_ids": [tag],
    }
    answer = api.post("/clients", sent)
    assert answer.status == 201
    client = answer.data
    assert client == sent | {
        "id": client["id"],
        "created_at": client["created_at"],
        "updated_at": client["created_at"],
        "name": "Bergmann Optik",
        "tax_rate": "7.5",
        "reminders": True,
        "contacts_count": 0,
        "projects_count": 0,
        "sites_count": 0,
    }
    assert answer.headers["location"] == f"http://agency.example/api/public/v1/clients/{client['id']}"
    assert api.get(f"/clients/{client['id']}").data == client
    assert api.get("/clients").data == [client]


def test_omitted_fields_comes_from_the_account(api, other_tenant):
    client = api.post("/clients", {"name": "A"}).data
    assert (client["number"], client["currency"], client["payment_terms_days"]) == ("C-0001", "EUR", 30)
    assert (client["status"], client["tag_ids"]) == ("active", [])
    assert all(client[name] is None for name in ("email", "hourly_rate", "tax_rate", "notes", "external_id"))
    assert api.post("/clients", {"name": "B", "number": None, "currency": ""}).data["number"] == "C-0002"
    assert other_tenant.post("/clients", {"name": "C"}).data["currency"] == "USD"
    assert other_tenant.post("/clients", {"name": "D"}).data["number"] == "C-0002"


def test_a_number_given_by_hand_is_passed_over(api):
    api.make("/clients", number="C-0001")
    api.make("/clients", number="C-0002")
    assert api.make("/clients")["number"] == "C-0003"


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("name", None, "null"),
        ("email", "nobody", "an email address"),
        ("website", "ftp://a.example", "http or https"),
        ("website", "https://", "http or https"),
        ("country", "de", "ISO 3166"),
        ("country", "XX", "ISO 3166"),
        ("currency", "EURO", "ISO 4217"),
        ("hourly_rate", "-1", "an amount from 0"),
        ("hourly_rate", True, "an amount from 0"),
        ("hourly_rate", "1e3", "an amount from 0"),
        ("hourly_rate", "12.345", "EUR has 2 decimal places"),
        ("tax_rate", "100.001", "a percentage from 0 to 100"),
        ("tax_rate", "1.2345", "3 decimal places"),
        ("payment_terms_days", 366, "from 0 to 365"),
    ],
)
def test_an_invalid_field_is_reported_in_a_sentence(api, member, value, message):
    answer = api.post("/clients", {"name": "Good"} | {member: value})
    field = "tag_ids.0" if value == [1.5] else member
    assert message in answer.errors[field][0]
    assert set(answer.errors) == {field}
    assert api.get("/clients").json["meta"]["total"] == 0


def test_all_errors_are_reported_together_references_and_unique_values_too(api):
    api.make("/clients", number="K-1", external_id="x")
    answer = api.post(
        "/clients",
        {"emial": "a@b.example", "country": "XX", "number": "K-1", "external_id": "x", "tag_ids": [99], "status": 5},
    )
    assert set(answer.errors) == {"name", "emial", "country", "number", "external_id", "tag_ids.0", "status"}
    assert answer.errors["name"] == ["Is required."]
    assert "Did you mean email?" in answer.errors["emial"][0]
    assert "and 6 more errors" in answer.json["message"]


def test_money_is_read_exactly_from_string_and_number(api):
    for raw, shown in (
        (b"120", "120.00"),
        (b'"120.5"', "120.50"),
        (b"0.10", "0.10"),
        (b"1.2e2", "120.00"),
        (b"1000000000000", "1000000000000.00"),
    ):
        answer = api.call("POST", "/clients", raw=b'{"name": "A", "hourly_rate": ' + raw + b"}")
        assert answer.data["hourly_rate"] == shown
    dinar = api.make("/clients", currency="KWD", hourly_rate="1.234")
    assert dinar["hourly_rate"] == "1.234"
    assert (
        "KWD has 3 decimal places"
        in api.patch(f"/clients/{dinar['id']}", {"hourly_rate": "1.2345"}).errors["hourly_rate"][0]
    )


def test_omitted_fields_keep_their_value_and_null_clears(api):
    client = api.make("/clients", email="a@b.example", hourly_rate="90", tag_ids=[api.make("/tags")["id"]])
    changed = api.patch(f"/clients/{client['id']}", {"name": "New", "email": None, "hourly_rate": ""}).data
    assert changed["updated_at"] > client["updated_at"]
    assert changed == client | {"name": "New", "email": None, "hourly_rate": None, "updated_at": changed["updated_at"]}
    assert api.put(f"/clients/{client['id']}", {"tag_ids": []}).data["tag_ids"] == []
    assert "this is null" in api.patch(f"/clients/{client['id']}", {"name": None}).errors["name"][0]


def test_a_change_is_judged_by_the_rules_of_a_create(api):
    first, second = api.make("/clients", external_id="x"), api.make("/clients")
    path = f"/clients/{second['id']}"
    assert "taken" in api.patch(path, {"external_id": "x"}).errors["external_id"][0]
    assert "taken" in api.patch(path, {"number": first["number"]}).errors["number"][0]
    assert api.patch(f"/clients/{first['id']}", {"external_id": "x"}).status == 200
    assert api.get(path).data == second


def test_deleting_takes_contacts_and_tags_along(api):
    tag = api.make("/tags")["id"]
    client = api.make("/clients", tag_ids=[tag])["id"]
    contact = api.make("/external-contacts", client_id=client, tag_ids=[tag])["id"]
    assert api.get(f"/clients/{client}").data["contacts_count"] == 1
    assert api.delete(f"/clients/{client}").status == 204
    assert api.get(f"/external-contacts/{contact}").status == 404
    assert api.get("/external-contacts").json["meta"]["total"] == 0
    assert api.get("/tags").data[0]["usage_count"] == 0


def test_clients_are_found_by_their_exact_name_and_vat_number(api):
    first = api.make("/clients", name="Berg, Tal & Co", vat_number="DE 123")["id"]
    second = api.make("/clients", name="Berg", vat_number="DE123")["id"]
    api.make("/clients", name="Bergmann")

    def found(query):
        return [row["id"] for row in api.get("/clients", query).data]

    assert found({"name": "Berg"}) == [second]
    assert found({"name": "Berg, Tal & Co"}) == [first]
    assert found("name=Berg&name=Berg,+Tal+%26+Co") == [second, first]
    assert found({"name": "Ber"}) == []
    assert found({"vat_number": "DE 123"}) == [first]
    assert found({"vat_number": "DE123,DE 123"}) == [second, first]
