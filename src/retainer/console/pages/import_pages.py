"""The pages of an import: a file is uploaded, its columns are confirmed, and a job writes it, which can be undone.

A file is read in another process, outside of transactions and without the turn of the request.
"""

from collections.abc import Iterator
from decimal import Decimal
from itertools import chain

from retainer.console.catalogue import no_such_page
from retainer.console.controls.control import Control, Field
from retainer.console.controls.plain import Choice, FileInput, Number
from retainer.console.editing.form_pages import FormButton, FormPage, Section
from retainer.console.editing.sheet import Sheet
from retainer.console.labels import field_label, in_words
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.job_pages import find as find_job
from retainer.console.pages.job_pages import sums_of_file
from retainer.console.values import AnyBlock, Block, table_of
from retainer.console.words import count, number
from retainer.errors import FieldErrors, invalid
from retainer.exchange import plans, undoing, uploads
from retainer.exchange.columns import ColumnMapping, IssuedState
from retainer.exchange.importers import IMPORTERS, KINDS
from retainer.exchange.uploads import Upload
from retainer.identity.audit import Fields
from retainer.jobs import jobs
from retainer.jobs.kinds import Job
from retainer.kernel.resource import read_id
from retainer.kernel.uploads import MAX_FILE_BYTES
from retainer.schema import jobs as schema
from retainer.store.tx import Store, Tx
from retainer.values.kinds import timezones
from retainer.web.forms import Form

PATH = "/import"
CHECK, TRY = "check", "try"
"""The steps of the buttons that only read the file, and that do everything and keep nothing."""
TRY_LABEL = "Try without saving"
OPTIONS = tuple(
    (f"{importer.name} {source.name}", f"{importer.title} from {source.title}")
    for importer in (*[each for each in IMPORTERS.values() if each.name != "time"], IMPORTERS["time"])
    for source in importer.sources.values()
)
"""What can be imported, in the order in which it is."""
WHAT = Field("what", "What to import", Choice(OPTIONS), is_required=True, empty="Choose")
FILE = Field(
    *("file", "File", FileInput(accept=".csv,.txt,.tsv,.zip,text/csv,application/zip")),
    "A CSV file, or a ZIP with invoices, their PDFs and payments. At most 25 MB; the operator can import larger ones.",
)
DAYS = Field(
    "day_order",
    "Days like 03/04/2026",
    Choice((("day_first", "3 April: the day is first"), ("month_first", "4 March: the month is first"))),
    empty="Detect from the file",
)
DECIMALS = Field(
    "decimal_mark",
    "Decimal mark",
    Choice(((".", "Point, as in 1,234.50"), (",", "Comma, as in 1.234,50"))),
    empty="Detect from each column",
)
ZONE = Field("timezone", "Time zone of the file", Choice(tuple((name, name) for name in sorted(timezones()))))
YES = Field("yes", "Other words for yes", Control(), "Separated by commas.")
NO = Field("no", "Other words for no", Control(), "Separated by commas.")
CURRENCY = Field("currency", "Currency", Control(length=3), "Like EUR, of invoices without one in the file.")
TAX_RATE = Field("tax_rate", "Tax rate", Number(unit="%"), "In percent, of lines in a file without taxes.")
PAID_ON = Field(
    *("paid_on", "Payments without a day", Choice((("issue_date", "Day of issue"), ("due_date", "Day they were due")))),
    empty="All have one",
)
LABELS: dict[IssuedState, str] = {"draft": "a draft", "open": "issued", "paid": "paid", "void": "void"}
STATES = {
    state: Field(f"words_{state}", f"Other words for {label}", Control(), "Separated by commas.")
    for state, label in LABELS.items()
}
TRUTHS = {"billable", "invoiced", "is_primary"}
OTHER_WORDS = "Add it to the other words below."
ANSWERS = {
    DAYS.name: "Choose.",
    DECIMALS.name: "Choose.",
    CURRENCY.name: "Enter it, like EUR.",
    PAID_ON.name: "Choose.",
    **dict.fromkeys(("states", *TRUTHS), OTHER_WORDS),
}
"""What answers a question that the file leaves open, by its field."""
COLUMN = "column_"
"""Stands before the name of the field that a column is."""
ADVICE = (
    "Import clients first, then contacts, projects, invoices and time: each file finds what an earlier one has made.",
    "The next page shows which columns were found, and the first rows. Nothing is imported before you confirm.",
)


# The file.


def send(store: Store, context: PageContext, errors: FieldErrors, body: Fields) -> Reply:
    """Read and keep the file of the form. Raises `validation_failed`."""
    errors.raise_errors()
    importer, _, source = str(body["what"]).partition(" ")
    name, content = context.upload
    person = context.person
    upload = Upload(importer, source, name, person.timezone, ColumnMapping())
    content.stream.seek(0)
    uploads.examine_apart(person.account_id, context.run_apart, upload, content.stream.read())
    if upload.findings.errors.keys() == {FILE.name} and not upload.findings.headings:  # nothing to choose from
        raise invalid(upload.findings.errors)
    pieces = jobs.pack(content.stream)
    with store.begin(person, write=True) as tx:
        return context.answered(tx, context.redirect(f"{PATH}/{uploads.store(tx, upload, pieces)}"))


START = FormPage(
    *(Section("Import", PATH), "Import", "Continue", send, lambda *_: ADVICE), fields=lambda *_: (WHAT, FILE)
)


# Its columns.


def upload_of(tx: Tx, context: PageContext) -> Upload:
    return uploads.find(tx, read_id(context.path_parameters["upload"], schema.jobs))[1]


def review_fields(upload: Upload) -> Iterator[Field]:
    """Yield a choice of a column for each field, and what the file may leave open."""
    importer, source = upload.kind()
    columns = Choice(tuple((str(place), text) for place, text in enumerate(upload.findings.headings) if text.strip()))
    for name in source.columns:
        is_needed = name in source.needs
        empty = "Choose" if is_needed else "Leave out"
        yield Field(COLUMN + name, field_label(name), columns, is_required=is_needed, empty=empty)
    yield from (DAYS, DECIMALS)
    if importer.has_times:
        yield ZONE
    if importer.has_amounts:
        yield from (CURRENCY, TAX_RATE, PAID_ON)
        if "states" in upload.findings.errors or upload.mapping.states:
            yield from STATES.values()
    asked = TRUTHS & upload.findings.errors.keys()
    if asked or upload.mapping.yes or upload.mapping.no:
        yield from (YES, NO)


def review_sheet(tx: Tx, context: PageContext, _: None) -> Sheet:
    upload = upload_of(tx, context)
    mapping = upload.mapping
    preset = {f"{COLUMN}{name}": str(place) for name, place in upload.findings.places.items()}
    preset |= {each.name: getattr(mapping, each.name) or "" for each in (DAYS, DECIMALS, CURRENCY, PAID_ON)}
    preset |= {"timezone": upload.timezone, "yes": ", ".join(mapping.yes), "no": ", ".join(mapping.no)}
    preset |= {"tax_rate": "" if mapping.tax_rate is None else f"{mapping.tax_rate:f}"}
    for state, field in STATES.items():
        preset[field.name] = ", ".join(word for word, each in mapping.states.items() if each == state)
    return Sheet(tx, context, [*review_fields(upload)], preset=Form([*preset.items()]))


def tell_review(tx: Tx, context: PageContext, _: None) -> Iterator[str | AnyBlock]:
    """Yield what the file would import, judged without the database."""
    upload = upload_of(tx, context)
    importer, source = upload.kind()
    found = upload.findings
    yield f"{upload.file}: {importer.title.lower()} from {source.title}."
    for name, messages in found.errors.items():
        label = "" if name in {FILE.name, DAYS.name, DECIMALS.name} else f"{field_label(name)}: "
        yield Block("notice", text=label + worded(name, messages))
    if found.errors:
        return
    refused = f", of which at least {number(found.refused)} can't be imported" if found.refused else ""
    yield f"{count(found.size, 'row')}{refused}. “{TRY_LABEL}” checks each row by all rules."
    placed = {*found.places.values()}
    if unused := [text for place, text in enumerate(found.headings) if text.strip() and place not in placed]:
        yield f"Columns that are not imported: {', '.join(unused)}."
    if found.rows:
        shown = [name for name in columns_of(upload) if any(row.get(name) for row in found.rows)]
        rows = [[row.get(name, "") for name in shown] for row in found.rows]
        yield table_of("First rows, as they are read", [field_label(name) for name in shown], rows)
    if found.refusals:
        refusals = [(f"Line {line}", in_words(text, source.columns)) for line, text in found.refusals]
        note = "" if found.refused <= len(refusals) else f"The first {len(refusals)} of {number(found.refused)}."
        yield table_of("Can't be imported", ("Row", "Reason"), refusals, note=note)
    yield from (Block("notice", text=note) for note in found.notes)
    if found.sums:
        yield sums_of_file(found.sums)


def columns_of(upload: Upload) -> list[str]:
    """Return the names of the values of the rows, as the source orders them."""
    return [*dict.fromkeys((*upload.kind()[1].columns, *chain.from_iterable(upload.findings.rows)))]


def read_review(upload: Upload, body: Fields) -> None:
    """Note what a person says about the columns of a file."""
    headings = upload.findings.headings
    mapping = ColumnMapping(day_order=body.get("day_order"), decimal_mark=body.get("decimal_mark"))
    for name in upload.kind()[1].columns:
        place = body.get(COLUMN + name)
        mapping.columns[name] = "" if place is None else headings[int(str(place))]
    mapping.yes, mapping.no = (words_in(body, field.name) for field in (YES, NO))
    mapping.currency, mapping.paid_on = str(body.get("currency") or "").upper() or None, body.get("paid_on")
    mapping.tax_rate = None if body.get("tax_rate") is None else Decimal(str(body["tax_rate"]))
    for state, field in STATES.items():
        mapping.states |= dict.fromkeys(words_in(body, field.name), state)
    upload.mapping, upload.timezone = mapping, str(body.get("timezone") or upload.timezone)


def words_in(body: Fields, name: str) -> list[str]:
    return [word.strip() for word in str(body.get(name) or "").split(",") if word.strip()]


def confirm(store: Store, context: PageContext, errors: FieldErrors, body: Fields) -> Reply:
    """Read the file with these columns, and start the job that imports it or tries to. Raises `validation_failed`."""
    errors.raise_errors()
    person, step = context.person, context.form.text("step")
    with store.begin(person, write=False) as tx:
        tx.snapshot()
        job, upload = uploads.find(tx, read_id(context.path_parameters["upload"], schema.jobs))
        content = jobs.read_input(tx, job, 0, MAX_FILE_BYTES)
    read_review(upload, body)
    plan = uploads.examine_apart(person.account_id, context.run_apart, upload, content)
    if plan is None and step != CHECK:
        raise invalid({at_field(name, upload): [worded(name, texts)] for name, texts in upload.findings.errors.items()})
    with store.begin(person, write=True) as tx:
        uploads.find(tx, job.id)
        if plan is None or step == CHECK:
            uploads.note(tx, job.id, upload)
            return context.answered(tx, context.redirect(f"{PATH}/{job.id}"))
        importer, source = upload.kind()
        job_id = importer.start(tx, plan, source, upload.file, is_dry_run=step == TRY)
        if step == TRY:
            uploads.note(tx, job.id, upload)
        else:
            tx.delete(schema.jobs, job.id)
        return context.answered(tx, context.redirect(f"/jobs/{job_id}"))


def worded(name: str, messages: list[str]) -> str:
    """Return what a file leaves open, and how this page is answered."""
    return " ".join((*messages, *([ANSWERS[name]] if name in ANSWERS else [])))


def at_field(name: str, upload: Upload) -> str:
    """Return the field of the form at which an error of the file is shown."""
    if name == "states":
        return STATES["draft"].name
    asked = {field.name for field in review_fields(upload)}
    return name if name in asked else COLUMN + name


REVIEW = FormPage(
    *(Section("Import", PATH), "Check the columns", "Import", confirm, tell_review),
    sheet_of=review_sheet,
    headings={
        COLUMN + each: "Columns" for each in ("external_id", "id", "date", "person", "project", "description", "number")
    }
    | {DAYS.name: "Formats"},
    steps=lambda *_: [FormButton(CHECK, "Update preview"), FormButton(TRY, TRY_LABEL)],
    back=None,
)


# Its job.


def import_now(tx: Tx, context: PageContext) -> Reply:
    """Start the import that a dry run has tried. Raises `not_found`, `locked`."""
    job = import_of(tx, context)
    job_id = plans.start_again(tx, job)
    return context.redirect(f"/jobs/{job_id}")


def import_of(tx: Tx, context: PageContext) -> Job:
    """Return the import of the path, for an admin. Raises `not_found`."""
    job = find_job(tx, context)
    if job.kind not in KINDS or not context.may("settings"):
        raise no_such_page()
    return job


def tell_undo(tx: Tx, context: PageContext, _: Job) -> list[str]:
    left = undoing.count_left(tx, import_of(tx, context).id)
    return [
        f"{count(left, 'record')} that this import has made will be deleted. This can't be undone.",
        "People are deactivated. What something else depends on stays, and is listed with the reason.",
    ]


def undo_obstacle(tx: Tx, context: PageContext, _: Job) -> str:
    left = undoing.count_left(tx, import_of(tx, context).id)
    return "" if left else "This import has made nothing that could be undone."


def undo(tx: Tx, context: PageContext, _: Job, __: Fields) -> Reply:
    job = import_of(tx, context)
    undo_id = undoing.start(tx, job)
    return context.redirect(f"/jobs/{undo_id}")


JOBS = Section(
    "Jobs", "/jobs", schema.jobs, lambda tx, job_id: tx.get(schema.jobs, job_id, Job), lambda _, job: job.title
)
UNDO = FormPage(JOBS, "Undo: {name}", "Undo the import", undo, tell_undo, obstacle=undo_obstacle, is_danger=True)
