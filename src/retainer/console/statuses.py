"""Statuses as people read them: a word, and a colour that adds to it."""

from typing import Literal, NamedTuple

from retainer.console import words
from retainer.console.labels import word_of

Tone = Literal["good", "info", "warn", "bad", ""]
BY_TONE: dict[Tone, tuple[str, ...]] = {
    "good": ("accepted", "active", "billed", "completed", "done", "paid", "resolved", "up"),
    "info": ("in_progress", "in_review", "maintenance", "open", "partially_paid", "prospect", "sent", "unbilled"),
    "warn": ("checking_again", "expired", "high", "on_hold", "paused", "pending", "unpriced", "us"),
    "bad": ("declined", "down", "overdue", "urgent", "written_off"),
}
TONES = {word: tone for tone, words_of_tone in BY_TONE.items() for word in words_of_tone}
"""The colours of statuses; any other has none."""


class Status(NamedTuple):
    """A status: its word, its colour, and what adds to it."""

    word: str
    tone: Tone
    detail: str = ""


def badge_of(status: str) -> Status:
    return Status(word_of(status), TONES.get(status, ""))


def badges_of(record: object) -> list[Status]:
    """Return the badges of a record: an overdue invoice only says so, other records that are late say both.

    A site whose last check failed is checked again before it is down.
    """
    status: str = getattr(record, "status", "")
    days: int = getattr(record, "days_overdue", 0)
    if days:
        return [badge_of("overdue")._replace(detail=f"{words.count(days, 'day')} late")]
    is_rechecked = status in {"up", "unknown"} and getattr(record, "last_error", None) is not None
    badges = [badge_of("checking_again" if is_rechecked else status)] if status else []
    return [*badges, badge_of("overdue")] if getattr(record, "is_overdue", False) else badges


def status_of(record: object) -> Status | None:
    return next(iter(badges_of(record)), None)
