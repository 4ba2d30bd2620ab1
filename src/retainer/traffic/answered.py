"""A request and how it was answered, as the log and the database keep it; and which record it has written."""

from datetime import datetime

import msgspec

COLLECTION_AND_ID = 2


class Answered(msgspec.Struct, gc=False, tag_field="event", tag="request"):
    """A request and how it was answered: the key by its prefix, no query, no body, no header but the request id."""

    time: datetime
    request_id: str
    method: str
    path: str
    status: int
    duration_ms: float
    operation: str | None
    account_id: int | None
    user_id: int | None
    key_id: int | None
    key: str | None
    address: str | None
    record: str | None
    """The path of the record that it has written, like `/clients/17`."""
    level: str = "info"
