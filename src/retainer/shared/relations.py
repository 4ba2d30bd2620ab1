"""Rules that several areas share: what a record belongs to, who may change it, and which changes are allowed."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Select, Table, bindparam, func, null, select

from retainer.errors import FALSE, LEAVE_OUT, SEND, BodyErrors, Refusal, part
from retainer.kernel.roles import may
from retainer.schema.crm import clients
from retainer.schema.identity import users
from retainer.schema.work import tasks, time_entries
from retainer.store.constraints import singular
from retainer.store.row_mapper import R
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_POSITION, ME
from retainer.values.records import Record

N = TypeVar("N", bound=NamedTuple)
TASKS_OF_TICKET = select(func.count()).select_from(tasks).where(tasks.c.ticket_id == bindparam("ticket"))

SentFields = dict[str, str]
"""The fields of a body that say something, each `sent` or `derived`: rules add those that they derive."""


class Parent(NamedTuple):
    """The fields of a record that the records below it inherit; null where it has no such field."""

    client_id: int | None
    project_id: int | None
    parent_id: int | None


class ClientState(NamedTuple):
    """The fields of a client from which those of its projects and expenses follow."""

    status: str
    currency: str


def load_row(tx: Tx, kind: type[N], table: Table, record_id: int | None) -> N | None:
    """Return the columns of a record that `kind` names; None without an id, or if there is no such record."""
    row = None if record_id is None else tx.one(_select_row(table, kind._fields), id=record_id)
    return None if row is None else kind._make(row)


@cache
def _select_row(table: Table, names: tuple[str, ...]) -> Select[int]:
    columns = (table.c[name] if name in table.c else null() for name in names)
    return select(*columns).where(table.c.id == bindparam("id"))


def sent_fields(record: Record) -> SentFields:
    """Return the fields that the body of a new record sets; null sets none."""
    return {name: "sent" for name in record.__struct_fields__ if getattr(record, name) is not None}


def sets_any(before: Record | None, sent: SentFields, *fields: str) -> bool:
    """Whether a body sets any of these relations."""
    return before is None or not sent.keys().isdisjoint(fields)


def first_sent(record: Record, sent: SentFields, *fields: str) -> str:
    """Return the first of these fields that was sent with a value, else the first of all: errors are noted on it."""
    return next((name for name in fields if sent.get(name) == "sent" and getattr(record, name) is not None), fields[0])


def inherit(tx: Tx, record: Record, sent: SentFields, child: str, parent: str, value: int | None) -> None:
    """Set a relation, such as the client, to the value of another, such as that of the project.

    Note an error on the other if the body says something else. A null is ignored if the other was sent, too.
    """
    stated = getattr(record, parent)
    if parent not in sent or (stated is None and sent[parent] == sent.get(child) == "sent"):
        setattr(record, parent, value)
        sent[parent] = "derived"
    elif stated != value:
        noun = parent.removesuffix("_id")
        actual, other = (f"{noun} {each}" if each is not None else f"no {noun}" for each in (value, stated))
        tx.error(child, f"Belongs to {actual}, not to {other}. {SEND} matching values, or only {part(child)}.")


def validate_open(errors: BodyErrors, field: str, name: str, status: str | None, *, template: bool = False) -> None:
    """Note an error if a client or project is archived, or a `template` that accepts no such record."""
    if status == "archived":
        errors.error(field, f"{name} is archived. Make it active first.")
    if template:
        errors.error(field, f"{name} is a template and accepts no time or money. Create a project from it first.")


def validate_client_open(
    tx: Tx, field: str, record: Any, before: Record | None = None, status: str | None = None
) -> None:
    """Note an error if the client of a record is archived, unless it stays. Reads the status unless it is given."""
    client_id = record.client_id
    if client_id not in {None, getattr(before, "client_id", None)}:
        validate_open(tx, field, part(f"Client {client_id}"), status or tx.field(clients.c.status, client_id))


def validate_unreferred(
    tx: Tx, column: str, tables: Collection[Table], record_id: int, field: str, advice: str
) -> None:
    """Note `in_use` on a field that is fixed while rows of the tables refer to the record, with their count."""
    for table in tables:
        count = tx.value(_count_references(table, column), id=record_id)
        if count:
            refer = f"1 {singular(table)} refers" if count == 1 else f"{count} {table.name} refer"
            tx.error(field, f"Is fixed while {refer} to this record. {advice}", "in_use")


@cache
def _count_references(table: Table, column: str) -> Select[int]:
    return select(func.count()).select_from(table).where(table.c[column] == bindparam("id"))


def validate_transition(
    errors: BodyErrors, before: str | None, after: str, transitions: Mapping[str, Collection[str]], advice: str = ""
) -> None:
    """Note `invalid_transition` if the table of transitions does not lead from one status to the other."""
    if before is not None and after != before and after not in transitions[before]:
        allowed = transitions[before]
        legal = f"It can become: {', '.join(allowed)}." if allowed else f"It stays {before}."
        errors.error("status", f"Cannot become {after} from {before}. {legal} {advice}".rstrip(), "invalid_transition")


def next_position(position: int) -> int:
    return min(position + 1, MAX_POSITION)


def validate_date_order(errors: BodyErrors, record: Record, first: str = "start_date", last: str = "due_date") -> None:
    start, end = getattr(record, first), getattr(record, last)
    if start and end and end < start and errors.readable(first):
        errors.error(last, f"Must not be before {part(first)}, which is {part(start)}.")


def read_user(tx: Tx, field: str, user_id: int | None, former: int | None = None) -> int | None:
    """Return the user of a field, `me` as that of the key; note an error for another deactivated one than before."""
    if user_id == ME:
        return tx.actor.user_id
    if user_id not in {None, former, tx.actor.user_id} and tx.field(users.c.is_active, user_id) == 0:
        tx.error(field, f"User {user_id} is deactivated. Choose an active user.")
    return user_id


def validate_locked(
    errors: BodyErrors, record: R, before: R, reason: str, names: Collection[str], advice: str = ""
) -> None:
    """Note `locked` for each of these fields that has changed, and restore it."""
    message = f"Cannot be changed any more: this one is {reason}. {advice}".rstrip()
    for name in names:
        old = getattr(before, name)
        if getattr(record, name) != old:
            setattr(record, name, old)  # so that no other rule reports it
            errors.error(name, message, "locked")


def build_owner(tx: Tx, user_id: int | None) -> int:
    return tx.actor.user_id if user_id is None or user_id == ME else user_id


def validate_owner(tx: Tx, user_id: int, former: int | None, noun: str) -> None:
    """Note an error if a member's key names another user; note `not_owner` if the record belonged to another."""
    message = None if former is None else _not_owner(tx, former, noun)
    if message:
        tx.error("user_id", message, "not_owner")
    elif user_id not in {former, tx.actor.user_id} and not may(tx.actor, "records"):
        tx.error(
            "user_id", f"Only an admin's or manager's key can name another user. {LEAVE_OUT} for the key's own user."
        )
    else:
        read_user(tx, "user_id", user_id, former)


def validate_settled(tx: Tx, *, is_settled: bool, billable: bool) -> None:
    """Note an error if work that is not billable counts as billed."""
    if is_settled and not billable:
        tx.error(
            "is_settled", f"Must be {FALSE} for work that is not billable. {SEND} {FALSE}, or make the work billable."
        )


def check_deletion(tx: Tx, user_id: int, invoice_id: int | None, noun: str) -> None:
    """Raise `not_owner` if a member's key deletes another user's record, and `locked` if it is on an invoice."""
    if message := _not_owner(tx, user_id, noun):
        raise Refusal("not_owner", message, errors={"user_id": [message]})
    if invoice_id is not None:
        message = f"This {noun} is on invoice {invoice_id} and stays. Take it off there first, while that is a draft."
        raise Refusal("locked", message, errors={"invoice_id": [message]})


def _not_owner(tx: Tx, user_id: int, noun: str) -> str | None:
    if may(tx.actor, "records") or user_id == tx.actor.user_id:
        return None
    name = tx.field(users.c.name, user_id)
    whose = f"This {noun} belongs to {name} (user {user_id})."
    return f"{whose} Use that user's key, an admin's or a manager's to change or delete it."


def validate_no_time(tx: Tx, noun: str, record_id: int, field: str) -> None:
    """Note an error if a `task` or `ticket` has time, also on its subtasks or tasks, or if a ticket has tasks."""
    entries = tx.value(_count_entries(noun), record_id=record_id)
    if entries:
        parts = "subtasks" if noun == "task" else "tasks"
        count = "1 time entry is" if entries == 1 else f"{entries} time entries are"
        tx.error(field, f"Is fixed while {count} on the {noun} or its {parts}. Move them first.")
    elif noun == "ticket" and (count := tx.value(TASKS_OF_TICKET, ticket=record_id)):
        belong = "1 task belongs" if count == 1 else f"{count} tasks belong"
        tx.error(field, f"Is fixed while {belong} to the ticket. Move them first.")


@cache
def _count_entries(noun: str) -> Select[int]:
    owner = tasks.c.parent_id if noun == "task" else tasks.c.ticket_id
    on_tasks = time_entries.c.task_id.in_(select(tasks.c.id).where(owner == bindparam("record_id")))
    on_record = time_entries.c[f"{noun}_id"] == bindparam("record_id")
    return select(func.count()).select_from(time_entries).where(on_record | on_tasks)
