"""The request log as admins read it: filtered, newest first, page by page."""

from typing import Literal

import msgspec

from retainer.store.tx import Tx

StatusClass = Literal[2, 3, 4, 5]


class LoggedRequest(msgspec.Struct, frozen=True):
    """A request that a key has made: no query, no body, no header but the request id; the duration in microseconds.

    `record` is the path of the record that it has written: `/time-entries/17`. What is part of a record, like a line or
    a milestone, counts as that record: `/invoices/5`.
    """

    answered_at: str
    number: int
    key_id: int
    request_id: str
    method: str
    path: str
    operation: str | None
    status: int
    duration_us: int
    address: str | None
    record: str | None

    @property
    def position(self) -> str:
        """Where it stands in the log, for `Page.next` and links."""
        return f"{self.answered_at}.{self.number}"


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests are asked for; what is None does not matter."""

    key_id: int | None = None
    status_class: StatusClass | None = None
    method: str | None = None
    path: str | None = None
    """A prefix of the path, as below the base path: `/clients/17`."""
    operation: str | None = None
    request_id: str | None = None
    since: str | None = None
    """From this instant on."""
    until: str | None = None
    """Before this instant."""


class Page(msgspec.Struct, frozen=True):
    """Requests, newest first, and where the next page begins; None at the end of the log.

    A page may be short, even empty, and have a next one: so many requests were looked at in vain, back to `searched_to`.
    """

    requests: list[LoggedRequest]
    next: str | None
    searched_to: str | None


def list_requests(tx: Tx, wanted: Filter, *, after: str | None = None, limit: int = 50) -> Page:
    """Return a page of the requests that a filter asks for, newest first; `after` is the `next` of the page before.

    Raises ValueError for a position that is none.
    """
    raise NotImplementedError


def requests_of_record(tx: Tx, kind: str, record_id: int, limit: int = 10) -> list[LoggedRequest]:
    """Return the newest requests that have written a record, or a part of it: `invoices`, 5."""
    raise NotImplementedError
