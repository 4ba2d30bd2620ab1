"""The buckets of a period: each of its days once, no other day, as few as possible; later ones are subtracted."""

import re
from datetime import date, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from retainer.rollups import summaries
from tests.contract.cases import statements_of
from tests.databases import only_sqlite

days = st.dates(date(2023, 11, 1), date(2027, 2, 28))


@given(days, days, st.sampled_from([summaries.YEAR, summaries.MONTH]))
@example(date(2024, 2, 29), date(2024, 2, 29), summaries.YEAR)
@example(date(2024, 1, 2), date(2025, 12, 30), summaries.YEAR)
def test_buckets_contain_each_day_of_a_period_once_and_no_other(one, other, longest):
    first, last = sorted((one, other))
    names = summaries.decompose(str(first), str(last), longest)
    around = {first - timedelta(days=1), first, last, last + timedelta(days=1)}
    around |= {date(2023, 11, 1) + timedelta(days=number) for number in range(0, 1216, 3)}
    counts = {day: sum((-1 if name > str(last) else 1) * str(day).startswith(name) for name in names) for day in around}
    assert counts == {day: int(first <= day <= last) for day in around}
    assert all(len(name) >= longest for name in names)


@pytest.mark.parametrize(
    ("first", "last", "names"),
    [
        ("2026-01-01", "2026-12-31", ["2026"]),
        ("2026-01-01", "2026-11-30", ["2026", "2026-12"]),
        ("2026-01-01", "2026-11-28", ["2026", "2026-11-29", "2026-11-30", "2026-12"]),
        ("2026-02-01", "2026-04-15", ["2026-02", "2026-03", *(f"2026-04-{day:02}" for day in range(1, 16))]),
        ("2026-02-01", "2026-04-16", ["2026-02", "2026-03", "2026-04", *(f"2026-04-{day}" for day in range(17, 31))]),
        ("2025-12-31", "2027-01-31", ["2025-12-31", "2026", "2027-01"]),
        ("2025-11-29", "2026-02-02", ["2025-11-29", "2025-11-30", "2025-12", "2026-01", "2026-02-01", "2026-02-02"]),
        ("2024-02-01", "2024-02-28", ["2024-02", "2024-02-29"]),
        ("2024-02-01", "2024-02-29", ["2024-02"]),
        ("2025-01-30", "2025-02-28", ["2025-01-30", "2025-01-31", "2025-02"]),
        ("0001-01-01", "0001-02-01", ["0001-01", "0001-02-01"]),
        ("9998-12-31", "9999-12-31", ["9998-12-31", "9999"]),
    ],
)
def test_a_period_has_as_few_buckets_as_possible_and_subtracts_later_ones(first, last, names):
    assert summaries.decompose(first, last) == tuple(names)


@only_sqlite
@pytest.mark.parametrize(("name", "table"), [("utilisation", "user_sums"), ("project-profitability", "project_sums")])
def test_a_report_finds_its_buckets_by_their_key_and_reads_no_others(api, name, table):
    api.make("/time-entries")
    with statements_of(api) as ran:
        api.get(f"/reports/{name}", {"from": "2026-01-05", "to": "2026-03-08"})
    texts = [text for text in ran if f"FROM {table}" in text and "bucket >" in text]
    assert texts
    for text in texts:
        places = [None] * max(map(int, re.findall(r"\?(\d+)", text)))
        plan = [step for *_, step in api.sql(f"EXPLAIN QUERY PLAN {text}", *places) if table in step]
        assert plan == [f"SEARCH {table} USING PRIMARY KEY (account_id=? AND bucket=?)"]
