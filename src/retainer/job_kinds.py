"""All kinds of jobs. A new one is declared in its room and named here."""

from types import MappingProxyType

from retainer.batches import archives
from retainer.batches.bulk import BULK
from retainer.batches.runs import RUN
from retainer.exchange import importers, undoing
from retainer.exchange.importers import IMPORTERS
from retainer.exchange.undoing import UNDO
from retainer.jobs import jobs
from retainer.jobs.daily import daily
from retainer.jobs.jobs import ARCHIVE
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
    found = (daily(DUTIES), *DUTIES, *IMPORTS, UNDO, BULK, RUN, archives.kind_of(run_apart))
    return MappingProxyType({kind.name: kind for kind in found})


KINDS = kinds_with(run_here)
"""Those of commands, whose process answers no other request."""
RESUMES = {**dict.fromkeys(importers.KINDS, undoing.resume), ARCHIVE: archives.resume}
"""How the jobs of some kinds continue; those of all others can go on whatever has happened since."""


def resume(tx: Tx, job: Job) -> None:
    """Let a stopped or failed job continue, as the user of the transaction. Raises `locked` if it cannot."""
    RESUMES.get(job.kind, jobs.resume)(tx, job)
