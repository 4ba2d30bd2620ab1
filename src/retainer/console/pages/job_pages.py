"""The pages of jobs: the list, one with its bar, its refused rows, and the buttons that stop and continue it."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from retainer import job_kinds
from retainer.batches.bulk import BULK
from retainer.batches.runs import BILLING_RUN
from retainer.console.catalogue import no_such_page
from retainer.console.labels import field_label, in_words
from retainer.console.names import Link, load_names
from retainer.console.page_context import NO_STORE, FileReply, PageContext, Reply
from retainer.console.spreadsheets import dialect_of
from retainer.console.values import AnyBlock, table_of
from retainer.console.words import number
from retainer.errors import not_found
from retainer.exchange import imported, imports, plans, undoing
from retainer.exchange.importers import IMPORTERS, KINDS
from retainer.files.files import copy
from retainer.jobs import jobs, made_files
from retainer.jobs.jobs import DAILY, UPLOAD
from retainer.jobs.kinds import Job, ListedJob
from retainer.jobs.made_files import MadeFile
from retainer.kernel.downloads import DOWNLOADS, OPEN_FILES
from retainer.kernel.representations import RenderedFile, RunApart
from retainer.kernel.resource import read_id
from retainer.schema import jobs as schema
from retainer.schema.billing import invoices
from retainer.schema.identity import users
from retainer.store.tx import Actor, Store, Tx
from retainer.values.exact import local_day
from retainer.web.csv_files import Cell
from retainer.web.pages import csv_response

SHOWN, MAX_DOWNLOADED = 50, 10_000
COLUMNS = {name for each in IMPORTERS.values() for source in each.sources.values() for name in source.columns}
"""The fields that files of other programs have, which people read as labels."""
SUM_TITLES = {"seconds_in_file": "In the file (h)", "minutes": "Rounded to minutes (h)"}
DEACTIVATING = "Continue or undo the import: either deactivates them."
SUM_NAMES = frozenset({"person", "month", "client", "currency"})


def find(tx: Tx, context: PageContext) -> Job:
    """Return the job of the path, if the user may see it: members see their own. Raises `not_found`."""
    job = tx.get(schema.jobs, read_id(context.path_parameters["job"], schema.jobs), Job)
    if job.kind in {DAILY, UPLOAD} or not (context.may("records") or job.user_id == context.person.user_id):
        raise not_found("job")
    return job


def may_continue(context: PageContext, job: Job) -> bool:
    """Return whether the user may do what is left of a job, which then acts as this user."""
    kind = job_kinds.KINDS.get(job.kind)
    return kind is None or kind.area is None or context.may(kind.area)


def show_list(tx: Tx, context: PageContext) -> Reply:
    found = jobs.list_jobs(tx, None if context.may("records") else context.person.user_id)
    names = load_names(tx, users, {job.user_id for job in found if job.user_id})
    return context.render("jobs", jobs=[(job, number_done(job)) for job in found], names=names)


def number_done(job: ListedJob) -> int:
    """Return how much of a job is done, as people count it."""
    made = job_kinds.FILES.get(job.kind)
    return job.counts.get(made.counted, 0) if made and made.counted else job.done


def show(tx: Tx, context: PageContext) -> Reply:
    job = find(tx, context)
    made = job_kinds.FILES.get(job.kind)
    leads_to = lead_of(tx, job) if context.may(made.area if made else "records") else None
    follows = context.query.text("follow") == "yes" and not job.refused
    if leads_to is not None and follows and job.kind == BILLING_RUN:
        return context.redirect(leads_to.path, job.message or "")
    refused = jobs.list_refusals(tx, job, SHOWN) if job.refused else []
    columns = COLUMNS if job.kind in KINDS else ()
    refused = [row._replace(message=in_words(row.message, columns)) for row in refused]
    names = load_names(tx, users, {job.user_id} if job.user_id else set())
    is_unknown = job.next_step_at is not None and job.kind not in job_kinds.KINDS
    return context.render(
        "job",
        job=job,
        is_unknown=is_unknown,
        has_own_count=made is not None and made.counted is not None,
        leads_to=leads_to,
        follows=follows and job.kind in job_kinds.FILES,
        refused=refused,
        names=names,
        **of_import(tx, context, job),
    )


def lead_of(tx: Tx, job: Job) -> Link | None:
    """Return where people go on once a job has ended: the invoices that it has made or changed, or its file."""
    if job.next_step_at is not None:
        return None
    if job.kind == BULK.name and job.options["kind"] == "invoices":
        ids = ",".join(str(invoice_id) for invoice_id, _ in job.options["records"])
        return Link("Show the invoices", f"/billing-run/invoices?ids={ids}")
    if job.kind == BILLING_RUN and (drafts := jobs.list_records(tx, job, invoices.name)):
        return Link("Check and issue the drafts", f"/billing-run/invoices?ids={','.join(map(str, drafts))}")
    made = job_kinds.FILES.get(job.kind)
    if made and job.status == "done" and job.counts and made_files.has_file(tx, made, job):
        return Link(made.button, f"/jobs/{job.id}/file")
    return None


def read_made_file(made: MadeFile, job: Job, store: Store, actor: Actor, account_id: int, _: RunApart) -> RenderedFile:
    """Return the ZIP that a job has made, once it is wanted. Raises `not_found` once it was deleted or replaced."""
    name = f"{made.name}-{local_day(job.created_at, actor.timezone)}.zip"
    download, content = None, b""
    with store.begin(actor, write=False) as tx:
        tx.snapshot()
        if not (job.counts and made_files.has_file(tx, made, job)):
            raise not_found("file")
        pieces = made.zipped(tx, job)
        if OPEN_FILES.exists():
            download = DOWNLOADS.get(account_id, f"job {job.id} {job.ended_at}", partial(copy, tx, pieces))
        else:
            content = b"".join(pieces)
    return RenderedFile(content, name, is_shown=False, download=download)


def download_file(tx: Tx, context: PageContext) -> Reply:
    """Return the file of a job that is done, unless the role of its user no longer includes it. Raises `not_found`."""
    job = find(tx, context)
    made = job_kinds.FILES.get(job.kind)
    if made is None or job.status != "done" or not context.may(made.area):
        raise not_found("file")
    return FileReply("application/zip", partial(read_made_file, made, job, tx.store, tx.actor))


def of_import(tx: Tx, context: PageContext, job: Job) -> dict[str, Any]:
    """Return what the page of an import shows in addition: its sums, and what a user can do with it."""
    can_continue = job.status in {"stopped", "failed"} and may_continue(context, job)
    shown: dict[str, Any] = {"sums": [], "left_active": "", "can_continue": can_continue}
    shown |= {"can_import": False, "can_undo": False}
    if job.kind not in KINDS:
        return shown
    if of_file := plans.options(job).sums:
        shown["sums"].append(sums_of_file(of_file))
    if job.next_step_at is None and (now := imported.sums_now(tx, job.id)):
        shown["sums"].append(table_of_sums("Sums of what was imported", now, {"minutes": "Time (h)"}))
    if left := imports.left_active(tx, job):
        shown["left_active"] = f"{left} {DEACTIVATING}"
    shown["can_continue"] = can_continue and not undoing.is_undone(tx, job.id)
    if context.may("settings") and job.next_step_at is None:
        shown["can_import"] = job.is_dry_run and job.status == "done"
        shown["can_undo"] = not job.is_dry_run and undoing.count_left(tx, job.id) > 0
    return shown


def sums_of_file(sums: Sequence[Mapping[str, str | int]]) -> AnyBlock:
    """Return the sums of a file, and of what can be imported of it."""
    return table_of_sums("Sums of the file", sums, SUM_TITLES)


def table_of_sums(title: str, sums: Sequence[Mapping[str, str | int]], titles: Mapping[str, str]) -> AnyBlock:
    rows = [
        [value if isinstance(value, str) else sum_in_words(name, value) for name, value in each.items()]
        for each in sums
    ]
    labels = [titles.get(name) or field_label(name) for name in sums[0]]
    return table_of(title, labels, rows, numbers=len(sums[0].keys() - SUM_NAMES))


def sum_in_words(name: str, value: int) -> str:
    """Return a number, or seconds and minutes as hours."""
    if name == "seconds_in_file":
        return f"{value // 3600}:{value // 60 % 60:02}:{value % 60:02}"
    return f"{value // 60}:{value % 60:02}" if name == "minutes" else number(value)


def download_refused(tx: Tx, context: PageContext) -> Reply:
    """Return the rows that the job has not written, at most MAX_DOWNLOADED, as a file for spreadsheets."""
    job = find(tx, context)
    name, dialect = f"job-{job.id}-refused", dialect_of(tx)
    if job.kind in KINDS:
        headings = ["Line", "Reason", *plans.options(job).headings]
        found = islice(plans.refused_rows(tx, job, MAX_DOWNLOADED), MAX_DOWNLOADED)
        cells: list[tuple[Cell, ...]] = [(row.line, row.reason, *row.cells) for row in found]
        return csv_response(name, headings, cells, NO_STORE, dialect=dialect)
    refused = jobs.list_refusals(tx, job, MAX_DOWNLOADED)
    rows = [(row.position, row.name, row.message) for row in refused]
    return csv_response(name, ["Row", "Name", "Reason"], rows, NO_STORE, dialect=dialect)


def stop(tx: Tx, context: PageContext) -> Reply:
    job = find(tx, context)
    jobs.stop(tx, job)
    return context.redirect(f"/jobs/{job.id}", "Stopped. What it has done stays.", kind="warn")


def resume(tx: Tx, context: PageContext) -> Reply:
    job = find(tx, context)
    if not may_continue(context, job):
        raise no_such_page()
    job_kinds.resume(tx, job)
    return context.redirect(f"/jobs/{job.id}", "It continues where it was.")
