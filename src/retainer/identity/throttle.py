"""The throttle of signing in: failures are counted in the database, and many make the next attempt wait.

Nobody is locked out: who tries to guess a password from elsewhere makes others wait who come from elsewhere too, but
not a browser that was signed in before, which has a count of its own.
"""

import hashlib
import math
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, literal_column, select, update

from retainer.errors import Refusal
from retainer.schema.identity import sign_in_failures
from retainer.store.engines.sql import INSTANT, INTEGER, TEXT, insert_or_add
from retainer.store.tx import Store
from retainer.values.exact import instant_after

LONGEST_WAIT = 900
"""Seconds."""


class Subject(NamedTuple):
    """Whose failures are counted together, and how many of them make nobody wait."""

    name: str
    free: int


class Charge(NamedTuple):
    """An attempt that was counted as a failure before it is known to be one, so that many at once are all counted."""

    subjects: list[Subject]
    failures: int
    """How many the first of the subjects has now."""
    is_waiting: bool
    """Whether the next attempt has to wait."""


def of_browser(session_id: int) -> Subject:
    """Return the subject of a browser that was signed in before."""
    return Subject(f"session:{session_id}", 5)


def of_email(email: str) -> Subject:
    """Return the subject of a folded email, known or not; what was typed there is not stored."""
    return Subject(f"email:{hashlib.sha256(email.encode(errors='replace')).hexdigest()}", 5)


def of_address(address: str) -> Subject:
    """Return the subject of an address or network, behind which several people may be."""
    return Subject(f"address:{address}", 20)


_this = sign_in_failures.c.subject == bindparam("subject")
FAILURE: list[Any] = [bindparam("subject", type_=TEXT), literal_column("1", INTEGER)]
ADD = insert_or_add(sign_in_failures, select(*FAILURE), ("count",))
STATE = select(*sign_in_failures.c["count", "retry_at"]).where(_this)
WAIT = update(sign_in_failures).where(_this).values(retry_at=bindparam("at", type_=INSTANT))
FORGIVE = delete(sign_in_failures).where(_this)
TAKE_BACK = (
    update(sign_in_failures)
    .where(_this)
    .values(count=sign_in_failures.c.count - 1, retry_at=bindparam("at", type_=INSTANT))
)


def charge(store: Store, subjects: list[Subject]) -> Charge:
    """Count an attempt as a failure. Raises `rate_limited` when one of the subjects has to wait; then none is counted.

    All attempts take the subjects in the same order, so that none waits for another that waits for it.
    """
    with store.unscoped("who signs in is not known yet", write=True) as tx:
        counts = []
        for subject in subjects:
            tx.run(ADD, subject=subject.name)
            count, retry_at = tx.one(STATE, subject=subject.name) or (1, None)
            if retry_at is not None and retry_at > tx.now:
                raise _refusal(tx.now, retry_at)
            tx.run(WAIT, subject=subject.name, at=instant_after(tx.now, wait_after(count, subject.free)))
            counts.append(count)
        return Charge(subjects, counts[0], counts[0] >= subjects[0].free)


def forgive(store: Store, charged: Charge) -> None:
    """Forget the failures of who signed in; of an address this attempt alone, for others may be behind it."""
    with store.unscoped("as in charge", write=True) as tx:
        for subject in charged.subjects:
            if subject.name.startswith("address:"):
                tx.run(TAKE_BACK, subject=subject.name, at=tx.now)
            else:
                tx.run(FORGIVE, subject=subject.name)


def take_back(store: Store, charged: Charge) -> None:
    """Undo a charge, for an attempt that came to nothing for reasons of ours."""
    with store.unscoped("as in charge", write=True) as tx:
        for subject in charged.subjects:
            tx.run(TAKE_BACK, subject=subject.name, at=tx.now)


def wait_after(failures: int, free: int) -> timedelta:
    """Return for how long nothing is tried after so many failures: a second at first, then twice as long each time."""
    beyond = failures - free
    return timedelta(seconds=min(2 ** min(beyond, 20), LONGEST_WAIT) if beyond >= 0 else 0)


def _refusal(now: str, retry_at: str) -> Refusal:
    seconds = (datetime.fromisoformat(retry_at) - datetime.fromisoformat(now)).total_seconds()
    wait = max(1, math.ceil(seconds))
    message = f"Too many failed attempts to sign in. Try again in {wait} seconds, or ask for a link to set a password."
    return Refusal("rate_limited", message, headers={"Retry-After": str(wait)})
