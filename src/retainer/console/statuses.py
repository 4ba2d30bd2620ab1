"""Statuses as people read them: a word, and a colour that adds to it."""

from typing import Literal, NamedTuple

from retainer.console.labels import word_of
from retainer.values.records import Record

Tone = Literal["good", "info", "warn", "bad", ""]

TONES: dict[str, Tone] = {
    "accepted": "good",
    "active": "good",
    "billed": "good",
    "completed": "good",
    "done": "good",
    "paid": "good",
    "resolved": "good",
    "up": "good",
    "in_progress": "info",
    "in_review": "info",
    "maintenance": "info",
    "checking_again": "warn",
    "open": "info",
    "partially_paid": "info",
    "prospect": "info",
    "sent": "info",
    "unbilled": "info",
    "high": "warn",
    "on_hold": "warn",
    "pending": "warn",
    "unpriced": "warn",
    "us": "warn",
    "expired": "warn",
    "paused": "warn",
    "declined": "bad",
    "down": "bad",
    "overdue": "bad",
    "urgent": "bad",
    "written_off": "bad",
}
"""The colours of statuses; any other has none."""


class Status(NamedTuple):
    """A status: its word, its colour, and what adds to it."""

    word: str
    tone: Tone
    detail: str = ""


def shown_status(record: object) -> str:
    """Return the status of a record for people: a site whose last check failed is checked again before it is down."""
    status: str = getattr(record, "status", "")
    is_rechecked = status in {"up", "unknown"} and getattr(record, "last_error", None) is not None
    return "checking_again" if is_rechecked else status


def status_of(record: Record, field: str = "status") -> Status | None:
    """Return a status of a record; an overdue invoice says so first. None without one."""
    value: str | None = getattr(record, field)
    if value is None:
        return None
    days: int = getattr(record, "days_overdue", 0)
    if field == "status" and days:
        return Status("Overdue", "bad", f"{days:,} {'day' if days == 1 else 'days'}, {word_of(value).lower()}")
    value = shown_status(record) if field == "status" else value
    return badge_of(value)


def badge_of(status: str) -> Status:
    """Return a status as a badge: `partially_paid` is `Partially paid`."""
    return Status(word_of(status), TONES.get(status, ""))


def badges_of(record: object) -> list[Status]:
    status = shown_status(record)
    badges = [badge_of(status)] if status else []
    return [*badges, badge_of("overdue")] if getattr(record, "is_overdue", False) else badges
