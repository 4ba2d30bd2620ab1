"""Charts of figures: axes of round numbers, bars in patterns, and lines with gaps."""

from decimal import Decimal

import pytest

from retainer.console.charts import Series, Subject, column_chart, compact, row_chart, scale_of


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        ([], 0, 1, 1),
        ([0, 0], 0, 1, 1),
        ([48], 0, 50, 10),
        ([101], 0, 125, 25),
        ([99_999], 0, 100_000, 20_000),
        ([-30, 60], -40, 60, 20),
        ([-5], -5, 0, 1),
    ],
)
def test_an_axis_has_round_numbers_and_includes_zero_and_all_values(values, low, high, step):
    assert scale_of([Decimal(value) for value in values]) == (low, high, step)


def test_bars_stand_beside_each_other_within_their_group_and_fall_below_zero():
    both = [Series("Now", "solid", [Decimal(50), Decimal(-50)]), Series("Before", "outlined", [Decimal(25), None])]
    first, second = column_chart("Revenue", "money", ["Jan 2026", "Feb 2026"], both).groups
    now, before = first.boxes
    assert (now.pattern, before.pattern) == ("solid", "outlined")
    assert now.x + now.width == before.x
    assert (first.x, first.width, second.x) == (0, 50, 50)
    assert before.x + before.width < second.x
    base = now.y + now.height
    assert now.height == 2 * before.height
    assert second.boxes[0].y == base
    assert second.boxes[0].height == now.height
    assert (first.description, second.description) == ("Now 50, Before 25", "Now -50")


def test_a_line_has_a_gap_where_there_is_no_value():
    line = Series("Now", "line", [Decimal(1), None, Decimal(3), Decimal(2)])
    points = [group.points for group in column_chart("Share", "percent", list("abcd"), [line]).groups]
    assert [len(each) for each in points] == [1, 0, 1, 1]
    assert points[2][0].before is None
    assert points[3][0].before == (points[2][0].x, points[2][0].y)


def test_of_many_groups_some_are_labelled():
    chart = column_chart("Revenue", "money", [str(month) for month in range(36)], [])
    assert [group.label for group in chart.groups if group.is_labelled] == [str(month) for month in range(0, 36, 3)]


def test_bars_of_rows_begin_at_zero_and_a_target_lies_on_the_same_axis():
    series = [Series("Profit", "solid", [Decimal(-25), Decimal(75), Decimal(0)])]
    subjects = [Subject("Website"), Subject("Shop", target=Decimal(50)), Subject("Blog")]
    chart = row_chart("Profit", "money", subjects, series, "Target")
    below, above = chart.rows[0].boxes[0], chart.rows[1].boxes[0]
    assert chart.zero == 25
    assert (below.x, below.width, above.x, above.width) == (0, 25, 25, 75)
    assert chart.rows[1].target == 75
    assert chart.rows[2].boxes == []
    assert [row.y for row in chart.rows] == [0, chart.height // 3, chart.height * 2 // 3]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [("0", "money", "0"), ("12500", "money", "12.5k"), ("-3000000.00", "money", "-3M"), ("80.00", "percent", "80%")],
)
def test_labels_of_an_axis_are_short(value, unit, text):
    assert compact(Decimal(value), unit) == text
