"""Words: instants, counts and scopes as people read them."""

from collections.abc import Sequence
from contextvars import ContextVar
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from retainer.identity.keys.keys import SCOPE_RESOURCES, SCOPES

LANGUAGE: ContextVar[str] = ContextVar("language", default="en")
"""The language of the account whose page is shown: its numbers have the form in which its people type them."""
SWAPPED = str.maketrans(",.", ".,")
MINUS = "\u2212"
JUST_NOW_SECONDS = 10
HOUR, DAY, MONTH, YEAR = 3600, 86400, 2629800, 31557600
UNITS = (
    (60, "second", 1),
    (HOUR, "minute", 60),
    (DAY, "hour", HOUR),
    (60 * DAY, "day", DAY),
    (2 * YEAR, "month", MONTH),
)
"""Units of distances: the limit in seconds below which a unit is used, its name, and its length in seconds."""
SIZES = ("bytes", "KB", "MB")


class Moment(NamedTuple):
    """An instant: as stored, in the account's time zone, and as a distance from now."""

    instant: str
    text: str
    day: str
    second: str
    distance: str


def moment(instant: str, timezone: str, now: str) -> Moment:
    at = datetime.fromisoformat(instant).astimezone(ZoneInfo(timezone))
    day = f"{at.day} {at:%b %Y}"
    return Moment(instant, f"{day}, {at:%H:%M}", day, f"{at.day} {at:%b, %H:%M:%S}", distance(instant, now))


def distance(instant: str, now: str) -> str:
    """Return the distance of an instant from now: `3 minutes ago`, `in 2 days`."""
    seconds = round((datetime.fromisoformat(instant) - datetime.fromisoformat(now)).total_seconds())
    span = abs(seconds)
    if span < JUST_NOW_SECONDS:
        return "just now"
    unit, size = next(((unit, size) for limit, unit, size in UNITS if span < limit), ("year", YEAR))
    amount = count(round(span / size), unit)
    return f"in {amount}" if seconds > 0 else f"{amount} ago"


def span(start: str, end: str) -> str:
    """Return the time between two instants in words: `2 hours`."""
    text = distance(start, end).removesuffix(" ago")
    return "a moment" if text == "just now" else text


def number(value: int | Decimal | str) -> str:
    """Return a number in the form of the language: `1,204.50`, German `1.204,50`."""
    text = f"{value:,}" if isinstance(value, int) else f"{Decimal(value):,f}"
    return (text.translate(SWAPPED) if LANGUAGE.get() == "de" else text).replace("-", MINUS)


def mark() -> str:
    """Return the decimal mark of the language."""
    return number("0.1")[1]


def percent(value: float | Decimal | str, places: int | None = None) -> str:
    """Return a share in percent: `19%`, `81.5%`; with a number of `places` rounded half to even, else exactly."""
    exact = Decimal(str(value))
    if places is None:
        exact = exact.normalize() if exact % 1 else exact.quantize(Decimal(1))
    return f"{number(exact if places is None else exact.quantize(Decimal(1).scaleb(-places)))}%"


def milliseconds(microseconds: int) -> str:
    return f"{number(Decimal(microseconds // 100).scaleb(-1))} ms"


def count(size: int, noun: str, plural: str = "") -> str:
    """Return a number of things: `1 key`, `1,200 requests`."""
    return f"{number(size)} {noun if size == 1 else plural or noun + 's'}"


def file_size(size: int) -> str:
    """Return a number of bytes like `3 bytes` or `120 KB`, rounded up."""
    unit, *larger = SIZES
    while size >= 1000 and larger:
        size, unit = -(-size // 1000), larger.pop(0)
    return f"{number(size)} {unit}"


def host(url: str) -> str:
    return urlsplit(url).netloc


def money(amount: Decimal, currency: str) -> str:
    """Return an amount with its currency: `1,190.00 EUR`; the amount alone if the currency is empty."""
    return f"{number(amount)} {currency}".rstrip()


def hours(minutes: int) -> str:
    """Return minutes as hours: `1,204:30`."""
    whole, rest = divmod(abs(minutes), 60)
    return f"{MINUS if minutes < 0 else ''}{number(whole)}:{rest:02}"


def short_day(day: str) -> str:
    """Return a day like `24 Nov 2026`."""
    return days(day, day)


def days(first: str, last: str) -> str:
    """Return a period: `1 Dec 2025 to 24 Nov 2026`, or a single day."""
    texts = [f"{day.day} {day:%b %Y}" for day in map(date.fromisoformat, (first, last))]
    return texts[0] if first == last else " to ".join(texts)


def day_label(day: str) -> str:
    """Return a day as the label of a bar, like `Sun 22 Nov`."""
    at = date.fromisoformat(day)
    return f"{at:%a} {at.day} {at:%b}"


def scopes_in_words(scopes: list[str]) -> str:
    if set(scopes) >= set(SCOPES):
        return "Can read and edit everything."
    names = (*SCOPE_RESOURCES, "reports")
    reads, writes = ([name for name in names if f"{name}:{right}" in scopes] for right in ("read", "write"))
    if len(reads) == len(names):
        return f"Can read everything and edit {listed(writes)}." if writes else "Can read everything, but not edit."
    sentences = (
        ("Can read and edit {}.", [name for name in reads if name in writes]),
        ("Can read {}.", [name for name in reads if name not in writes]),
        ("Can create and edit {}, but not read them.", [name for name in writes if name not in reads]),
    )
    return " ".join(sentence.format(listed(found)) for sentence, found in sentences if found)


def listed(names: Sequence[str]) -> str:
    """Return names as part of a sentence: `time, expenses and sites`."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
