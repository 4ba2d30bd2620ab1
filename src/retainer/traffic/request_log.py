"""The request log as admins read it: filtered, newest first, page by page."""

import re
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from sqlalchemy import ColumnElement, Select, and_, bindparam, func, not_, select, tuple_

from retainer.errors import STATUS
from retainer.kernel.http import ID_PREFIX, created_at
from retainer.kernel.query import Query
from retainer.schema.columns import in_literals
from retainer.schema.requests import HAS_FAILED, HAS_OWN_ID, refusals, requests, status_class
from retainer.store.engines.sql import TEXT, is_rare
from retainer.store.statements import DeferredStatement
from retainer.store.tx import Tx
from retainer.values.exact import as_instant
from retainer.values.kinds import Id, Instant, Text191

MAX_SCANNED = 200_000
"""Maximum number of requests that a page compares with a filter, so that every page is fast."""
MAX_DURATION, CLOCK_SKEW = timedelta(minutes=1), timedelta(seconds=1)
"""A generated request id contains the time when the request began. The answer was logged at most this much later."""
POSITION = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{6}Z)\.([0-9]{1,18})")

Values = dict[str, Any]
StatusClass = Literal["2xx", "3xx", "4xx", "5xx"]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


class LoggedRequest(msgspec.Struct, frozen=True):
    """A request of a key: no query, no body, no header but the request id. The duration is in microseconds.

    `record` is the path of the record that the request has written: `/time-entries/17`. A part of a record, like a
    line, counts as that record: `/invoices/5`. A refused request has an error `code`, and in `names` the missing scope
    or the wrong fields.
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
    code: str | None
    names: list[str]

    @property
    def position(self) -> str:
        return f"{self.answered_at}.{self.number}"


class LogFilter(Query, kw_only=True):
    """Which requests are listed. None means any."""

    key_id: Id | None = None
    status: StatusClass | None = None
    method: Method | None = None
    path: Annotated[Text191 | None, "The beginning of the path, like /clients or /clients/17."] = None
    operation: Text191 | None = None
    request_id: Text191 | None = None
    address: Text191 | None = None
    record: Annotated[Text191 | None, "The record that was written, like /clients/17."] = None
    code: Annotated[Text191 | None, "The error code of refused requests, like validation_failed."] = None
    writes: Annotated[bool | None, "Only methods that write, or only those that read."] = None
    since: Annotated[Instant | None, "From this instant on."] = None
    until: Annotated[Instant | None, "Before this instant."] = None


class LogPage(msgspec.Struct, frozen=True):
    """Requests, newest first, and where the next page begins; None at the end of the log.

    A page has as many requests as were asked for, if there are that many. The one exception is a page that compared
    MAX_SCANNED requests with a filter, back to `searched_to`.
    """

    requests: list[LoggedRequest]
    next: str | None
    searched_to: str | None


LOG = requests.c
PLACE = tuple_(LOG.answered_at, LOG.number)
NEWEST_FIRST = (LOG.answered_at.desc(), LOG.number.desc())
OF_REQUEST = (refusals.c.answered_at == LOG.answered_at, refusals.c.number == LOG.number)
COLUMNS = [
    *(LOG[name] for name in LoggedRequest.__struct_fields__ if name in LOG),
    *(select(refusals.c[name]).where(*OF_REQUEST).scalar_subquery() for name in ("code", "names")),
]
WRITES = in_literals(LOG.method, ("POST", "PUT", "PATCH", "DELETE"))

RANGE = {
    "since": LOG.answered_at >= bindparam("since"),
    "until": LOG.answered_at < bindparam("until"),
    "generated": LOG.answered_at.between(bindparam("began"), bindparam("ended")),
    "before": tuple_(bindparam("before_instant"), bindparam("before_number")) > PLACE,
}
"""Conditions on the order of the log, which every index follows."""
INDEXED = {
    "own_id": and_(is_rare(LOG.request_id == bindparam("request_id")), HAS_OWN_ID),
    "record": is_rare(LOG.record == bindparam("record")),
    "failure": and_(is_rare(status_class == bindparam("status")), HAS_FAILED),
    "key_id": is_rare(LOG.key_id == bindparam("key_id")),
}
"""Conditions that have an index, the most selective first: a page follows the first of them."""
COMPARED: dict[str, ColumnElement[bool]] = INDEXED | {
    "key_id": LOG.key_id + 0 == bindparam("key_id"),  # an expression, so that the other index is followed
    "request_id": LOG.request_id == bindparam("request_id"),
    "success": status_class == bindparam("status"),
    "method": LOG.method == bindparam("method"),
    "path": func.substr(LOG.path, 1, func.length(bindparam("path", type_=TEXT))) == bindparam("path", type_=TEXT),
    "operation": LOG.operation == bindparam("operation"),
    "address": LOG.address == bindparam("address"),
    "code": select(refusals.c.code).where(*OF_REQUEST).scalar_subquery() == bindparam("code"),
    "writes": WRITES,
    "reads": not_(WRITES),
}
"""Conditions as they are compared with each request along an index."""


def list_requests(tx: Tx, wanted: LogFilter, *, after: str | None = None, limit: int = 50) -> LogPage:
    """Return a page of the requests that match a filter; `after` is the `next` of the previous page.

    Raises ValueError for an invalid position.
    """
    values = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None}
    if after is not None:
        values["before"] = position_of(after)
    return _search(tx, values, limit)


def request_at(tx: Tx, position: str) -> LoggedRequest | None:
    instant, number = position_of(position)
    found = _search(tx, {"before": (instant, number + 1)}, 1).requests
    return found[0] if found and found[0].position == position else None


def requests_of_record(tx: Tx, kind: str, record_id: int, limit: int = 10) -> list[LoggedRequest]:
    return list_requests(tx, LogFilter(record=f"/{kind}/{record_id}"), limit=limit).requests


def position_of(text: str) -> tuple[str, int]:
    """Return a position in the log as an instant and a number. Raises ValueError for an invalid one."""
    found = POSITION.fullmatch(text)
    if not found:
        raise ValueError(f"{text} is no position in the request log: take the `next` of a page.")
    datetime.fromisoformat(found[1])
    return found[1], int(found[2])


def _search(tx: Tx, values: Values, limit: int) -> LogPage:
    names, values = _conditions(values)
    values |= {"limit": limit + 1, "scanned": MAX_SCANNED}
    tx.snapshot()
    is_compared = not names - {_index_of(names)} <= RANGE.keys()
    end = tx.one(DeferredStatement(_end_of_scan, (names,)), **values) if is_compared else None
    if end is not None:
        values |= {"end_instant": end[0], "end_number": end[1]}
    rows = tx.all(DeferredStatement(_page, (names, end is not None)), **values)
    found = [LoggedRequest(*[*row, msgspec.json.decode(refused or "[]")]) for *row, refused in rows]
    if len(found) > limit:
        return LogPage(found[:limit], found[limit - 1].position, None)
    if end is not None:
        return LogPage(found, f"{end[0]}.{end[1] + 1}", end[0])
    return LogPage(found, None, None)


def _conditions(values: Values) -> tuple[frozenset[str], Values]:
    names, bound = set(values), dict(values)
    if "before" in values:
        bound["before_instant"], bound["before_number"] = bound.pop("before")
    if values.get("writes") is False:
        names = names - {"writes"} | {"reads"}
    if "code" in values and "status" not in values:  # the class of its status has an index
        values = values | {"status": str(STATUS.get(values["code"], 400))}
    if "status" in values:
        bound["status"] = int(values["status"][0])
        names.add("failure" if bound["status"] >= 4 else "success")
    if "request_id" in values:
        created = created_at(values["request_id"])
        if created is None and not values["request_id"].startswith(ID_PREFIX):
            names.remove("request_id")
            names.add("own_id")
        if created is not None:
            names.add("generated")
            bound["began"], bound["ended"] = as_instant(created - CLOCK_SKEW), as_instant(created + MAX_DURATION)
    return frozenset(names - {"status"}), bound


def _index_of(names: frozenset[str]) -> str | None:
    return next((name for name in INDEXED if name in names), None)


def _along(names: frozenset[str]) -> list[ColumnElement[bool]]:
    index = _index_of(names)
    ranges = [condition for name, condition in RANGE.items() if name in names]
    return [*ranges, INDEXED[index]] if index else ranges


def _end_of_scan(names: frozenset[str]) -> Select[Any]:
    places = select(LOG.answered_at, LOG.number).where(*_along(names)).order_by(*NEWEST_FIRST)
    return places.limit(1).offset(bindparam("scanned"))


def _page(names: frozenset[str], is_cut: bool) -> Select[Any]:  # noqa: FBT001  # an argument of DeferredStatement
    others = names - {_index_of(names)}
    compared = [condition for name, condition in COMPARED.items() if name in others]
    cut = [tuple_(bindparam("end_instant"), bindparam("end_number")) < PLACE] if is_cut else []
    found = select(*COLUMNS).where(*_along(names), *compared, *cut)
    return found.order_by(*NEWEST_FIRST).limit(bindparam("limit"))
