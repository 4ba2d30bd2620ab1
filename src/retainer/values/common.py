"""Field types that many resources share, each with its description."""

from typing import Annotated, Literal

from msgspec import Meta

from retainer.values.kinds import Text191, UserId

ActingUser = Annotated[UserId, "Defaults to the key's user. Only an admin's key can name another active user."]
"""The user who worked the time or paid the expense."""
ExternalId = Annotated[
    Text191 | None, "The record's id in your own system, unique among the account's records of this type."
]
"""The id of a record in another system."""
Priority = Annotated[
    Literal["low", "normal", "high", "urgent"],
    Meta(title="Priority"),
    "Sorts from `low` to `urgent`; has no other effect.",
]
"""How urgent a task or ticket is."""
