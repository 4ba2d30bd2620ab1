"""Row sums: statements that add up the rows of a period."""

from functools import cache
from typing import Any

from sqlalchemy import Select, Text, bindparam, cast, func

from retainer.rollups.buckets import MONTH


@cache
def sums_of(rows: Select[Any], by: tuple[str, ...], figures: tuple[str, ...], limits: tuple[str, ...]) -> Select[int]:
    """Select the sums of figures of rows with a `day`, from `first` to `last`, by some of their columns or by `month`.

    Each of the `limits` is a column whose value is bound.
    """
    columns = rows.selected_columns
    month = func.substr(cast(columns.day, Text), 1, MONTH)
    keys = [month.label(name) if name == "month" else columns[name] for name in by]
    sums = [func.sum(columns[name]) for name in figures]
    conditions = [columns[name] == bindparam(name) for name in limits]
    in_period = columns.day.between(bindparam("first"), bindparam("last"))
    return rows.with_only_columns(*keys, *sums).where(in_period, *conditions).group_by(*keys)
