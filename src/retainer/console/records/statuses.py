"""Statuses as badges: a word that says all, and a colour that repeats it."""

from typing import NamedTuple

from retainer.console.statuses import TONES, shown_status, word_of


class Badge(NamedTuple):
    """A word with a colour."""

    word: str
    tone: str


def badge_of(word: str) -> Badge:
    """Return a status as a badge: `partially_paid` is `Partially paid`."""
    return Badge(word_of(word), TONES.get(word, ""))


def badges_of(record: object) -> list[Badge]:
    """Return the badges of a record: its status, and whether it is overdue."""
    status = shown_status(record)
    badges = [badge_of(status)] if status else []
    return [*badges, badge_of("overdue")] if getattr(record, "is_overdue", False) else badges
