"""Units: what a number counts, so that pages and forms show it as people write it."""

from typing import Annotated, NamedTuple


class Unit(NamedTuple):
    """Marks a number with what it counts; it changes nothing about the values that are accepted."""

    name: str


Minutes = Annotated[int, Unit("minutes")]
Milliseconds = Annotated[int, Unit("milliseconds")]
Seconds = Annotated[int, Unit("seconds")]
Days = Annotated[int, Unit("days")]
Share = Annotated[float, Unit("percent")]
BudgetShare = Annotated[float, Unit("budget")]
"""The percentage of a budget that is used, which can be above 100."""
