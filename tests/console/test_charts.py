"""Charts of figures: axes of round numbers, bars in patterns, and lines with gaps."""

from decimal import Decimal

import pytest

from retainer.console import words
from retainer.console.charts import Series, compact, draw, scale_of, status_chart
from retainer.traffic.counts import Counts


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
    first, second = draw("Revenue", "money", ["Jan 2026", "Feb 2026"], both).groups
    now, before = first.boxes
    assert (now.pattern, before.pattern) == ("solid", "outlined")
    assert now.x + now.width == before.x
    assert (first.at, second.at) == (0, 50)
    assert before.x + before.width < second.at
    base = now.y + now.height
    assert now.height == 2 * before.height
    assert second.boxes[0].y == base
    assert second.boxes[0].height == now.height
    assert (first.description, second.description) == ("Now 50, Before 25", f"Now {words.MINUS}50")
    (large,), (small,) = (
        group.boxes
        for group in draw(
            "Revenue", "money", ["Jan", "Feb"], [both[0]._replace(values=[Decimal(9000), Decimal(1)])]
        ).groups
    )
    assert small.y + small.height == large.y + large.height, "a small one stands on zero, too"


def test_a_line_has_a_gap_where_there_is_no_value():
    line = Series("Now", "line", [Decimal(1), None, Decimal(3), Decimal(2)])
    points = [group.points for group in draw("Share", "percent", list("abcd"), [line]).groups]
    assert [len(each) for each in points] == [1, 0, 1, 1]
    assert points[2][0].before is None
    assert points[3][0].before == (points[2][0].x, points[2][0].y)


def test_of_many_groups_some_are_labelled():
    series = [Series("Now", "solid", [Decimal(1)] * 36)]
    assert draw("Revenue", "money", [str(month) for month in range(36)], series).every == 3
    assert draw("Revenue", "money", [str(month) for month in range(13)], series).every == 1


def test_bars_of_rows_begin_at_zero_and_a_target_lies_on_the_same_axis():
    series = [Series("Profit", "solid", [Decimal(-20), Decimal(80), Decimal(0)])]
    rows = [("", None), ("", Decimal(50)), ("", None)]
    chart = draw("Profit", "money", ["Website", "Shop", "Blog"], series, rows, "Target")
    below, above = chart.groups[0].boxes[0], chart.groups[1].boxes[0]
    assert [(text, at) for at, text in chart.ticks] == [
        (f"{words.MINUS}20", 0),
        ("0", 20),
        ("20", 40),
        ("40", 60),
        ("60", 80),
        ("80", 100),
    ]
    assert chart.base == 20
    assert (below.x, below.width, above.x, above.width) == (0, 20, 20, 80)
    assert chart.groups[1].target == 70
    assert chart.groups[2].boxes == []
    assert [row.at for row in chart.groups] == [0, chart.size, chart.size * 2]


def test_the_longest_bar_leaves_room_up_to_a_round_number():
    series = [Series("Now", "solid", [Decimal("82.3")])]
    (row,) = draw("Share", "percent", ["Sofia"], series, [("", Decimal(75))], "Target").groups
    assert row.boxes[0].x + row.boxes[0].width == Decimal("82.3")


def test_bars_of_a_series_of_zeros_take_no_room_and_are_not_in_the_legend():
    now = Series("Now", "solid", [Decimal(5)])
    before = Series("Before", "outlined", [Decimal(0)])
    unknown = Series("Before", "dashed", [None])
    assert draw("Revenue", "money", ["Optik"], [now, before], [("", None)]).series == [now]
    assert draw("Revenue", "money", ["Jan 2026"], [now, before, unknown]).series == [now]
    zeros = Series("Outstanding", "line", [Decimal(0)])
    assert draw("Revenue", "money", ["Jan 2026"], [now, zeros]).series == [now, zeros]


def test_a_single_group_has_bars_of_the_usual_width_in_its_middle():
    both = [Series("Now", "solid", [Decimal(5)]), Series("Before", "outlined", [Decimal(3)])]
    (group,) = draw("Revenue", "money", ["Jan 2026"], both).groups
    now, before = group.boxes
    assert (now.width, before.width) == (7, 7)
    assert now.x + now.width == before.x == group.at + 50


@pytest.mark.parametrize("labels", [[], ["Jan 2026"], [str(month) for month in range(36)]])
def test_a_chart_without_any_value_has_no_groups(labels):
    for values in ([None] * len(labels), [Decimal(0)] * len(labels)):
        series = [Series("Now", "solid", values), Series("Owed", "line", values)]
        assert draw("Revenue", "money", labels, series).groups == []


def test_a_chart_without_subjects_has_no_rows():
    chart = draw("Revenue", "money", [], [Series("Now", "solid", [])], [], "Target")
    assert (chart.groups, chart.target) == ([], "")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        ("0", "money", "0"),
        ("12500", "money", "12.5k"),
        ("-3000000.00", "money", f"{words.MINUS}3M"),
        ("80.00", "percent", "80%"),
    ],
)
def test_labels_of_an_axis_are_short(value, unit, text):
    assert compact(Decimal(value), unit) == text


def test_the_segments_of_a_bar_are_stacked_and_a_single_failure_is_visible():
    day = Counts(requests=1000, client_errors=300, server_errors=1, limited=100, busiest_minute=40)
    chart = status_chart({"Monday": day, "Tuesday": Counts(requests=500)})
    monday, tuesday = chart.chart.groups
    assert [(box.pattern, box.y, box.height) for box in monday.boxes] == [
        ("good", 76, 154),
        ("warn", 32, 44),
        ("limited", 10, 22),
        ("bad", 7, 3),
    ]
    assert {box.x for box in monday.boxes} == {monday.boxes[0].x}
    assert [(box.pattern, box.y) for box in tuesday.boxes] == [("good", 120)]
    assert chart.total.requests == 1500


@pytest.mark.parametrize("requests", [1, 3, 12, 13, 250])
def test_an_axis_of_requests_has_whole_numbers(requests):
    chart = status_chart({"Monday": Counts(requests=requests)}).chart
    assert all(text.isdecimal() for _, text in chart.ticks)
