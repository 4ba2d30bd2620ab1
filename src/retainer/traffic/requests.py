"""The request log as admins read it: filtered, newest first, page by page."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, FromClause, Select, and_, bindparam, case, func, literal_column, select, true

from retainer.kernel.http import made_at
from retainer.schema.requests import HAS_FAILED, SECOND, request_blocks, request_terms
from retainer.store.tx import Tx
from retainer.traffic.blocks import LoggedRequest, requests_of
from retainer.values.exact import LAST_DAY, as_instant
from retainer.values.kinds import Id, Instant, Text191

MOST_SEARCHED = 5_000
"""A page looks at no more requests than these and the others of the last second."""
MOST_BLOCKS = 1_000
"""A second has fewer blocks than this: one for each key and server, or two."""
LONGEST_REQUEST, EARLIEST = timedelta(minutes=1), timedelta(seconds=1)
"""A request whose id was made here is looked for from its making on, and a second before it."""
POSITION = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{6}Z)\.([0-9]{1,18})")

StatusClass = Literal["2xx", "3xx", "4xx", "5xx"]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


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


BLOCK = request_blocks.c
BLOCKS: dict[str, ColumnElement[bool]] = {
    "all": true(),
    "of a key": BLOCK.key_id == bindparam("key_id"),
    "4xx": HAS_FAILED["client_errors"],
    "5xx": HAS_FAILED["server_errors"],
    "with a term": request_terms.c.term == bindparam("term"),
    "with an id made here": and_(BLOCK.second >= bindparam("made"), BLOCK.content.contains(bindparam("request_id"))),
}
"""Which blocks are looked at. Each has an index in the order of the log, or is a span of it."""
SUM_OF_NEWER_SECONDS = "sum(counted) OVER (ORDER BY second DESC GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
EXACT = {"key_id", "since", "until", "position"}
"""What is asked for without looking at a request in vain."""
MATCHES: dict[str, Callable[[LoggedRequest, Any], bool]] = {
    "key_id": lambda request, key_id: request.key_id == key_id,
    "status": lambda request, status_class: request.status // 100 == int(status_class[0]),
    "method": lambda request, method: request.method == method,
    "path": lambda request, prefix: request.path.startswith(prefix),
    "operation": lambda request, operation: request.operation == operation,
    "request_id": lambda request, request_id: request.request_id == request_id,
    "record": lambda request, record: request.record == record,
    "since": lambda request, instant: request.answered_at >= instant,
    "until": lambda request, instant: request.answered_at < instant,
    "position": lambda request, position: (request.answered_at, request.number) < position,
}
"""Whether a request is one that is asked for."""


def list_requests(tx: Tx, wanted: Filter, *, after: str | None = None, limit: int = 50) -> Page:
    """Return a page of the requests that a filter asks for, newest first; `after` is the `next` of the page before.

    Raises ValueError for a position that is none.
    """
    asked = {name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None}
    if after is not None:
        asked["position"] = position_of(after)
    return _search(tx, asked, limit)


def requests_of_record(tx: Tx, kind: str, record_id: int, limit: int = 10) -> list[LoggedRequest]:
    """Return the newest requests that have written a record, or a part of it: `invoices`, 5."""
    return _search(tx, {"record": f"/{kind}/{record_id}"}, limit).requests


def position_of(text: str) -> tuple[str, int]:
    """Return a position in the log as an instant and a number. Raises ValueError when it is none."""
    found = POSITION.fullmatch(text)
    if not found:
        raise ValueError(f"{text} is no position in the request log: take the `next` of a page.")
    datetime.fromisoformat(found[1])
    return found[1], int(found[2])


def _search(tx: Tx, asked: dict[str, Any], limit: int) -> Page:
    """Return the newest requests that match all that is asked, found in the fewest blocks that one index gives."""
    index, values = _blocks_of(asked)
    values["before"] = min(values.get("before", LAST_DAY), asked.get("until", LAST_DAY), *asked.get("position", ())[:1])
    most = limit + 1 if asked.keys() <= EXACT else MOST_SEARCHED
    tx.snapshot()
    blocks = tx.all(_page(index), **values, partial=values["before"][:SECOND], most=most, blocks=most + MOST_BLOCKS)
    matches = [(MATCHES[name], value) for name, value in asked.items()]
    found = [
        request
        for _, *block in blocks
        for request in requests_of(*block)
        if all(is_match(request, value) for is_match, value in matches)
    ]
    found.sort(key=lambda request: (request.answered_at, request.number), reverse=True)
    if len(found) > limit:
        return Page(found[:limit], found[limit - 1].position, None)
    oldest = blocks[-1][0] if blocks else ""
    if oldest <= asked.get("since", "") or tx.one(_older(index), **values | {"before": oldest}) is None:
        return Page(found, None, None)
    searched_to = f"{oldest}.000000Z"
    return Page(found, f"{searched_to}.0", searched_to)


def _blocks_of(asked: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return which BLOCKS to look at for what is asked, and the values to find them by."""
    if "record" in asked:
        return "with a term", {"term": asked["record"]}
    if "request_id" in asked:
        made = made_at(asked["request_id"])
        if made is None:
            return "with a term", {"term": asked["request_id"]}
        return "with an id made here", {"request_id": asked["request_id"], **answered_around(made)}
    if asked.get("status") in {"4xx", "5xx"}:
        return asked["status"], {}
    if "key_id" in asked:
        return "of a key", {"key_id": asked["key_id"]}
    return "all", {}


def answered_around(made: datetime) -> dict[str, str]:
    """Return between which seconds a request was answered whose id was made then; a clock may have been set back."""
    return {"made": as_instant(made - EARLIEST)[:SECOND], "before": as_instant(made + LONGEST_REQUEST)}


def _newest(index: str, *columns: ColumnElement[Any]) -> Select[Any]:
    """Select blocks up to a moment, the newest first: those of the second in which it lies, too."""
    tables: FromClause = request_blocks
    order = request_blocks.c
    if index == "with a term":
        order = request_terms.c
        tables = request_terms.join(request_blocks, and_(order.second == BLOCK.second, order.number == BLOCK.number))
    blocks = select(*columns).select_from(tables).where(BLOCKS[index], order.second < bindparam("before"))
    return blocks.order_by(order.second.desc(), order.number.desc())


@cache
def _page(index: str) -> Select[Any]:
    """Select blocks, and whole seconds of them, until they have so many requests: second, number, key and content."""
    counted = case((BLOCK.second < bindparam("partial"), BLOCK.requests), else_=0).label("counted")
    places = _newest(index, BLOCK.second, BLOCK.number, BLOCK.key_id, counted).limit(bindparam("blocks")).subquery()
    newer: ColumnElement[int] = func.coalesce(literal_column(SUM_OF_NEWER_SECONDS), 0).label("newer")
    page = select(*places.c["second", "number", "key_id"], newer).subquery()
    content = select(BLOCK.content).where(BLOCK.second == page.c.second, BLOCK.number == page.c.number)
    shown = select(page.c.second, page.c.number, page.c.key_id, content.scalar_subquery())
    return shown.where(page.c.newer < bindparam("most")).order_by(page.c.second.desc(), page.c.number.desc())


@cache
def _older(index: str) -> Select[Any]:
    return _newest(index, BLOCK.second).limit(1)
