"""Timing: the duration and the day of recorded time, and the limit of minutes a day."""

from datetime import datetime, timedelta

from retainer.shared import relations
from retainer.store.tx import Tx
from retainer.values.exact import instant_after, local_day, minutes_between
from retainer.work.time_entry_types import MAX_MINUTES, TimeEntry

MAX_DURATION = timedelta(minutes=MAX_MINUTES)


def derive_duration(entry: TimeEntry, before: TimeEntry | None, sent: relations.SentFields) -> None:
    """Fill in the end that follows from start and duration, or the duration between start and end."""
    passed, now = _passed(entry), (entry.started_at, entry.duration_minutes)
    is_changed = before is None or now != (before.started_at, before.duration_minutes)
    is_moved = "started_at" in sent or "ended_at" in sent
    is_implied = entry.duration_minutes is None or (is_moved and "duration_minutes" not in sent)
    if entry.started_at and entry.duration_minutes and "ended_at" not in sent and is_changed:
        entry.ended_at = instant_after(entry.started_at, timedelta(minutes=entry.duration_minutes))
    elif is_implied and passed and timedelta() < passed <= MAX_DURATION:
        entry.duration_minutes = _minutes(entry)


def derive_date(tx: Tx, entry: TimeEntry, before: TimeEntry | None, sent: relations.SentFields) -> None:
    """Fill in the day of the start, else today. If the start moves to another day and no day is sent, the day follows.

    Notes an error if the start has no day in the account's time zone.
    """
    has_new_start = before is not None and entry.started_at and "started_at" in sent
    if entry.date is not None and (not has_new_start or "date" in sent):
        return
    day = _day_of(tx, entry.started_at) if entry.started_at else tx.today
    if day is None:
        tx.error("started_at", "Lies outside the calendar in the account's time zone.")
    former_day = before and (_day_of(tx, before.started_at) if before.started_at else before.date)
    if entry.date is None or day != former_day:
        entry.date = day or tx.today


def validate_times(tx: Tx, entry: TimeEntry, before: TimeEntry | None, tracked: int) -> None:
    """Note errors of start, end and duration, and of the day, on which the user has `tracked` other minutes.

    Recorded time can always be reduced.
    """
    passed = _passed(entry)
    if passed is not None and not timedelta() < passed <= MAX_DURATION:
        tx.error(
            "ended_at", f"Must be after started_at, by at most {MAX_MINUTES} minutes. Make one entry for each day."
        )
    elif entry.duration_minutes is None:
        if tx.readable("started_at", "ended_at"):
            tx.error("duration_minutes", "Is required, unless started_at and ended_at are given.")
    elif passed is not None and abs(passed - timedelta(minutes=entry.duration_minutes)) >= timedelta(minutes=1):
        message = f"Must be the {_minutes(entry)} minutes between started_at and ended_at, or left out."
        tx.error("duration_minutes", message)
    names = ("user_id", "date", "duration_minutes")
    if entry.duration_minutes is None or not tx.readable(*names, "started_at", "ended_at"):
        return
    changed = [name for name in names if before is None or getattr(entry, name) != getattr(before, name)]
    is_reduced = before and changed == ["duration_minutes"] and entry.duration_minutes < before.duration_minutes
    total = tracked + entry.duration_minutes
    if total > MAX_MINUTES and changed and not is_reduced:
        room = max(0, MAX_MINUTES - tracked)
        message = f"Makes {total} minutes on {entry.date} for user {entry.user_id}: a day has {MAX_MINUTES}, "
        tx.error(changed[-1], f"{message}and {room} are left. Record less, or choose another day.")


def _passed(entry: TimeEntry) -> timedelta | None:
    if entry.started_at is None or entry.ended_at is None:
        return None
    return datetime.fromisoformat(entry.ended_at) - datetime.fromisoformat(entry.started_at)


def _minutes(entry: TimeEntry) -> int:
    return max(1, minutes_between(str(entry.started_at), str(entry.ended_at)))


def _day_of(tx: Tx, instant: str) -> str | None:
    """Return the day of an instant in the account's time zone, or None if it lies outside the calendar."""
    try:
        return local_day(instant, tx.actor.timezone)
    except OverflowError:
        return None
