"""Placeholders: what the texts of mail can name, for each kind of message, and why another name is refused."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from retainer.errors import nearest

MailKind = Literal["invoice", "quote", "credit_note", "reminder"]
PLACEHOLDER = re.compile(r"\{(\w+)\}")
LINK = "{link}"
LINKED = frozenset({"invoice", "quote", "reminder"})
"""The messages about documents that clients see with a link."""
NOT_HERE = "Put {link} into the text of the message."
NO_PAGE = "Clients see no credit note with a link. Leave {link} out."
PLACEHOLDERS: dict[MailKind, tuple[str, ...]] = {
    "invoice": ("number", "client", "total", "balance", "due_date", "agency"),
    "quote": ("number", "client", "total", "due_date", "agency"),
    "credit_note": ("number", "client", "total", "agency"),
    "reminder": ("number", "client", "total", "balance", "due_date", "agency"),
}
DATED = "due_date"
"""The placeholder that stands for nothing where a message lacks it; `balance` stands for the total there."""
NAMES: dict[MailKind, str] = {"invoice": "An invoice", "quote": "A quote", "credit_note": "A credit note"}
ABOUT_LINK: dict[MailKind, str] = {
    "invoice": "{link} becomes the address of a page on which the client sees the invoice.",
    "quote": "{link} becomes the address of a page on which the client sees the quote and accepts it.",
    "reminder": "{link} becomes the address of a page on which the client sees the invoice.",
}


def listed(kind: MailKind) -> str:
    """Return the placeholders of a kind of message as people type them: `{number}, {client} and {agency}`."""
    names = [f"{{{name}}}" for name in PLACEHOLDERS[kind]]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def about(kind: MailKind, *, is_subject: bool) -> str:
    """Return the hint of a field with a subject or a text."""
    last_day = " {due_date} is the last day of the quote." if kind == "quote" else ""
    link = f" {ABOUT_LINK[kind]}" if kind in ABOUT_LINK and not is_subject else ""
    return f"{listed(kind)} are filled in.{last_day}{link}"


def find_errors(kind: MailKind, text: str, *, is_subject: bool) -> Iterator[str]:
    """Yield why a text cannot be saved: one sentence for each placeholder that this kind of message lacks."""
    for name in _lacking(kind, text):
        if f"{{{name}}}" == LINK:
            if kind not in LINKED:
                yield NO_PAGE
            elif is_subject:
                yield NOT_HERE
            continue
        near = nearest(name, PLACEHOLDERS[kind])
        advice = f"Did you mean {{{near[0]}}}?" if near else f"Use {listed(kind)}."
        yield f"{_without(kind, name)} {advice}"


def find_blanks(kind: MailKind, text: str) -> Iterator[str]:
    """Yield why a text of one message cannot be sent: it would be blank in the middle of a sentence.

    Names that no message has stay as they are typed: they may be no placeholders.
    """
    for name in _lacking(kind, text):
        if name == DATED:
            yield f"{_without(kind, name)} Leave it out."


def _lacking(kind: MailKind, text: str) -> list[str]:
    return [name for name in dict.fromkeys(PLACEHOLDER.findall(text)) if name not in PLACEHOLDERS[kind]]


def _without(kind: MailKind, name: str) -> str:
    is_of_others = any(name in names for names in PLACEHOLDERS.values())
    lacking = f"{NAMES[kind]} has no" if is_of_others and kind in NAMES else "There is no"
    return f"{lacking} {{{name}}}."  # unmarked: people type a placeholder as it is


def settings_errors(changes: Mapping[str, object], before: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the changed texts of the settings that name what their message lacks, each with its error."""
    for kind in PLACEHOLDERS:
        for name, text in changes.items():
            if name.startswith(f"mail_{kind}_") and isinstance(text, str) and text != before.get(name):
                for message in find_errors(kind, text, is_subject="_subject_" in name):
                    yield name, message
