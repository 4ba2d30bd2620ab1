"""The command that lists jobs."""

from typing import Annotated

import msgspec
import typer

from retainer.cli import common as cli
from retainer.identity.accounts import list_accounts
from retainer.identity.actors import operator_of
from retainer.jobs import jobs
from retainer.values.kinds import MAX_INTEGER

job_cli = typer.Typer()
OfAccount = Annotated[
    int | None, typer.Option("--account", min=1, max=MAX_INTEGER, help="The account's id; otherwise of all accounts.")
]
COLUMNS = ("account_id", "id", "title", "status", "done", "total", "refused", "created_at", "ended_at")


@cli.command(job_cli, "jobs")
def show_jobs(*, account: OfAccount = None) -> dict[str, object]:
    """List the newest jobs of an account, or of each account, with their progress."""
    store = cli.opened()
    found = []
    for account_id in [each["id"] for each in list_accounts(store)] if account is None else [account]:
        with store.begin(operator_of(store, account_id), write=False) as tx:
            found += [{"account_id": account_id, **msgspec.structs.asdict(job)} for job in jobs.list_jobs(tx)]
    return {"jobs": cli.Listing(found, COLUMNS)}
