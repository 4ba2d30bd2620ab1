"""Timers: work that a user has begun, and that becomes a time entry when it ends. Each user has at most one."""

from sqlalchemy import bindparam, delete, select

from retainer.schema.work import timers
from retainer.store.tx import Tx
from retainer.values.kinds import Id, Instant, Text191, Text5000
from retainer.values.reading import read_record
from retainer.values.records import Record

OF_USER = timers.c.user_id == bindparam("user")
FIND = select(timers.c.id).where(OF_USER)
DELETE = delete(timers).where(OF_USER)


class Timer(Record):
    """A running timer. `work` is a field of time entries and the id in it: `task_id-5`."""

    user_id: Id
    work: Text191
    started_at: Instant
    description: Text5000 | None = None


def find(tx: Tx) -> Timer | None:
    return tx.find(timers, tx.value(FIND, user=tx.actor.user_id), Timer)


def start(tx: Tx, work: str, description: str) -> None:
    """Start the timer of the acting user. Raises `validation_failed` for a text that is too long."""
    fields = {"user_id": tx.actor.user_id, "work": work, "started_at": tx.now}
    tx.insert(timers, read_record(Timer, fields | ({"description": description} if description else {})))


def discard(tx: Tx) -> None:
    tx.count(timers, -tx.change(DELETE, user=tx.actor.user_id))
