"""The audit log: every action of admins and operators, with its user, address and changes. Rows are only added."""

import json
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import Meta
from sqlalchemy import ColumnElement, bindparam, func, or_, select

from retainer.errors import invalid
from retainer.kernel.query import Query
from retainer.schema.identity import audit_entries, users
from retainer.store.engines.sql import INSTANT, INTEGER
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_INTEGER, Instant, read_instant
from retainer.values.parameters import read_number

AccountAction = Literal["account opened", "account changed", "account exported", "API switched on", "API switched off"]
AccountEnd = Literal["account suspended", "account resumed", "account deletion announced"]
KeyAction = Literal["key created", "key changed", "key rotated", "key handed over", "key revoked"]
UserAction = Literal["user created", "user changed", "user deactivated", "user activated", "link created"]
SignInAction = Literal["password set", "signed in", "signed out", "sign-in failed", "session revoked"]
PaymentAction = Literal["payment recorded", "refund recorded", "payment removed"]
InvoiceAction = Literal["invoice issued", "invoice voided", "invoice written off", "credit note issued"]
ClientAction = Literal["quote accepted", "quote declined", "ticket answered"]
LinkAction = Literal["client link created", "client link revoked"]
FactorAction = Literal["second factor added", "second factor removed", "recovery codes replaced", "recovery code used"]
WebhookAction = Literal["webhook created", "webhook changed", "webhook secret rotated", "webhook paused"]
WebhookEnd = Literal["webhook disabled", "webhook deleted"]
RecordAction = Literal["record created", "record changed", "record deleted"]
BusinessAction = Literal[PaymentAction, InvoiceAction, ClientAction, LinkAction]
AccessAction = Literal[KeyAction, UserAction, SignInAction]
Action = Literal[
    AccountAction, AccountEnd, AccessAction, BusinessAction, FactorAction, WebhookAction, WebhookEnd, RecordAction
]
ACTIONS: tuple[Action, ...] = get_args(Action)
Fields = dict[str, Any]
PAGE = 50
FIRST, LAST = "0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"


class Target(NamedTuple):
    """The target of an action: the noun of its kind (`invoice`, `time entry`), its id, and its name at the time."""

    kind: str
    id: int
    name: str


class AuditEntry(msgspec.Struct):
    """An action. Those of clients with a link, of operators at the command line, and failed sign-ins have no user."""

    id: int
    created_at: str
    action: Action
    user_id: int | None
    user_name: str | None
    link_id: int | None
    """The client link with which a client came."""
    address: str | None
    target: str
    target_id: int
    target_name: str
    before: Fields | None
    after: Fields | None


class AuditFilter(Query):
    """The filters of the list."""

    action: Action | None = None
    user_id: Annotated[int | None, Meta(ge=0, le=MAX_INTEGER), "0: actions of operators, and failed sign-ins."] = None
    target: str | None = None
    target_id: int | None = None
    since: Annotated[Instant | None, "From this instant on."] = None
    until: Annotated[Instant | None, "Before this instant."] = None


ALL = AuditFilter()


class AuditPage(NamedTuple):
    """Actions, newest first, and the cursor of the next page; None at the end."""

    entries: list[AuditEntry]
    next_cursor: str | None


def note(tx: Tx, action: Action, target: Target, *, before: Fields | None = None, after: Fields | None = None) -> None:
    """Add an entry, without secrets: `before` for a removed record, `after` for a new one."""
    values = {
        "action": action,
        "user_id": tx.actor.user_id or None,
        "link_id": tx.actor.acting_link,
        "address": getattr(tx.actor, "address", None),
        "target": target.kind,
        "target_id": target.id,
        "target_name": target.name,
        "before": before and json.dumps(before),
        "after": after and json.dumps(after),
    }
    tx.insert_counted(audit_entries, values)


def note_changes(tx: Tx, action: Action, target: Target, before: Fields, after: Fields) -> None:
    names = [name for name in after if name != "updated_at" and before.get(name) != after[name]]
    if names:
        old, new = ({name: state.get(name) for name in names} for state in (before, after))
        note(tx, action, target, before=old, after=new)


def _is(name: str) -> ColumnElement[bool]:
    column = audit_entries.c[name]
    value = bindparam(name, type_=column.type)
    return or_(value.is_(None), func.coalesce(column, 0) == value if name == "user_id" else column == value)


_since, _until, _at, _id = (
    bindparam(name, type_=kind)
    for name, kind in (("since", INSTANT), ("until", INSTANT), ("at", INSTANT), ("before_id", INTEGER))
)
COLUMNS = {**audit_entries.c, "user_name": users.c.name}
ENTRIES = (
    select(*(COLUMNS[name] for name in AuditEntry.__struct_fields__))
    .select_from(audit_entries.outerjoin(users, users.c.id == audit_entries.c.user_id))
    .where(
        *map(_is, ("action", "user_id", "target", "target_id")),
        audit_entries.c.created_at >= _since,
        audit_entries.c.created_at < _until,
        audit_entries.c.created_at <= _at,
        or_(audit_entries.c.created_at < _at, audit_entries.c.id < _id),
    )
    .order_by(audit_entries.c.created_at.desc(), audit_entries.c.id.desc())
    .limit(bindparam("limit", type_=INTEGER))
)


def list_entries(tx: Tx, filters: AuditFilter = ALL, *, cursor: str | None = None, limit: int = PAGE) -> AuditPage:
    """Return actions of the account, newest first. Raises `validation_failed` for an invalid cursor."""
    at, before_id = _read_cursor(cursor)
    values = msgspec.structs.asdict(filters)
    values |= {"since": filters.since or FIRST, "until": filters.until or LAST, "at": at, "before_id": before_id}
    rows = tx.all(ENTRIES, **values, limit=limit + 1)
    found = [dict(zip(AuditEntry.__struct_fields__, row, strict=True)) for row in rows[:limit]]
    entries = [
        AuditEntry(**each | {name: each[name] and json.loads(each[name]) for name in ("before", "after")})
        for each in found
    ]
    last = entries[-1] if len(rows) > limit else None
    return AuditPage(entries, None if last is None else f"{last.created_at},{last.id}")


def _read_cursor(cursor: str | None) -> tuple[str, int]:
    if cursor is None:
        return LAST, 0
    at, _, entry_id = cursor.partition(",")
    try:
        return read_instant(at), read_number(entry_id)
    except ValueError:
        raise invalid({"cursor": ["Must be the next_cursor of the previous page."]}) from None
