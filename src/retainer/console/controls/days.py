"""Controls of days and local times, also on the days on which clocks change: which of two equal times is meant."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

from retainer.console import typed
from retainer.console.controls.control import MAX_TYPED, Control, FormPlace, Place
from retainer.console.typed import DAY
from retainer.errors import InvalidValue

PARTNERS = {"started_at": "ended_at", "ended_at": "started_at"}
"""Fields of which the second is later."""


class Day(Control, frozen=True):
    type: str = "date"


class Boundary(Control, frozen=True):
    """A day, which stands for the instant at which it begins or ends for the account."""

    is_end: bool = False
    type: str = "date"
    max_typed = MAX_TYPED

    def value(self, text: str, at: FormPlace, _: str) -> object:
        return typed.read_boundary(text, at.timezone, is_end=self.is_end)


class DayAndTime(Control, frozen=True):
    """A local time in the time zone of the account, to the minute."""

    type: str = "datetime-local"
    macro, max_typed = "moment", MAX_TYPED

    def write(self, value: str, at: Place) -> str:
        return f"{datetime.fromisoformat(value).astimezone(ZoneInfo(at.timezone)):%Y-%m-%dT%H:%M}"

    def value(self, text: str, at: FormPlace, name: str) -> object:
        """Return the instant of a local time: as chosen of two, or the only one with which the end follows the start.

        Raises InvalidValue for a time that does not exist, and with a question for one that exists twice.
        """
        instants, chosen = typed.read_moments(text, at.timezone), self.occurrence(text, at, name)
        if len(instants) == 1:
            return instants[0]
        if chosen in typed.OCCURRENCES:
            return instants[typed.OCCURRENCES.index(chosen)]
        others = self._partners(at, PARTNERS.get(name, ""))
        fitting = [each for each in instants if any((each < other) == (name == "started_at") for other in others)]
        if len(fitting) != 1:
            raise InvalidValue(typed.double_question(text, at.timezone))
        return fitting[0]

    def query(self, text: str, at: Place, name: str) -> str:
        """Return a day as the instant at which it begins; as the end `until`, it is included."""
        is_day = DAY.fullmatch(text) is not None
        return typed.read_boundary(text, at.timezone, is_end=name == "until") if is_day else text

    def as_filter(self) -> Control:
        return Day()

    def is_double(self, text: str, at: Place) -> bool:
        """Whether clocks repeat a local time, so that the form asks which one is meant."""
        with suppress(InvalidValue):
            return len(typed.read_moments(text, at.timezone)) > 1
        return False

    def occurrence(self, text: str, at: FormPlace, name: str) -> str:
        """Return which of two equal local times a field has: as chosen, or as stored."""
        return at.form.text(f"{name}.occurrence", self._stored_occurrence(text, at, name))

    def is_other(self, texts: Sequence[str], stored: Sequence[str], at: FormPlace, name: str) -> bool:
        """Whether another time is meant, or the other one of two equal times."""
        was = self._stored_occurrence(texts[-1], at, name)
        return [*texts] != [*stored] or (was != "" and self.occurrence(texts[-1], at, name) not in {"", was})

    def _stored_occurrence(self, text: str, at: FormPlace, name: str) -> str:
        stored = getattr(at.record, name, None)
        return typed.occurrence(stored, at.timezone) if stored and text == self.write(stored, at) else ""

    def _partners(self, at: FormPlace, name: str) -> list[str]:
        """Return the instants that the other end of a time can be; none if it is blank or does not exist."""
        text, stored = at.form.text(name), getattr(at.record, name, None)
        if stored and text == self.write(stored, at):
            return [stored]
        with suppress(InvalidValue):
            return typed.read_moments(text, at.timezone) if text else []
        return []
