from datetime import UTC, date, datetime, time, timedelta

import pytest
import time_machine
from testing.agencies import open_agency
from tests.factories import ApiClient

MOMENT = timedelta(milliseconds=1)
DAY = timedelta(days=1)

MIDNIGHTS = [
    ("Europe/Berlin", "2026-01-14T23:00Z", "2026-01-15"),
    ("Europe/Berlin", "2026-07-14T22:00Z", "2026-07-15"),
    ("America/Los_Angeles", "2026-01-15T08:00Z", "2026-01-15"),
    ("America/Los_Angeles", "2026-07-15T07:00Z", "2026-07-15"),
    ("America/Los_Angeles", "2027-01-01T08:00Z", "2027-01-01"),
    ("Pacific/Auckland", "2026-01-14T11:00Z", "2026-01-15"),
    ("Pacific/Auckland", "2026-07-14T12:00Z", "2026-07-15"),
    ("Pacific/Auckland", "2026-12-31T11:00Z", "2027-01-01"),
    ("Asia/Kolkata", "2026-01-14T18:30Z", "2026-01-15"),
    ("Asia/Kolkata", "2028-02-28T18:30Z", "2028-02-29"),
    ("America/Santiago", "2026-09-06T04:00Z", "2026-09-06"),  # without a midnight: from 23:59 to 01:00
]
"""Zone, the moment at which a day begins there, and that day; written out, so that no library answers for itself."""

CHANGES = [
    ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00Z", 23, ("01:30+01:00", "03:30+02:00")),
    ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00Z", 25, ("01:30+02:00", "03:30+01:00")),
    ("America/Los_Angeles", "2026-03-08", "2026-03-08T08:00Z", 23, ("01:30-08:00", "03:30-07:00")),
    ("America/Los_Angeles", "2026-11-01", "2026-11-01T07:00Z", 25, ("00:30-07:00", "02:30-08:00")),
    ("Pacific/Auckland", "2026-09-27", "2026-09-26T12:00Z", 23, ("01:30+12:00", "03:30+13:00")),
    ("Pacific/Auckland", "2026-04-05", "2026-04-04T11:00Z", 25, ("01:30+13:00", "03:30+12:00")),
    ("Asia/Kolkata", "2026-03-29", "2026-03-28T18:30Z", 24, ("01:30+05:30", "03:30+05:30")),
]
"""Zone, a day there, the moment at which it begins, its hours, and what the clock says twice, two hours apart."""


def instant(text):
    return datetime.fromisoformat(text)


def at(moment):
    return time_machine.travel(moment, tick=False)


def move(api, zone):
    """Let an agency live in a zone."""
    api.set_account({"timezone": zone})


def today(api):
    """The day that an entry gets which says none."""
    return api.make("/time-entries")["date"]


class Due:
    """A task, a project and a milestone that are due on one day."""

    def __init__(self, api, day):
        self.api = api
        self.project = api.make("/projects", due_date=day)["id"]
        self.milestones = f"/projects/{self.project}/milestones"
        self.milestone = api.post(self.milestones, {"name": "M", "due_date": day}).data["id"]
        self.task = api.make("/tasks", due_date=day)["id"]

    def overdue(self):
        """Whether they are overdue; they and their lists must agree."""
        results = {self.api.get(f"/tasks/{self.task}").data["is_overdue"]}
        results |= {row["is_overdue"] for row in self.api.get(self.milestones).data if row["id"] == self.milestone}
        for path, record in (("/tasks", self.task), ("/projects", self.project), (self.milestones, self.milestone)):
            for asked in (True, False):
                rows = self.api.get(path, {"overdue": str(asked).lower()}).data
                results.add((record in [row["id"] for row in rows]) is asked)
        assert len(results) == 1
        return results.pop()


@pytest.mark.parametrize(("zone", "begin", "day"), MIDNIGHTS)
def test_a_day_begins_at_local_midnight(api, zone, begin, day):
    move(api, zone)
    midnight, before = instant(begin), (date.fromisoformat(day) - DAY).isoformat()
    yesterdays, todays = Due(api, before), Due(api, day)
    in_utc = datetime.combine(midnight + DAY, time(), UTC)
    for moment, expected in (
        (midnight - MOMENT, (before, False, False)),
        (midnight, (day, True, False)),
        (in_utc - MOMENT, (day, True, False)),
        (in_utc, (day, True, False)),
    ):
        with at(moment):
            assert (today(api), yesterdays.overdue(), todays.overdue()) == expected


@pytest.mark.parametrize(("zone", "day", "begin", "hours"), [change[:4] for change in CHANGES])
def test_a_day_on_which_the_clocks_change_is_as_long_as_it_is(api, zone, day, begin, hours):
    move(api, zone)
    todays, end = Due(api, day), instant(begin) + timedelta(hours=hours)
    before, after = ((date.fromisoformat(day) + days).isoformat() for days in (-DAY, DAY))
    for moment, expected in (
        (instant(begin) - MOMENT, (before, False)),
        (instant(begin), (day, False)),
        (end - MOMENT, (day, False)),
        (end, (after, True)),
    ):
        with at(moment):
            assert (today(api), todays.overdue()) == expected


@pytest.mark.parametrize(("zone", "day", "begin", "hours", "clock"), CHANGES)
def test_an_entry_over_a_change_of_the_clocks_has_the_minutes_that_passed(api, zone, day, begin, hours, clock):
    move(api, zone)
    minutes = (hours - 22) * 60
    moments = (f"{day}T{time[:5]}:00{time[5:]}" for time in clock)
    members = dict(zip(("started_at", "ended_at"), moments, strict=True)) | {"duration_minutes": None}
    entry = api.make("/time-entries", **members, hourly_rate="60")
    assert (entry["duration_minutes"], entry["amount"], entry["date"]) == (minutes, f"{minutes}.00", day)
    twice = api.create("/time-entries", **members | {"duration_minutes": 120})
    assert twice.status == (201 if hours == 24 else 422)
    for made in api.get("/time-entries").data:  # the day has room for the whole of it
        assert api.delete(f"/time-entries/{made['id']}").status == 204
    members["started_at"] = instant(begin).isoformat()
    members["ended_at"] = (instant(begin) + timedelta(hours=hours)).isoformat()
    whole = api.create("/time-entries", **members)
    if hours > 24:
        assert "1440 minutes" in whole.errors["ended_at"][0]
    else:
        assert (whole.data["duration_minutes"], whole.data["date"]) == (hours * 60, day)


@pytest.mark.parametrize(
    ("zone", "started_at", "day"),
    [
        ("Europe/Berlin", "2026-01-14T22:59:59.999999Z", "2026-01-14"),
        ("Europe/Berlin", "2026-01-14T23:00:00Z", "2026-01-15"),
        ("Europe/Berlin", "2026-01-14T23:59:00-08:00", "2026-01-15"),
        ("America/Los_Angeles", "2026-01-15T08:59:59+01:00", "2026-01-14"),
        ("America/Los_Angeles", "2026-01-15T09:00:00+01:00", "2026-01-15"),
        ("Pacific/Auckland", "2026-01-14T10:59:59Z", "2026-01-14"),
        ("Pacific/Auckland", "2026-01-14T11:00:00Z", "2026-01-15"),
        ("Asia/Kolkata", "2026-01-14T18:29:59Z", "2026-01-14"),
        ("Asia/Kolkata", "2026-01-14T18:30:00Z", "2026-01-15"),
    ],
)
def test_time_that_says_when_it_began_is_of_that_day_unless_the_day_is_sent(api, zone, started_at, day):
    move(api, zone)
    with at("2026-06-01T09:00:00Z"):
        entry = api.make("/time-entries", started_at=started_at)
        path = f"/time-entries/{entry['id']}"
        assert entry["date"] == day
        assert api.make("/time-entries", started_at=started_at, date=None)["date"] == day
        assert api.make("/time-entries", started_at=started_at, date="2026-02-02")["date"] == "2026-02-02"
        ended = (instant(started_at.replace("Z", "+00:00")) + DAY).isoformat()
        whole = {"ended_at": ended, "duration_minutes": None, "user_id": api.member_id}
        over = api.make("/time-entries", started_at=started_at, **whole)
        assert (over["date"], over["duration_minutes"]) == (day, 1440)
        assert api.make("/time-entries", ended_at=started_at)["date"] == "2026-06-01"
        assert api.patch(path, {"started_at": "2026-05-05T09:00:00Z"}).data["date"] == "2026-05-05"
        assert api.patch(path, {"date": None}).data["date"] == "2026-05-05"
        assert api.patch(path, {"date": None, "started_at": started_at}).data["date"] == day
        assert api.patch(path, {"date": "2026-02-02"}).data["date"] == "2026-02-02"
        assert api.patch(path, {"date": "", "started_at": None}).data["date"] == "2026-06-01"


def test_accounts_in_four_zones_have_their_own_days_at_one_moment(api):
    offices = [api]
    for zone in ("America/Los_Angeles", "Pacific/Auckland", "Asia/Kolkata"):
        agency = open_agency(api.store, zone.partition("/")[2].replace("_", ""), "agency", timezone=zone)
        offices.append(ApiClient(api.app, api.contract_checker, agency))
    dues = [Due(office, "2026-03-10") for office in offices]
    for moment, days in (
        ("2026-03-10T06:59:59Z", (10, 9, 10, 10)),
        ("2026-03-10T07:00:00Z", (10, 10, 10, 10)),
        ("2026-03-10T11:00:00Z", (10, 10, 11, 10)),
        ("2026-03-10T18:30:00Z", (10, 10, 11, 11)),
        ("2026-03-10T23:00:00Z", (11, 10, 11, 11)),
        ("2026-03-11T07:00:00Z", (11, 11, 11, 11)),
    ):
        with at(moment):
            assert [today(office) for office in offices] == [f"2026-03-{day:02}" for day in days]
            assert [due.overdue() for due in dues] == [day > 10 for day in days]


def test_an_account_that_changes_its_zone_keeps_the_days_it_recorded(api):
    with at("2026-03-10T23:30:00Z"):
        entry, due = api.make("/time-entries"), Due(api, "2026-03-10")
        assert (entry["date"], due.overdue()) == ("2026-03-11", True)
        move(api, "America/Los_Angeles")
        assert (today(api), due.overdue()) == ("2026-03-10", False)
        assert api.get(f"/time-entries/{entry['id']}").data == entry


def test_a_time_zone_decides_nothing_about_days_that_are_sent(api):
    move(api, "Pacific/Auckland")
    with at("2026-03-10T11:30:00Z"):
        entry = api.make("/time-entries", date="2026-03-10")["id"]
        for query, those in (
            ({"date_from": "2026-03-10", "date_to": "2026-03-10"}, [entry]),
            ({"date_from": "2026-03-11"}, []),
            ({"date_to": "2026-03-09"}, []),
        ):
            assert [row["id"] for row in api.get("/time-entries", query).data] == those
