"""Months as text, like `2026-03`: their kind, their last day, and the months of a period."""

import re
from calendar import monthrange
from collections.abc import Iterator
from typing import Annotated

from retainer.errors import InvalidValue
from retainer.values.kinds import DAY, kind, read_likely, read_text

MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


def read_month(value: object) -> str:
    text = read_text(value)
    if DAY.fullmatch(text):
        raise InvalidValue(hint="this has a day. Remove it.")
    if not MONTH.fullmatch(text):
        raise ValueError
    return text


Month = Annotated[
    str,
    kind(
        read_month,
        "a month like 2026-03",
        read_field=read_likely(read_month),
        pattern="^[0-9]{4}-(0[1-9]|1[0-2])$",
        examples=["2026-03"],
    ),
]


def last_day(month: str) -> str:
    year, number = int(month[:4]), int(month[5:])
    return f"{month}-{monthrange(year, number)[1]:02}"


def months_of(first: str, last: str) -> Iterator[str]:
    month = first[:7]
    while month <= last[:7]:
        yield month
        year, number = int(month[:4]), int(month[5:])
        month = f"{year + number // 12:04}-{number % 12 + 1:02}"
