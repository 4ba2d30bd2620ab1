"""Kinds of jobs, as each declares itself: which rows come next, and how one of them is written."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from retainer.kernel.roles import Area
from retainer.store.tx import Tx
from retainer.values.decoding import decoder
from retainer.values.records import Record


class ListedJob(Record):
    """A job as lists have it: how far it has come. Only `step.py` writes its progress."""

    kind: str
    title: str
    status: str
    user_id: int | None
    is_dry_run: bool
    attempts: int
    position: int
    done: int
    refused: int
    total: int | None
    counts: dict[str, int]
    message: str | None
    next_step_at: str | None
    ended_at: str | None


class Job(ListedJob):
    """A job with what it is to do, which can be megabytes: fifty of them are too much for a list."""

    options: dict[str, Any]

    def count(self, name: str, number: int = 1) -> None:
        """Add to a count of the job other than its rows, such as `minutes`; people read the name."""
        self.counts[name] = self.counts.get(name, 0) + number


class JobRow(NamedTuple):
    """A row of a job: its position, which is above that of the row before it, and what people call it."""

    position: int
    name: str
    value: Any = None


class JobKind(NamedTuple):
    """A kind of job. Its functions act as the user who started the job, or as the operator."""

    name: str
    next_rows: Callable[[Tx, Job, int], Iterable[JobRow]]
    """Return the rows after `job.position`, up to a limit, read in a snapshot before the transaction of the step.

    Without any, the job is done.
    """
    write: Callable[[Tx, Job, JobRow], None]
    """Write a row in the transaction of the step. A Refusal becomes an entry of the job; nothing of the row is kept."""
    finish: Callable[[Tx, Job], str | None] = lambda *_: None
    """Return what people read once it is done, in the transaction that ends it."""
    is_due: Callable[[Tx], str | None] | None = None
    """For a kind that the daily job starts: return the title if there is something to do today."""
    repeats: bool = False
    """Whether it is due again on each morning, as the daily job is."""
    area: Area | None = None
    """What the role of the user who started it must include in each step: it may have changed since."""
    make: Callable[[int, list[JobRow]], list[JobRow]] = lambda _, rows: rows
    """Make what rows of an account need, such as PDFs, while no transaction is open.

    Return the first rows, as many as were made in half a second, and at least one.
    """


JobKinds = Mapping[str, JobKind]


def options_of(job: Job, model: type[Any]) -> Any:
    """Return the options of a job as the type that its kind declares for them."""
    return decoder(model)(msgspec.json.encode(job.options))
