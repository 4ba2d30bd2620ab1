"""Retries: when something that has failed is tried again, and when it is given up."""

from datetime import datetime, timedelta
from itertools import accumulate

from retainer.values.exact import as_instant


class Retries:
    """The pauses between attempts; the last attempt is made after the time to give up."""

    def __init__(self, *pauses: timedelta, give_up: timedelta) -> None:
        self.pauses, self.give_up = pauses, give_up
        self.offsets = (*accumulate(pauses), give_up)
        """When something is tried again, counted from its first failure."""

    def next_attempt(self, failing_since: str, now: str) -> str | None:
        """Return when what has failed since then is tried again; None if the time to give up has come."""
        first, elapsed = datetime.fromisoformat(failing_since), datetime.fromisoformat(now)
        return next((as_instant(first + offset) for offset in self.offsets if first + offset > elapsed), None)
