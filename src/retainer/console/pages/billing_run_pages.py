"""The billing run: what is to bill of all clients, drafts for those that are chosen, and issuing them together."""

import io
import zipfile
from collections import defaultdict
from datetime import date, timedelta
from typing import NamedTuple

from sqlalchemy import select

from retainer.billing import facts
from retainer.billing.facts import load_known_parties
from retainer.billing.invoices.invoices import load_invoice
from retainer.billing.invoices.types import Invoice
from retainer.billing.unbilled_work import WorkToBill, load_work
from retainer.console.editing.calls import change_record, create_record, worded
from retainer.console.kinds.projects import left_out_text
from retainer.console.names import load_names
from retainer.console.page_context import File, PageContext, Reply
from retainer.console.words import count
from retainer.errors import Refusal, invalid
from retainer.identity import accounts
from retainer.kernel import representations
from retainer.kernel.representations import Prepared, RunApart
from retainer.schema.billing import invoices
from retainer.schema.crm import clients
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_INTEGER, read_day

PATH = "/billing-run"
MAX_INVOICES = 50
"""Invoices that one form creates or issues, in one transaction, and that one archive has."""
EVERYTHING = ("time", "expenses", "milestones", "fees", "fixed_fees")
WITH_DAYS = ("time", "expenses", "fees")
CHANGED = "Some of this work has been billed meanwhile. Check the list, and choose again."
DRAFTS = (
    select(invoices.c.client_id, invoices.c.currency, invoices.c.id)
    .where(invoices.c.status == "draft")
    .order_by(invoices.c.id)
)

ARCHIVED = select(clients.c.id).where(clients.c.status == "archived")


class Choice(NamedTuple):
    """A row of the run: a client in a currency."""

    client_id: int
    currency: str

    @property
    def name(self) -> str:
        return f"{self.client_id}-{self.currency}"


class Run(NamedTuple):
    """What a form of the run asks for."""

    choices: list[Choice]
    last: str
    adds_to_drafts: bool


def last_day(tx: Tx, text: str) -> str:
    """Return the last day of the work to bill, by default today. Raises `validation_failed`."""
    try:
        return read_day(text) if text else tx.today
    except ValueError as error:
        raise invalid({"to": [str(error)]}) from None


def load_rows(tx: Tx, last: str) -> list[WorkToBill]:
    """Return what is to bill until a day; milestones and fixed fees count whatever their days."""
    return [row for row in load_work(tx, last) if row.to_bill]


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
        (Choice(row.client_id, row.currency), row, [*map(left_out_text, row.left_out)], row.client_id in archived)
        for row in load_rows(tx, last)
    ]
    return context.render(
        "billing_run",
        rows=rows,
        chosen=context.form.texts_of("row") if context.form.texts else None,
        drafts=load_drafts(tx),
        last=last,
        month_end=str(month - timedelta(days=1)),
        most=MAX_INVOICES,
        is_rounded=bool(accounts.get_account(tx)["time_rounding_minutes"]),
    )


def read(tx: Tx, context: PageContext) -> None:
    """Read which rows are to be billed. Raises `validation_failed`."""
    last = last_day(tx, context.form.text("to"))
    choices = [Choice(row.client_id, row.currency) for row in load_rows(tx, last)]
    names = dict.fromkeys(context.form.texts_of("row"))
    if not names:
        raise invalid({"": ["Choose at least one client."]})
    if len(names) > MAX_INVOICES:
        raise invalid({"": [f"Choose at most {MAX_INVOICES} clients at once, and bill the others afterwards."]})
    if not names.keys() <= {choice.name for choice in choices}:
        raise Refusal("precondition_failed", CHANGED)
    choices = [choice for choice in choices if choice.name in names]
    context.filled = Run(choices, last, context.form.text("into_drafts") == "yes")


def create_drafts(tx: Tx, context: PageContext) -> Reply:
    """Create a draft for each row that was chosen, or add its work to the client's newest draft: all, or none."""
    run: Run = context.filled
    kind, drafts = context.catalogue.find("invoices", "creating"), load_drafts(tx) if run.adds_to_drafts else {}
    work = {name: {"to": run.last} if name in WITH_DAYS else {} for name in EVERYTHING}
    made = []
    for choice in run.choices:
        own = drafts.get(choice, ())
        try:
            if own:
                made.append(change_record(tx, kind, load_invoice(tx, own[-1]), {"unbilled_work": work}))
            else:
                body = {"client_id": choice.client_id, "currency": choice.currency, "unbilled_work": work}
                made.append(create_record(tx, kind, body))
        except Refusal as refusal:
            raise _of_client(tx, choice.client_id, refusal) from None
    notice = f"{count(len(made), 'draft')} ready. Check them, then issue them."
    return context.redirect(f"{PATH}/invoices?ids={','.join(str(each.id) for each in made)}", notice)


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
    if len(ids) > MAX_INVOICES:
        raise Refusal("validation_failed", f"This page shows at most {MAX_INVOICES} invoices. Open fewer.")
    return [load_invoice(tx, invoice_id) for invoice_id in ids]


def show_invoices(tx: Tx, context: PageContext) -> Reply:
    found = find_invoices(tx, context)
    kind = context.catalogue.find("clients")
    lines = []
    for invoice in found:
        parties = load_known_parties(tx, invoice.client_id, invoice.contact_id, Invoice)
        warnings = [each.message for each in facts.warnings(tx, invoice, parties, invoice.status)]
        lines.append((invoice, kind.get(tx, invoice.client_id), warnings))
    drafts = [invoice for invoice in found if invoice.status == "draft"]
    chosen = context.form.texts_of("invoice") if context.form.texts else [str(each.id) for each in drafts]
    return context.render(
        "billing_run_invoices", lines=lines, drafts=drafts, issued=len(found) - len(drafts), chosen=chosen
    )


def read_invoices(_: Tx, context: PageContext) -> None:
    ids = {text for text in context.form.texts_of("invoice") if text.isdecimal()}
    if not ids:
        raise invalid({"": ["Choose at least one draft."]})
    context.filled = ids


def issue(tx: Tx, context: PageContext) -> Reply:
    """Issue the drafts that were chosen: all, or none."""
    kind, issued = context.catalogue.find("invoices", "changing"), 0
    for invoice in find_invoices(tx, context):
        if f"{invoice.id}" not in context.filled or invoice.status != "draft":
            continue
        try:
            change_record(tx, kind, invoice, {"status": "sent"})
        except Refusal as refusal:
            raise _of_client(tx, invoice.client_id, refusal) from None
        issued += 1
    path = f"{PATH}/invoices?ids={context.query.text('ids')}"
    return context.redirect(path, f"{count(issued, 'invoice')} issued. Download the PDFs to send them.")


class Archive(NamedTuple):
    """The PDFs of invoices, drawn one after another, in one file."""

    pdfs: list[Prepared]
    name: str

    @property
    def tag(self) -> str:
        return ""

    def finish(self, account_id: int, run_apart: RunApart) -> representations.File:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:  # without compression: PDFs are compressed
            for pdf in self.pdfs:
                file = pdf.finish(account_id, run_apart)
                archive.writestr(file.name, file.content)
        return representations.File(content.getvalue(), self.name)


def download(tx: Tx, context: PageContext) -> Reply:
    """Return the PDFs of the issued invoices that the query names; without any, what is to bill."""
    kind = context.catalogue.find("invoices")
    forms = kind.reading.representations if kind.reading else ()
    pdf = next(form for form in forms if form.suffix == "pdf")
    issued = [invoice for invoice in find_invoices(tx, context) if invoice.status != "draft"]
    if not issued:
        return show(tx, context)
    return File("application/zip", Archive([pdf.prepare(tx, each) for each in issued], f"invoices-{tx.today}.zip"))
