"""Compare what documents come to with fractions."""

# What the rules complete is still None here.
# mypy: disable-error-code="arg-type, assignment"

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import msgspec
from sqlalchemy import bindparam, delete, insert

from retainer.billing import expenses, reading, rules, shares
from retainer.billing.credit_notes import credit_notes as crediting
from retainer.billing.credit_notes.types import CreditNote, CreditNoteLine
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.kinds.base import NO_TERMS, LineContext, RecordedItem
from retainer.billing.kinds.dated import EXPENSES, TIME
from retainer.errors import Refusal
from retainer.schema.billing import credit_note_shares
from retainer.store.tables import ACCOUNT, NOW
from retainer.store.tx import Actor, Tx
from retainer.values import money
from retainer.values.exact import minor_units
from retainer.values.reading import complete
from tests.factories import ApiClient
from tests.reference import documents as reference
from tests.reference import random_documents
from tests.reference.arithmetic import DIGITS, Ties
from tests.reference.documents import Ledger, Line, Note, Refused

MAX_NOTES = 6
UNUSED_RATE = Decimal(77)
"""The tax rate of lines that say none: there are none."""
SHARE: dict[str, Any] = {name: bindparam(name) for name in ("credit_note_id", "project_id", "currency", "amount")}
STAMPS: dict[str, Any] = {"created_at": NOW, "updated_at": NOW}
ADD = insert(credit_note_shares).values(account_id=ACCOUNT, **STAMPS, **SHARE)
CLEAR = delete(credit_note_shares).where(credit_note_shares.c.credit_note_id == bindparam("credit_note"))


class Difference(Exception):
    """The product came to something else than the reference."""


class Undone(Exception):
    """Ends a transaction that is not to be committed."""


class Product:
    """The product's own functions on its own types, in one transaction that is never committed.

    An invoice with as many credit notes as a chain has is in the database, so that what each takes back of the
    projects can be written and read; what documents come to is not read from there.
    """

    def __init__(self, api: ApiClient) -> None:
        client = api.make("/clients")["id"]
        project = [api.make("/projects", client_id=client)["id"] for _ in range(random_documents.PROJECTS)]
        self.projects: dict[int | None, int | None] = {None: None, **dict(enumerate(project))}
        self.owners: reading.Projects = {}
        first = {"description": "Design", "unit_price": "100"}
        self.invoice = api.make("/invoices", client_id=client, status="sent", lines=[first])
        path = f"/invoices/{self.invoice['id']}/credit-notes"
        self.notes = [api.post(path, {"amount": "1"}).data["id"] for _ in range(MAX_NOTES)]
        self.store = api.store
        self.written: list[int] = []
        self.actor = Actor(api.account_id, api.admin_id, "admin", "EUR", "UTC", 30, "C-{0000}")

    @contextmanager
    def opened(self) -> Iterator[Tx]:
        """The transaction; what it wrote is forgotten."""
        with suppress(Undone), self.store.begin(self.actor, write=True, seconds=math.inf) as tx:
            self.written = self.notes
            self.owners = reading.load_projects(tx, self.projects.values())
            yield tx
            raise Undone

    def bill(self, tx: Tx, document: dict[str, Any]) -> Invoice:
        """An invoice of these lines."""
        for note in self.written:
            tx.run(CLEAR, credit_note=note)
        self.written = []
        forget_errors(tx)
        days = "2026-03-31T00:00:00.000000Z"
        invoice = Invoice(self.invoice["id"], days, days, self.invoice["client_id"], currency=document["currency"])
        invoice.project_id = self.projects[document["project"]]
        invoice.number, invoice.credit_notes, invoice.payments = "INV-1", [], []
        invoice.amount_credited = Decimal(0)
        invoice.lines = [self.line(tx, invoice, each, place) for place, each in enumerate(document["lines"], start=1)]
        rules.compute_totals(invoice)
        return invoice

    def line(self, tx: Tx, invoice: Invoice, sent: dict[str, Any], place: int) -> InvoiceLine:
        """A line, with the amount that it comes to."""
        priced = {"unit_price": Decimal(sent["unit_price"])} if "unit_price" in sent else {}
        line = complete(InvoiceLine, {"description": "Design"} | priced, {}, {})
        line.id, line.kind, line.tax_rate = place, "item", Decimal(sent["tax_rate"])
        line.project_id, amount = self.projects[sent["project"]], None
        if "unit_price" in sent:
            line.quantity, line.discount_percent = Decimal(sent["quantity"]), Decimal(sent["discount_percent"])
        else:
            kind = TIME if "time" in sent else EXPENSES
            line.kind = kind.name
            pieces = sent.get("time") or sent["expenses"]
            items = [self.piece(tx, each, invoice.currency) for each in pieces]
            context = LineContext(invoice, NO_TERMS, {}, self.owners, {}, set(), "UTC")
            amount = kind.price_items(tx, line, items, context)
        rules.complete_line(tx, line, invoice, UNUSED_RATE, self.owners, amount=amount)
        return line

    def piece(self, tx: Tx, sent: dict[str, Any], currency: str) -> RecordedItem:
        """A piece of work, with what it is worth."""
        if "minutes" in sent:
            rate = Decimal(sent["hourly_rate"])
            units = minor_units(money.time_amount(sent["minutes"], rate, currency), currency)
            rated = (sent["minutes"], minor_units(rate, currency))
        else:
            expense = expenses.Expense(1, "", "", Decimal(sent["amount"]), currency=currency, billable=True)
            expense.tax_rate, expense.amount_includes_tax = Decimal(sent["tax_rate"]), sent["amount_includes_tax"]
            expense.markup_percent = Decimal(sent["markup_percent"])
            expenses.compute_amounts(tx, expense)
            net, _ = reference.expense(sent, DIGITS[currency])
            agree("the net of an expense", minor_units(expense.net_amount, currency), net)
            units, rated = minor_units(expense.billable_amount, currency), (0, None)
        return RecordedItem(1, 1, None, currency, 1, units, "2026-03-31", None, None, None, *rated, 0)

    def credit(self, tx: Tx, invoice: Invoice, sent: dict[str, Any]) -> tuple[CreditNote, dict[int | None, int]]:
        """A credit note, and what it takes back of each project. Raises Refused."""
        credit_note = CreditNote(1, "", "", invoice_id=invoice.id, currency=invoice.currency, lines=None, amount=None)
        if "amount" in sent:
            credit_note.amount = Decimal(sent["amount"])
        elif sent:
            credit_note.lines = [part(each) for each in sent["lines"]]
        try:
            crediting.compute_credit(tx, credit_note, invoice, "en")
        except Refusal as refusal:
            raise Refused(*refusal.members["errors"]) from None
        if tx.errors:
            raise Refused(*tx.errors)
        taken = shares.compute_shares(
            tx, invoice, minor_units(credit_note.subtotal, invoice.currency), credit_note.lines
        )
        note_id = self.notes[len(invoice.credit_notes)]
        self.written.append(note_id)
        for project, units in taken.items():
            tx.run(ADD, credit_note_id=note_id, project_id=project, currency=credit_note.currency, amount=units)
        invoice.credit_notes.append(credit_note)
        invoice.amount_credited += credit_note.total
        return credit_note, taken


def part(sent: dict[str, Any]) -> CreditNoteLine:
    """A line of a credit note as it was sent; the place of an invoice's line is its id, from 1."""
    place = sent.get("invoice_line_id")
    given = {name: Decimal(sent[name]) for name in ("quantity", "unit_price", "tax_rate") if name in sent}
    line = msgspec.structs.replace(CreditNoteLine(None, None, None, None, None, None, None), **given)
    if place is None:
        line.description = "Goodwill"
    else:
        line.invoice_line_id = place + 1
    return line


def agree(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise Difference(f"{what}: {found}, and not {expected}")


def agree_on_totals(document: Any, shares: dict[Fraction, reference.Share]) -> None:
    """The shares of a document at each rate, in their order, and its totals; each with the digits of its currency."""
    digits = DIGITS[document.currency]
    found = [(Fraction(share.tax_rate), share.taxable_amount, share.tax_amount) for share in document.tax_breakdown]
    amounts = [
        document.subtotal,
        document.tax_total,
        document.total,
        *(amount for share in found for amount in share[1:]),
    ]
    agree("decimal places", {-amount.as_tuple().exponent for amount in amounts}, {digits})
    units = [
        (rate, minor_units(net, document.currency), minor_units(tax, document.currency)) for rate, net, tax in found
    ]
    wanted = [(rate, *shares[rate]) for rate in sorted(shares)]
    agree(
        "shares", [share for share in units if share[1:] != (0, 0)], [share for share in wanted if share[1:] != (0, 0)]
    )
    net, tax = sum(share.net for share in shares.values()), sum(share.tax for share in shares.values())
    totals = [
        minor_units(amount, document.currency) for amount in (document.subtotal, document.tax_total, document.total)
    ]
    agree("totals", totals, [net, tax, net + tax])


def agree_on_lines(found: list[InvoiceLine], expected: list[Line], currency: str) -> None:
    for line, expected_line in zip(found, expected, strict=True):
        agree("a line's amount", minor_units(line.amount, currency), expected_line.amount)
        agree(
            "a line's quantity and price",
            (line.quantity, line.unit_price),
            (expected_line.quantity, expected_line.unit_price),
        )


def agree_on_note(
    credit_note: CreditNote, taken: dict[int | None, int], note: Note, projects: dict[Any, int | None]
) -> None:
    found = [
        (minor_units(line.amount, credit_note.currency), line.quantity, line.tax_rate) for line in credit_note.lines
    ]
    agree("what is credited", found, [(part.amount, part.quantity, part.rate) for part in note.parts])
    agree_on_totals(credit_note, note.shares)
    wanted = {projects[project]: units for project, units in note.projects.items() if units}
    agree("what is taken of projects", {project: units for project, units in taken.items() if units}, wanted)


def compare(product: Product, tx: Tx, rng: Random, seen: Counter[str]) -> None:
    """Make an invoice and its credit notes, twice. Raises Difference."""
    document = random_documents.document(rng)
    digits = DIGITS[document["currency"]]
    expected = reference.bill(document)
    invoice = product.bill(tx, document)
    seen["documents"] += 1
    seen["lines"] += len(expected)
    large = [place for place, line in enumerate(expected) if abs(line.amount) > reference.MAX_AMOUNT * 10**digits]
    agree("which lines are too large", len(tx.errors.get("unit_price", ())) > 0, bool(large))
    if large:
        seen["refused documents"] += 1
        return
    agree_on_lines(invoice.lines, expected, invoice.currency)
    ledger = Ledger(expected, digits)
    agree_on_totals(invoice, ledger.rates)
    if ledger.gross <= 0:
        return
    for request in random_documents.requests(rng, ledger):
        forget_errors(tx)
        try:
            note = ledger.credit(request)
        except Refused as expected_fault:
            refuse(product, tx, invoice, request, expected_fault.args[0])
            seen["refused credit notes"] += 1
            continue
        try:
            agree_on_note(*product.credit(tx, invoice, request), note, product.projects)
        except Refused as fault:
            raise Difference(f"{request} is refused: {fault.args} {tx.errors}") from None
        seen["credit notes"] += 1
        seen["lines of credit notes"] += len(note.parts)
        if not request:
            agree("what is left in the end", {left[1:] for left in shares.remaining_shares(invoice).values()}, {(0, 0)})
            seen["credited as a whole"] += 1
    left = {
        Fraction(rate): (left_share.taxable, left_share.tax)
        for rate, left_share in shares.remaining_shares(invoice).items()
    }
    agree("what is left at each rate", left, ledger.rates)


def forget_errors(tx: Tx) -> None:
    for name in ("errors", "codes", "refused"):
        vars(tx).pop(name, None)


def refuse(product: Product, tx: Tx, invoice: Invoice, request: dict[str, Any], member: str) -> None:
    """A request that is refused for this member, perhaps among others."""
    try:
        product.credit(tx, invoice, request)
    except Refused as fault:
        if member not in fault.args:
            raise Difference(f"{request} is refused for {fault.args}, and not for {member}") from None
    else:
        raise Difference(f"{request} is not refused for {member}")


def compare_all(product: Product, seed: int, numbers: range) -> tuple[Counter[str], list[str]]:
    """Compare these documents of a seed; return how much was compared, and the differences."""
    seen: Counter[str] = Counter()
    differences = []
    met = Ties.count
    with product.opened() as tx:
        for number in numbers:
            try:
                compare(product, tx, Random(seed * 10**9 + number), seen)
            except Exception as difference:  # noqa: BLE001  # whatever goes wrong
                differences.append(f"seed {seed}, document {number}: {difference!r}")
    seen["ties"] = Ties.count - met
    return seen, differences
