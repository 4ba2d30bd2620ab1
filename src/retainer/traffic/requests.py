"""The request log as admins read it: filtered, newest first, page by page."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, Select, and_, bindparam, func, literal_column, select, true

from retainer.kernel.http import made_at
from retainer.schema.requests import PERIOD, request_blocks, request_terms
from retainer.store.tx import Tx
from retainer.traffic.blocks import LoggedRequest, requests_of
from retainer.values.exact import LAST_DAY, as_instant
from retainer.values.kinds import Id, Instant, Text191

MOST_SEARCHED = 5_000
"""A page looks at no more requests than these and the others of the last ten seconds."""
LONGEST_REQUEST, EARLIEST = timedelta(minutes=1), timedelta(seconds=1)
"""A request whose id was made here is looked for from its making on, and a second earlier: clocks may be set back."""
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
    "with a term": request_terms.c.term == bindparam("term"),
    "with an id made here": and_(BLOCK.period >= bindparam("made"), BLOCK.content.contains(bindparam("request_id"))),
}
"""Which blocks are looked at. Each has an index in the order of the log, or is a span of it."""
SUM_OF_NEWER = "sum(requests) OVER (ORDER BY period DESC ROWS UNBOUNDED PRECEDING) - requests"
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


def request_at(tx: Tx, position: str) -> LoggedRequest | None:
    """Return the request at a position, if the log has it. Raises ValueError for a position that is none."""
    instant, number = position_of(position)
    found = _search(tx, {"position": (instant, number + 1)}, 1).requests
    return found[0] if found and found[0].position == position else None


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
    blocks = tx.all(_page(index), **values, partial=values["before"][:PERIOD], most=most)
    matches = [(MATCHES[name], value) for name, value in asked.items()]
    found = [
        request
        for block in blocks
        for request in requests_of(*block)
        if all(is_match(request, value) for is_match, value in matches)
    ]
    found.sort(key=lambda request: (request.answered_at, request.number), reverse=True)
    if len(found) > limit:
        return Page(found[:limit], found[limit - 1].position, None)
    oldest = blocks[-1][0] if blocks else ""
    if oldest <= asked.get("since", "") or tx.one(_older(index), **values | {"before": oldest}) is None:
        return Page(found, None, None)
    searched_to = f"{oldest}0.000000Z"
    return Page(found, f"{searched_to}.0", searched_to)


def _blocks_of(asked: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return which BLOCKS to look at for what is asked, and the values to find them by."""
    if "record" in asked:
        return "with a term", {"term": asked["record"]}
    if "request_id" in asked:
        made = made_at(asked["request_id"])
        if made is None:
            return "with a term", {"term": asked["request_id"]}
        span = {"made": as_instant(made - EARLIEST)[:PERIOD], "before": as_instant(made + LONGEST_REQUEST)}
        return "with an id made here", {"request_id": asked["request_id"], **span}
    if asked.get("status") in {"4xx", "5xx"}:
        return "with a term", {"term": asked["status"]}
    if "key_id" in asked:
        return "of a key", {"key_id": asked["key_id"]}
    return "all", {}


def _select(index: str, *columns: ColumnElement[Any]) -> Select[Any]:
    """Select from some BLOCKS."""
    if index != "with a term":
        return select(*columns).where(BLOCKS[index])
    here = request_terms.c.period == BLOCK.period, request_terms.c.number == BLOCK.number
    return select(*columns).select_from(request_terms.join(request_blocks, and_(*here))).where(BLOCKS[index])


@cache
def _page(index: str) -> Select[Any]:
    """Select the newest blocks: those of whole periods until they have so many requests, and of the one cut in part."""
    period = request_terms.c.period if index == "with a term" else BLOCK.period
    whole = _select(index, BLOCK.period, BLOCK.requests).where(period < bindparam("partial"))
    counted = whole.order_by(period.desc()).limit(bindparam("most")).subquery()
    newer: ColumnElement[int] = literal_column(SUM_OF_NEWER)
    summed = select(counted.c.period, newer.label("newer")).subquery()
    oldest = select(func.coalesce(func.min(summed.c.period), "")).where(summed.c.newer < bindparam("most"))
    page = _select(index, BLOCK.period, BLOCK.number, BLOCK.key_id, BLOCK.content)
    here = period < bindparam("before"), period >= oldest.scalar_subquery()
    return page.where(*here).order_by(period.desc())


@cache
def _older(index: str) -> Select[Any]:
    return _select(index, BLOCK.number).where(BLOCK.period < bindparam("before")).limit(1)
