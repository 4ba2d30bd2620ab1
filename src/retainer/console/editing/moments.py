"""Local times in forms, also on the days on which clocks change: which of two equal times is meant."""

from contextlib import suppress
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from retainer.console import typed
from retainer.console.forms import Form
from retainer.errors import InvalidValue
from retainer.values.records import Record

PARTNERS = {"started_at": "ended_at", "ended_at": "started_at"}
"""Fields of which the second is later."""


class Moments(NamedTuple):
    """The local times of a form about a record, or a new one, in the time zone of the account."""

    form: Form
    record: Record | None
    timezone: str

    def read(self, name: str, text: str) -> str:
        """Return the instant of a local time: as chosen of two, or the only one with which the end follows the start.

        Raises InvalidValue for a time that does not exist, and with a question for one that exists twice.
        """
        instants, chosen = typed.read_moments(text, self.timezone), self.occurrence(name, text)
        if len(instants) == 1:
            return instants[0]
        if chosen in typed.OCCURRENCES:
            return instants[typed.OCCURRENCES.index(chosen)]
        others = self._partners(PARTNERS.get(name, ""))
        fitting = [each for each in instants if any((each < other) == (name == "started_at") for other in others)]
        if len(fitting) != 1:
            raise InvalidValue(typed.double_question(text, self.timezone))
        return fitting[0]

    def local(self, instant: str) -> str:
        """Return an instant as its field shows it, to the minute."""
        return f"{datetime.fromisoformat(instant).astimezone(ZoneInfo(self.timezone)):%Y-%m-%dT%H:%M}"

    def is_double(self, text: str) -> bool:
        """Whether clocks repeat a local time, so that the form asks which one is meant."""
        with suppress(InvalidValue):
            return len(typed.read_moments(text, self.timezone)) > 1
        return False

    def occurrence(self, name: str, text: str) -> str:
        """Return which of two equal local times a field has: as chosen, or as stored."""
        return self.form.text(f"{name}.occurrence", self._stored_occurrence(name, text))

    def is_other(self, name: str, text: str) -> bool:
        """Whether the other one of two equal local times was chosen than is stored."""
        stored = self._stored_occurrence(name, text)
        return stored != "" and self.occurrence(name, text) not in {"", stored}

    def _stored_occurrence(self, name: str, text: str) -> str:
        stored = getattr(self.record, name, None)
        return typed.occurrence(stored, self.timezone) if stored and text == self.local(stored) else ""

    def _partners(self, name: str) -> list[str]:
        """Return the instants that the other end of a time can be; none if it is blank or does not exist."""
        text, stored = self.form.text(name), getattr(self.record, name, None)
        if stored and text == self.local(stored):
            return [stored]
        with suppress(InvalidValue):
            return typed.read_moments(text, self.timezone) if text else []
        return []
