"""The request log as admins read it: filtered, newest first, page by page."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, Select, and_, bindparam, select, tuple_
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from retainer.kernel.http import made_at
from retainer.schema.requests import HAS_SENT_ID, requests
from retainer.store.engines.base import Row
from retainer.store.engines.sql import json_row
from retainer.store.records import decode_row
from retainer.store.tx import Tx
from retainer.values.exact import as_instant
from retainer.values.kinds import Id, Instant, Text191

MOST_SEARCHED = 5_000
"""How many requests one page looks at."""
LONGEST_REQUEST, EARLIEST = timedelta(minutes=1), timedelta(seconds=1)
"""A request whose id was made here is looked for from its making on, and a second before it."""
PLACE = requests.c["answered_at", "number"]
LAST_CHARACTER = "\U0010ffff"
POSITION = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{6}Z)\.([0-9]{1,18})")
Columns = ReadOnlyColumnCollection[str, Any]
Condition = Callable[[Columns], ColumnElement[bool]]

StatusClass = Literal["2xx", "3xx", "4xx", "5xx"]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


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

    key_id: Id | None = None
    status: StatusClass | None = None
    method: Method | None = None
    path: Text191 | None = None
    """A prefix of the path, which begins below the base path: `/clients/17`."""
    operation: Text191 | None = None
    request_id: Text191 | None = None
    since: Instant | None = None
    """From this instant on."""
    until: Instant | None = None
    """Before this instant."""


class Page(msgspec.Struct, frozen=True):
    """Requests, newest first, and where the next page begins; None at the end of the log.

    A page may be short, even empty, and have a next one: MOST_SEARCHED requests were looked at, back to `searched_to`.
    """

    requests: list[LoggedRequest]
    next: str | None
    searched_to: str | None


RANGE: dict[str, Condition] = {
    "since": lambda c: c.answered_at >= bindparam("since"),
    "until": lambda c: c.answered_at < bindparam("until"),
    "made": lambda c: c.answered_at.between(bindparam("made"), bindparam("made_end")),
    "number": lambda c: tuple_(c.answered_at, c.number) < tuple_(bindparam("answered_at"), bindparam("number")),
}
"""Conditions that are part of the order."""
INDEXED: dict[str, Condition] = {
    "sent_id": lambda c: and_(c.request_id == bindparam("request_id"), HAS_SENT_ID),
    "5xx": lambda c: c.failure_class == 5,
    "4xx": lambda c: c.failure_class == 4,
    "key_id": lambda c: c.key_id == bindparam("key_id"),
}
"""Conditions with an index each, in the order of the log; that which should leave fewest rows first."""
COMPARED: dict[str, Condition] = INDEXED | {
    "made": lambda c: c.request_id == bindparam("request_id"),
    "operation": lambda c: c.operation == bindparam("operation"),
    "2xx": lambda c: c.status.between(200, 299),
    "3xx": lambda c: c.status.between(300, 399),
    "method": lambda c: c.method == bindparam("method"),
    "path": lambda c: and_(c.path >= bindparam("path"), c.path < bindparam("path_end")),
}


def list_requests(tx: Tx, wanted: Filter, *, after: str | None = None, limit: int = 50) -> Page:
    """Return a page of the requests that a filter asks for, newest first; `after` is the `next` of the page before.

    Raises ValueError for a position that is none.
    """
    values = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None}
    if after is not None:
        values |= position_of(after)
    if wanted.request_id is not None:
        made = made_at(wanted.request_id)
        values |= {"sent_id": True} if made is None else answered_around(made)
    page, last = _search(frozenset({*values, values.pop("status", "")}))
    values |= {"limit": limit + 1, "most": MOST_SEARCHED, "path_end": f"{wanted.path}{LAST_CHARACTER}"}
    tx.snapshot()
    found = [_read(row) for row in tx.all(page, **values)]
    if len(found) > limit:
        return Page(found[:limit], found[limit - 1].position, None)
    end = tx.one(last, **values) if last is not None else None
    return Page(found, None, None) if end is None else Page(found, f"{end[0]}.{end[1]}", end[0])


def requests_of_record(tx: Tx, kind: str, record_id: int, limit: int = 10) -> list[LoggedRequest]:
    """Return the newest requests that have written a record, or a part of it: `invoices`, 5."""
    return [_read(row) for row in tx.all(OF_RECORD, record=f"/{kind}/{record_id}", limit=limit)]


def answered_around(began: datetime) -> dict[str, str]:
    """Return between which moments a request was answered that began then; a clock may have been set back."""
    return {"made": as_instant(began - EARLIEST), "made_end": as_instant(began + LONGEST_REQUEST)}


def position_of(text: str) -> dict[str, Any]:
    """Return the values of a position in the log. Raises ValueError when it is none."""
    found = POSITION.fullmatch(text)
    if not found:
        raise ValueError(f"{text} is no position in the request log: take the `next` of a page.")
    datetime.fromisoformat(found[1])
    return {"answered_at": found[1], "number": int(found[2])}


@cache
def _search(names: frozenset[str]) -> tuple[Select[Any], Select[Any] | None]:
    """Return how to find the requests that meet the conditions of these names, and the last that is looked at.

    One index is followed, and the rows along it are compared with the other conditions: at most MOST_SEARCHED, so that
    no search takes long, whatever there is. Where nothing is compared, every row is found: there is no last one.
    """
    along = next((name for name in INDEXED if name in names), None)
    others = [condition(requests.c) for name, condition in COMPARED.items() if name in names and name != along]
    conditions = [condition(requests.c) for name, condition in RANGE.items() if name in names]
    conditions += [INDEXED[along](requests.c)] if along else []
    places = select(*PLACE).where(*conditions).order_by(*_newest(requests.c))  # the index has all of it
    if not others:
        return _rows_at(places.limit(bindparam("limit"))), None
    page = _rows_at(places.limit(bindparam("most")), *others).limit(bindparam("limit"))
    return page, places.limit(1).offset(bindparam("most") - 1)


def _rows_at(places: Select[Any], *conditions: ColumnElement[bool]) -> Select[Any]:
    """Return the requests at these places of the log that meet conditions; a join might be made by reading them all."""
    place = places.subquery()
    here = (requests.c.answered_at == place.c.answered_at, requests.c.number == place.c.number)
    row = json_row(*(requests.c[name] for name in LoggedRequest.__struct_fields__))
    found = select(
        *place.c, select(row.label("row")).where(*here, *conditions).scalar_subquery().label("row")
    ).subquery()
    return select(found.c.row).where(found.c.row.is_not(None)).order_by(*_newest(found.c))


def _newest(columns: Columns) -> list[ColumnElement[Any]]:
    return [columns.answered_at.desc(), columns.number.desc()]


def _read(row: Row) -> LoggedRequest:
    return LoggedRequest(*decode_row(row[0]))


_WRITING = select(*PLACE).where(requests.c.record == bindparam("record")).order_by(*_newest(requests.c))
OF_RECORD = _rows_at(_WRITING.limit(bindparam("limit")))
