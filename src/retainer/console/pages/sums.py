"""The tables of the sums of a file, and of what its import has made."""

from collections.abc import Mapping, Sequence

from retainer.console.labels import field_label
from retainer.console.values import AnyBlock, table_of
from retainer.console.words import number

TITLES = {"seconds_in_file": "In the file (h)", "minutes": "Rounded to minutes (h)"}
NAMES = frozenset({"person", "month", "client", "currency"})


def sums_of_file(sums: Sequence[Mapping[str, str | int]]) -> AnyBlock:
    """Return the sums of a file, and of what can be imported of it."""
    return _table("Sums of the file", sums, TITLES)


def sums_now(sums: Sequence[Mapping[str, str | int]]) -> AnyBlock:
    """Return the sums of what an import has made, as it is now."""
    return _table("Sums of what was imported", sums, {"minutes": "Time (h)"})


def _table(title: str, sums: Sequence[Mapping[str, str | int]], titles: Mapping[str, str]) -> AnyBlock:
    rows = [[value if isinstance(value, str) else _shown(name, value) for name, value in each.items()] for each in sums]
    labels = [titles.get(name) or field_label(name) for name in sums[0]]
    return table_of(title, labels, rows, numbers=len(sums[0].keys() - NAMES))


def _shown(name: str, value: int) -> str:
    """Return a number, or seconds and minutes as hours."""
    if name == "seconds_in_file":
        return f"{value // 3600}:{value // 60 % 60:02}:{value % 60:02}"
    return f"{value // 60}:{value % 60:02}" if name == "minutes" else number(value)
