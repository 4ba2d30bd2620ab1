"""Events: what has happened to the records that the key may read, in order and without gaps, deletions included.

Each change of a record writes one event in the same transaction, whether a key, an admin in the console, a command or
the monitor makes it. An event has the most specific `type` and no copy of the record: read the record at `url`.

`<resource>.<status>`, like `invoice.paid`, says what the status has become. `fields` names computed fields, too, such
as `awaiting` and `refund_due`. **What follows from other records, checks or the time changes without an event**: counts
and sums (`tracked_minutes`), what the monitor measures (`response_time_ms`), and `is_overdue`; `/docs/sync` lists all.
Lines, payments, tags and plugins are fields of their record.

Events are kept for 30 days, unless the operator has set another time. `/docs/sync` shows how to keep a copy in sync.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.json import decode, encode
from sqlalchemy import Select, bindparam, func, select, text

from retainer.errors import Refusal, invalid
from retainer.events.catalogue import ANNOUNCED, EventResource, EventType, scope_errors
from retainer.kernel.caller import Caller
from retainer.kernel.paging import FeedPage, FollowLinks, FollowMeta
from retainer.kernel.query import OneOf, Query
from retainer.kernel.resource import BaseUrl, FollowedUrl, Resource
from retainer.store.announcements import DELETED
from retainer.store.engines.base import Row
from retainer.store.engines.sql import INTEGER, is_listed
from retainer.store.outbox import FIRST_ROW, NEWEST_ID
from retainer.store.statements import DeferredStatement
from retainer.store.tables import events
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_INTEGER, Id, Instant

PER_PAGE, MAX_PAGE_SIZE = 25, 100
Position = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
PageSize = Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE)]


class Event(msgspec.Struct):
    """What has happened to a record."""

    id: Annotated[Id, "Position of the event. The events of an account are numbered in the order of their commits."]
    type: Annotated[EventType, "The resource, and what has happened to the record or what its status has become."]
    resource: Annotated[EventResource, "The type of the record."]
    record_id: Annotated[Id, "Identifies the record among those of its `resource`."]
    parent_id: Annotated[Id | None, "The project of a milestone, or the ticket of a reply; else null."]
    url: Annotated[
        str | None,
        Meta(examples=["https://agency.example/api/public/v1/clients/1"]),
        "Where to read the record. For a tag, a milestone or a reply this is its list, limited to it. Null if it was "
        "deleted.",
    ]
    fields: Annotated[
        list[str],
        "The changed fields, and the computed fields that follow from them. A computed field may keep its value, and "
        "so may a field in a change of many records at once. Empty if the record was created or deleted.",
    ]
    at: Annotated[Instant, "When the change was made."]
    user_id: Annotated[
        Id | None, "The user who made the change. Null: the monitor, the operator, or a client with a link."
    ]
    key_id: Annotated[Id | None, "The key of the request. Null: the change was made without one, as in the console."]
    link_id: Annotated[Id | None, "The client link, if a client accepted or declined a quote with it; else null."]
    request_id: Annotated[str | None, "The `X-Request-Id` of the request. Null: there was none."]


class EventQuery(Query):
    """The position in the events, and which of them to list."""

    after: Annotated[
        Position | None, "Only events after this position: `meta.next_after`. Default: the oldest that is kept."
    ] = None
    types: Annotated[OneOf[EventType] | None, "Events of one of these types."] = None
    resource: Annotated[OneOf[EventResource] | None, "Events of records of one of these types."] = None
    record_id: Annotated[OneOf[Id] | None, "Events of records with one of these ids; usually with `resource`."] = None
    per_page: Annotated[PageSize | None, f"Maximum number of events. Default: {PER_PAGE}."] = None


POSITIONS = select(
    func.coalesce(select(events.c.id - 1).order_by(events.c.id).suffix_with(FIRST_ROW).scalar_subquery(), 0),
    func.coalesce(NEWEST_ID, 0),
)
"""The last event that was deleted because of its age, and the newest one."""
SHOWN = ("id", "type", "record_id", "parent_id", "fields", "at", "user_id", "key_id", "link_id", "request_id")

api = Resource("/events", tag="Events", scope=None)


@api.get()
def list_events(tx: Tx, caller: Caller, query: EventQuery, base_url: BaseUrl, url: FollowedUrl) -> FeedPage[Event]:
    """List the events after a position, oldest first; with `Prefer: wait=20`, wait for the next one.

    Any valid key can call it, and gets the events of the resources for which it has the `:read` scope. To ask for
    others is an error. More events can follow an empty response: continue with `meta.next_after`.
    """
    check_scopes(caller, types=query.types, resource=query.resource)
    tx.snapshot()
    pruned, latest = tx.one(POSITIONS) or (0, 0)
    after = pruned if query.after is None else query.after
    check_position(after, pruned, latest)
    size = query.per_page or PER_PAGE
    rows = load_rows(tx, caller, query, after, size + 1) if after < latest else []
    has_more = len(rows) > size
    found = [event_of(row, base_url) for row in rows[:size]]
    next_after = found[-1].id if has_more else latest
    meta = FollowMeta(next_after, has_more, latest, size)
    return FeedPage(found, FollowLinks(f"{url}after={next_after}"), meta)


def check_scopes(caller: Caller, **filters: tuple[str, ...] | None) -> None:
    """Raise `validation_failed` for each filter that asks for events which the key may not read."""
    found = {name: scope_errors(asked or (), caller.granted.__contains__) for name, asked in filters.items()}
    errors = {name: messages for name, messages in found.items() if messages}
    if errors:
        raise invalid(errors)


def check_position(after: int, pruned: int, latest: int) -> None:
    """Raise `events_gone` for a position before the kept events, or one that the database has not reached."""
    if pruned <= after <= latest:
        return
    reason = f"Events that follow position {after} were deleted, because they are too old."
    if after > latest:
        known = f"Position {after} is after the newest event, which is {latest}"
        reason = f"{known}: it is not one of this account, or a backup was restored."
    advice = f"Note {latest}, read all records again, then continue with after={latest}."
    raise Refusal("events_gone", f"{reason} {advice}")


def load_rows(tx: Tx, caller: Caller, query: EventQuery, after: int, limit: int) -> list[Row]:
    shown = [each for each in ANNOUNCED.values() if each.scope in caller.granted]
    if query.resource is not None:
        shown = [each for each in shown if each.name in query.resource]
    types = [kind for each in shown for kind in each.types if query.types is None or kind in query.types]
    return load_after(tx, types, after, limit, query.record_id)


def load_after(
    tx: Tx, types: list[str], after: int, limit: int, record_ids: tuple[int, ...] | None = None
) -> list[Row]:
    sent = {"types": encode(types).decode()}
    if record_ids is not None:
        sent["records"] = encode(record_ids).decode()
    return tx.all(DeferredStatement(_after, (record_ids is not None, limit)), **sent, after=after)


def _after(of_records: bool, limit: int) -> Select[Any]:  # noqa: FBT001  # an argument of DeferredStatement
    """Return the statement of events after a position: it walks the primary key with every filter.

    LIMIT is literal: for an unknown one, PostgreSQL plans to read a tenth of all events, and compiles the plan first.
    """
    limits = [events.c.id > bindparam("after", type_=INTEGER), is_listed(events.c.type, "types")]
    if of_records:
        limits.append(is_listed(events.c.record_id, "records"))
    return select(*events.c[SHOWN]).where(*limits).order_by(events.c.id).suffix_with(text(f"LIMIT {limit}"))


def event_of(row: Row, base_url: str) -> Event:
    values = dict(zip(SHOWN, row, strict=True))
    resource, _, change = values["type"].partition(".")
    announced = ANNOUNCED[resource]
    written = decode(values["fields"])
    values["fields"] = sorted({*written, *(name for field in written for name in announced.computed.get(field, ()))})
    address = announced.address.format(parent_id=values["parent_id"], id=values["record_id"])
    return Event(resource=resource, url=None if change == DELETED else f"{base_url}{address}", **values)
