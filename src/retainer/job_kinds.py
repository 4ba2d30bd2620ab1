"""All kinds of jobs. A new one is declared in its room and named here."""

from collections.abc import Callable
from functools import partial
from types import MappingProxyType

from retainer.api import ROUTES
from retainer.batches import archives
from retainer.batches.bulk import BULK
from retainer.batches.runs import RUN
from retainer.errors import Refusal
from retainer.exchange import export_jobs, importers, undoing
from retainer.exchange.importers import IMPORTERS
from retainer.exchange.undoing import UNDO
from retainer.jobs import jobs, made_files
from retainer.jobs.daily import daily
from retainer.jobs.kinds import Job, JobKind, JobKinds
from retainer.kernel.representations import RunApart, run_here
from retainer.mail.auto_invoices import AUTO_INVOICES
from retainer.mail.reminders import REMINDERS
from retainer.store.tx import Tx

DUTIES: tuple[JobKind, ...] = (AUTO_INVOICES, REMINDERS)
"""What the daily job starts."""
IMPORTS = tuple(importer.kind for importer in IMPORTERS.values())


def kinds_with(run_apart: RunApart) -> JobKinds:
    """Return all kinds by their names, given what draws documents."""
    of_files = (archives.kind_of(run_apart), export_jobs.kind_of(ROUTES, run_apart))
    found = (daily(DUTIES), *DUTIES, *IMPORTS, UNDO, BULK, RUN, *of_files)
    return MappingProxyType({kind.name: kind for kind in found})


FILES = {made.kind: made for made in (archives.FILE, export_jobs.made_file(ROUTES))}
"""The kinds that make a file."""

KINDS = kinds_with(run_here)
"""Those of commands, whose process answers no other request."""
RESUMES: dict[str, Callable[[Tx, Job], None]] = {
    **dict.fromkeys(importers.KINDS, undoing.resume),
    **{made.kind: partial(made_files.resume, made) for made in FILES.values()},
}
"""How the jobs of some kinds continue; those of all others can go on whatever has happened since."""


def resume(tx: Tx, job: Job) -> None:
    """Let a stopped or failed job continue, as the user of the transaction. Raises `locked` if it cannot."""
    if job.status not in {"stopped", "failed"}:  # before the kind says what else is in its way
        raise Refusal("locked", jobs.NOT_STOPPED)
    RESUMES.get(job.kind, jobs.resume)(tx, job)
