"""How records relate: the broader follows from the narrower, and a status moves as its table allows."""

from collections.abc import Collection, Mapping
from typing import Protocol

from sqlalchemy import Select, Table, bindparam, func, select

from retainer.schema.identity import users
from retainer.store.constraints import singular
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_POSITION, ME
from retainer.values.records import Record

ACTIVE = select(users.c.is_active).where(users.c.id == bindparam("id"))

SentFields = dict[str, str]
"""The fields that have a say: each was `sent`, or was `derived` from one that was."""


ReferenceCounts = Mapping[Table, Select[int]]
"""Tables whose rows may refer to a record, each with the statement that counts those that do."""


class HasUser(Protocol):
    """A record that is a user's."""

    user_id: int


class HasDates(Protocol):
    """A record that begins on a day and is due on another."""

    start_date: str | None
    due_date: str | None


def sent_fields(record: Record) -> SentFields:
    """Return the fields that a new record's body says something with: null says nothing there."""
    return {name: "sent" for name in record.__struct_fields__ if getattr(record, name) is not None}


def concerns(before: Record | None, sent: SentFields, *fields: str) -> bool:
    """Whether a body says anything of these relations; what it does not speak of stays, whatever it led to."""
    return before is None or not sent.keys().isdisjoint(fields)


def named_fields(record: Record, sent: SentFields, *fields: str) -> list[str]:
    """Return those of the relations that a body names; to be called before anything is derived from them."""
    return [field for field in fields if field in sent and getattr(record, field) is not None]


def first_named(named: list[str], *fields: str) -> str:
    """Return the first of these fields that was named; if none was, the first."""
    return next((field for field in fields if field in named), fields[0])


def derive_parent(tx: Tx, record: Record, sent: SentFields, narrow: str, broad: str, implied: int | None) -> None:
    """Derive the broader relation from the narrower; note an error on the narrower when one that was sent differs.

    Null that was sent beside a narrower one says nothing.
    """
    stated = getattr(record, broad)
    if broad not in sent or (stated is None and sent[broad] == sent.get(narrow) == "sent"):
        setattr(record, broad, implied)
        sent[broad] = "derived"
    elif stated != implied:
        noun = broad.removesuffix("_id")
        actual, other = (f"{noun} {parent}" if parent is not None else f"no {noun}" for parent in (implied, stated))
        tx.error(narrow, f"Belongs to {actual}, not to {other}. Send what agrees, or only the narrower of both.")


def check_open(tx: Tx, field: str, name: str, status: str | None, *, template: bool = False) -> None:
    """Note an error when a client or project takes nothing new: it is archived, or a `template` that refuses this."""
    if status == "archived":
        tx.error(field, f"{name} is archived and takes nothing new. Make it active first.")
    if template:
        tx.error(field, f"{name} is a template and takes no time or money. Create a project from it first.")


def counts_of(column: str, *tables: Table) -> ReferenceCounts:
    """Return the statements that count the rows of tables which refer to a record by this column."""
    return {
        table: select(func.count()).select_from(table).where(table.c[column] == bindparam("id")) for table in tables
    }


def check_unreferred(tx: Tx, counts: ReferenceCounts, record_id: int, field: str, advice: str) -> None:
    """Note `in_use` on a field that is fixed while others refer to the record, with the count of each kind."""
    for table, statement in counts.items():
        count = tx.value(statement, id=record_id)
        if count:
            refer = f"1 {singular(table)} refers" if count == 1 else f"{count} {table.name} refer"
            tx.error(field, f"Is fixed while {refer} to this record. {advice}", "in_use")


def check_transition(
    tx: Tx, before: str | None, after: str, transitions: Mapping[str, Collection[str]], advice: str = ""
) -> None:
    """Note `invalid_transition` when the table of transitions does not lead from one status to the other."""
    if before is not None and after != before and after not in transitions[before]:
        allowed = transitions[before]
        legal = f"It can become: {', '.join(allowed)}." if allowed else f"It stays {before}."
        message = f"Cannot become {after} from {before}. {legal} {advice}".rstrip()
        tx.error("status", message, "invalid_transition")


def next_position(position: int) -> int:
    """Return the position behind another; at the end of what positions can say, the same."""
    return min(position + 1, MAX_POSITION)


def check_date_order(tx: Tx, record: HasDates) -> None:
    """Note an error when due_date is before start_date."""
    if record.start_date and record.due_date and record.due_date < record.start_date:
        tx.error("due_date", f"Must not be before start_date, which is {record.start_date}.")


def resolve_user(tx: Tx, record: Record | HasUser, field: str, before: int | None) -> None:
    """Put the key's user in for `me`; note an error when another user than before is not an active one."""
    if getattr(record, field) == ME:
        setattr(record, field, tx.actor.user_id)
    user_id = getattr(record, field)
    if user_id not in {None, before, tx.actor.user_id} and tx.value(ACTIVE, id=user_id) == 0:
        tx.error(field, f"User {user_id} is deactivated. Choose an active user.")
