"""Words: how instants, amounts of things, and scopes read to a person."""

from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from retainer.identity.keys.keys import SCOPE_RESOURCES, SCOPES
from retainer.values.exact import as_instant

NOW = 10
HOUR, DAY, MONTH, YEAR = 3600, 86400, 2629800, 31557600
STEPS = (
    (60, "second", 1),
    (HOUR, "minute", 60),
    (DAY, "hour", HOUR),
    (60 * DAY, "day", DAY),
    (2 * YEAR, "month", MONTH),
)
"""Below how many seconds a distance is told in which unit, and how many seconds that has."""


class Moment(NamedTuple):
    """An instant: exact for machines, in the account's zone for people, and how far it is from now."""

    instant: str
    text: str
    day: str
    second: str
    distance: str


@lru_cache(maxsize=64)
def zone(name: str) -> ZoneInfo:
    """Return a time zone."""
    return ZoneInfo(name)


def moment(instant: str, timezone: str, now: str) -> Moment:
    """Return an instant as people in a time zone read it."""
    at = datetime.fromisoformat(instant).astimezone(zone(timezone))
    day = f"{at.day} {at:%b %Y}"
    return Moment(instant, f"{day}, {at:%H:%M}", day, f"{at.day} {at:%b, %H:%M:%S}", distance(instant, now))


def distance(instant: str, now: str) -> str:
    """Return how far an instant lies before or after another: `3 minutes ago`, `in 2 days`."""
    seconds = round((datetime.fromisoformat(instant) - datetime.fromisoformat(now)).total_seconds())
    span = abs(seconds)
    if span < NOW:
        return "just now"
    unit, size = next(((unit, size) for limit, unit, size in STEPS if span < limit), ("year", YEAR))
    amount = count(round(span / size), unit)
    return f"in {amount}" if seconds > 0 else f"{amount} ago"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a number of things: `1 key`, `1,200 requests`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def day_end(day: str, timezone: str) -> str:
    """Return the instant at which a calendar day ends in a time zone. Raises ValueError for no day."""
    following = date.fromisoformat(day) + timedelta(days=1)
    return as_instant(datetime.combine(following, time(), zone(timezone)).astimezone(UTC))


def day_start(day: str, timezone: str) -> str:
    """Return the instant at which a calendar day begins in a time zone. Raises ValueError for no day."""
    return as_instant(datetime.combine(date.fromisoformat(day), time(), zone(timezone)).astimezone(UTC))


def scopes_in_words(scopes: list[str]) -> str:
    """Return sentences that say what scopes allow."""
    held = set(scopes)
    if held >= set(SCOPES):
        return "Can read and edit everything."
    reads = {name for name in (*SCOPE_RESOURCES, "reports") if f"{name}:read" in held}
    writes = {name for name in SCOPE_RESOURCES if f"{name}:write" in held}
    if reads == {*SCOPE_RESOURCES, "reports"}:
        return f"Can read everything and edit {listed(writes)}." if writes else "Can read everything, but not edit."
    sentences = (
        ("Can read and edit {}.", reads & writes),
        ("Can read {}.", reads - writes),
        ("Can create and edit {}, but not read them.", writes - reads),
    )
    return " ".join(sentence.format(listed(names)) for sentence, names in sentences if names)


def listed(names: set[str]) -> str:
    """Return names in the order of the reference, as a sentence lists them."""
    words = [name for name in (*SCOPE_RESOURCES, "reports") if name in names]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
