"""Credit notes of another program: a list in the ZIP of the invoices that they credit."""

from collections.abc import Container, Iterable
from decimal import Decimal

import msgspec

from retainer.billing.credit_notes.history import PastCreditNote, too_much
from retainer.billing.invoices.history import PastInvoice
from retainer.exchange import tables
from retainer.exchange.columns import Cells, SourceTable
from retainer.exchange.documents.amounts import NONE, read_number
from retainer.exchange.plans import DescribedRow
from retainer.exchange.tables import TOO_LONG, BadCell, name_of
from retainer.values.exact import minor_units

LIMITS = {"number": 50, "invoice": 50, "description": 2000}
DRAFTS = frozenset({"draft", "entwurf"})


class CreditCandidate(msgspec.Struct, array_like=True, tag="credit_note"):
    """A row of a list of credit notes."""

    line: int
    file: str
    reason: str | None = None
    """Why it cannot be imported."""
    note: PastCreditNote | None = None
    """None if it cannot be read."""
    client: str = ""
    currency: str = ""
    pdf: bytes | None = None

    @property
    def number(self) -> str:
        return "" if self.note is None else self.note.number


def read(table: SourceTable) -> list[CreditCandidate]:
    """Return the credit notes of a list, in the order of their days, which is that in which they reduce balances."""
    found = [_read(cells, table) for cells in table.rows]
    return sorted(found, key=lambda each: each.note.issue_date if each.note else "")


def _read(cells: Cells, table: SourceTable) -> CreditCandidate:
    candidate = CreditCandidate(cells.row.line, table.file)
    try:
        candidate.note = _note_of(cells, table)
    except BadCell as bad:
        candidate.reason = str(bad)
    return candidate


def _note_of(cells: Cells, table: SourceTable) -> PastCreditNote:
    if cells.row.is_too_long:
        raise BadCell(TOO_LONG)
    for name, limit in LIMITS.items():
        if len(cells[name]) > limit:
            raise BadCell(f"Has a {name} of more than {limit} characters.")
    number, invoice = name_of(cells["number"]), name_of(cells["invoice"])
    if not number or not invoice:
        raise BadCell("Does not say which invoice it credits." if number else "Has no number.")
    if name_of(cells["status"]).casefold() in DRAFTS:
        raise BadCell("Is a draft. Only what was issued is imported.")
    day = tables.read_day(cells["issue_date"].partition("T")[0].partition(" ")[0], table.form.order)
    total = read_number(cells["total"], "total", table.form)
    tax = read_number(cells["tax"], "tax", table.form)
    if not total:
        raise BadCell("Has no amount.")
    taken = None if tax is None else abs(tax)
    return PastCreditNote(number, day.isoformat(), invoice, abs(total), taken, cells["description"] or None)


def by_invoice(candidates: Iterable[CreditCandidate]) -> dict[str, list[CreditCandidate]]:
    """Return the credit notes that can be read, by the numbers of their invoices."""
    found: dict[str, list[CreditCandidate]] = {}
    for each in candidates:
        if each.note is not None:
            found.setdefault(each.note.invoice_number, []).append(each)
    return found


def credit(invoice: PastInvoice, client: str, candidates: Iterable[CreditCandidate]) -> Decimal:
    """Give credit notes the client and the currency of their invoice; return what those that fit it credit."""
    left = NONE if invoice.state == "void" else invoice.total
    credited = NONE
    for each in candidates:
        total = each.note.total if each.note else NONE
        try:
            minor_units(total, invoice.currency)
        except ValueError as error:
            each.reason = str(error)
            continue
        each.client, each.currency = client, invoice.currency
        if total > left - credited:
            each.reason = too_much(total, left - credited, invoice.number)
        else:
            credited += total
    return credited


def refuse_without_invoice(candidates: Iterable[CreditCandidate], numbers: Container[str]) -> None:
    """Refuse the credit notes whose invoices are not among those that can be imported."""
    for each in candidates:
        if each.note is not None and each.reason is None and each.note.invoice_number not in numbers:
            each.reason = f"Its invoice, {each.note.invoice_number}, is not imported with it. Add that to the file."


def describe(item: CreditCandidate) -> DescribedRow:
    values, note = {"client": item.client}, item.note
    if note is not None:
        values |= {"number": note.number, "issue_date": note.issue_date, "currency": item.currency}
        values |= {"total": f"{-note.total:f}", "status": f"credits {note.invoice_number}"}
        values |= {"pdf": "yes" if item.pdf else "no"}
    return DescribedRow(item.line, values, [f"{item.file}: {item.reason}"] if item.reason else [])
