import pytest


def test_it_works(api):
    tag = api.post("/tags", {"name": "VIP", "color": "#FF8800"}).data
    assert tag["name"] == "VIP"
    assert tag["color"] == "#ff8800"
    assert tag["usage_count"] == 0
    assert api.get("/tags").data == [tag]
    renamed = api.put(f"/tags/{tag['id']}", {"name": "Key account", "color": None}).data
    assert (renamed["name"], renamed["color"]) == ("Key account", None)
    assert api.delete(f"/tags/{tag['id']}").status == 204
    assert api.get("/tags").data == []


def test_a_name_is_unique_whatever_its_case(api):
    tag = api.make("/tags", name="Élan")
    assert "already taken" in api.post("/tags", {"name": "ÉLAN"}).errors["name"][0]
    assert api.post("/tags", {"name": "Elan"}).status == 201
    assert api.patch(f"/tags/{tag['id']}", {"name": "élan"}).data["name"] == "élan"
    assert [row["id"] for row in api.get("/tags", {"name": "ÉLAN"}).data] == [tag["id"]]


@pytest.mark.parametrize(
    "same",
    [
        *("Key\u200b account", "Key\u00a0account", "Key acc\u00adount", "\uff2bEY account", "Key account\ufe0f"),
        *("Key account \u200b", "\u200b Key account"),
    ],
)
def test_two_tags_do_not_print_the_same_name(api, same):
    tag = api.make("/tags", name="Key account")["id"]
    assert "already taken" in api.post("/tags", {"name": same}).errors["name"][0]
    assert [row["id"] for row in api.get("/tags", {"name": same}).data] == [tag]


def test_a_tag_counts_its_uses_and_leaves_its_records_when_it_goes(api):
    tag, other = api.make("/tags")["id"], api.make("/tags")["id"]
    client = api.make("/clients", tag_ids=[other, tag, tag])
    api.make("/external-contacts", client_id=client["id"], tag_ids=[tag])
    assert client["tag_ids"] == [tag, other]
    assert {row["id"]: row["usage_count"] for row in api.get("/tags").data} == {tag: 2, other: 1}
    assert api.delete(f"/tags/{tag}").status == 204
    assert api.get(f"/clients/{client['id']}").data["tag_ids"] == [other]


def test_a_tag_cannot_be_read_alone(api):
    answer = api.get(f"/tags/{api.make('/tags')['id']}")
    assert answer.status == 405
    assert answer.headers["allow"] == "PUT, PATCH, DELETE, OPTIONS"


def test_a_colour_is_six_hexadecimal_digits(api):
    assert "#0a84ff" in api.post("/tags", {"name": "A", "color": "red"}).errors["color"][0]
