"""The audit: every action of admins and operators, with who, from where, before and after; rows are only added."""

import json
from typing import Any, Literal, NamedTuple, get_args

import msgspec
from sqlalchemy import and_, bindparam, or_, select, true

from retainer.identity.admins import Admin
from retainer.schema.identity import audit_entries, users
from retainer.store.tx import Tx

Action = Literal[
    "account opened",
    "account changed",
    "API switched on",
    "API switched off",
    "key created",
    "key changed",
    "key rotated",
    "key revoked",
    "user created",
    "user changed",
    "user deactivated",
    "user activated",
    "link created",
    "password set",
    "signed in",
    "signed out",
    "sign-in failed",
    "session revoked",
    "payment removed",
]
ACTIONS: tuple[Action, ...] = get_args(Action)
Fields = dict[str, Any]
PAGE = 50


class Target(NamedTuple):
    """What an action was done to: what kind of record it is, its id, and what people called it then."""

    kind: Literal["account", "key", "user", "session", "payment"]
    id: int
    name: str


class AuditEntry(msgspec.Struct):
    """An action: without a user it was an operator's, at the command line, or nobody's, as of failed sign-ins."""

    id: int
    created_at: str
    action: Action
    user_id: int | None
    user_name: str | None
    address: str | None
    target: str
    target_id: int
    target_name: str
    before: Fields | None
    after: Fields | None


class AuditFilter(msgspec.Struct, frozen=True):
    """Which actions are listed; `user_id` 0 are those without a user, `since` and `until` instants, `until` exclusive."""

    action: Action | None = None
    user_id: int | None = None
    target: str | None = None
    target_id: int | None = None
    since: str | None = None
    until: str | None = None


class AuditPage(NamedTuple):
    """Actions, newest first, and the cursor for those that follow; None after the last."""

    entries: list[AuditEntry]
    next_cursor: str | None


def note(
    tx: Tx, action: Action, target: Target, *, before: Fields | None = None, after: Fields | None = None
) -> None:
    """Add an entry in the transaction of the action; what it changed, or a whole record that is new or gone.

    No secret may be among the fields.
    """
    raise NotImplementedError


def changes(before: Fields, after: Fields) -> tuple[Fields, Fields]:
    """Return the fields in which two states of a record differ, as they were and as they are."""
    names = [name for name in after if name != "updated_at" and before.get(name) != after[name]]
    return {name: before.get(name) for name in names}, {name: after[name] for name in names}


def list_entries(
    tx: Tx, filters: AuditFilter = AuditFilter(), *, cursor: str | None = None, limit: int = PAGE
) -> AuditPage:
    """Return actions of the account, newest first. Raises `validation_failed` for a cursor that is none."""
    raise NotImplementedError
