"""Cursors: `links.next` continues after the last record of a page, whatever happens to the list meanwhile."""

from base64 import urlsafe_b64encode
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec
import pytest
from tests.databases import each_database, only_sqlite

from retainer.crm.tags import TagsFilter
from retainer.kernel.cursors import list_id
from retainer.work.time_entries import TimeEntryFilter

UNREADABLE = "Must be the cursor of a `links.next` of this list. Read the list from its first page to get one."
MISPLACED = "This cursor belongs to another list, page, order or filter. Send all parameters of its `links.next`."


def follow(api, page):
    """Return the page after a page."""
    address = urlsplit(page.json["links"]["next"])
    return api.get(address.path.removeprefix("/api/public/v1"), address.query)


def cursor_of(page):
    (text,) = parse_qs(urlsplit(page.json["links"]["next"]).query)["cursor"]
    return text


def written(*parts):
    """A cursor of the list of time entries without filters."""
    return (
        urlsafe_b64encode(msgspec.json.encode((list_id("/time-entries", TimeEntryFilter()), *parts)))
        .decode()
        .rstrip("=")
    )


def names(page):
    return [record["name"] for record in page.data]


@pytest.fixture
def tags(api):
    """Ids of the tags a to f, by name."""
    return {name: api.make("/tags", name=name)["id"] for name in "abcdef"}


@each_database
def test_the_next_page_begins_after_the_last_record(api, tags):
    first = api.get("/tags", {"sort": "name", "per_page": 2})
    for name in "ab":
        api.delete(f"/tags/{tags[name]}")
    second = follow(api, first)
    assert names(second) == ["c", "d"]
    for name in ("0", "bb", "dd"):
        api.make("/tags", name=name)
    third = follow(api, second)
    assert (names(third), names(follow(api, third))) == (["dd", "e"], ["f"])
    assert follow(api, third).json["links"]["next"] is None


@each_database
def test_a_record_after_which_a_page_begins_may_be_removed(api, tags):
    first = api.get("/tags", {"sort": "-name", "per_page": 3})
    api.delete(f"/tags/{tags['d']}")
    assert names(follow(api, first)) == ["c", "b", "a"]


@each_database
@pytest.mark.parametrize(
    ("sort", "dates"), [("due_date", "01 02 03 None None None"), ("-due_date", "03 02 01 None None None")]
)
def test_records_without_a_value_come_last_and_none_is_missed(api, sort, dates):
    for day in ("2026-03-02", None, "2026-03-01", None, "2026-03-03", None):
        api.make("/tasks", due_date=day)
    page = api.get("/tasks", {"sort": sort, "per_page": 2})
    found = page.data
    while page.json["links"]["next"]:
        page = follow(api, page)
        found += page.data
    assert " ".join(str(task["due_date"]).removeprefix("2026-03-") for task in found) == dates
    assert len({task["id"] for task in found}) == 6


@only_sqlite
def test_next_has_the_number_of_the_page_and_all_other_parameters(api, tags):
    asked = {"sort": "-name", "per_page": 2, "created_since": "2020-01-01T00:00:00+01:00"}
    first = api.get("/tags", asked)
    query = parse_qs(urlsplit(first.json["links"]["next"]).query)
    assert query.keys() == {"sort", "per_page", "created_since", "page", "cursor"}
    assert query["created_since"] == ["2020-01-01T00:00:00+01:00"]
    second = follow(api, first)
    meta = second.json["meta"]
    assert (meta["current_page"], meta["from"], meta["to"], meta["last_page"], meta["total"]) == (2, 3, 4, 3, 6)
    assert "cursor" not in second.json["links"]["prev"]
    without_page = api.get("/tags", asked | {"cursor": cursor_of(first)})
    assert without_page.json["meta"] == meta


@only_sqlite
def test_pages_after_a_cursor_end_where_records_end_and_not_where_they_are_counted(api, tags):
    first = api.get("/tags", {"sort": "name", "per_page": 2})
    for name in "abc":
        api.delete(f"/tags/{tags[name]}")
    second = follow(api, first)
    assert names(second) == ["d", "e"]
    assert (second.json["meta"]["current_page"], second.json["meta"]["last_page"]) == (2, 3)
    third = follow(api, second)
    assert (names(third), third.json["links"]["next"], third.json["meta"]["last_page"]) == (["f"], None, 3)


@only_sqlite
def test_a_cursor_cannot_be_sent_with_another_page_or_order(api, tags):
    cursor = cursor_of(api.get("/tags", {"sort": "name", "per_page": 2}))
    jumped = api.get("/tags", {"sort": "name", "per_page": 2, "page": 3, "cursor": cursor})
    assert jumped.json["errors"] == {"cursor": [MISPLACED]}
    turned = api.get("/tags", {"sort": "-name", "per_page": 2, "cursor": cursor})
    assert (turned.status, turned.json["errors"]) == (422, {"cursor": [MISPLACED]})


@only_sqlite
def test_a_cursor_names_its_list_and_its_filters(api, tags):
    page = {"sort": "name", "per_page": 2}
    cursor = cursor_of(api.get("/tags", page))
    for path, other in (("/clients", {}), ("/tags", {"q": "a"}), ("/tags", {"ids": "1,2,3,4,5,6"})):
        refused = api.get(path, page | other | {"cursor": cursor})
        assert (refused.status, refused.json["errors"]) == (422, {"cursor": [MISPLACED]})
    assert names(api.get("/tags", page | {"cursor": cursor, "per_page": 3, "fields": "name"})) == ["c", "d", "e"]
    for query in ("ids=1,2,3,4", "ids=1&ids=2&ids=3&ids=4"):
        cursor = cursor_of(api.get("/tags", f"sort=name&per_page=2&{query}"))
        again = api.get("/tags", f"cursor={cursor}&ids=1%2C2,3,4&sort=name&per_page=2")
        assert names(again) == ["c", "d"], "filters are compared by their meaning"


@only_sqlite
def test_a_cursor_names_the_parent_of_its_list(api):
    first, second = (api.make("/projects")["id"] for _ in range(2))
    for _ in range(2):
        for project in (first, second):
            api.make(f"/projects/{project}/milestones")
    cursor = cursor_of(api.get(f"/projects/{first}/milestones", {"per_page": 1}))
    assert api.get(f"/projects/{second}/milestones", {"per_page": 1, "cursor": cursor}).errors.keys() == {"cursor"}


BY_DAY, BY_MOMENT, BY_MINUTES = ("date",), ("created_at",), ("duration_minutes",)


@each_database
@pytest.mark.parametrize(
    ("sort", "text"),
    [
        ("id", ""),
        ("id", "x"),
        ("id", "ä"),
        ("id", "bm90IGpzb24"),
        ("id", written(0, ["id"], [1])),
        ("id", written(1 << 53, ["id"], [1])),
        ("id", written(2, ["id"], [])),
        ("id", written(2, ["id"], [1, 1])),
        ("id", written(2, ["id"], ["1"])),
        ("id", written(2, ["id"], [None])),
        ("id", written(2, ["id"], [True])),
        ("id", written(2, ["id"], [1.5])),
        ("id", written(2, ["id"], [1 << 63])),
        ("id", written(2, ["id"], [1], 1)),
        ("date", written(2, BY_DAY, ["2026-02-30", 1])),
        ("date", written(2, BY_DAY, ["x", 1])),
        ("date", written(2, BY_DAY, [1, 1])),
        ("created_at", written(2, BY_MOMENT, ["2026-03-01", 1])),
        ("created_at", written(2, BY_MOMENT, ["now", 1])),
        ("duration_minutes", written(2, BY_MINUTES, ["\0", 1])),
    ],
)
def test_what_is_not_a_cursor_of_the_list_is_refused(api, sort, text):
    refused = api.get("/time-entries", urlencode({"sort": sort, "cursor": text}))
    assert (refused.status, refused.json["errors"]) == (422, {"cursor": [UNREADABLE]})


@each_database
@pytest.mark.parametrize("escaped", [r"a\u0000b", r"\ud800"])
def test_a_text_that_no_database_takes_is_refused(api, escaped):
    tags = list_id("/tags", TagsFilter())
    text = urlsafe_b64encode(f'["{tags}", 2, ["name"], ["{escaped}", 1]]'.encode()).decode()
    refused = api.get("/tags", urlencode({"sort": "name", "cursor": text.replace("=", "")}))
    assert (refused.status, refused.json["errors"]) == (422, {"cursor": [UNREADABLE]})


@each_database
def test_a_cursor_of_another_account_reveals_nothing(api, other_tenant, tags):
    for name in "abcdef":
        other_tenant.make("/tags", name=f"{name}2")
    page = {"sort": "name", "per_page": 2}
    cursor = cursor_of(api.get("/tags", page))
    assert names(other_tenant.get("/tags", page | {"cursor": cursor})) == ["b2", "c2"]
