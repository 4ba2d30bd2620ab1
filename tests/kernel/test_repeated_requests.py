"""Repeated requests are compared by meaning; repeated parameters and reversed ranges are refused."""

import pytest

KEY = {"Idempotency-Key": "c0ffee"}


@pytest.mark.parametrize(
    "again",
    [
        b'{"amount":10.50,"description":"Train"}',
        b'{ "description" : "Train",\n "amount": 10.5 }',
        b'{"amount":1.05e1,"description":"Tr\\u0061in"}',
    ],
)
def test_a_body_that_means_the_same_is_the_same_request(api, again):
    first = api.call("POST", "/expenses", raw=b'{"amount":10.50,"description":"Train"}', headers=KEY)
    second = api.call("POST", "/expenses", raw=again, headers=KEY)
    assert (first.status, second.status) == (201, 201)
    assert second.headers["idempotency-replayed"] == "true"
    assert second.data == first.data
    assert len(api.get("/expenses").data) == 1


@pytest.mark.parametrize("other", [b'{"amount":"10.50"}', b'{"amount":10.51}', b'{"amount":10.50,"vendor":null}'])
def test_a_body_that_says_anything_else_is_another_request(api, other):
    assert api.call("POST", "/expenses", raw=b'{"amount":10.50}', headers=KEY).status == 201
    assert api.call("POST", "/expenses", raw=other, headers=KEY).code == "idempotency_key_reused"


def test_numbers_of_any_size_are_compared_and_never_break_the_server(api):
    for number in (b"1e400", b"-1e999999", b"1" * 4000, b"0.1e-400", b"1e1000000", b"1" * 1_000_001):
        answer = api.call("POST", "/expenses", raw=b'{"amount":%b}' % number, headers=KEY)
        assert answer.status == 422
    for number in (b"1e1" + b"0" * 18, b"0e-1" + b"0" * 99):
        assert api.call("POST", "/expenses", raw=b'{"amount":%b}' % number).code == "malformed_json"


def found(api, path, query):
    return sorted(row["id"] for row in api.get(path, query).data)


def test_values_in_a_comma_list_or_in_repeated_parameters_mean_one_of_these(api):
    one, two, three = (
        api.make("/clients", number=f"K-{n}", external_id=f"crm-{n}", email=f"a{n}@x.example")["id"] for n in (1, 2, 3)
    )
    for query in (
        "number=K-1,K-2",
        "number=K-1&number=K-2",
        "external_id=crm-1,crm-2",
        "external_id=crm-1&external_id=crm-2",
        f"ids={one}&ids={two}",
        f"ids={one},{two}",
        "email=a1@x.example,a2@x.example",
    ):
        assert found(api, "/clients", query) == [one, two], query
    assert found(api, "/clients", "number=K-1,K-2&number=K-3") == [one, two, three]
    answer = api.get("/clients", "number=K-1&number=K-2&page=1")
    assert "number=K-1&number=K-2" in answer.json["links"]["first"]


def test_free_text_keeps_its_commas_and_is_repeated(api):
    rail, hotel, other = (api.make("/expenses", vendor=vendor)["id"] for vendor in ("Rail, Ltd", "Hotel", "Ltd"))
    assert found(api, "/expenses", {"vendor": "Rail, Ltd"}) == [rail]
    assert found(api, "/expenses", "vendor=Rail,%20Ltd&vendor=Hotel") == [rail, hotel]
    assert found(api, "/expenses", {"vendor": "Ltd"}) == [other]
    tag = api.make("/tags", name="Late, again")["id"]
    assert found(api, "/tags", {"name": "late, AGAIN"}) == [tag]


def test_codes_and_plugins_are_comma_lists_too(api):
    first, second = (api.make("/projects", code=code)["id"] for code in ("A", "B"))
    assert found(api, "/projects", "code=A,B") == [first, second]
    shop = api.make("/sites", plugins=[{"slug": "woocommerce", "version": "9.0"}])["id"]
    blog = api.make("/sites", plugins=[{"slug": "akismet", "version": "5"}])["id"]
    assert found(api, "/sites", "plugin=woocommerce,akismet") == [shop, blog]
    assert found(api, "/sites", "plugin=woocommerce&plugin_version_lt=9.1") == [shop]
    answer = api.get("/sites", "plugin=woocommerce,akismet&plugin_version_lt=9.1")
    assert "Requires exactly one plugin" in answer.errors["plugin_version_lt"][0]


@pytest.mark.parametrize("query", ["status=active&page=1&page=2", "q=a&q=b", "has_overdue=true&has_overdue=false"])
def test_a_parameter_that_takes_one_value_is_not_repeated(api, query):
    (sentences,) = api.get("/clients", query).errors.values()
    assert sentences == ["Send this parameter only once: it has a single value."]


def test_no_more_values_than_a_hundred_are_taken_however_they_are_sent(api):
    hundred = "&".join(f"ids={n}" for n in range(1, 101))
    assert api.get("/clients", hundred).status == 200
    assert "at most 100 values" in api.get("/clients", hundred + "&ids=101").errors["ids"][0]


@pytest.mark.parametrize(
    ("path", "start", "end"),
    [
        ("/time-entries", "date_from=2026-02-01", "date_to=2026-01-31"),
        ("/invoices", "total_min=20", "total_max=19.99"),
        ("/quotes", "valid_until_from=2026-02-01", "valid_until_to=2025-02-01"),
        ("/clients", "updated_since=2026-01-01T00:00:00Z", "updated_before=2026-01-01T00:30:00%2B01:00"),
        ("/expenses", "amount_min=0", "amount_max=-1"),
    ],
)
def test_a_range_that_is_turned_round_is_refused_on_its_end(api, path, start, end):
    answer = api.get(path, f"{end}&{start}")
    (field,) = answer.errors
    assert field == end.partition("=")[0]
    relation = "be less than" if field.endswith("_max") else "be before"
    assert f"Must not {relation} {start.partition('=')[0]}, which is" in answer.errors[field][0]
    assert api.get(path, start).status == api.get(path, end).status == 200


def test_a_plus_that_arrived_as_a_space_is_explained(api):
    answer = api.get("/clients", "updated_since=2026-01-01T00:00:00+02:00")
    assert "Encode it as %2B" in answer.errors["updated_since"][0]
    assert api.get("/clients", "updated_since=2026-01-01T00:00:00%2B02:00").status == 200
