"""The pause of the monitor: no site is checked until an operator resumes it, as after a restore."""

from sqlalchemy import bindparam, delete, exists, insert, literal, select

from retainer.schema.installation import pauses
from retainer.store.tx import Store

IS_OURS = pauses.c.name == literal("monitor")
IS_PAUSED = exists(select(pauses.c.name).where(IS_OURS))
"""The condition of statements, so that every process heeds a pause from its next look at the database on."""

PAUSE = insert(pauses).values(name=literal("monitor"), since=bindparam("at"), reason=bindparam("why"))
RESUME = delete(pauses).where(IS_OURS)
PAUSED = select(pauses.c.since, pauses.c.reason).where(IS_OURS)


def pause(store: Store, reason: str) -> None:
    """Let no process check sites from now on; `reason` is for operators."""
    with store.unscoped("the monitor works for all accounts", write=True) as tx:
        tx.run(RESUME)
        tx.run(PAUSE, at=tx.now, why=reason)


def resume(store: Store) -> None:
    """Let sites be checked again."""
    with store.unscoped("the monitor works for all accounts", write=True) as tx:
        tx.run(RESUME)


def warning(store: Store) -> str | None:
    """Return a message while the monitor is paused: since when, why, and how to resume it."""
    with store.unscoped("the monitor works for all accounts") as tx:
        row = tx.one(PAUSED)
    if row is None:
        return None
    since, reason = row
    return f"The monitor is paused since {since}: {reason}. No site is checked. Resume: retainer monitor --resume"
