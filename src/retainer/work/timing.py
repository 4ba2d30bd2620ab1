"""Timing: the duration and the day of time that was worked, when it ended, and how much of it a day has room for."""

from datetime import datetime, timedelta

from retainer.shared import relations
from retainer.store.tx import Tx
from retainer.values.exact import half_up, instant_after, local_day
from retainer.work.time_entry_types import LONGEST_MINUTES, TimeEntry


def prepare_duration(tx: Tx, entry: TimeEntry, before: TimeEntry | None, sent: relations.SentFields) -> None:
    """Fill in the end that follows from start and duration; if the end is sent, the minutes between both, half up.

    Notes an error when a duration that is sent beside an end differs.
    """
    if _end_follows(entry, before, sent):
        entry.ended_at = instant_after(str(entry.started_at), timedelta(minutes=entry.duration_minutes))
    elif entry.started_at and entry.ended_at:
        passed = datetime.fromisoformat(entry.ended_at) - datetime.fromisoformat(entry.started_at)
        minutes = max(1, half_up(int(passed.total_seconds()), 60))
        is_moved = not sent.keys().isdisjoint({"started_at", "ended_at"}) and "duration_minutes" not in sent
        if not timedelta() < passed <= timedelta(minutes=LONGEST_MINUTES):
            tx.error(
                "ended_at",
                f"Must be after started_at, by at most {LONGEST_MINUTES} minutes. Make one entry for each day.",
            )
        elif entry.duration_minutes is None or is_moved:
            entry.duration_minutes = minutes
        elif abs(passed - timedelta(minutes=entry.duration_minutes)) >= timedelta(minutes=1):
            tx.error("duration_minutes", f"Must be the {minutes} minutes between started_at and ended_at, or left out.")
    elif entry.duration_minutes is None and tx.readable("started_at", "ended_at"):
        tx.error("duration_minutes", "Is required, unless started_at and ended_at are given.")


def _end_follows(entry: TimeEntry, before: TimeEntry | None, sent: relations.SentFields) -> bool:
    """Whether the end follows from a start or a duration that is new; what is billed does not change."""
    if not entry.started_at or not entry.duration_minutes or "ended_at" in sent:
        return False
    if before is None:
        return True
    is_moved = (entry.started_at, entry.duration_minutes) != (before.started_at, before.duration_minutes)
    return is_moved and not before.is_locked


def check_room(tx: Tx, entry: TimeEntry, before: TimeEntry | None, tracked: int) -> None:
    """Note an error when an entry makes more than a day of minutes for its user, who has `tracked` others that day.

    What is there already stays, and can become less.
    """
    names = ("user_id", "date", "duration_minutes")
    is_locked = before is not None and before.is_locked  # then no change is possible: an error of its own
    if is_locked or entry.duration_minutes is None or not tx.readable(*names, "started_at", "ended_at"):
        return
    changed = [name for name in names if before is None or getattr(entry, name) != getattr(before, name)]
    becomes_less = (
        before is not None and changed == ["duration_minutes"] and entry.duration_minutes < before.duration_minutes
    )
    total = tracked + entry.duration_minutes
    if total > LONGEST_MINUTES and changed and not becomes_less:
        room = max(0, LONGEST_MINUTES - tracked)
        message = f"Makes {total} minutes on {entry.date} for user {entry.user_id}: a day has {LONGEST_MINUTES}, "
        tx.error(changed[-1], f"{message}and {room} are left of it. Record at most those, or choose another day.")


def prepare_date(tx: Tx, entry: TimeEntry, before: TimeEntry | None, sent: relations.SentFields) -> None:
    """Fill in the day of the start, else today; the day follows a start that moves to another, unless it is sent."""
    can_move = before is not None and not before.is_locked  # a locked start is an error already
    follows = can_move and entry.started_at and "started_at" in sent and "date" not in sent
    if entry.date is not None and not follows:
        return
    day = _day_of(tx, entry.started_at) if entry.started_at else tx.today
    if day is None:
        tx.error("started_at", "Lies outside the calendar in the account's time zone.")
    former_day = before and (_day_of(tx, before.started_at) if before.started_at else before.date)
    if entry.date is None or day != former_day:
        entry.date = day or tx.today


def _day_of(tx: Tx, moment: str) -> str | None:
    """Return the day of a moment in the account's zone, or None when the calendar has none there."""
    try:
        return local_day(moment, tx.actor.timezone)
    except OverflowError:
        return None
