from datetime import date, timedelta
from decimal import Decimal

import pytest
import time_machine

from retainer.reports import utilisation

FORTNIGHT = "2026-03-02", "2026-03-13"
OF_USERS = (
    "user_name is_active available_minutes tracked_minutes billable_minutes utilisation_percent "
    "billable_utilisation_percent billable_share_percent target_percent currency billable_value other_currencies"
)


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel("2026-03-18T10:00:00Z", tick=False) as traveller:
        yield traveller


def read(api, first, last, name="utilisation", **query):
    return api.get(f"/reports/{name}", {"from": first, "to": last} | query).data


def format_row(row):
    """What a row says, in one line; the id is left out."""
    return " ".join(str(value) for name, value in row.items() if name not in {"user_id", "groups"})


def new(api, collection, **members):
    return api.post(collection, members).data["id"]


@pytest.fixture
def client(api):
    """A client whose hours are 60.00, so that a billable minute is 1.00."""
    return new(api, "/clients", name="Alder", hourly_rate="60")


def work(api, minutes, day="2026-03-02", **members):
    """Time of the member; on each day there are at most 1440 minutes."""
    return new(api, "/time-entries", **{"user_id": api.member_id} | members, duration_minutes=minutes, date=day)


def set_user(api, user=None, **changes):
    api.set_user(user or api.member_id, changes)


def test_minutes_are_compared_with_the_capacity_of_the_working_days_of_the_period(api, client):
    for minutes, day, billable in (
        (1200, "2026-03-02", True),
        (900, "2026-03-08", False),
        (1440, "2026-03-13", True),
        (60, "2026-03-12", True),
        (600, "2026-03-01", True),
        (600, "2026-03-14", True),
    ):
        work(api, minutes, day, client_id=client, billable=billable)
    found = read(api, *FORTNIGHT)
    assert list(found["rows"][0]) == ["user_id", *OF_USERS.split(), "groups"]
    assert [format_row(row) for row in found["rows"]] == [
        "Ana Admin True 4800 0 0 0.0 0.0 None 75 EUR 0.00 []",
        "Max Member True 4800 3600 2700 75.0 56.25 75.0 75 EUR 2700.00 []",
    ]
    assert [row["user_id"] for row in found["rows"]] == [api.admin_id, api.member_id]
    assert list(found["totals"][0]) == OF_USERS.split()[2:]
    assert [format_row(total) for total in found["totals"]] == ["9600 3600 2700 37.5 28.13 75.0 75 EUR 2700.00 []"]
    time = read(api, *FORTNIGHT, "overview")["time"]
    assert format_row(time) == "3600 2700 9600 37.5 28.13 0"


@pytest.mark.parametrize(
    ("weekdays", "weekly", "first", "last", "available"),
    [
        ("mon tue wed thu fri", 2400, "2026-03-01", "2026-03-31", 10560),
        ("mon tue wed thu fri", 2400, "2026-01-01", "2026-12-31", 125280),
        ("mon tue wed thu fri", 2400, "2026-03-06", "2026-03-09", 960),
        ("mon tue wed thu fri", 2400, "2026-03-07", "2026-03-08", 0),
        ("mon tue wed thu fri", 0, *FORTNIGHT, 0),
        ("mon wed sat", 2400, "2026-03-03", "2026-03-05", 800),
        ("mon wed sun", 2000, "2026-03-08", "2026-03-08", 667),
        ("mon wed sun", 2000, "2026-03-01", "2026-03-04", 2000),
    ],
)
def test_capacity_is_spread_over_the_working_days_of_the_account(api, weekdays, weekly, first, last, available):
    api.set_account({"working_weekdays": weekdays.split()})
    set_user(api, weekly_capacity_minutes=weekly)
    set_user(api, api.admin_id, weekly_capacity_minutes=0)
    client = new(api, "/clients", name="Alder")
    work(api, 40, last, client_id=client)
    admin, member = read(api, first, last)["rows"]
    (total,) = read(api, first, last)["totals"]
    ratios = ("utilisation_percent", "billable_utilisation_percent")
    assert [row["available_minutes"] for row in (admin, member, total)] == [0, available, available]
    assert [admin[name] for name in ratios] == [None, None]
    assert [(row[name] is None) for row in (member, total) for name in ratios] == [not available] * 4
    assert (member["billable_share_percent"], member["target_percent"]) == (100.0, "75")
    assert total["target_percent"] == ("75" if available else None)


def test_users_who_have_left_are_told_when_they_have_time_in_the_period_all_by_name(api, client):
    names = ("zoe", "eva", "Ben", "adam")
    ids = [api.add_user(name) for name in names]
    for user, day in zip(ids, ("2026-02-28", "2026-03-02", "2026-03-02", "2026-02-28"), strict=True):
        work(api, 60, day, client_id=client, user_id=user)
    for user in ids[:2]:
        set_user(api, user, is_active=False)
    whole = [(row["user_name"], row["is_active"]) for row in read(api, *FORTNIGHT)["rows"]]
    assert whole == [("adam", True), ("Ana Admin", True), ("Ben", True), ("eva", False), ("Max Member", True)]
    assert read(api, *FORTNIGHT)["totals"][0]["available_minutes"] == 5 * 4800
    assert read(api, *FORTNIGHT, "overview")["time"]["available_minutes"] == 5 * 4800
    other = new(api, "/clients", name="Birch")
    assert len(read(api, *FORTNIGHT, client_id=other)["rows"]) == 4
    assert [len(read(api, *FORTNIGHT, user_id=user)["rows"]) for user in ids] == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("weekly", "target", "expected"),
    [(2400, "50", "62.5"), (1200, "50", "66.667"), (600, "50", "70"), (0, "50", "75"), (2400, "33.333", "54.167")],
)
def test_the_target_of_all_is_weighed_by_the_minutes_they_are_available(api, weekly, target, expected):
    set_user(api, weekly_capacity_minutes=weekly, target_percent=Decimal(target))
    found = read(api, *FORTNIGHT)
    assert [row["target_percent"] for row in found["rows"]] == ["75", target]
    assert [total["target_percent"] for total in found["totals"]] == [expected]


@pytest.fixture
def abroad(api, client):
    """Time of both users for two clients in three currencies, some of it not billable."""
    cedar = new(api, "/clients", name="Cedar", currency="USD", hourly_rate="60")
    tokyo = new(api, "/clients", name="Dogwood", currency="JPY", hourly_rate="60")
    shop, blog = (new(api, "/projects", name=name, client_id=client) for name in ("Shop", "Blog"))
    work(api, 100, project_id=shop)
    work(api, 20, project_id=blog, billable=False)
    work(api, 30, client_id=cedar)
    work(api, 7, client_id=tokyo)
    work(api, 50, client_id=cedar, user_id=api.admin_id)
    return {"alder": client, "cedar": cedar, "shop": shop, "ana": api.admin_id}


@pytest.mark.parametrize(
    ("query", "ana", "member", "total"),
    [
        ({}, "50 50 EUR 0.00 USD 50.00", "157 137 EUR 100.00 JPY 7 USD 30.00", "207 187 EUR 100.00 JPY 7 USD 80.00"),
        ({"currency": "USD"}, "50 50 USD 50.00", "30 30 USD 30.00", "80 80 USD 80.00"),
        ({"currency": "KWD"}, "0 0 KWD 0.000", "0 0 KWD 0.000", "0 0 KWD 0.000"),
        ({"client_id": "cedar"}, "50 50 EUR 0.00 USD 50.00", "30 30 EUR 0.00 USD 30.00", "80 80 EUR 0.00 USD 80.00"),
        ({"client_id": "alder"}, "0 0 EUR 0.00", "120 100 EUR 100.00", "120 100 EUR 100.00"),
        ({"project_id": "shop"}, "0 0 EUR 0.00", "100 100 EUR 100.00", "100 100 EUR 100.00"),
        ({"project_id": "shop", "client_id": "cedar"}, "0 0 EUR 0.00", "0 0 EUR 0.00", "0 0 EUR 0.00"),
        ({"client_id": "alder", "currency": "USD"}, "0 0 USD 0.00", "0 0 USD 0.00", "0 0 USD 0.00"),
        ({"user_id": "ana"}, "50 50 EUR 0.00 USD 50.00", None, "50 50 EUR 0.00 USD 50.00"),
        ({"user_id": "ana", "client_id": "alder"}, "0 0 EUR 0.00", None, "0 0 EUR 0.00"),
    ],
)
def test_time_can_be_limited_to_a_client_project_user_or_currency(api, abroad, query, ana, member, total):
    def shown(row):
        values = [row, *row["other_currencies"]]
        amounts = (f"{value['currency']} {value['billable_value']}" for value in values)
        return " ".join([str(row["tracked_minutes"]), str(row["billable_minutes"]), *amounts])

    found = read(api, *FORTNIGHT, **{name: abroad.get(value, value) for name, value in query.items()})
    assert [shown(row) for row in found["rows"]] == [text for text in (ana, member) if text]
    assert [shown(row) for row in found["totals"]] == [total]
    assert {row["available_minutes"] for row in found["rows"]} == {4800}


def test_me_is_the_user_of_the_key(api, abroad):
    for user in (api.admin_id, api.member_id):
        key = api.new_key(["reports:read"], user_id=user)
        asked = {"from": FORTNIGHT[0], "to": FORTNIGHT[1], "user_id": "me"}
        found = api.get("/reports/utilisation", asked, key=key).data
        assert [row["user_id"] for row in found["rows"]] == [user]
        assert found == read(api, *FORTNIGHT, user_id=user)


def test_a_period_has_its_first_day_its_last_and_no_other(api, client):
    day = date(2026, 1, 1)
    for minutes in range(1, 121):  # until 30 April; from the m-th day to the n-th they are (m + n)(n - m + 1) / 2
        work(api, minutes, str(day), client_id=client)
        day += timedelta(days=1)
    for first, last, minutes in (
        ("2026-01-01", "2026-03-31", 4095),
        ("2026-02-10", "2026-02-10", 41),
        ("2026-02-10", "2026-02-12", 126),
        ("2026-02-03", "2026-02-26", 1092),
        ("2026-01-28", "2026-03-03", 1575),
        ("2026-01-03", "2026-02-26", 1650),
        ("2026-01-03", "2026-03-29", 3913),
        ("2026-03-05", "2026-03-20", 1144),
        ("2026-01-31", "2026-02-01", 63),
        ("2025-12-30", "2026-01-02", 3),
        ("2026-04-30", "2026-05-05", 120),
        ("2025-01-01", "2025-12-31", 0),
    ):
        whole, one, by_project = (
            read(api, first, last, name, **query)["totals"]
            for name, query in (
                ("utilisation", {}),
                ("utilisation", {"client_id": client}),
                ("project-profitability", {}),
            )
        )
        sums = {(row["tracked_minutes"], row["billable_value"]) for row in (*whole, *one, *by_project)}
        assert sums == {(minutes, f"{minutes}.00")}, (first, last)


def test_time_in_another_currency_is_told_with_its_minutes_which_the_row_includes(api, client):
    abroad = new(api, "/clients", name="Abroad", currency="USD", hourly_rate="60")
    for other, members in ((client, {}), (abroad, {"billable": False}), (abroad, {"hourly_rate": "0"})):
        work(api, 60, client_id=other, **members)
    (row,) = (row for row in read(api, *FORTNIGHT)["rows"] if row["tracked_minutes"])
    assert (row["tracked_minutes"], row["billable_value"], row["other_currencies"]) == (
        *(180, "60.00"),
        [{"currency": "USD", "billable_value": "0.00", "tracked_minutes": 120, "billable_minutes": 60}],
    )
    work(api, 60, client_id=abroad)
    (total,) = read(api, *FORTNIGHT)["totals"]
    (other,) = total["other_currencies"]
    assert other == {"currency": "USD", "billable_value": "60.00", "tracked_minutes": 180, "billable_minutes": 120}


def groups_of(api, group_by, **query):
    """The groups of the only user with time: id, name, minutes, billable minutes and value of each."""
    rows = [row for row in read(api, *FORTNIGHT, group_by=group_by, **query)["rows"] if row["tracked_minutes"]]
    names = ("id", "name", "tracked_minutes", "billable_minutes", "billable_value")
    (groups,) = (row["groups"] for row in rows)
    return [tuple(group[name] for name in names) for group in groups]


def test_the_time_of_a_user_is_divided_by_client_task_or_day(api, client):
    other = new(api, "/clients", name="Birch", hourly_rate="120")
    task = new(api, "/tasks", title="Texts", client_id=client)
    work(api, 60, "2026-03-03", client_id=client, task_id=task)
    work(api, 30, "2026-03-02", client_id=client, billable=False)
    work(api, 45, "2026-03-02", client_id=other)
    work(api, 20, "2026-03-03", project_id=new(api, "/projects", name="Our own site"))
    assert groups_of(api, "client") == [
        (client, "Alder", 90, 60, "60.00"),
        (other, "Birch", 45, 45, "90.00"),
        (None, None, 20, 0, "0.00"),
    ]
    assert groups_of(api, "task") == [(None, None, 95, 45, "90.00"), (task, "Texts", 60, 60, "60.00")]
    assert groups_of(api, "day") == [(None, "2026-03-02", 75, 45, "90.00"), (None, "2026-03-03", 80, 60, "60.00")]
    assert groups_of(api, "day", client_id=client) == [
        (None, "2026-03-02", 30, 0, "0.00"),
        (None, "2026-03-03", 60, 60, "60.00"),
    ]


def test_groups_are_null_unless_they_are_asked_for_and_empty_without_time(api):
    assert {row["groups"] for row in read(api, *FORTNIGHT)["rows"]} == {None}
    assert [row["groups"] for row in read(api, *FORTNIGHT, group_by="task")["rows"]] == [[], []]


def test_a_report_with_too_many_groups_says_how_to_limit_it(api, client, monkeypatch):
    monkeypatch.setattr(utilisation, "MAX_GROUPS", 1)
    work(api, 60, "2026-03-02", client_id=client)
    work(api, 60, "2026-03-03", client_id=client)
    query = {"from": "2026-03-02", "to": "2026-03-13", "group_by": "day"}
    assert "Shorten the period" in api.get("/reports/utilisation", query).errors["group_by"][0]
