"""What users' time has cost follows from their cost rates, however much time there is."""

from decimal import Decimal
from fractions import Fraction

import pytest

from retainer.rollups import doctor
from tests.contract.cases import statements_of
from tests.databases import each_database
from tests.reference.arithmetic import rounded

pytestmark = each_database

REPORT = "/reports/project-profitability"
DAYS = 40
COPY = """
INSERT INTO time_entries (account_id, created_at, updated_at, client_id, project_id, user_id, date, duration_minutes,
                          billable, currency, amount, rate_is_sent)
SELECT account_id, created_at, updated_at, client_id, project_id, user_id, {day}, 1 + n % 8,
       billable, currency, amount, rate_is_sent
FROM time_entries CROSS JOIN ({numbers}) AS numbers WHERE time_entries.id = $1"""
NUMBERS = """
WITH RECURSIVE counting (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counting WHERE n < {count}) SELECT n FROM counting
"""
DAY = {"SQLite": "date('2026-01-01', '+' || (n % 40) || ' days')", "PostgreSQL": "DATE '2026-01-01' + n % 40"}


@pytest.fixture
def long_served(api):
    """An agency whose member has recorded much time, at no cost so far."""
    project = api.make("/projects")["id"]
    entry = api.make("/time-entries", project_id=project, date="2026-01-01", duration_minutes=1, user_id=api.member_id)
    engine, count = api.store.engine, 2000
    with api.store.unscoped(write=True) as tx:
        text = COPY.format(day=DAY[engine.name], numbers=NUMBERS.format(count=count)).replace("$", engine.marker)
        engine.run(tx.connection, text, [entry["id"]])
    doctor.inspect(api.store, repair=True)
    return api


def minutes(api, since, until="2026-12-31"):
    """The member's minutes, added up from the entries themselves."""
    where = f"user_id = {api.member_id} AND date BETWEEN '{since}' AND '{until}'"
    return api.sql(f"SELECT coalesce(sum(duration_minutes), 0) FROM time_entries WHERE {where}")[0][0]


def reported(api):
    """The labour cost of all time, and the minutes without a cost rate."""
    (total,) = api.get(REPORT).json["data"]["totals"]
    return Fraction(total["labour_cost"]), total["missing_cost_rate_minutes"]


def cost(*parts):
    """What minutes cost at rates, rounded once."""
    return rounded(sum(Fraction(rate) * int(minutes) for rate, minutes in parts) / 60, 2)


def set_rate(api, rate, since="0001-01-01"):
    api.set_user(api.member_id, {"cost_rate": Decimal(rate), "cost_rate_from": since})


def is_exact(api):
    """Whether every sum is what its rows come to."""
    return doctor.inspect(api.store, repair=False) == []


@pytest.mark.parametrize("changes", [{"is_active": False}, {"name": "Max Miller", "hourly_rate": Decimal(80)}])
def test_renaming_a_user_reads_no_recorded_time(long_served, changes):
    with statements_of(long_served) as ran:
        long_served.set_user(long_served.member_id, changes)
    touched = ("time_entries", "project_sums", "user_sums", "UPDATE projects")
    assert [text for text in ran if any(name in text for name in touched)] == []


def test_a_changed_cost_rate_is_the_cost_of_all_time_at_once(long_served):
    api = long_served
    set_rate(api, "45.50")
    assert reported(api) == (cost(("45.50", minutes(api, "2026-01-01"))), 0)
    assert is_exact(api)


def test_changes_of_time_after_a_new_cost_rate_cost_what_they_should(long_served):
    api = long_served
    set_rate(api, "60")
    for day in ("2026-01-02", "2026-02-09"):
        work = {"project_id": api.get("/projects").json["data"][0]["id"], "user_id": api.member_id}
        _, changed, gone = (api.make("/time-entries", **work, date=day, duration_minutes=90)["id"] for _ in "123")
        api.patch(f"/time-entries/{changed}", {"duration_minutes": 300, "date": "2026-01-20"})
        api.delete(f"/time-entries/{gone}")
        assert is_exact(api)
    set_rate(api, "30", "2026-01-15")
    before, after = minutes(api, "2026-01-01", "2026-01-14"), minutes(api, "2026-01-15")
    assert reported(api) == (cost((60, before), (30, after)), 0)
    assert is_exact(api)


def test_a_rate_from_a_day_on_counts_only_the_days_from_then_on_again(long_served):
    api = long_served
    set_rate(api, "20", "2026-02-01")
    set_rate(api, "25", "2026-02-05")
    set_rate(api, "20", "2026-02-05")
    late = minutes(api, "2026-02-01")
    assert reported(api) == (cost((20, late)), minutes(api, "2026-01-01") - late)
    assert is_exact(api)
