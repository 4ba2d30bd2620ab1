"""The billing run: what is to bill of all clients, drafts for those that are chosen, and issuing them together."""

from collections import defaultdict
from datetime import date, timedelta
from functools import partial

from sqlalchemy import select

from retainer.batches import archives, bulk, runs
from retainer.billing import facts
from retainer.billing.facts import load_known_parties
from retainer.billing.files import PaperFile, prepare
from retainer.billing.invoices.types import Invoice
from retainer.billing.unbilled_work import WorkToBill, load_work
from retainer.console.editing.calls import change_record, worded
from retainer.console.kinds.projects import left_out_text
from retainer.console.labels import in_words
from retainer.console.names import load_names
from retainer.console.page_context import FileReply, PageContext, Reply
from retainer.console.words import count
from retainer.errors import Refusal, invalid, not_found
from retainer.identity import accounts
from retainer.kernel.representations import RenderedFile, RunApart
from retainer.mail.queue import require_mail
from retainer.schema.billing import invoices
from retainer.schema.crm import clients
from retainer.store.details import load_records
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_INTEGER, read_day

PATH = "/billing-run"
MAX_INVOICES = 50
"""Invoices that one form creates or issues, in one transaction, and that one response has; a job does more."""
MAX_OF_JOB = 500
"""Invoices that a job creates or issues, and that the page shows."""
DOWNLOAD, SEND, ARCHIVE = "download", "send", "archive"
"""The steps of the buttons that issue drafts and then download their PDFs, or send them, and that make PDFs alone."""
CHANGED = "Some of this work has been billed meanwhile. Check the list, and choose again."
DRAFTS = (
    select(invoices.c.client_id, invoices.c.currency, invoices.c.id)
    .where(invoices.c.status == "draft")
    .order_by(invoices.c.id)
)

ARCHIVED = select(clients.c.id).where(clients.c.status == "archived")


def last_day(tx: Tx, text: str) -> str:
    """Return the last day of the work to bill, by default today. Raises `validation_failed`."""
    try:
        return read_day(text) if text else tx.today
    except ValueError as error:
        raise invalid({"to": [str(error)]}) from None


def load_rows(tx: Tx, last: str) -> dict[str, WorkToBill]:
    """Return what is to bill until a day, by its names in the form.

    Milestones and fixed fees count whatever their days.
    """
    return {f"{row.client_id}-{row.currency}": row for row in load_work(tx, last) if row.to_bill}


def load_drafts(tx: Tx) -> dict[tuple[int, str], list[int]]:
    """Return the drafts of each client and currency, the newest last."""
    drafts = defaultdict[tuple[int, str], list[int]](list)
    for client_id, currency, invoice_id in tx.all(DRAFTS):
        drafts[client_id, currency].append(invoice_id)
    return drafts


def show(tx: Tx, context: PageContext) -> Reply:
    last = last_day(tx, context.typed.text("to"))
    month = date.fromisoformat(tx.today).replace(day=1)
    archived = {client_id for (client_id,) in tx.all(ARCHIVED)}
    rows = [
        (name, row, [*map(left_out_text, row.left_out)], row.client_id in archived)
        for name, row in load_rows(tx, last).items()
    ]
    return context.render(
        "billing_run",
        rows=rows,
        chosen=context.form.texts_of("row") if context.form.texts else None,
        drafts=load_drafts(tx),
        last=last,
        month_end=str(month - timedelta(days=1)),
        most=MAX_OF_JOB,
        is_rounded=bool(accounts.get_account(tx)["time_rounding_minutes"]),
    )


def read(tx: Tx, context: PageContext) -> None:
    """Read which rows are to be billed. Raises `validation_failed`."""
    last = last_day(tx, context.form.text("to"))
    rows = load_rows(tx, last)
    names = dict.fromkeys(context.form.texts_of("row"))
    if not names:
        raise invalid({"": ["Choose at least one client."]})
    if len(names) > MAX_OF_JOB:
        raise invalid({"": [f"Choose at most {MAX_OF_JOB} clients at once, and bill the others afterwards."]})
    if not names.keys() <= rows.keys():
        raise Refusal("precondition_failed", CHANGED)
    chosen = [
        runs.BilledClient(row.client_id, row.currency, row.client_name) for name, row in rows.items() if name in names
    ]
    context.filled = runs.RunOptions(last, context.form.text("into_drafts") == "yes", chosen)


def create_drafts(tx: Tx, context: PageContext) -> Reply:
    """Create a draft for each row that was chosen, or add its work to the client's newest draft: all, or none.

    A job does it for many rows, and leaves out what is refused.
    """
    run: runs.RunOptions = context.filled
    if len(run.clients) > MAX_INVOICES:
        return context.follow_job(runs.start(tx, run))
    made = list[int]()
    for client in run.clients:
        try:
            made.append(runs.bill(tx, client, run.last, adds_to_drafts=run.adds_to_drafts))
        except Refusal as refusal:
            raise _of_client(tx, client.id, refusal) from None
    them = "it" if len(made) == 1 else "them"
    notice = f"{count(len(made), 'draft')} ready. Check {them}, then issue {them}."
    return context.redirect(f"{PATH}/invoices?ids={','.join(map(str, made))}", notice)


def _of_client(tx: Tx, client_id: int, refusal: Refusal) -> Refusal:
    """Return a refusal that names the client whose invoice was refused."""
    why = worded(refusal, ())
    tx.errors.clear()
    name = load_names(tx, clients, [client_id])[client_id]
    return Refusal("validation_failed", f"Nothing was done, because of {name}: {why}")


def find_invoices(tx: Tx, context: PageContext) -> list[Invoice]:
    """Return the invoices that the query names. Raises `not_found`, and `validation_failed` for too many."""
    texts = context.query.text("ids").split(",")
    ids = dict.fromkeys(int(text) for text in texts if text.isdecimal() and len(text) < len(str(MAX_INTEGER)))
    if len(ids) > MAX_OF_JOB:
        raise Refusal("validation_failed", f"This page shows at most {MAX_OF_JOB} invoices. Open fewer.")
    found = {invoice.id: invoice for invoice in load_records(tx, invoices, Invoice, ids)}
    if found.keys() != ids.keys():
        raise not_found("invoice")
    return [found[invoice_id] for invoice_id in ids]


def show_invoices(tx: Tx, context: PageContext) -> Reply:
    found, lines = find_invoices(tx, context), []
    if not found:
        return context.redirect("/billing-run")
    names = load_names(tx, clients, {invoice.client_id for invoice in found})
    for invoice in found:
        parties = load_known_parties(tx, invoice.client_id, invoice.contact_id, Invoice)
        warnings = [in_words(each.message, ()) for each in facts.warnings(tx, invoice, parties, invoice.status)]
        lines.append((invoice, names[invoice.client_id], warnings))
    drafts = [invoice for invoice in found if invoice.status == "draft"]
    chosen = context.form.texts_of("invoice") if context.form.texts else [str(each.id) for each in drafts]
    return context.render(
        "billing_run_invoices",
        lines=lines,
        drafts=drafts,
        issued=len(found) - len(drafts),
        chosen=chosen,
        is_one_response=len(found) - len(drafts) <= MAX_INVOICES,
        sends=bool(tx.store.mail_from),
    )


def read_invoices(_: Tx, context: PageContext) -> None:
    ids = {text for text in context.form.texts_of("invoice") if text.isdecimal()}
    if not ids and context.form.text("step") != ARCHIVE:
        raise invalid({"": ["Choose at least one draft."]})
    context.filled = ids


def issue(tx: Tx, context: PageContext) -> Reply:
    """Issue the drafts that were chosen: all, or none.

    A job issues many, or sends them by mail, each by itself; or it makes the PDFs of all that are issued.
    """
    kind, step = context.catalogue.find("invoices", "changing"), context.form.text("step")
    if step == ARCHIVE and (issued := find_issued(tx, context)):
        return context.follow_job(archives.start(tx, "invoices", _names_of(tx, issued)))
    found = [each for each in find_invoices(tx, context) if f"{each.id}" in context.filled and each.status == "draft"]
    if not found:
        raise Refusal("precondition_failed", "These drafts have been issued or deleted meanwhile.")
    if step == SEND or len(found) > MAX_INVOICES:
        return context.follow_job(_start(tx, step, _names_of(tx, found)))
    for invoice in found:
        try:
            change_record(tx, kind, invoice, {"status": "sent"}, "invoice issued")
        except Refusal as refusal:
            raise _of_client(tx, invoice.client_id, refusal) from None
    path, said = f"{PATH}/invoices?ids={context.query.text('ids')}", f"{count(len(found), 'invoice')} issued."
    if step == DOWNLOAD:
        return context.redirect(f"{path}&download=yes", f"{said} Their PDFs are downloaded now: send them.")
    return context.redirect(path, said if tx.store.mail_from else f"{said} Download the PDFs to send them.")


def _start(tx: Tx, step: str, names: dict[int, str]) -> int:
    """Start the job that issues invoices, given with what people call them; return its id.

    Raises `mail_not_configured`, and `locked` while another job makes PDFs.
    """
    if step == DOWNLOAD:
        return archives.start(tx, "invoices", names, issues=True)
    if step == SEND:
        require_mail(tx)
    value = bulk.SEND if step == SEND else archives.ISSUE
    change = next(each for each in bulk.changes_of(tx, "invoices") if each.value == value)
    return bulk.start(tx, "invoices", change, names)


def _names_of(tx: Tx, found: list[Invoice]) -> dict[int, str]:
    """Return what people call invoices: their numbers, if they have them, and their clients."""
    names = load_names(tx, clients, {invoice.client_id for invoice in found})
    return {
        invoice.id: f"{invoice.number}, {names[invoice.client_id]}" if invoice.number else names[invoice.client_id]
        for invoice in found
    }


def bundle(pdfs: list[PaperFile], name: str, account_id: int, run_apart: RunApart) -> RenderedFile:
    """Return the PDFs of invoices, drawn one after another, in one file."""
    drawn = (pdf.finish(account_id, run_apart) for pdf in pdfs)
    return RenderedFile(b"".join(archives.zip_of((file.name, file.content) for file in drawn)), name)


def find_issued(tx: Tx, context: PageContext) -> list[Invoice]:
    return [invoice for invoice in find_invoices(tx, context) if invoice.status != "draft"]


def download(tx: Tx, context: PageContext) -> Reply:
    """Return the PDFs of the issued invoices that the query names; without any, what is to bill."""
    issued = find_issued(tx, context)
    if not issued:
        return show(tx, context)
    if len(issued) > MAX_INVOICES:
        message = f"A page makes at most {MAX_INVOICES} PDFs. Use the button of the billing run."
        raise Refusal("validation_failed", message)
    pdfs = [prepare("pdf", tx, each) for each in issued]
    return FileReply("application/zip", partial(bundle, pdfs, f"invoices-{tx.today}.zip"))
