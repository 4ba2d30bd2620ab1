"""Monitor pause: no site is checked until an operator resumes the monitor, as after a restore."""

from sqlalchemy import bindparam, delete, exists, insert, literal, select

from retainer.schema.installation import pauses
from retainer.store.tables import NOW
from retainer.store.tx import Store

IS_OURS = pauses.c.name == literal("monitor")
IS_PAUSED = exists(select(pauses.c.name).where(IS_OURS))
"""A condition in statements, so that a pause takes effect in every process with its next query."""

PAUSE = insert(pauses).values(name=literal("monitor"), since=NOW, reason=bindparam("reason"))
RESUME = delete(pauses).where(IS_OURS)
PAUSED = select(pauses.c.since + literal(": ") + pauses.c.reason).where(IS_OURS)


def pause(store: Store, reason: str) -> None:
    """Stop the checks of all processes; `reason` is for operators."""
    with store.unscoped(write=True) as tx:
        tx.run(RESUME)
        tx.run(PAUSE, reason=reason)


def resume(store: Store) -> None:
    """Resume the checks."""
    with store.unscoped(write=True) as tx:
        tx.run(RESUME)


def warning(store: Store) -> str | None:
    """Return a message while the monitor is paused, else None."""
    with store.unscoped() as tx:
        since = tx.value(PAUSED)
    return since and f"The monitor has been paused since {since}. No site is checked. Resume: retainer monitor --resume"
