"""Input as people type it: `1.000,00` or `1,000.00` by the account's language, `1:30`, `1.5` or `90m`, local times.

A number is never guessed: one that can mean two amounts is refused, and the message names both.
"""

import re
from datetime import datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from retainer.console.words import MINUS
from retainer.errors import InvalidValue
from retainer.values.exact import as_instant, day_end, day_start, decimal_text
from retainer.values.kinds import read_day

SPACES = re.compile(r"[\s'\u2019]+")
NUMBER = re.compile(r"(-?)((?:[0-9]+|(?=[.,]))(?:[.,][0-9]+)*)")
CLOCK = re.compile(r"([0-9]{0,6}):([0-5][0-9])h?")
UNITS = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,8})(?:m|min)?)?")
MINUTE = timedelta(minutes=1)
OCCURRENCES = ("first", "second")
"""The two equal local times when clocks go back, the earlier one first."""
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
WHOLE = re.compile(r"-?[0-9]{1,20}")
HOST = re.compile(r"(?:[^\s/:@?#.]+\.)+[^\s/:@?#.]{2,}(?::[0-9]+)?(?:[/?#]\S*)?")
SYMBOLS = {"EUR": "€", "GBP": "£", "USD": "$", "PLN": "zł", "CHF": "Fr.", "JPY": "¥", "CZK": "Kč"}
WRITTEN: dict[str, tuple[str, ...]] = {
    "%": ("percent", "Prozent"),
    "days": ("days", "day", "Tage", "Tagen", "Tag"),
    "seconds": ("seconds", "second", "Sekunden", "Sekunde", "sec", "s"),
    **{currency: (symbol,) for currency, symbol in SYMBOLS.items()},
}
"""What people write after a number for its unit, besides the unit itself; before it, only currencies stand."""
GROUP, MAX_DIGITS = 3, 15
"""Digits between two separators of thousands, and of hours."""


def decimal_mark(language: str) -> str:
    return "," if language == "de" else "."


def read_number(text: str, language: str, decimals: int | None = None) -> str:
    """Return a number as the API reads it: without grouping, and with a point; `decimals` are those of an amount.

    The decimal mark of the language and three digits are an amount of a currency with three decimals, as pages show
    it. Raises InvalidValue for other text, separators in wrong places, and an amount that can be read in two ways.
    """
    found = NUMBER.fullmatch(SPACES.sub("", text).replace(MINUS, "-"))
    example = "1.000,50" if language == "de" else "1,000.50"
    if found is None:
        raise InvalidValue(f"Must be a number, like {example}.")
    sign, digits = found.groups()
    digits = digits if digits[0].isdecimal() else f"0{digits}"
    marks = [character for character in digits if character in ".,"]
    parts = re.split(r"[.,]", digits)
    if not marks:
        return f"{sign}{digits}"
    plain = f"{sign}{''.join(parts[:-1])}.{parts[-1]}"
    whole, joined = parts[:-1], f"{sign}{''.join(parts)}"
    if len(marks) > 1:
        has_fraction = marks[-1] not in marks[:-1]
        if not _is_grouped(whole if has_fraction else parts) or len(set(marks[: len(whole) - has_fraction])) > 1:
            raise InvalidValue(f"Has a separator in the wrong place. Write it like {example}.")
        return plain if has_fraction else joined
    if _is_grouped(parts) and marks[0] != decimal_mark(language):
        return joined
    if _is_grouped(parts) and decimals is not None and decimals < GROUP:
        fraction = parts[1].rstrip("0").ljust(2, "0")
        fraction += "0" if len(fraction) == GROUP else ""
        raise InvalidValue(f"Can be read in two ways. Write {joined} or {sign}{parts[0]}{marks[0]}{fraction}.")
    return plain


def without_unit(text: str, unit: str) -> str:
    """Return the number of a text like `19 %`, `98,00 €` or `14 Tage`; with any other unit, the text as it is."""
    words = (*WRITTEN.get(unit, ()), unit)
    found = next((word for word in words if word and text.casefold().endswith(word.casefold())), "")
    if not found and unit in SYMBOLS:
        found = next((word for word in words if text.casefold().startswith(word.casefold())), "")
        return text[len(found) :].strip()
    return text[: len(text) - len(found)].strip()


def read_whole(text: str, unit: str) -> int | str:
    """Return a whole number, typed with or without its unit; other text as it is. Raises InvalidValue for days."""
    text = without_unit(text, unit)
    if unit == "days" and not WHOLE.fullmatch(text):
        raise InvalidValue("Enter days, like 14.")
    return int(text) if WHOLE.fullmatch(text) else text


def with_scheme(text: str) -> str:
    """Return an address that begins with a host, like `agency.example/jobs`, with `https://`; any other as it is."""
    return f"https://{text}" if HOST.fullmatch(text) else text


def _is_grouped(parts: list[str]) -> bool:
    return 1 <= len(parts[0]) <= GROUP and parts[0] != "0" and all(len(part) == GROUP for part in parts[1:])


def number_text(value: Decimal, language: str, *, is_money: bool = False) -> str:
    """Return a number as a field shows it; an amount keeps the decimals of its currency."""
    return (f"{value:f}" if is_money else decimal_text(value)).replace(".", decimal_mark(language))


def read_minutes(text: str, language: str, low: int, high: int) -> int:
    """Return minutes from `1:30`, `1.5`, `90m` or `1h 30m`. Raises InvalidValue, also outside of the bounds."""
    compact = SPACES.sub("", text).lower()
    clock, units, number = CLOCK.fullmatch(compact), UNITS.fullmatch(compact), compact.removesuffix("h")
    if clock:
        minutes = Decimal(60 * int(clock[1] or 0) + int(clock[2]))
    elif units and not compact.isdecimal():
        minutes = Decimal(60 * int(units[1] or 0) + int(units[2] or 0))
    elif NUMBER.fullmatch(number) and len(number) <= MAX_DIGITS:
        minutes = 60 * Decimal(read_number(number, language))
    else:
        raise InvalidValue("Must be a time like 1:30, 1.5 or 90m.")
    if minutes % 1:
        raise InvalidValue("Is not a whole number of minutes. Write it like 1:20 or 80m.")
    if not low <= minutes <= high:
        limits = f"{minutes_text(low)} to {minutes_text(high)} hours"
        raise InvalidValue(f"Must be from {limits}; this is {minutes_text(int(minutes))}. For minutes, write 90m.")
    return int(minutes)


def minutes_text(minutes: int) -> str:
    """Return minutes as a field shows them: `1:30`."""
    return f"{minutes // 60}:{minutes % 60:02}"


def read_moments(text: str, timezone: str) -> list[str]:
    """Return the instants of a local time like `2026-03-31T14:30`: two if clocks repeat it. Other text stays as it is.

    Raises InvalidValue for a time that clocks leave out.
    """
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo:
            return [as_instant(at)]
        first, second = (at.replace(tzinfo=ZoneInfo(timezone), fold=fold) for fold in (0, 1))
        instants = [as_instant(first), as_instant(second)]
        before, after = first.utcoffset(), second.utcoffset()
    except (ValueError, OverflowError):
        return [text]
    if before is None or after is None or before == after:
        return instants[:1]
    if before < after:
        begin = _begin_of_change(at, timezone)
        raise InvalidValue(
            f"This time does not exist on that day: clocks go from {begin:%H:%M} to {begin + (after - before):%H:%M}."
        )
    return instants


def _begin_of_change(at: datetime, timezone: str) -> datetime:
    """Return the first minute of the local times that clocks leave out, or repeat, around one of them."""
    while True:
        earlier = (at - MINUTE).replace(tzinfo=ZoneInfo(timezone))
        if earlier.utcoffset() == earlier.replace(fold=1).utcoffset():
            return at.replace(second=0, microsecond=0)
        at -= MINUTE


def double_question(text: str, timezone: str) -> str:
    """Return what to ask about a local time that clocks repeat."""
    at = datetime.fromisoformat(text)
    begin = _begin_of_change(at, timezone)
    first, second = (at.replace(tzinfo=ZoneInfo(timezone), fold=fold).utcoffset() for fold in (0, 1))
    end = begin + ((first or MINUTE) - (second or MINUTE))
    return f"This time exists twice on that day: clocks go back from {end:%H:%M} to {begin:%H:%M}. Choose one of both."


def occurrence(instant: str, timezone: str) -> str:
    """Return which of two equal local times an instant is: `first` or `second`; empty if there is only one."""
    local = datetime.fromisoformat(instant).astimezone(ZoneInfo(timezone))
    is_double = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    return OCCURRENCES[local.fold] if is_double else ""


def read_boundary(text: str, timezone: str, *, is_end: bool = False) -> str:
    """Return the instant at which a day begins or ends for the account. Raises InvalidValue."""
    try:
        return (day_end if is_end else day_start)(read_day(text), timezone)
    except (ValueError, OverflowError):
        raise InvalidValue("Must be a date, like 2026-03-10.") from None
