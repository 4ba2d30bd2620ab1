"""The spans of a period: each of its days once, no other, and as few as there need be."""

import re
from datetime import date, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retainer.rollups import buckets
from tests.contract.cases import statements_of
from tests.databases import only_sqlite

days = st.dates(date(2023, 11, 1), date(2027, 2, 28))


def net_count(day, parts):
    """How often a day is added, less how often it is taken away."""
    names = {str(day)[:length] for length in buckets.LENGTHS}
    return len(names.intersection(parts[0])) - len(names.intersection(parts[1]))


@given(days, days, days, st.sampled_from([buckets.YEAR, buckets.MONTH]))
@example(date(2024, 2, 29), date(2024, 2, 29), date(2024, 2, 29), buckets.YEAR)
@example(date(2024, 1, 2), date(2025, 12, 30), date(2026, 11, 22), buckets.YEAR)
def test_spans_add_up_to_each_day_of_a_period_once_and_to_no_other(one, other, today, longest):
    first, last = sorted((one, other))
    parts = buckets.decompose(str(first), str(last), str(today), longest)
    around = {first - timedelta(days=1), first, last, last + timedelta(days=1)}
    around |= {date(2023, 11, 1) + timedelta(days=number) for number in range(0, 1216, 3)}
    assert {day: net_count(day, parts) for day in around} == {day: int(first <= day <= last) for day in around}
    assert all(len(name) >= longest for name in (*parts[0], *parts[1]))


@pytest.mark.parametrize(
    ("first", "last", "more", "less"),
    [
        ("2026-01-01", "2026-12-31", ["2026"], []),
        ("2026-01-01", "2026-11-22", ["2026"], [*(f"2026-11-{day}" for day in range(23, 31)), "2026-12"]),
        ("2025-04-01", "2026-03-31", ["2025", "2026-01", "2026-02", "2026-03"], ["2025-01", "2025-02", "2025-03"]),
        ("2025-01-02", "2025-12-30", ["2025"], ["2025-01-01", "2025-12-31"]),
        ("2025-01-30", "2025-12-31", ["2025", "2025-01-30", "2025-01-31"], ["2025-01"]),
        ("2026-10-01", "2026-10-03", ["2026-10-01", "2026-10-02", "2026-10-03"], []),
        ("0001-01-01", "0002-01-31", ["0001", "0002-01"], []),
        ("9998-12-31", "9999-12-31", ["9998-12-31", "9999"], []),
    ],
)
def test_the_fewest_that_have_begun_make_up_a_period(first, last, more, less):
    assert buckets.decompose(first, last, "2026-11-22") == (tuple(more), tuple(less))


def test_what_lies_after_today_counts_for_nothing_even_when_it_is_more():
    assert buckets.decompose("2026-11-01", "2026-11-02", "2026-11-02")[0] == ("2026-11",)
    assert buckets.decompose("2026-11-01", "2026-11-02", "2026-12-31")[0] == ("2026-11-01", "2026-11-02")


@only_sqlite
@pytest.mark.parametrize(("name", "table"), [("utilisation", "user_sums"), ("project-profitability", "project_sums")])
def test_a_report_finds_its_spans_by_their_key_and_reads_no_others(api, name, table):
    api.make("/time-entries")
    with statements_of(api) as ran:
        api.get(f"/reports/{name}", {"from": "2026-01-05", "to": "2026-03-08"})
    (text,) = (text for text in ran if f"FROM {table}" in text)
    places = [None] * max(map(int, re.findall(r"\?(\d+)", text)))
    plan = [step for *_, step in api.sql(f"EXPLAIN QUERY PLAN {text}", *places) if table in step]
    assert plan == [f"SEARCH {table} USING PRIMARY KEY (account_id=? AND span=?)"] * 2
