"""A step of a job: some rows and the progress of the job in one transaction, so a kill loses and repeats nothing."""

import time
from contextlib import suppress
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from zoneinfo import ZoneInfo

from sqlalchemy import and_, bindparam, select, update

from retainer.errors import FieldErrors, Refusal, marked, part
from retainer.identity.actors import Person, absent_user, operator_of
from retainer.jobs.jobs import THIS, leave_out
from retainer.jobs.kinds import Job, JobKind, JobKinds, JobRow
from retainer.kernel.roles import may
from retainer.outbound.leases import LeasedRow, Leases
from retainer.outbound.pause import SUSPENDED
from retainer.schema.columns import in_literals
from retainer.schema.jobs import jobs
from retainer.store.engines.base import Columns, TransientConflict, Unavailable
from retainer.store.engines.sql import INSTANT
from retainer.store.row_mapper import row_mapper
from retainer.store.tables import NOW
from retainer.store.tx import RolledBack, Store, Tx
from retainer.values.decoding import json_text
from retainer.values.exact import as_instant, instant_after

ROWS, SECONDS = 200, 0.5
"""Maximum rows of a step, and the time after which it begins no further one."""
TURN_SECONDS = 0.02
"""The same for a transaction of a step where all accounts share one writer: others wait so long for their turns."""
MAX_ATTEMPTS = 20
"""So many times in a row a job is tried without progress; at least ten minutes."""
LEASE = timedelta(seconds=30)
"""Each step renews the lease. After a kill, another process continues when it ends."""
MORNING = time_of_day(6)
GONE = (
    "The user of this job is no longer active, so it stopped. What it has done stays. Another person can continue it."
)
LACKS_ROLE = (
    "The role of the user of this job no longer includes it, so it stopped. What it has done stays. "
    "An admin can continue it."
)
BROKEN = (
    "Something unexpected happened, so the job stopped after its last complete step. The log of the server says what."
)
STUCK = (
    f"The next step could not be completed in {MAX_ATTEMPTS} attempts, so the job stopped after its last complete one. "
    "Continue it when the server is less busy. If it stops at the same row again, tell the operator."
)


class DueJob(LeasedRow):
    user_id: int | None
    kind: str


IS_LEASED = and_(jobs.c.next_step_at == bindparam("until"), jobs.c.account_id.not_in(SUSPENDED))
LEASED = row_mapper(jobs, Job).one.where(IS_LEASED)
LOCK_LEASED = select(jobs.c.id).where(THIS, IS_LEASED).with_for_update()
IS_DUE = and_(jobs.c.next_step_at <= NOW, jobs.c.account_id.not_in(SUSPENDED))
BEGIN = (
    update(jobs)
    .where(THIS, IS_LEASED)
    .values(next_step_at=bindparam("renewed", type_=INSTANT), attempts=jobs.c.attempts + 1)
)
DUE = Leases(DueJob, jobs, jobs.c.next_step_at, IS_DUE)


def due_of(kinds: JobKinds) -> Leases[DueJob]:
    """Return the leases of the jobs of these kinds: a newer version may have started others, which wait for it."""
    is_known = in_literals(jobs.c.kind, sorted(kinds))
    return Leases(DueJob, jobs, jobs.c.next_step_at, and_(IS_DUE, is_known))


class LeaseEnded(Exception):
    """The job was stopped, another process has leased it, or its account was suspended."""


class RowRefused(Exception):
    """A row of a step was refused, so the whole step is rolled back."""

    def __init__(self, number: int, refusal: Refusal) -> None:
        super().__init__()
        self.number, self.refusal = number, refusal


def begin(store: Store, kinds: JobKinds, work: DueJob) -> bool:
    """Count an attempt, and do the first step of a leased job; return whether it goes on.

    Its lease may have been used up behind the steps of other accounts, which is no failure of this one.
    """
    with store.begin(operator_of(store, work.account_id), write=True) as tx:
        renewed = instant_after(tx.now, LEASE)
        if not tx.change(BEGIN, job=work.id, until=work.leased_until, renewed=renewed):
            return False
    work.leased_until = renewed
    return do_step(store, kinds, work)


def do_step(store: Store, kinds: JobKinds, work: DueJob) -> bool:
    """Do the next step of a leased job; return whether it goes on. Errors of its kind end it."""
    kind = kinds[work.kind]
    try:
        return _do_step(store, kind, work)
    except LeaseEnded:
        return False
    except (Unavailable, TransientConflict):
        raise  # it is due again when its lease ends
    except Exception:
        _fail(store, kind, work, BROKEN)
        raise


def _do_step(store: Store, kind: JobKind, work: DueJob) -> bool:
    actor = operator_of(store, work.account_id) if work.user_id is None else absent_user(store, work.user_id)
    if actor is None:
        return _fail(store, kind, work, GONE)
    if kind.area is not None and not may(actor, kind.area):
        return _fail(store, kind, work, LACKS_ROLE)
    with store.begin(actor, write=False) as tx:
        tx.snapshot()
        job = _read(tx, work)
        is_stuck = job.attempts > MAX_ATTEMPTS
        rows = [] if is_stuck else list(kind.next_rows(tx, job, ROWS))
    if is_stuck:
        return _fail(store, kind, work, STUCK)
    if not rows:
        return _finish(store, kind, work)
    rows = kind.make(work.account_id, rows)
    until, limit = time.monotonic() + SECONDS, len(rows)
    while rows and time.monotonic() < until:
        try:
            written = _write(store, actor, kind, work, rows[:limit])
            limit = len(rows)
        except RowRefused as refused:
            limit = refused.number  # the rows before it were rolled back with it, and are written once more
            if limit:
                continue
            _refuse(store, actor, work, rows[0], refused.refusal)
            written, limit = 1, len(rows)
        rows = rows[written:]
    return True


def _read(tx: Tx, work: DueJob) -> Job:
    """Return a job with its progress. Raises LeaseEnded."""
    row = tx.one(LEASED, id=work.id, until=work.leased_until)
    if row is None:
        raise LeaseEnded
    (job,) = row_mapper(jobs, Job).read_all([row])
    return job  # type: ignore[no-any-return]


def _lock(tx: Tx, work: DueJob) -> Job:
    if tx.one(LOCK_LEASED, job=work.id, until=work.leased_until) is None:
        raise LeaseEnded
    return _read(tx, work)


def _write(store: Store, actor: Person, kind: JobKind, work: DueJob, rows: list[JobRow]) -> int:
    """Write rows and the progress in one transaction; return how many. Raises RowRefused.

    A dry run writes the same rows, which are rolled back, and then its progress.
    """
    written = 0
    with suppress(RolledBack), store.begin(actor, write=True) as tx:
        job = _lock(tx, work)
        until = time.monotonic() + turn_of(store)
        for row in rows:
            try:
                kind.write(tx, job, row)
                tx.raise_errors()
            except Refusal as refusal:
                raise RowRefused(written, refusal) from None
            written += 1
            if time.monotonic() > until:
                break
        job.position, job.done = rows[written - 1].position, job.done + written
        if job.is_dry_run:
            raise RolledBack
        lease_end = _save(tx, job)
    if job.is_dry_run:
        with store.begin(actor, write=True) as tx:
            _lock(tx, work)
            lease_end = _save(tx, job)
    work.leased_until = lease_end
    return written


def turn_of(store: Store) -> float:
    """Return the seconds after which a transaction of background work begins nothing further."""
    return TURN_SECONDS if store.engine.has_one_writer else SECONDS


def _refuse(store: Store, actor: Person, work: DueJob, row: JobRow, refusal: Refusal) -> None:
    """Note a row that was refused, and go past it."""
    with store.begin(actor, write=True) as tx:
        job = _lock(tx, work)
        job.position = row.position
        leave_out(tx, job, row, sentence_of(refusal))
        lease_end = _save(tx, job)
    work.leased_until = lease_end


def sentence_of(refusal: Refusal) -> str:
    """Return a refusal as marked text: its errors, each with its field, or its message; see Sentence."""
    errors: FieldErrors = refusal.members.get("errors", {})
    found = [
        f"{part(name)}: {marked(text)}" if name else marked(text) for name, texts in errors.items() for text in texts
    ]
    return " ".join(found) or marked(refusal.message)


def _save(tx: Tx, job: Job) -> str:
    """Save the progress and renew the lease; return its new end, which holds once the transaction is committed."""
    until = instant_after(tx.now, LEASE)
    progress = {"position": job.position, "done": job.done, "refused": job.refused, "counts": json_text(job.counts)}
    tx.update_columns(jobs, job.id, {"status": "running", "next_step_at": until, "attempts": 0, **progress})
    return until


def _finish(store: Store, kind: JobKind, work: DueJob) -> bool:
    with store.begin(operator_of(store, work.account_id), write=True) as tx:
        job = _lock(tx, work)
        _end(tx, kind, work, "done", kind.finish(tx, job))
    return False


def _fail(store: Store, kind: JobKind, work: DueJob, message: str) -> bool:
    """End a job that cannot go on. It is not read: what is stored of it may be what cannot be read."""
    with store.begin(operator_of(store, work.account_id), write=True) as tx:
        if tx.one(LOCK_LEASED, job=work.id, until=work.leased_until) is not None:
            _end(tx, kind, work, "failed", message)
    return False


def _end(tx: Tx, kind: JobKind, work: DueJob, status: str, message: str | None) -> None:
    """End a job; a daily one is due again on the next morning, whatever has happened."""
    ended: Columns = {"status": status, "message": message, "next_step_at": None, "ended_at": tx.now}
    if kind.repeats:
        ended |= {"status": "waiting", "position": 0, "attempts": 0, "next_step_at": next_morning(tx), "ended_at": None}
    tx.update_columns(jobs, work.id, ended)


def next_morning(tx: Tx) -> str:
    """Return the next 06:00 in the zone of the account."""
    day, zone = date.fromisoformat(tx.today), ZoneInfo(tx.actor.timezone)
    mornings = (as_instant(datetime.combine(each, MORNING, zone)) for each in (day, day + timedelta(days=1)))
    return next(morning for morning in mornings if morning > tx.now)
