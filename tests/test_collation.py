"""The order of names, as people look for them."""

from itertools import pairwise

import pytest

from retainer.values.collation import sort_key
from tests.databases import each_database
from tests.factories import ApiClient

ORDER = [
    "10 Downing", "adler", "Ærø", "Aerzte", "Ängste", "apfel", "Äpfel", "Apfelbaum", "Äpfelchen", "Čapek", "Czerny",
    "Dąbrowa", "Đorđe", "École", "Eltern", "Istanbul", "İstanbul", "Łódź", "Lyon", "Müller", "Mullers", "Ødegaard",
    "Odeon", "Straße", "Strasser", "Zoo", "Ωmega", "яблоко", "か", "が", "き", "가나", "각",
]  # fmt: skip
PATHS = {
    "/clients": "name",
    "/external-contacts": "last_name",
    "/tags": "name",
    "/projects": "name",
    "/sites": "name",
    "/expenses": "category",
}


def test_letters_stand_by_their_base_and_accents_decide_only_between_equals():
    for first, second in pairwise(ORDER):
        assert sort_key(first) < sort_key(second), (first, second)


@pytest.mark.parametrize("path", PATHS)
def test_lists_are_sorted_so(api: ApiClient, path: str):
    names = ["Zoo", "Äpfel", "apfel", "Łódź", "Ödland", "Mullers", "Müller", "Lyon"]
    made = {api.make(path, **{PATHS[path]: name})["id"]: name for name in names}
    expected = ["apfel", "Äpfel", "Łódź", "Lyon", "Müller", "Mullers", "Ödland", "Zoo"]

    def listed(sort: str) -> list[str]:
        return [made[row["id"]] for row in api.get(path, {"sort": sort}).data if row["id"] in made]

    assert listed(PATHS[path]) == expected
    assert listed(f"-{PATHS[path]}") == expected[::-1]


def test_names_that_differ_in_an_accent_are_two(api: ApiClient):
    for name in ("Äpfel", "Apfel"):
        assert api.create("/tags", name=name).status == 201
    assert set(api.create("/tags", name="äPFEL").errors) == {"name"}
    assert [row["name"] for row in api.get("/tags", {"name": "apfel"}).data] == ["Apfel"]


@each_database
def test_a_search_ignores_accents_as_sorting_does(api: ApiClient):
    for name in ("Äpfel", "Apfel", "Łódź", "Straße"):
        api.make("/tags", name=name)
    for q, names in {
        "ÄPF": ["Apfel", "Äpfel"],
        "apf": ["Apfel", "Äpfel"],
        "lodz": ["Łódź"],
        "ŁÓDŹ": ["Łódź"],
        "STRASSE": ["Straße"],
        "\u0301": [],
    }.items():
        assert [row["name"] for row in api.get("/tags", {"q": q}).data] == names, q
    client = api.make("/clients", name="Crème AG", notes="Brûlée")["id"]
    quote, ticket = api.make("/quotes", client_id=client)["id"], api.make("/tickets", subject="Déjà vu")["id"]
    assert [row["id"] for row in api.get("/quotes", {"q": "CREME"}).data] == [quote]
    assert [row["id"] for row in api.get("/clients", {"q": "brulee"}).data] == [client]
    assert [row["id"] for row in api.get("/tickets", {"q": "deja"}).data] == [ticket]


def test_reports_name_users_in_this_order(api: ApiClient):
    for name in ("Zoe", "Älva"):
        api.add_user(name)
    rows = api.get("/reports/utilisation").data["rows"]
    assert [row["user_name"] for row in rows] == ["Älva", "Ana Admin", "Max Member", "Zoe"]
