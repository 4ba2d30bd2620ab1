"""Timers: work that a user has begun, and that becomes a time entry when it ends. Each user has at most one."""

from sqlalchemy import bindparam, delete, select

from retainer.schema.work import timers
from retainer.store.tx import Tx
from retainer.values.kinds import Id, Instant, Text191, Text5000
from retainer.values.records import Record

OF_USER = timers.c.user_id == bindparam("user")
FIND = select(timers.c.id).where(OF_USER)
DELETE = delete(timers).where(OF_USER)


class Timer(Record):
    """A running timer. `work` is a field of time entries and the id in it: `task_id-5`."""

    user_id: Id
    work: Text191
    description: Text5000 | None
    started_at: Instant


def find(tx: Tx) -> Timer | None:
    """Return the timer of the acting user, if it runs."""
    return tx.find(timers, tx.value(FIND, user=tx.actor.user_id), Timer)


def start(tx: Tx, work: str, description: str | None) -> None:
    """Start the timer of the acting user. Raises `validation_failed` if it runs already."""
    tx.insert(timers, Timer(0, tx.now, tx.now, tx.actor.user_id, work, description, tx.now))


def discard(tx: Tx) -> None:
    """Delete the timer of the acting user."""
    tx.run(DELETE, user=tx.actor.user_id)
