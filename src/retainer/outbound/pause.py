"""Pauses: background work that sends nothing out until an operator resumes it, for all accounts or for one."""

from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import ColumnElement, Table, bindparam, delete, exists, insert, or_, select

from retainer.schema.identity import accounts, pauses
from retainer.store.tables import NOW
from retainer.store.tx import Store

SUSPENDED = select(accounts.c.id).where(accounts.c.suspended_at.is_not(None))
NAMED = pauses.c.name == bindparam("name")
PAUSE = insert(pauses).values(name=bindparam("name"), since=NOW, reason=bindparam("reason"))
RESUME = delete(pauses).where(NAMED)
SINCE = select(pauses.c.since).where(NAMED)
PAUSED = select(pauses.c.since + ": " + pauses.c.reason).where(NAMED)


class PausableWork(NamedTuple):
    """Background work of all processes: its name, the command that resumes it, and what its pause means."""

    name: str
    command: str
    effect: str

    def is_paused(self, table: Table) -> ColumnElement[bool]:
        """Return whether the work for rows of a table is paused, or the account of a row is suspended.

        It is a condition for statements, so that both take effect in every process with its next query.
        """
        return or_(exists(select(pauses.c.name).where(pauses.c.name == self.name)), table.c.account_id.in_(SUSPENDED))


MONITOR = PausableWork("monitor", "monitor", "The monitor has been paused since {}. No site is checked.")
WEBHOOKS = PausableWork("webhooks", "deliver", "Webhooks have been paused since {}. No event is sent.")
MAIL = PausableWork(
    "mail", "mail", "Mail has been paused since {}. No message is sent, and no invoice is issued by itself."
)
EVERY = (MONITOR, WEBHOOKS, MAIL)


def pause(store: Store, work: PausableWork, reason: str) -> None:
    """Stop the work of all processes; `reason` is for operators."""
    with store.unscoped(write=True) as tx:
        tx.run(RESUME, name=work.name)
        tx.run(PAUSE, name=work.name, reason=reason)


def resume(store: Store, work: PausableWork, begin_anew: Callable[[Store, str], object]) -> None:
    """Resume the work. `begin_anew` gets the start of the pause, and ends what was going on then."""
    with store.unscoped() as tx:
        since = tx.value(SINCE, name=work.name)
    if since is not None:
        begin_anew(store, since)
    with store.unscoped(write=True) as tx:
        tx.run(RESUME, name=work.name)


def warnings(store: Store) -> list[str]:
    return [message for work in EVERY if (message := warning(store, work))]


def warning(store: Store, work: PausableWork) -> str | None:
    with store.unscoped() as tx:
        since = tx.value(PAUSED, name=work.name)
    return since and f"{work.effect.format(since)} Resume: retainer {work.command} --resume"
