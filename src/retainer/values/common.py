"""Field types that many resources share, each with its description."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from retainer.values.kinds import Code191, UserId, kind, read_text

COLOR = re.compile(r"#[0-9a-fA-F]{6}")


def read_color(value: object) -> str:
    text = read_text(value)
    if not COLOR.fullmatch(text):
        raise ValueError
    return text.lower()


Color = Annotated[str, kind(read_color, "a colour like #0a84ff", pattern="^#[0-9a-fA-F]{6}$", examples=["#0a84ff"])]

ActingUser = Annotated[
    UserId, "Defaults to the key's user. Only a key of an admin or manager can name another active user."
]
"""The user who worked the time or paid the expense."""
ExternalId = Annotated[
    Code191 | None, "The record's id in your own system, unique among the account's records of this type."
]
"""The id of a record in another system."""
Priority = Annotated[
    Literal["low", "normal", "high", "urgent"],
    Meta(title="Priority"),
    "Sorts from `low` to `urgent`; has no other effect.",
]
"""How urgent a task or ticket is."""
