"""The commands that list jobs, stop them and let them continue."""

from typing import Annotated, Any

import msgspec
import typer

from retainer.cli import common as cli
from retainer.cli.imports import JobId, admin_of
from retainer.errors import NoSuchRecord
from retainer.identity.accounts import list_accounts
from retainer.identity.actors import Person, operator_of
from retainer.jobs import jobs
from retainer.jobs.jobs import DAILY, UPLOAD
from retainer.jobs.kinds import Job
from retainer.schema import jobs as schema
from retainer.store.tx import Actor, Tx

job_cli = typer.Typer()
stopping_cli = cli.group("job", "Stop a job, or let it continue; `retainer jobs` lists them.")
OfAccount = Annotated[
    int | None, typer.Option("--account", parser=cli.number(), help="The account's id; otherwise of all accounts.")
]
COLUMNS = ("account_id", "id", "title", "is_dry_run", "status", "done", "total", "refused", "created_at", "ended_at")


@cli.command(job_cli, "jobs")
def show_jobs(*, account: OfAccount = None) -> dict[str, object]:
    """List the newest jobs of an account, or of each account, with their progress."""
    store = cli.opened()
    found = []
    for account_id in [each["id"] for each in list_accounts(store)] if account is None else [account]:
        with store.begin(operator_of(store, account_id), write=False) as tx:
            found += [{"account_id": account_id, **msgspec.structs.asdict(job)} for job in jobs.list_jobs(tx)]
    return {"jobs": cli.Listing(found, COLUMNS)}


@cli.command(stopping_cli, "stop")
def stop_job(job: JobId) -> dict[str, Any]:
    """Stop a job after the step that is being written. What it has done stays."""
    with cli.acting_on(schema.jobs, job) as tx:
        jobs.stop(tx, listed(tx, job))
        return state_of(tx, job)


@cli.command(stopping_cli, "continue")
def continue_job(job: JobId) -> dict[str, Any]:
    """Let a stopped or failed job go on after its last row, for the first admin of the account; a server does it."""
    from retainer.job_kinds import resume  # noqa: PLC0415  # other commands need no areas

    store = cli.opened()
    operator = operator_of(store, job, schema.jobs)
    with store.begin(operator, write=False) as tx:
        found = listed(tx, job)
    is_of_clock = found.user_id is None
    actor: Actor | Person = operator if is_of_clock else admin_of(store, operator.account_id)
    with store.begin(actor, write=True) as tx:
        resume(tx, found)
        return state_of(tx, job)


def listed(tx: Tx, job_id: int) -> Job:
    """Return a job of those that `retainer jobs` lists. Raises `not_found`."""
    job = tx.get(schema.jobs, job_id, Job)
    if job.kind in {DAILY, UPLOAD}:
        raise NoSuchRecord("job", job_id)
    return job


def state_of(tx: Tx, job_id: int) -> dict[str, Any]:
    job = tx.get(schema.jobs, job_id, Job)
    return {"job": job.id, "title": job.title, "status": job.status, "done": job.done, "refused": job.refused}
