"""Timing: the duration and the day of time that was worked, from when it started and ended."""

from datetime import datetime, timedelta
from typing import Any

from retainer.shared import relations
from retainer.store.tx import Tx
from retainer.values.exact import half_up, local_day

LONGEST = 1440  # minutes: a day


def prepare_duration(tx: Tx, entry: Any, given: relations.SentFields) -> None:
    """Start and end say the duration, to the minute; one that is sent must agree."""
    if entry.started_at and entry.ended_at:
        passed = datetime.fromisoformat(entry.ended_at) - datetime.fromisoformat(entry.started_at)
        minutes = max(1, half_up(int(passed.total_seconds()), 60))
        retimed = not given.keys().isdisjoint({"started_at", "ended_at"}) and "duration_minutes" not in given
        if not timedelta() < passed <= timedelta(minutes=LONGEST):
            tx.error(
                "ended_at", f"Must be after started_at, by at most {LONGEST} minutes. Make one entry for each day."
            )
        elif entry.duration_minutes is None or retimed:
            entry.duration_minutes = minutes
        elif abs(passed - timedelta(minutes=entry.duration_minutes)) >= timedelta(minutes=1):
            tx.error("duration_minutes", f"Must be the {minutes} minutes between started_at and ended_at, or left out.")
    elif entry.duration_minutes is None and tx.readable("started_at", "ended_at"):
        tx.error("duration_minutes", "Is required, unless started_at and ended_at are given.")


def prepare_date(tx: Tx, entry: Any, before: Any, given: relations.SentFields) -> None:
    """The day is that of the start, else today; it follows a start that moves to another day, unless it is sent."""
    moves = before is not None and not before.is_locked  # or of a locked start a second fault would be told
    follows = moves and entry.started_at and "started_at" in given and "date" not in given
    if entry.date is not None and not follows:
        return
    day = _day_of(tx, entry.started_at) if entry.started_at else tx.today
    if day is None:
        tx.error("started_at", "Lies outside the calendar in the account's time zone.")
    left = before and (_day_of(tx, before.started_at) if before.started_at else before.date)
    if entry.date is None or day != left:
        entry.date = day or tx.today


def _day_of(tx: Tx, moment: str) -> str | None:
    """The day of a moment in the account's zone, or None when the calendar has none there."""
    try:
        return local_day(moment, tx.actor.timezone)
    except OverflowError:
        return None
