"""Statuses as badges: a word that says all, and a colour that repeats it."""

from typing import NamedTuple

TONES = {
    "good": ("active", "paid", "accepted", "resolved", "done", "completed", "up", "billed"),
    "info": ("sent", "partially_paid", "open", "prospect", "in_progress", "in_review", "maintenance", "unbilled"),
    "warn": ("on_hold", "expired", "paused", "unpriced"),
    "bad": ("overdue", "written_off", "declined", "down"),
}
"""Words by their colour; all others are grey."""
TONE_OF = {word: tone for tone, words in TONES.items() for word in words}


class Badge(NamedTuple):
    """A word with a colour."""

    word: str
    tone: str


def badge_of(word: str) -> Badge:
    """Return a status as a badge: `partially_paid` is `Partially paid`."""
    return Badge(word.replace("_", " ").capitalize(), TONE_OF.get(word, ""))


def badges_of(record: object) -> list[Badge]:
    """Return the badges of a record: its status, and whether it is overdue."""
    status = getattr(record, "status", None)
    badges = [] if status is None else [badge_of(status)]
    return [*badges, badge_of("overdue")] if getattr(record, "is_overdue", False) else badges
