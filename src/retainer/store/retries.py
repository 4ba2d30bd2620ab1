"""Retries of a write that the database rolled back because of another one."""

import time
from collections.abc import Callable
from typing import TypeVar

from retainer.store.engines.base import TransientConflict
from retainer.store.tx import Actor, ActorChanged, Store, Tx

T = TypeVar("T")
RETRIES = 3
RETRY_SECONDS = 5
"""Time limit for retries, the last one excluded."""


def write(
    store: Store,
    actor: Actor,
    work: Callable[[Tx], T],
    *,
    seconds: float | None = None,
    is_patient: bool = True,
    prepare: Callable[[TransientConflict], Actor] | None = None,
) -> T:
    """Do work in one transaction of an actor; again if a conflict has undone it. Raises the last TransientConflict.

    Before each retry, `prepare` undoes what the work has left outside of the transaction, and returns who acts then.
    Without it, nobody may act instead of an actor who has changed. `seconds` is that of `Tx`.
    """
    began, retries = time.monotonic(), 0
    while True:
        transaction = store.begin(actor, write=True, may_repeat=retries == 0, seconds=seconds)
        transaction.is_patient = is_patient
        try:
            with transaction as tx:
                return work(tx)
        except TransientConflict as conflict:
            has_changed = isinstance(conflict, ActorChanged)
            is_late = not has_changed and time.monotonic() - began > RETRY_SECONDS
            if retries == RETRIES or is_late or (has_changed and prepare is None):
                raise
            actor, retries = prepare(conflict) if prepare else actor, retries + 1
