"""Field types that many resources share, each with its description."""

from typing import Annotated, Literal

from msgspec import Meta

from retainer.values.kinds import Text191, UserId

ActingUser = Annotated[
    UserId, "The key's own user when left out; another active user only if the key's user is an admin."
]
"""The user whose time or expense it is."""
ExternalId = Annotated[Text191 | None, "Your own key for the record, unique among those of its kind in the account."]
"""The id of a record in another system."""
Priority = Annotated[
    Literal["low", "normal", "high", "urgent"],
    Meta(title="Priority"),
    "Lists sort by it from `low` to `urgent`; nothing else follows from it.",
]
"""How urgent a task or ticket is."""
