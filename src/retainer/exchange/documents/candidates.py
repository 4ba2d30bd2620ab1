"""Candidates: the invoices of a file as the lines of a plan, whether or not they can be imported, and their sums."""

from collections.abc import Callable, Iterable
from decimal import Decimal

import msgspec

from retainer.billing.credit_notes.history import PastCreditNote
from retainer.billing.invoices.history import PastInvoice
from retainer.exchange.documents import credit_notes
from retainer.exchange.documents.credit_notes import CreditCandidate
from retainer.exchange.plans import DescribedRow, Sum, require_few
from retainer.values.decoding import decoder
from retainer.values.exact import amount_of, minor_units


class Candidate(msgspec.Struct, array_like=True, tag="invoice"):
    """The rows of a file that are one invoice."""

    lines: list[int]
    cells: list[list[str]]
    reason: str | None = None
    """Why it cannot be imported."""
    invoice: PastInvoice | None = None
    """None if it cannot be read."""
    client: str = ""
    client_number: str | None = None
    email: str | None = None
    has_currency: bool = False
    """Whether the file names its currency."""
    paid: Decimal = Decimal(0)
    """What the invoice itself says that was paid; a list of payments can say something else."""
    is_first: bool = False
    """Whether it is the first of its client: a dry run keeps no client, and counts it once."""
    pdf: bytes | None = None

    @property
    def number(self) -> str:
        return "" if self.invoice is None else self.invoice.number


class SeriesNumbers(msgspec.Struct, array_like=True, tag="numbers"):
    """The numbers of the documents that are imported, each with its day: the series go on after them."""

    of_invoices: list[tuple[str, str]]
    of_credit_notes: list[tuple[str, str]] = []


Item = SeriesNumbers | Candidate | CreditCandidate
decode: Callable[[bytes | str], Item] = decoder(Item)  # type: ignore[arg-type]  # a union


def describe(line: bytes) -> DescribedRow | None:
    """Return an invoice of a plan as people read it; None for the numbers of all."""
    item = decode(line)
    if isinstance(item, SeriesNumbers):
        return None
    if isinstance(item, CreditCandidate):
        return credit_notes.describe(item)
    values, invoice = {"client": item.client}, item.invoice
    if invoice is not None:
        values |= {"number": invoice.number, "issue_date": invoice.issue_date, "due_date": invoice.due_date or ""}
        paid = amount_of(minor_units(invoice.paid, invoice.currency), invoice.currency)
        values |= {"status": invoice.state, "currency": invoice.currency}
        values |= {"total": str(invoice.total), "paid": str(paid), "pdf": "yes" if item.pdf else "no"}
    return DescribedRow(item.lines[0], values, [item.reason] if item.reason else [])


def numbers_of(candidates: Iterable[Candidate], credited: Iterable[CreditCandidate]) -> SeriesNumbers:
    invoices = [each.invoice for each in candidates if each.invoice is not None and each.reason is None]
    notes = [each.note for each in credited if each.note is not None and each.reason is None]
    return SeriesNumbers(
        [(each.number, each.issue_date) for each in invoices], [(each.number, each.issue_date) for each in notes]
    )


def sums_of(candidates: Iterable[Candidate], credited: Iterable[CreditCandidate]) -> list[Sum]:
    """Return the sums by month, client and currency: as the file has them, and of the documents that can be imported.

    Credit notes count in the month of their own day, if the file has any.
    """
    found: dict[tuple[str, str, str], list[tuple[PastInvoice, Candidate]]] = {}
    for each in candidates:
        if each.invoice is not None:
            key = (each.invoice.issue_date[:7], each.client, each.invoice.currency)
            found.setdefault(key, []).append((each.invoice, each))
    notes: dict[tuple[str, str, str], list[tuple[PastCreditNote, CreditCandidate]]] = {}
    for note in credited:
        if note.note is not None and note.currency:
            key = (note.note.issue_date[:7], note.client, note.currency)
            notes.setdefault(key, []).append((note.note, note))
    require_few(found.keys() | notes.keys())
    sums = {key: _sum(*key, found.get(key, [])) for key in sorted({*found, *notes})}
    return [sums[key] | (_sum_of_notes(key[2], notes.get(key, [])) if notes else {}) for key in sums]


def _total(parts: Iterable[Decimal], currency: str) -> str:
    return str(amount_of(sum(minor_units(part, currency) for part in parts), currency))


def _sum_of_notes(currency: str, notes: list[tuple[PastCreditNote, CreditCandidate]]) -> dict[str, str | int]:
    imported = [note for note, candidate in notes if candidate.reason is None]
    return {
        "credited_in_file": _total((note.total for note, _ in notes), currency),
        "credited": _total((note.total for note in imported), currency),
    }


def _sum(month: str, client: str, currency: str, invoices: list[tuple[PastInvoice, Candidate]]) -> dict[str, str | int]:
    imported = [invoice for invoice, candidate in invoices if candidate.reason is None]
    return {
        "month": month,
        "client": client,
        "currency": currency,
        "invoices_in_file": len(invoices),
        "invoices": len(imported),
        "total_in_file": _total((invoice.total for invoice, _ in invoices), currency),
        "total": _total((invoice.total for invoice in imported), currency),
        "paid_in_file": _total((candidate.paid for _, candidate in invoices), currency),
        "paid": _total((invoice.paid for invoice in imported), currency),
    }
