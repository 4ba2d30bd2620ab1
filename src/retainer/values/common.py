"""Fields that many resources share, each with the sentence that says what it means."""

from typing import Annotated, Literal

from retainer.values.kinds import Text191, UserId

ActingUser = Annotated[
    UserId, "The key's own user when left out; another active user only if the key's user is an admin."
]
"""Whose time or expense it is."""
ExternalId = Annotated[Text191 | None, "Your own key for the record, unique among those of its kind in the account."]
"""What a record is called elsewhere."""
Priority = Annotated[
    Literal["low", "normal", "high", "urgent"], "Lists sort by it from `low` to `urgent`; nothing else follows from it."
]
"""How much something matters."""
