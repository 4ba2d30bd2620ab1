"""Invoice lines: what an invoice bills, be it time, expenses, a milestone, or anything else."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta
from sqlalchemy import ColumnElement, Select, bindparam, literal, null, select

from retainer.billing import allocations, documents
from retainer.billing.allocations import KINDS
from retainer.schema.billing import billings, invoice_lines
from retainer.schema.work import projects
from retainer.store import constraints
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import amount_of, minor_units
from retainer.values.kinds import Id, SignedMoney, Text2000, UnitPrice
from retainer.values.reading import complete
from retainer.values.records import READ_ONLY, SERVER_DEFAULT, Record

MOST_PIECES = 1000
LONGEST_WORDS = 2000


Lines = Mapping[int, "InvoiceLine"]
"""The lines of an invoice by their ids."""
Kind = Annotated[
    Literal["item", "time", "expense", "milestone"],
    "What is billed: work of one kind, or an `item` with its own price.",
]
Ids = Annotated[list[Id], Meta(max_length=MOST_PIECES)]


class InvoiceLine(Record):
    """One thing that an invoice bills; one with work has its quantity and price from there."""

    description: Annotated[Text2000, "Required, unless work is billed: then the work's own words when left out."] = (
        SERVER_DEFAULT
    )
    unit_price: Annotated[
        UnitPrice, "For one, before discount and tax; required, unless work is billed: then it follows."
    ] = SERVER_DEFAULT
    invoice_id: Annotated[Id, "The invoice that it belongs to."] = READ_ONLY
    kind: Kind = READ_ONLY
    quantity: documents.LineQuantity = SERVER_DEFAULT
    unit: documents.LineUnit = None
    discount_percent: documents.LineDiscount = Decimal(0)
    tax_rate: documents.LineTaxRate = SERVER_DEFAULT
    project_id: documents.LineProject = None
    time_entry_ids: Annotated[
        Ids,
        allocations.billed("time_entry_id", allocations.ids_in),
        "Unbilled time of the client to bill; quantity and price follow from it.",
    ] = []
    expense_ids: Annotated[
        Ids,
        allocations.billed("expense_id", allocations.ids_in),
        "Unbilled expenses of the client to bill; the price follows from them.",
    ] = []
    milestone_id: Annotated[
        Id | None,
        allocations.billed("milestone_id", lambda own: int(own) if own else None),
        "Unbilled milestone of a project of the client to bill; the price follows from it.",
    ] = None
    amount: Annotated[SignedMoney, "`quantity` x `unit_price` less discount; of work, the sum of its amounts."] = (
        READ_ONLY
    )
    currency: documents.LineCurrency = READ_ONLY
    position: documents.LinePosition = SERVER_DEFAULT


class BillableItem(NamedTuple):
    """A piece of work as it can be billed; its amount and rate in minor units, its minutes if it is time."""

    id: int
    client_id: int | None
    project_id: int | None
    currency: str
    billable: int
    amount: int | None
    day: str | None
    description: str | None
    invoice_id: int | None
    invoice_line_id: int | None
    minutes: int
    rate: int | None


def new_line(**members: Any) -> InvoiceLine:
    """A line with these members and the usual others."""
    return complete(InvoiceLine, members, members, {})


def prepare_line(
    tx: Tx, line: InvoiceLine, invoice: Any, tax_rate: Decimal, own: Lines, seen: set[tuple[str, int]]
) -> None:
    """What a line has from its work and its invoice.

    Work on its `own` lines, those that the invoice has now, can move among them; `seen` is what other lines bill.
    """
    named = [name for name, kind in KINDS.items() if getattr(line, kind.member)]
    line.kind = named[0] if named else "item"  # type: ignore[assignment]
    worth = None
    if named:
        for name in named[1:]:
            tx.error(KINDS[name].member, f"A line bills one kind of work; this one has {KINDS[named[0]].member}, too.")
        pieces = found(tx, line, invoice, own, seen)
        worth = price(tx, line, pieces, invoice.currency, own.get(line.id))
    else:
        for member in ("description", "unit_price") if tx.readable(*(kind.member for kind in KINDS.values())) else ():
            if getattr(line, member) is None:
                tx.error(member, "Is required, unless the line bills work.")
        line.description, line.unit_price = line.description or "", line.unit_price or Decimal(0)
        line.quantity = Decimal(1) if line.quantity is None else line.quantity
    documents.price_line(tx, invoice_lines, line, invoice, tax_rate, worth=worth)


def found(tx: Tx, line: InvoiceLine, invoice: Any, own: Lines, seen: set[tuple[str, int]]) -> list[BillableItem]:
    """The work that a line names, locked; a fault for each that it cannot bill."""
    kind = KINDS[line.kind]
    named = getattr(line, kind.member)
    ids = named if isinstance(named, list) else [named]
    what = constraints.singular(kind.table)
    pieces = []
    for place, piece_id in sorted(enumerate(ids), key=lambda it: it[1]):  # in one order, so that no two wait in a ring
        row = tx.one(_piece(line.kind), id=piece_id)
        piece = BillableItem(*row) if row else None
        sentence, code = validate_item(piece, what, invoice, own)
        if (line.kind, piece_id) in seen:
            sentence, code = f"Stands twice in this request: {what} {piece_id}. Name it once.", "validation_failed"
        seen.add((line.kind, piece_id))
        if sentence:
            tx.error(f"{kind.member}.{place}" if isinstance(named, list) else kind.member, sentence, code)
        elif piece:
            pieces.append(piece)
    if isinstance(named, list):
        setattr(line, kind.member, sorted(ids))
    return pieces


def validate_item(piece: BillableItem | None, what: str, invoice: Any, own: Collection[int]) -> tuple[str, str]:
    """Why a piece of work cannot be billed by an invoice, and the code of that; empty when it can."""
    if piece is None:
        return constraints.MISSING.format(what), "validation_failed"
    name = f"{what.capitalize()} {piece.id}"
    if piece.invoice_line_id is not None and piece.invoice_line_id not in own:
        return f"{name} is already on invoice {piece.invoice_id}. Leave it out.", "already_billed"
    sentence = ""
    if invoice.client_id is not None and piece.client_id != invoice.client_id:
        sentence = f"{name} is not for client {invoice.client_id}. Bill it to its own client."
    elif not piece.billable:
        sentence = f"{name} is not billable. Leave it out, or make it billable first."
    elif piece.currency != invoice.currency:
        sentence = (
            f"{name} is in {piece.currency}, the invoice in {invoice.currency}. Bill it on one in {piece.currency}."
        )
    elif piece.amount is None:
        sentence = f"{name} has no amount. Give it one first."
    return sentence, "validation_failed"


def price(tx: Tx, line: InvoiceLine, pieces: list[BillableItem], currency: str, before: InvoiceLine | None) -> int:
    """Let a line have quantity, price, project and words from its work; answers its amount in minor units.

    A quantity or price that says neither that of the work nor what the line had before is a fault.
    """
    if line.discount_percent:
        tx.error(
            "discount_percent", "Work has no discount: the amount is that of the work. Add a line with quantity -1."
        )
        line.discount_percent = Decimal(0)
    units = sum(piece.amount or 0 for piece in pieces)
    minutes = sum(piece.minutes for piece in pieces)
    quantity = money.hours(minutes) if minutes else Decimal(-1 if units < 0 else 1)
    rates = {piece.rate for piece in pieces}
    rate = rates.pop() if len(rates) == 1 else None
    unit_price = money.unit_price(units, quantity, currency) if rate is None else amount_of(rate, currency)
    is_known = bool(pieces) and tx.readable(KINDS[line.kind].member)
    for member, derived in (("quantity", quantity), ("unit_price", unit_price)):
        if is_known and getattr(line, member) not in {None, derived, getattr(before, member, None)}:
            tx.error(member, f"Is that of the work: {derived:f}. Leave it out.")
        setattr(line, member, derived)
    line.unit = line.unit or ("hours" if minutes else None)
    projects = {piece.project_id for piece in pieces}
    if line.kind == "milestone" and pieces and line.project_id not in {None, *projects}:
        tx.error("project_id", "Is not that of the milestone. Leave it out.")
    elif line.project_id is None and len(projects) == 1:
        (line.project_id,) = projects
    line.description = line.description or words(line.kind, pieces)
    return units


def words(kind: Kind, pieces: list[BillableItem]) -> str:
    """What a line says when nobody said more: the work's own words, else when it was done."""
    said = {piece.description for piece in pieces}
    if len(said) == 1 and None not in said:
        return str(said.pop())[:LONGEST_WORDS].rstrip()
    days = sorted(piece.day for piece in pieces if piece.day)
    what = {"time": "Work", "expense": "Expenses", "milestone": "Milestone"}.get(kind, "Item")
    span = f"from {days[0]} to {days[-1]}" if days and days[0] != days[-1] else f"on {days[0]}" if days else ""
    return f"{what} {span}".strip()


def save(tx: Tx, invoice: int, before: list[InvoiceLine], after: list[InvoiceLine]) -> None:
    """Write the lines of an invoice in place of those before, and let them have their work."""
    known, named = ({line.id: line for line in lines} for lines in (before, after))
    kept = {line.id for line in after if line.id in known and allocations.of(known[line.id]) == allocations.of(line)}
    for line in before:
        if line.id not in kept and line.kind != "item":
            allocations.detach(tx, line.id, named.get(line.id))
    documents.save_lines(tx, invoice_lines, before, after, invoice_id=invoice)
    for line in after:
        if line.id not in kept and line.kind != "item":
            allocations.attach(tx, invoice, line)


def by_project(invoice: Any) -> dict[int | None, int]:
    """What an invoice bills of each project, in minor units; lines without one count for the invoice's."""
    billed: dict[int | None, int] = {}
    for line in invoice.lines:
        project = line.project_id or invoice.project_id
        billed[project] = billed.get(project, 0) + minor_units(line.amount, line.currency)
    return billed


@cache
def _piece(kind: Kind) -> Select[Any]:
    """A piece of work in the order of Piece."""
    its = KINDS[kind].table
    nothing: ColumnElement[Any] = null()
    if kind == "time":
        wanted: list[Any] = [*its.c["client_id", "project_id", "currency", "billable", "amount", "date", "description"]]
        wanted += its.c["invoice_id", "invoice_line_id", "duration_minutes", "hourly_rate"]
    elif kind == "expense":
        wanted = [*its.c["client_id", "project_id", "currency", "billable", "billable_amount", "date", "description"]]
        wanted += [*its.c["invoice_id", "invoice_line_id"], literal(0), nothing]
    else:
        its_project = projects.c.id == its.c.project_id
        client = select(projects.c.client_id).where(its_project).scalar_subquery()
        counts = select(projects.c.is_template.is_(False)).where(its_project).scalar_subquery()
        live = (billings.c.milestone_id == its.c.id, billings.c.is_live == 1)
        line = select(billings.c.invoice_line_id).where(*live).scalar_subquery()
        on_line = invoice_lines.join(billings, billings.c.invoice_line_id == invoice_lines.c.id)
        invoice = select(invoice_lines.c.invoice_id).select_from(on_line).where(*live).scalar_subquery()
        wanted = [client, *its.c["project_id", "currency"], counts, *its.c["amount", "completed_at", "name"]]
        wanted += [invoice, line, literal(0), nothing]
    return select(its.c.id, *wanted).select_from(its).where(its.c.id == bindparam("id")).with_for_update(of=its)
