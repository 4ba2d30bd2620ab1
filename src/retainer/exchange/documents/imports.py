"""Imports of invoices: the jobs that write them as they were, with their PDFs, and let the series go on after them.

An invoice whose number was imported before is counted, and nothing is written: a second run adds nothing.
"""

from typing import NamedTuple

from sqlalchemy import bindparam, select

from retainer.billing.credit_notes import history as credit_note_history
from retainer.billing.credit_notes.history import PastCreditNote
from retainer.billing.invoices import history
from retainer.billing.invoices.history import PastInvoice
from retainer.crm.clients import Client, create_client
from retainer.errors import invalid, part
from retainer.exchange import plans
from retainer.exchange.documents.candidates import Candidate, Item, SeriesNumbers, decode
from retainer.exchange.documents.credit_notes import CreditCandidate
from retainer.exchange.documents.sources import SOURCES
from retainer.jobs import jobs
from retainer.jobs.kinds import Job, JobKind, JobRow
from retainer.schema.billing import credit_notes, invoices
from retainer.schema.crm import clients
from retainer.schema.identity import accounts
from retainer.shared.numbering import continue_after, preview_number, read_format, read_numbers
from retainer.store.constraints import singular
from retainer.store.tx import Tx
from retainer.values.collation import printed_form, sort_key
from retainer.values.exact import amount_of, minor_units
from retainer.values.reading import read_record

IMPORT_INVOICES = "import_invoices"
FOUND = {
    singular(table): select(*table.c["id", "currency", "total", "imported_from"]).where(
        table.c.number_folded == bindparam("number")
    )
    for table in (invoices, credit_notes)
}
CLIENT = select(*clients.c["id", "currency"]).order_by(clients.c.status == "archived", clients.c.id).limit(1)
BY_NUMBER = CLIENT.where(clients.c.number_folded == bindparam("number"))
BY_NAME = CLIENT.where(clients.c.name_sort == bindparam("name"))
NEXT = "next_number"
"""The count that is the next number of the series of today, if the file raises it."""


class Holder(NamedTuple):
    """A client that an invoice was issued to."""

    id: int
    currency: str


def next_rows(tx: Tx, job: Job, limit: int) -> list[JobRow]:
    """Return the next documents of the plan; the first row is the numbers of all."""
    lines = [(line.position, decode(line.content)) for line in plans.next_lines(tx, job, limit)]
    return [JobRow(position, _name(item), item) for position, item in lines]


def _name(item: Item) -> str:
    if isinstance(item, SeriesNumbers):
        return "Numbers"
    place = f"{item.file}, line {item.line}" if isinstance(item, CreditCandidate) else f"Line {item.lines[0]}"
    return f"{place}: {item.number}".removesuffix(": ")


def write(tx: Tx, job: Job, row: JobRow) -> None:
    """Write a document of a plan, or let the series go on. Raises what refuses it."""
    item: Item = row.value
    if isinstance(item, SeriesNumbers):
        _continue_series(tx, job, item)
    elif item.reason is not None:
        raise invalid({"": [item.reason]})
    elif isinstance(item, CreditCandidate) and item.note is not None:
        _write_credit_note(tx, job, item, item.note)
    elif isinstance(item, Candidate) and item.invoice is not None:
        if _is_there(tx, item.invoice):
            job.count("already_there")
        else:
            _write_invoice(tx, job, item, item.invoice)


def _pattern(tx: Tx, name: str = "invoice") -> str:
    return str(tx.field(accounts.c[f"{name}_number_pattern"], tx.account_id))


def _continue_series(tx: Tx, job: Job, numbers: SeriesNumbers) -> None:
    """Let the series go on after the numbers that they would write, before any other document takes one of these."""
    pattern = _pattern(tx)
    highest = read_numbers(invoices, pattern, numbers.of_invoices)
    if highest:
        continue_after(tx, invoices, highest)
    last = highest.get(read_format(invoices, pattern, tx.today).series)
    if last is not None:
        job.count(NEXT, last + 1)
    if of_notes := read_numbers(credit_notes, _pattern(tx, "credit_note"), numbers.of_credit_notes):
        continue_after(tx, credit_notes, of_notes)


def _is_there(tx: Tx, document: PastInvoice | PastCreditNote) -> bool:
    """Return whether a document was imported before. Raises `validation_failed` if its number is that of another."""
    kind = "invoice" if isinstance(document, PastInvoice) else "credit note"
    row = tx.one(FOUND[kind], number=printed_form(document.number))
    if row is None:
        return False
    other_id, currency, total, program = row
    other = part(f"{kind} {other_id}")
    if program is None:
        raise invalid({"number": [f"Is that of {other}, which was issued here."]})
    is_other = isinstance(document, PastInvoice) and document.currency != currency
    if is_other or total != minor_units(document.total, currency):
        raise invalid({"number": [f"Is that of {other}, which was imported with another total."]})
    return True


def _write_credit_note(tx: Tx, job: Job, item: CreditCandidate, note: PastCreditNote) -> None:
    if _is_there(tx, note):
        job.count("already_there")
        return
    job.count("credit_notes")
    invoice_id, *_, program = tx.one(FOUND["invoice"], number=printed_form(note.invoice_number)) or (None, None)
    if program is not None:
        note_id = credit_note_history.write(tx, note, invoice_id, _program(job), item.pdf)
        jobs.note_record(tx, job, "credit_notes", note_id)
    elif not job.is_dry_run or invoice_id is not None:  # a dry run keeps no invoice
        raise invalid({"invoice": [f"{note.invoice_number} was not imported, so it cannot be credited."]})


def _program(job: Job) -> str:
    return SOURCES[plans.options(job).source].title


def _write_invoice(tx: Tx, job: Job, candidate: Candidate, invoice: PastInvoice) -> None:
    late = [payment.day for payment in invoice.payments if payment.day > tx.today]
    if late:
        raise invalid({"paid_date": [f"Is {part(late[0])}, which is to come."]})
    holder = _find_client(tx, candidate) or _create_client(tx, job, candidate, invoice)
    if not candidate.has_currency and holder.currency != invoice.currency:
        message = f"Is not in the file, and its client is billed in {holder.currency}: say it in the file."
        raise invalid({"currency": [message]})
    jobs.note_record(tx, job, "invoices", history.write(tx, invoice, holder.id, _program(job), candidate.pdf))
    job.count("invoices")
    job.count(f"minor_units_{invoice.currency}", minor_units(invoice.total, invoice.currency))
    job.count("pdfs" if candidate.pdf else "without_pdf")


def _find_client(tx: Tx, candidate: Candidate) -> Holder | None:
    """Return the client by its number, else by its name; of several, the first that is open."""
    row = None
    if candidate.client_number:
        row = tx.one(BY_NUMBER, number=printed_form(candidate.client_number))
    row = row or tx.one(BY_NAME, name=sort_key(candidate.client))
    return None if row is None else Holder(*row)


def _create_client(tx: Tx, job: Job, candidate: Candidate, invoice: PastInvoice) -> Holder:
    fields: dict[str, object] = {"name": candidate.client, "currency": invoice.currency}
    fields |= {"number": candidate.client_number} if candidate.client_number else {}
    fields |= {"email": candidate.email} if candidate.email else {}
    client = create_client(tx, read_record(Client, fields))
    jobs.note_record(tx, job, "clients", client.id)
    if candidate.is_first or not job.is_dry_run:
        job.count("clients")
    return Holder(client.id, invoice.currency)


def finish(tx: Tx, job: Job) -> str:
    """Return how much was imported, and the number of the next invoice."""
    done = "would be imported" if job.is_dry_run else "imported"
    totals = {
        name.removeprefix("minor_units_"): units
        for name, units in job.counts.items()
        if name.startswith("minor_units_")
    }
    over = " and ".join(f"{amount_of(units, currency)} {currency}" for currency, units in sorted(totals.items()))
    made = [plans.counted(job, "invoices") + (f" over {over}" if over else "")]
    if "credit_notes" in job.counts:
        made.append(plans.counted(job, "credit notes"))
    told = f"{' and '.join(made)} {done} from {plans.options(job).file}."
    number = preview_number(tx, invoices, _pattern(tx), at_least=job.counts.get(NEXT, 1))
    return f"{told} The next invoice is {number}."


IMPORT = JobKind(IMPORT_INVOICES, next_rows, write, finish, area="settings")
