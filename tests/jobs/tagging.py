"""A kind of job that makes numbered tags, and a process that does such a job until it is killed."""

import time
from types import MappingProxyType

from retainer.crm.tags import Tag
from retainer.errors import invalid
from retainer.identity.actors import operator_of
from retainer.jobs import jobs
from retainer.jobs.daily import daily
from retainer.jobs.kinds import JobKind, JobRow, ListedJob
from retainer.jobs.loop import Jobs, run_to_end
from retainer.schema.crm import tags
from retainer.store.engines import connect
from retainer.store.tx import Store
from retainer.values.reading import with_defaults


def next_rows(_, job, limit):
    numbers = range(job.position + 1, job.options["last"] + 1)
    return [JobRow(number, f"Tag {number}") for number in numbers[:limit]]


def write(tx, job, row):
    time.sleep(job.options.get("seconds", 0))
    if row.position == job.options.get("breaks_at"):
        raise ValueError("broken")
    tx.insert(tags, with_defaults(Tag, name=row.name))
    job.count("letters", len(row.name))
    if row.position in job.options.get("refused", ()):
        raise invalid({"name": ["Must be another."]})


TAGGING = JobKind("tagging", next_rows, write, lambda _, job: f"{job.done} tags made.")
KINDS = MappingProxyType({kind.name: kind for kind in (TAGGING, daily([]))})


def start(api, actor=None, *, is_dry_run=False, **options) -> int:
    with api.operating() if actor is None else api.store.begin(actor, write=True) as tx:
        return jobs.start(tx, "tagging", "Make tags", options, total=options["last"], is_dry_run=is_dry_run)


def do(api, kinds=KINDS) -> list[tuple[str, BaseException]]:
    """Do what is due; return what was reported."""
    reported = []
    Jobs(api.store, kinds, lambda *found: reported.append(found)).run_once()
    return reported


def find(api, job_id) -> ListedJob:
    with api.store.begin(operator_of(api.store, api.account_id), write=False) as tx:
        return next(job for job in jobs.list_jobs(tx) if job.id == job_id)


def do_alone(url: str, account_id: int, job_id: int, tell) -> None:
    """Do a job to its end in this process, and tell after each step."""
    run_to_end(Store(connect(url)), KINDS, account_id, job_id, lambda _: tell())
