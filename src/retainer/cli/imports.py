"""Commands that import files of other programs, and undo such an import."""

from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import typer
from sqlalchemy import select

from retainer.cli import common as cli
from retainer.cli.progress import progress_bars
from retainer.errors import FieldErrors, Refusal, invalid
from retainer.exchange import plans, undoing
from retainer.exchange.columns import ColumnMapping, read_mapping
from retainer.exchange.documents.archives import MAX_BYTES
from retainer.exchange.imported import sums_now
from retainer.exchange.importers import IMPORTERS, Importer
from retainer.exchange.imports import left_active
from retainer.identity.actors import Person, absent_user, operator_of
from retainer.jobs import jobs
from retainer.jobs.kinds import Job
from retainer.jobs.loop import run_to_end
from retainer.schema import jobs as schema
from retainer.schema.identity import users
from retainer.store.engines.files import private
from retainer.store.tx import Store
from retainer.values.kinds import timezones
from retainer.web.csv_files import BYTE_ORDER_MARK, write_row

import_cli = cli.group("import", "Import time, clients, contacts, projects and invoices from other programs.")
SHOWN = 20
"""Refused rows that a terminal shows; the file has all of them."""
File = Annotated[Path, typer.Argument(metavar="FILE", help="The file, as the program exports it.")]
OfAccount = Annotated[int, typer.Option("--account", parser=cli.number(), help="The account's id.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Do everything, and keep nothing of it.")]
Zone = Annotated[
    str | None,
    typer.Option("--timezone", metavar="Z", help="Of local times in the file.", show_default="that of the account"),
]
MappingFile = Annotated[
    Path | None, typer.Option("--mapping", metavar="FILE", help="JSON that says what the file leaves open.")
]
JobId = Annotated[int, cli.id_argument("JOB", "The job's id.")]
ANSWERS = {
    "day_order": 'Write {"day_order": "day_first"} or {"day_order": "month_first"}.',
    "decimal_mark": 'Write {"decimal_mark": "."} or {"decimal_mark": ","}.',
    "currency": 'Write {"currency": "EUR"}, or another code.',
    "paid_on": 'Write {"paid_on": "issue_date"} or {"paid_on": "due_date"}.',
    "states": 'Write {"states": {"the word": "open"}}.',
    **dict.fromkeys(("billable", "invoiced", "is_primary"), 'Write {"yes": ["the word"]} or {"no": ["the word"]}.'),
}
"""How the file of --mapping answers a question that a file leaves open, by its field."""
ADMIN = select(users.c.id).where(users.c.role == "admin", users.c.is_active.is_(True)).order_by(users.c.id).limit(1)


def add_source(name: str) -> None:
    """Add the command of a source; where files of several kinds come from it, `--kind` chooses."""
    kinds = {each.name: each for each in IMPORTERS.values() if name in each.sources}
    usual = next(iter(kinds))
    names: Any = Literal.__getitem__((*kinds,))
    choice = cli.option("kind", names, "What the file has.", default=usual)
    options = [choice] if len(kinds) > 1 else []

    def run(
        file: File,
        *,
        account: OfAccount,
        dry_run: DryRun = False,
        timezone: Zone = None,
        mapping: MappingFile = None,
        json: bool,
        **given: Any,
    ) -> dict[str, Any]:
        return import_file(
            kinds[given.get("kind", usual)], name, file, account, timezone, mapping, is_dry_run=dry_run, json=json
        )

    titles = [each.title.lower() for each in kinds.values()]
    what = " or ".join(filter(None, (", ".join(titles[:-1]), titles[-1])))
    run.__doc__ = f"Import {what} from {kinds[usual].sources[name].title}, with the records that they need."
    cli.command(import_cli, name, options)(run)


for each in dict.fromkeys(chain.from_iterable(importer.sources for importer in IMPORTERS.values())):
    add_source(each)


def import_file(
    importer: Importer,
    source_name: str,
    file: Path,
    account_id: int,
    timezone: str | None,
    mapping_file: Path | None,
    *,
    is_dry_run: bool,
    json: bool,
) -> dict[str, Any]:
    """Import a file in this process, as the first admin of the account; return what the job has done."""
    store = cli.opened()
    actor = admin_of(store, account_id)
    mapping = ColumnMapping() if mapping_file is None else read_mapping(mapping_file.read_bytes())
    mapping.currency = mapping.currency or actor.currency
    zone = zone_of(timezone or actor.timezone)
    source = importer.sources[source_name]
    try:
        planned = importer.plan(read_file(file), source, mapping, zone)
    except Refusal as refusal:
        raise with_answers(refusal, file) from None
    packed = planned.packed()
    with store.begin(actor, write=True) as tx:
        job_id = importer.start(tx, packed, source, file.name, is_dry_run=is_dry_run)
    try:
        job = finish(store, account_id, job_id)
    finally:  # also if an error ends the job and this command
        warn_of_people(store, account_id, job_id)
    refused, beside = write_refused(store, actor, job, file)
    with store.begin(actor, write=False) as tx:
        tx.snapshot()
        now = sums_now(tx, job_id)
    told = {"job": job.id, "status": job.status, "dry_run": is_dry_run, **job.counts, "refused": job.refused}
    return {
        **told,
        "refused_rows": str(beside) if beside else None,
        "message": job.message,
        "notes": cli.Listing([{"note": note} for note in planned.notes]),
        "sums": cli.Listing(planned.sums),
        "sums_imported": cli.Listing(now),
        "refusals": cli.Listing(refused if json else refused[:SHOWN]),
    }


def read_file(file: Path) -> bytes:
    """Return the bytes of a file; of one that is too large, one more than can be imported."""
    with file.open("rb") as opened:
        return opened.read(MAX_BYTES + 1)


def with_answers(refusal: Refusal, file: Path) -> Refusal:
    """Return what refuses a file, with what answers the questions that it leaves open."""
    errors: FieldErrors = refusal.members.get("errors", FieldErrors())
    if "file" in errors:
        return Refusal("validation_failed", f"{file.name}: {' '.join(errors['file'])}")
    found = FieldErrors()
    for name, messages in errors.items():
        for message in messages:
            found.note(*(("mapping", f"{message} {ANSWERS[name]}") if name in ANSWERS else (name, message)))
    return invalid(found)


@cli.command(import_cli, "undo")
def undo(job: JobId) -> dict[str, Any]:
    """Remove what an import has made, as far as nothing depends on it; one that still runs is stopped first."""
    store = cli.opened()
    operator = operator_of(store, job, schema.jobs)
    actor = admin_of(store, operator.account_id)
    with store.begin(actor, write=True) as tx:
        made = tx.get(schema.jobs, job, Job)
        if made.next_step_at is not None:  # as after a kill of the command that did it
            jobs.stop(tx, made)
            made = tx.get(schema.jobs, job, Job)
        job_id = undoing.start(tx, made)
    done = finish(store, operator.account_id, job_id)
    return {"job": done.id, "status": done.status, **done.counts, "refused": done.refused}


def admin_of(store: Store, account_id: int) -> Person:
    """Return the first admin of an account, for whom a command acts. Raises `not_found`."""
    with store.begin(operator_of(store, account_id), write=False) as tx:
        user_id = tx.value(ADMIN)
    admin = None if user_id is None else absent_user(store, user_id)
    if admin is None:
        raise Refusal("not_found", f"Account {account_id} has no active admin, for whom the command could act.")
    return admin


def finish(store: Store, account_id: int, job_id: int) -> Job:
    from retainer.job_kinds import KINDS  # noqa: PLC0415  # other commands need no areas

    with progress_bars() as show:
        return run_to_end(
            store, KINDS, account_id, job_id, lambda job: show("Rows", job.done + job.refused, job.total or 0)
        )


def warn_of_people(store: Store, account_id: int, job_id: int) -> None:
    with store.begin(operator_of(store, account_id), write=False) as tx:
        tx.snapshot()
        left = left_active(tx, tx.get(schema.jobs, job_id, Job))
    if left:
        cli.warn(f"{left} Either deactivates them: retainer job continue {job_id}, or retainer import undo {job_id}.")


def write_refused(store: Store, actor: Person, job: Job, file: Path) -> tuple[list[dict[str, object]], Path | None]:
    """Write the refused rows next to the file, with line and reason; return them, and their path."""
    if not job.refused:
        return [], None
    headings = plans.options(job).headings
    beside = file.with_name(f"{file.stem}.refused.csv")
    rows: list[dict[str, object]] = []
    with (
        store.begin(actor, write=False) as tx,
        open(beside, "w", encoding="utf-8", newline="", opener=private) as written,
    ):
        tx.snapshot()
        written.write(BYTE_ORDER_MARK)
        write_row(written, ["Line", "Reason", *headings])
        for line, cells, reason in plans.refused_rows(tx, job):
            write_row(written, [line, reason, *cells])
            rows.append({"line": line, "reason": reason})
    return rows, beside


def zone_of(name: str) -> ZoneInfo:
    if name not in timezones():
        raise invalid({"timezone": [f"{name} is no time zone. Use a name like Europe/Berlin."]})
    return ZoneInfo(name)
