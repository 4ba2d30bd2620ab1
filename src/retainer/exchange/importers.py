"""Importers: what can be imported, and from which programs. A new one is added here."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from retainer.exchange import plans, record_files, sources, time_files
from retainer.exchange.columns import ImportSource
from retainer.exchange.documents import candidates, files
from retainer.exchange.documents import imports as invoice_imports
from retainer.exchange.documents import sources as invoice_sources
from retainer.exchange.imports import IMPORT as IMPORT_TIME
from retainer.exchange.plans import DescribedRow, PackedPlan, Planner
from retainer.exchange.record_imports import IMPORT as IMPORT_RECORDS
from retainer.exchange.record_sources import CLIENT_FILES, CONTACT_FILES, PROJECT_FILES, Records
from retainer.jobs.kinds import JobKind
from retainer.store.tx import Tx


class Importer(NamedTuple):
    """What reads files with records of a kind: from the programs that it knows, to the job that writes them."""

    name: str
    title: str
    """What people call the records, like `Time`."""
    sources: Mapping[str, ImportSource]
    plan: Planner
    kind: JobKind
    describe: Callable[[bytes], DescribedRow | None]
    """Returns a row of a plan as people read it; None for a line that is no row."""
    has_times: bool = False
    """Whether its files have local times, so that the time zone matters."""
    has_amounts: bool = False
    """Whether its files are documents, which may leave open their currency, taxes, payments and states."""

    def start(self, tx: Tx, plan: PackedPlan, source: ImportSource, file: str, *, is_dry_run: bool) -> int:
        """Start the job that writes a plan; return its id."""
        return plans.start(tx, self.kind.name, plan, source, file, is_dry_run=is_dry_run)


TIME = Importer("time", "Time", sources.SOURCES, time_files.plan, IMPORT_TIME, time_files.describe, has_times=True)


def _of_records(name: str, title: str, records: Records) -> Importer:
    source = records.source
    plan = partial(record_files.plan, records)
    return Importer(name, title, {source.name: source}, plan, IMPORT_RECORDS, record_files.describe)


CLIENTS = _of_records("clients", "Clients", CLIENT_FILES)
CONTACTS = _of_records("external-contacts", "Contacts", CONTACT_FILES)
PROJECTS = _of_records("projects", "Projects", PROJECT_FILES)
INVOICES = Importer(
    *("invoices", "Invoices", invoice_sources.SOURCES, files.plan, invoice_imports.IMPORT, candidates.describe),
    has_amounts=True,
)
IMPORTERS = MappingProxyType({each.name: each for each in (TIME, CLIENTS, CONTACTS, PROJECTS, INVOICES)})
IMPORTED = frozenset("time-entries" if name == "time" else name for name in IMPORTERS)
"""The lists whose records can be imported."""
KINDS = frozenset(each.kind.name for each in IMPORTERS.values())
"""The kinds of jobs that import, and can be undone."""
