"""Loop of the jobs: lease those that are due, do them step by step, and give each account its daily job."""

import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

from sqlalchemy import and_, bindparam, exists, func, or_, select, update

from retainer.background import Report
from retainer.identity.actors import in_accounts, operator_of
from retainer.jobs.jobs import (
    ARCHIVE,
    DAILY,
    EXPORT,
    FILES_KEPT,
    IS_OPEN,
    KEPT,
    STOP_ALL,
    UPLOAD,
    UPLOADS_KEPT,
    delete_piece,
    start,
)
from retainer.jobs.kinds import Job, JobKinds
from retainer.jobs.step import DUE, LEASE, ROWS, DueJob, begin, do_step, due_of, turn_of
from retainer.outbound.loop import BackgroundLoop
from retainer.outbound.pause import SUSPENDED
from retainer.schema.columns import in_literals
from retainer.schema.jobs import job_pieces, jobs
from retainer.store.engines.sql import INSTANT, LIMIT
from retainer.store.tables import NOW, ONCE, totals
from retainer.store.transaction import Transaction
from retainer.store.tx import Store, Tx
from retainer.values.exact import CLOCK_DIFFERENCE, instant_after, utcnow

OF_DAY = jobs.c.kind == DAILY
WITHOUT_DAILY = select(totals.c.account_id).where(
    ONCE, ~exists(select(jobs.c.id).where(jobs.c.account_id == totals.c.account_id, OF_DAY))
)
HAS_DAILY = select(jobs.c.id).where(OF_DAY)
ENDED_BEFORE = or_(
    jobs.c.ended_at < bindparam("before", type_=INSTANT),
    and_(jobs.c.kind == UPLOAD, jobs.c.ended_at < bindparam("uploads_before", type_=INSTANT)),
    and_(in_literals(jobs.c.kind, [ARCHIVE, EXPORT]), jobs.c.ended_at < bindparam("files_before", type_=INSTANT)),
)
NEWER = jobs.alias()
OF_JOB = and_(job_pieces.c.account_id == jobs.c.account_id, job_pieces.c.job_id == jobs.c.id)
IS_REPLACED = and_(
    in_literals(jobs.c.kind, [ARCHIVE, EXPORT]),
    jobs.c.ended_at.is_not(None),
    exists(
        select(NEWER.c.id).where(
            NEWER.c.account_id == jobs.c.account_id, NEWER.c.kind == jobs.c.kind, NEWER.c.id > jobs.c.id
        )
    ),
)
HAS_PIECES = exists(select(job_pieces.c.number).where(OF_JOB))
OLD_ACCOUNTS = select(jobs.c.account_id).where(or_(ENDED_BEFORE, and_(IS_REPLACED, HAS_PIECES))).distinct()
OLD = select(jobs.c.id).where(ENDED_BEFORE).order_by(jobs.c.id)
OLD_PIECES = (
    select(job_pieces.c.job_id, job_pieces.c.number)
    .select_from(jobs.join(job_pieces, OF_JOB))
    .where(or_(ENDED_BEFORE, IS_REPLACED))
    .order_by(job_pieces.c.job_id, job_pieces.c.number)
    .suffix_with(LIMIT)
)
DELETE_SECONDS = 1.0
"""How long the thread of the loop deletes old jobs at a time; the rest waits for the next time."""
PUT_OFF = or_(
    and_(jobs.c.status == "running", jobs.c.next_step_at > bindparam("lease_end", type_=INSTANT)),
    jobs.c.next_step_at > bindparam("tomorrow", type_=INSTANT),
)
PUT_OFF_ACCOUNTS = select(jobs.c.account_id).where(PUT_OFF).distinct()
SET_BACK = update(jobs).where(PUT_OFF).values(next_step_at=NOW)
STOPPABLE = select(jobs.c.account_id).where(IS_OPEN, ~OF_DAY).distinct()
LEASE_THIS = (
    update(jobs)
    .where(jobs.c.id == bindparam("job"), jobs.c.next_step_at <= NOW)
    .values(next_step_at=bindparam("until", type_=INSTANT))
)
RELEASE = (
    update(jobs)
    .where(jobs.c.id == bindparam("job"), jobs.c.next_step_at == bindparam("until", type_=INSTANT))
    .values(next_step_at=NOW)
)
OPEN = select(func.count()).select_from(jobs).where(IS_OPEN, ~OF_DAY, jobs.c.account_id.not_in(SUSPENDED))


class Jobs(BackgroundLoop[DueJob]):
    """Does the jobs of all accounts. Steps are short, and accounts take turns after each."""

    name, task = "jobs", "doing jobs"
    places = 4
    lease = LEASE

    def __init__(self, store: Store, kinds: JobKinds, report: Report) -> None:
        super().__init__(store, report)
        self.kinds, self.leases = kinds, due_of(kinds)

    def refresh(self) -> None:
        refresh(self.store)

    async def serve(self, work: DueJob) -> None:
        step = begin
        try:
            while await self.in_database(partial(step, self.store, self.kinds, work)):
                step = do_step
                if self.stopped.is_set():
                    await self.in_database(partial(release, self.store, work))
                    break
        finally:
            self.done += 1


def refresh(store: Store) -> None:
    """Give new accounts their daily job, delete old jobs, and make due what a clock that was ahead has put off."""

    def add_daily(tx: Tx) -> int:
        return 1 if tx.one(HAS_DAILY) else start(tx, DAILY, "Daily job", {})

    now = utcnow()
    kept = {"before": KEPT, "uploads_before": UPLOADS_KEPT, "files_before": FILES_KEPT}
    ended = {name: instant_after(now, -length) for name, length in kept.items()}
    limits = {
        "lease_end": instant_after(now, LEASE + CLOCK_DIFFERENCE),
        "tomorrow": instant_after(now, timedelta(hours=26)),  # of a day on which clocks are set back
    }
    in_accounts(store, WITHOUT_DAILY, add_daily)
    end = time.monotonic() + DELETE_SECONDS
    while in_accounts(store, OLD_ACCOUNTS, partial(delete_old, ended), DELETE_SECONDS, **ended):
        if time.monotonic() > end:
            break
    in_accounts(store, PUT_OFF_ACCOUNTS, lambda tx: tx.change(SET_BACK, **limits), **limits)


def delete_old(ended: Mapping[str, str], tx: Tx) -> int:
    """Delete old jobs and files that newer ones replace; return how many rows were deleted, 0 at the end.

    A file has hundreds of megabytes, and others wait for this transaction on SQLite: it deletes what a turn allows.
    """
    pieces, until = tx.all(OLD_PIECES, limit=ROWS, **ended), time.monotonic() + turn_of(tx.store)
    for deleted, (job_id, number) in enumerate(pieces, 1):
        delete_piece(tx, job_id, number)
        if time.monotonic() > until:
            return deleted
    old = [] if pieces else tx.all(OLD, **ended)
    for (job_id,) in old:
        tx.delete(jobs, job_id)
    return len(pieces) + len(old)


def stop_all(store: Store, reason: str) -> int:
    """Stop the open jobs of all accounts, for a reason that people read; return how many there were."""
    return in_accounts(store, STOPPABLE, lambda tx: tx.change(STOP_ALL, reason=reason))


def release(store: Store, work: DueJob) -> None:
    """Make a job due at once, for another process."""
    with store.begin(operator_of(store, work.account_id), write=True) as tx:
        tx.run(RELEASE, job=work.id, until=work.leased_until)


def run_to_end(store: Store, kinds: JobKinds, account_id: int, job_id: int, show: Callable[[Job], None]) -> Job:
    """Do a job in this process, or wait for the one that does it; return it once it has ended.

    Raises `account_suspended` if the account is suspended meanwhile; the job then waits.
    """
    while True:
        operator = operator_of(store, account_id)
        operator.require_running()
        with store.begin(operator, write=True) as tx:
            until = instant_after(tx.now, LEASE)
            job = tx.get(jobs, job_id, Job)
            is_ours = bool(tx.change(LEASE_THIS, job=job_id, until=until))
        show(job)
        if job.next_step_at is None:
            return job
        work = DueJob(until, account_id, job_id, until, job.user_id, job.kind)
        while is_ours and do_step(store, kinds, work):
            with store.begin(operator, write=False) as tx:
                show(tx.get(jobs, job_id, Job))
        time.sleep(0 if is_ours else 0.5)


def lateness(tx: Transaction) -> timedelta:
    """Return how long the longest-waiting job has been due; zero if none is."""
    row = tx.one(DUE.due, limit=1, accounts_at_limit="[]")
    return datetime.fromisoformat(tx.now) - datetime.fromisoformat(DueJob("", *row).due_at) if row else timedelta()


def open_count(tx: Transaction) -> int:
    """Return the number of jobs that wait or run, without the daily ones."""
    return int(tx.value(OPEN))
