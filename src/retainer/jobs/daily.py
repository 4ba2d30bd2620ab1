"""The daily job of an account: at 06:00 in its zone, it starts each kind of job that has something to do.

It asks the database what is due, so a day on which no server ran does no harm.
"""

from collections.abc import Iterable

from retainer.jobs import jobs
from retainer.jobs.jobs import DAILY
from retainer.jobs.kinds import Job, JobKind, JobRow
from retainer.store.tx import Tx


def daily(kinds: Iterable[JobKind]) -> JobKind:
    """Return the kind of the daily job, which starts these kinds; one that is still open is not started twice."""
    duties = [*kinds]

    def next_rows(_: Tx, job: Job, limit: int) -> list[JobRow]:
        return [JobRow(number, kind.name, kind) for number, kind in enumerate(duties, 1) if number > job.position][
            :limit
        ]

    def write(tx: Tx, _: Job, row: JobRow) -> None:
        kind: JobKind = row.value
        title = None if kind.is_due is None or jobs.has_open(tx, kind.name) else kind.is_due(tx)
        if title is not None:
            jobs.start(tx, kind.name, title, {})

    return JobKind(DAILY, next_rows, write, repeats=True)
