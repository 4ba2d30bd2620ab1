"""Files of invoices: the file of another program as invoices to import, with the PDFs that it brings.

Everything that follows from the file alone is decided here, once and before anything is written. The result is a text
with a JSON value on each line, in the order in which the invoices were issued.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from retainer.billing.document_types import MAX_LINES
from retainer.billing.invoices.history import PastInvoice, PastPayment, State
from retainer.errors import FieldErrors, invalid, part
from retainer.exchange import tables
from retainer.exchange.columns import (
    CellForm,
    Cells,
    ColumnMapping,
    ImportSource,
    IssuedState,
    SourceTable,
    check_mapping,
    read_currency,
    read_rows,
    require_rows,
)
from retainer.exchange.documents import lists
from retainer.exchange.documents.amounts import Amounts, Rates, complete, first, is_rate, read_amounts, read_units
from retainer.exchange.documents.archives import Archive, listed, match_pdfs, name_in, open_archive
from retainer.exchange.documents.candidates import Candidate, Item, numbers_of, sums_of
from retainer.exchange.documents.credit_notes import CreditCandidate, by_invoice, credit, refuse_without_invoice
from retainer.exchange.documents.lists import PaymentList
from retainer.exchange.documents.sources import CSV, FIELDS
from retainer.exchange.plans import ImportPlan, encode
from retainer.exchange.tables import TOO_LONG, BadCell, name_of
from retainer.values.exact import DIGITS, amount_of

MAX_INVOICES = 20_000
LIMITS = {"number": 50, "client": 191, "subject": 255, "purchase_order": 100, "notes": 10_000}
"""Characters of the texts of a whole invoice."""
STATES: dict[str, IssuedState] = {
    **dict.fromkeys(("draft", "entwurf"), "draft"),
    **dict.fromkeys(("", "sent", "viewed", "open", "unpaid", "due", "outstanding", "issued", "offen"), "open"),
    **dict.fromkeys(("overdue", "past due", "partial", "partially paid", "versendet", "überfällig"), "open"),
    **dict.fromkeys(("paid", "auto-paid", "bezahlt"), "paid"),
    **dict.fromkeys(("void", "voided", "cancelled", "canceled", "storniert"), "void"),
}
"""What the words mean that programs have for the state of an invoice."""
PAID_ON = (
    "The file does not say when all invoices were paid. Say when, or send a ZIP with the list of payments, as "
    "payments.csv, beside the invoices."
)


class Reading(NamedTuple):
    """What the invoices of a file are read with."""

    form: CellForm
    rates: Rates
    payments: PaymentList | None
    credit_notes: Mapping[str, list[CreditCandidate]]
    """Those of the file, by the numbers of their invoices."""
    mapping: ColumnMapping


def plan(content: bytes, source: ImportSource, mapping: ColumnMapping, zone: ZoneInfo) -> ImportPlan:
    """Return what a file would import. Raises `validation_failed` for what the file as a whole leaves open."""
    check_mapping(mapping, {**CSV.columns, **source.columns})
    check_answers(mapping)
    archive = open_archive(content)
    found = lists.find(archive, source, mapping)
    if found is None:
        raise invalid({"file": ["Is a ZIP without a CSV of invoices. Add it, as the program exports it."]})
    table = read_rows(require_rows(found.table), source, mapping, zone, FIELDS)
    payments, credited = lists.read_payments(archive, mapping, zone), lists.read_credit_notes(archive, mapping, zone)
    candidates = _read(table, mapping, payments, by_invoice(credited))
    refuse_without_invoice(credited, {each.number for each in candidates if each.reason is None})
    notes = [*_attach(archive, [*candidates, *credited]), *_unmatched(payments, candidates)]
    for each in {candidate.client: candidate for candidate in reversed(candidates) if not candidate.reason}.values():
        each.is_first = True
    items: list[Item] = [numbers_of(candidates, credited), *candidates, *credited]
    return ImportPlan(table.headings, encode(items), len(items), sums_of(candidates, credited), notes)


def check_answers(mapping: ColumnMapping) -> None:
    """Raise `validation_failed` for what a person says about a file of invoices and cannot mean."""
    errors = dict[str, list[str]]()
    if mapping.currency is not None and mapping.currency not in DIGITS:
        errors["currency"] = [f"{mapping.currency} is not a currency. Write its code, like EUR."]
    if mapping.tax_rate is not None and not is_rate(mapping.tax_rate):
        errors["tax_rate"] = ["Must be from 0 to 100 percent, with at most 3 decimal places."]
    if errors:
        raise invalid(errors)


def _read(
    table: SourceTable, mapping: ColumnMapping, payments: PaymentList | None, notes: Mapping[str, list[CreditCandidate]]
) -> list[Candidate]:
    """Return the invoices of a table, in the order of their days. Raises `validation_failed` with all questions.

    All of their amounts are read first, since the rates of taxes follow from the large ones.
    """
    form, by_number = table.form, lists.by_number(table.rows)
    if len(by_number) > MAX_INVOICES:
        raise invalid({"file": [f"Has more than {MAX_INVOICES} invoices. Divide it, and import the parts."]})
    found, readable, questions = [], list[tuple[Candidate, list[Cells], Amounts]](), FieldErrors()
    for rows in by_number.values():
        candidate = Candidate([each.row.line for each in rows], [each.row.cells for each in rows])
        found.append(candidate)
        with questions.noting(), _noting(candidate):
            readable.append((candidate, rows, _read_amounts(rows, form, mapping)))
    reading = Reading(form, Rates(amounts for *_, amounts in readable), payments, notes, mapping)
    for candidate, rows, amounts in readable:
        with questions.noting(), _noting(candidate):
            _complete(candidate, rows, amounts, reading)
    questions.raise_errors()
    return sorted(found, key=lambda each: (each.invoice.issue_date if each.invoice else "", each.lines[0]))


@contextmanager
def _noting(candidate: Candidate | CreditCandidate) -> Iterator[None]:
    try:
        yield
    except BadCell as bad:
        candidate.reason = str(bad)


def _read_amounts(rows: Sequence[Cells], form: CellForm, mapping: ColumnMapping) -> Amounts:
    """Return what is read first of an invoice. Raises BadCell, and `validation_failed` without a currency."""
    if len(rows) > MAX_LINES:
        raise BadCell(f"Has {len(rows)} lines. An invoice has at most {MAX_LINES}.")
    if any(each.row.is_too_long for each in rows):
        raise BadCell(TOO_LONG)
    if not name_of(rows[0]["number"]):
        raise BadCell("Has no number.")
    currency = read_currency(first(rows, "currency")) or form.currency or mapping.currency
    if currency is None:
        raise invalid({"currency": ["The file does not say the currency of the amounts."]})
    return read_amounts(rows, form, currency)


def _complete(candidate: Candidate, rows: Sequence[Cells], amounts: Amounts, reading: Reading) -> None:
    """Fill in an invoice. Raises BadCell for what cannot be imported."""
    form, currency, texts = reading.form, amounts.currency, _texts_of(rows)
    candidate.client, candidate.client_number = texts["client"], first(rows, "client_number") or None
    candidate.email, candidate.has_currency = first(rows, "email") or None, bool(first(rows, "currency"))
    issue_date, due_date, paid_date = (_day(first(rows, field), form) for field in FIELDS.days)
    if not candidate.client or issue_date is None:
        raise BadCell("Has no day of issue." if candidate.client else "Has no client.")
    state = _state_of(first(rows, "status"), reading.mapping)
    lines, taxes = complete(amounts, reading.rates, reading.mapping.tax_rate or Decimal(0))
    invoice = PastInvoice(
        texts["number"],
        issue_date,
        due_date,
        state,
        currency,
        lines,
        taxes,
        subject=texts["subject"] or None,
        purchase_order=texts["purchase_order"] or None,
        notes=texts["notes"] or None,
    )
    candidate.invoice, candidate.paid = invoice, _paid_of(rows, invoice, form)
    credited = credit(invoice, candidate.client, reading.credit_notes.get(invoice.number, ()))
    if (listed := reading.payments) is None:
        # programs count what they credit as paid, too
        paid = candidate.paid if candidate.paid > invoice.total else min(candidate.paid, invoice.total - credited)
        payments = [_dated(paid, paid_date or _assumed_day(invoice, reading.mapping))]
    else:
        payments = [
            _dated(_amount(each["paid"], listed.form, currency), _day(each["paid_date"], listed.form))
            for each in listed.by_number.get(invoice.number, [])
        ]
    candidate.invoice = msgspec.structs.replace(invoice, payments=[each for each in payments if each.amount])
    _require_payments(candidate.invoice, credited)


def _texts_of(rows: Sequence[Cells]) -> dict[str, str]:
    texts = {name: first(rows, name) for name in LIMITS}
    texts |= {name: name_of(texts[name]) for name in ("number", "client")}
    for name, limit in LIMITS.items():
        if len(texts[name]) > limit:
            raise BadCell(f"Has a {name.replace('_', ' ')} of more than {limit} characters.")
    return texts


def _day(text: str, form: CellForm) -> str | None:
    return tables.read_day(text.partition("T")[0].partition(" ")[0], form.order).isoformat() if text else None


def _state_of(text: str, mapping: ColumnMapping) -> State:
    """Return what a word says. Raises BadCell for a draft, and `validation_failed` for an unknown word."""
    word = name_of(text).casefold().replace("_", " ")
    known = STATES | {name_of(name).casefold().replace("_", " "): state for name, state in mapping.states.items()}
    if word not in known:
        raise invalid({"states": [f"Say what “{text}” means: a draft, open, paid or void."]})
    state = known[word]
    if state == "draft":
        raise BadCell("Is a draft. Only what was issued is imported.")
    return state


def _paid_of(rows: Sequence[Cells], invoice: PastInvoice, form: CellForm) -> Decimal:
    """Return what an invoice says that was paid; of one that is paid and says no amount, all of it."""
    text = first(rows, "paid")
    if text:
        return _amount(text, form, invoice.currency)
    return invoice.total if invoice.state == "paid" else Decimal(0)


def _amount(text: str, form: CellForm, currency: str) -> Decimal:
    return amount_of(read_units(text, "paid", form, currency) or 0, currency)


def _assumed_day(invoice: PastInvoice, mapping: ColumnMapping) -> str | None:
    """Return the day of a payment by the rule that a person has chosen; None without one."""
    if mapping.paid_on is None:
        return None
    return (invoice.due_date if mapping.paid_on == "due_date" else None) or invoice.issue_date


def _dated(amount: Decimal, day: str | None) -> PastPayment:
    """Return a payment. Raises `validation_failed` without a day, and BadCell for a refund."""
    if amount < 0:
        raise BadCell("Has a payment of less than 0. Import it without, and record the refund here.")
    if amount and day is None:
        raise invalid({"paid_on": [PAID_ON]})
    return PastPayment(amount, day or "")


def _require_payments(invoice: PastInvoice, credited: Decimal) -> None:
    """Raise BadCell if the payments of an invoice contradict its state."""
    if invoice.state == "void" and invoice.payments:
        raise BadCell("Is void, but has payments.")
    if invoice.state == "paid" and invoice.paid + credited < invoice.total:
        message = f"Is paid, but of {part(invoice.total)} {invoice.currency} only {part(invoice.paid)} was."
        raise BadCell(f"{message} If a credit note covers the rest, add credits.csv to a ZIP.")


def _attach(archive: Archive, candidates: Iterable[Candidate | CreditCandidate]) -> Iterator[str]:
    """Give the documents that can be imported their PDFs; one whose PDF is damaged or not clear cannot be.

    Yields what people should know of the other files of the ZIP.
    """
    by_number = {number: each for each in candidates if (number := each.number)}
    matched = match_pdfs(archive.pdfs, by_number)
    for number, entries in matched.items():
        if by_number[number].reason is not None:
            continue
        if len(entries) > 1:
            by_number[number].reason = f"{len(entries)} PDFs have its number. Leave one of them in the ZIP."
            continue
        with _noting(by_number[number]):
            by_number[number].pdf = archive.read_pdf(entries[0])
    used = {entry.filename for entries in matched.values() for entry in entries}
    others = [name_in(entry) for entry in archive.pdfs if entry.filename not in used]
    if others:
        yield f"PDFs that have the number of no document, or of several, are left out: {listed(others)}."
    if archive.ignored:
        yield f"Neither CSV nor PDF, and left out: {listed(archive.ignored)}."


def _unmatched(payments: PaymentList | None, candidates: Iterable[Candidate]) -> Iterator[str]:
    """Yield which payments are left out, because the file does not have their invoices."""
    known = {each.number for each in candidates}
    others = [] if payments is None else [number for number in payments.by_number if number not in known]
    if others:
        yield f"Payments of invoices that the file does not have are left out: {listed(others)}."
