"""Documents: what invoices and quotes share: their client, their lines, what those come to, when they are locked."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from sqlalchemy import ColumnElement, Select, Table, bindparam, func, literal, or_, select

from retainer.schema.crm import clients, external_contacts
from retainer.schema.filters import FOUND, Where, searched
from retainer.schema.identity import accounts
from retainer.schema.work import projects
from retainer.shared import relations
from retainer.store import constraints
from retainer.store.records import view
from retainer.store.tables import ACCOUNT, metadata
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import DIGITS, amount_of, minor_units
from retainer.values.kinds import Currency, Id, Percent, Position, Quantity, SignedMoney, Text20, Text10000
from retainer.values.reading import NO_ID, ChildChange, writable_fields
from retainer.values.records import Record

T = TypeVar("T")
L = TypeVar("L", bound=Record)
MOST_LINES = 200
SET_OF_LINES = "In their order. Sent, they are all that stays: one with its `id` is kept, another is new."
NO_LINE: Any = ChildChange(NO_ID, {})
"""Stands in the place of a line that could not be identified."""
Lines = Meta(max_length=MOST_LINES)


class TaxShare(msgspec.Struct):
    """What is taxed at one rate."""

    tax_rate: Annotated[Percent, "Percent; each rate stands here once."]
    taxable_amount: Annotated[SignedMoney, "What the lines at this rate come to, before tax."]
    tax_amount: Annotated[SignedMoney, "The tax on `taxable_amount`, rounded half up."]


Subtotal = Annotated[SignedMoney, "What the lines come to, before tax."]
TaxTotal = Annotated[SignedMoney, "Sum of the `tax_amount` of each rate in `tax_breakdown`."]
Total = Annotated[SignedMoney, "`subtotal` and `tax_total` together."]
TaxBreakdown = Annotated[list[TaxShare], "One entry for each tax rate, since tax is rounded once for each."]
DocumentCurrency = Annotated[Currency, "The client's when left out; fixed once there is a line."]
IssuedTo = Annotated[Id | None, "Contact of the client to whom it goes; null again when that is deleted."]
Notes = Annotated[Text10000 | None, "Remarks to the client; they can still change after it was sent."]
Terms = Annotated[
    Text10000 | None, "Terms of payment or delivery, in your own words; an invoice's are fixed once it is issued."
]

LineUnit = Annotated[Text20 | None, "What is counted, like hours or pieces."]
LineQuantity = Annotated[Quantity, "How many there are; less than 0 for a rebate."]
LineDiscount = Annotated[Percent, "Percent off `quantity` x `unit_price`; 0 on lines that bill work."]
LineTaxRate = Annotated[Percent, "Percent; the client's when left out, else the account's."]
LineProject = Annotated[Id | None, "A project of the client; null: that of the document, if it has one."]
LineAmount = Annotated[SignedMoney, "`quantity` x `unit_price` less discount, rounded half up; before tax."]
LineCurrency = Annotated[Currency, "That of the document."]
LinePosition = Annotated[
    Position, "Order within the document, lowest first; in a set of lines, the place where it stands."
]


class DocumentTotals(msgspec.Struct):
    """What a document comes to now."""

    id: Annotated[int, "Of the document to which the line belongs."]
    currency: DocumentCurrency
    subtotal: Subtotal
    tax_total: TaxTotal
    total: Total
    tax_breakdown: TaxBreakdown


def _mentions(table: Table, q: Any) -> ColumnElement[bool]:
    named = select(clients.c.id).where(clients.c.name_folded.contains(q, escape="/"))
    return or_(table.c.search.contains(q, escape="/"), table.c.client_id.in_(named))


SEARCH_WITH_CLIENT = Where(_mentions, searched, f"{FOUND}, or in the client's name.")
"""The documents in whose text, or in whose client's name, a word or a part of it occurs."""

CLIENT = (
    select(*clients.c["status", "currency"], func.coalesce(clients.c.tax_rate, accounts.c.tax_rate))
    .select_from(clients.join(accounts, accounts.c.id == ACCOUNT))
    .where(clients.c.id == bindparam("id"))
)
OWNERS = {
    table.name: select(table.c.client_id, is_template).where(table.c.id == bindparam("id"))
    for table, is_template in ((external_contacts, literal(0)), (projects, projects.c.is_template))
}
"""Whose a contact or project is, and whether it is a template."""


def prepare_for_client(tx: Tx, document: Any, before: Any) -> Decimal:
    """What a document has from its client, to whom its contact and project must belong; answers its lines' tax rate."""
    found = tx.one(CLIENT, id=document.client_id)
    status, currency, tax_rate = found or ("active", tx.actor.currency, "0")
    if found is None and document.client_id is not None:
        tx.error("client_id", constraints.MISSING.format("client"))
        document.client_id = None  # so that nothing is blamed for not being that client's
    if before is None or document.client_id != before.client_id:
        relations.check_open(tx, "client_id", f"Client {document.client_id}", status)
    document.currency = document.currency or currency
    if before and before.lines and document.currency != before.currency:
        tx.error("currency", f"Is fixed as {before.currency} while there are lines. Delete them first.")
    for member, table in (("contact_id", "external_contacts"), ("project_id", "projects")):
        if before is None or any(getattr(document, name) != getattr(before, name) for name in (member, "client_id")):
            check_owner(tx, document, member, table, document.client_id)
    return Decimal(tax_rate)


def default_tax_rate(tx: Tx, client: int) -> Decimal:
    """The tax rate of lines that say none: the client's, else the account's."""
    return Decimal((tx.one(CLIENT, id=client) or ("", "", "0"))[2])


def check_owner(tx: Tx, document: Any, member: str, table: str, client: int | None) -> None:
    """Note a fault when a contact or project is another client's."""
    row = tx.one(OWNERS[table], id=getattr(document, member)) if getattr(document, member) else None
    if row and row[1]:
        tx.error(member, "Is a template, and takes no time or money. Create a project from it first.")
    if row and client is not None and row[0] != client:
        owner = f"client {row[0]}" if row[0] else "no client"
        tx.error(member, f"Belongs to {owner}, not to client {client}. Choose one of the document's client.")


def price_line(tx: Tx, table: Table, line: Any, document: Any, tax_rate: Decimal, *, worth: int | None = None) -> None:
    """What a line has from its document, and its amount: what it is `worth` in minor units, if that is known."""
    line.currency = document.currency
    line.tax_rate = tax_rate if line.tax_rate is None else line.tax_rate
    check_owner(tx, line, "project_id", "projects", document.client_id)
    shape: type[Record] = type(line)
    tx.check(table, shape, {name: getattr(line, name) for name in writable_fields(shape)}, line.id)
    line.unit_price = money.pad_price(line.unit_price, line.currency)
    units = worth
    if units is None:
        units = money.line_amount(line.quantity, line.unit_price, line.discount_percent, line.currency)
    if abs(units) > money.LARGEST * 10 ** DIGITS[line.currency]:
        tx.error("unit_price", f"Makes the line {amount_of(units, line.currency)} {line.currency}: too much to bill.")
        units = 0
    line.amount = amount_of(units, line.currency)


def each_line(tx: Tx, lines: Sequence[T]) -> Iterator[T]:
    """The lines of a body; while one is looked at, faults stand under `lines.0`, `lines.1`, ...

    Those that could not be identified are passed over.
    """
    for place, line in enumerate(lines):
        tx.prefix = f"lines.{place}."
        if line is not NO_LINE:
            yield line
    tx.prefix = ""


def identified(lines: Sequence[T]) -> list[T]:
    """The lines of a body without those that could not be identified."""
    return [line for line in lines if line is not NO_LINE]


def set_totals(document: Any, shares: Iterable[money.Share]) -> None:
    """Let a document have the totals of what is taxed at each rate."""
    found, currency = list(shares), document.currency
    taxable, tax = sum(share.taxable for share in found), sum(share.tax for share in found)
    document.subtotal, document.tax_total = amount_of(taxable, currency), amount_of(tax, currency)
    document.total = amount_of(taxable + tax, currency)
    document.tax_breakdown = [
        TaxShare(share.tax_rate, amount_of(share.taxable, currency), amount_of(share.tax, currency)) for share in found
    ]


def compute_totals(document: Any, lines: Iterable[Any]) -> None:
    """Let a document have the totals of its lines."""
    set_totals(document, money.shares((minor_units(line.amount, document.currency), line.tax_rate) for line in lines))


def totals_of(document: Any) -> DocumentTotals:
    """A document's totals, to be told beside a line that changed them."""
    return DocumentTotals(*(getattr(document, name) for name in DocumentTotals.__struct_fields__))


def load_children(tx: Tx, table: Table, shape: type[L], parent: str, parent_id: int) -> list[L]:
    """The lines of a document, in their order, or what else belongs to it, the oldest first."""
    read = view(table, shape).read
    return [read(row) for row in tx.all(_parts(table, shape, parent), parent=parent_id)]


@cache
def _parts(table: Table, shape: type[Record], parent: str) -> Select[Any]:
    its = table.c[parent] == bindparam("parent")
    order = [table.c[name] for name in ("position", "id") if name in table.c]
    return view(table, shape).rows.where(its).order_by(*order)


def merge_lines(tx: Tx, sent: Sequence[L | ChildChange] | None, before: Sequence[L], *, fixed: bool) -> list[L]:
    """Return the lines that a body describes: new ones, and those of the document that it names by their ids.

    Notes a fault for an id that the document does not have, and for one that is named twice (contract 1.4), unless the
    lines are fixed: then `locked` says all that there is to say.
    """
    known = {line.id: line for line in before}
    merged: list[Any] = []
    for line in each_line(tx, sent or ()):
        if not isinstance(line, ChildChange):
            merged.append(line)
        elif line.id in known:
            merged.append(msgspec.structs.replace(known.pop(line.id), **line.values))
        else:
            merged.append(NO_LINE)
            twice = any(other.id == line.id for other in before)
            why = "is named twice. Name each line once." if twice else "is not here. Leave the id out for a new line."
            if not fixed:
                tx.error("id", f"Line {line.id} {why}")
    return merged


def save_lines(tx: Tx, table: Table, before: Sequence[Any], after: Sequence[Any], **parent: int) -> None:
    """Write a set of lines in place of another; a line is known by its id, and one without an id is new.

    Their positions are counted from 1, unless nothing has changed; if anything has, so has the document.
    """
    if [line.id for line in before] == [line.id for line in after] and all(map(is_same, before, after)):
        return
    ((reference, document),) = parent.items()
    tx.touch(metadata.tables[table.c[reference].info["target"]], document)
    known = {line.id: line for line in before}
    for line_id in known.keys() - {line.id for line in after}:
        tx.delete(table, line_id)
    for position, line in enumerate(after, start=1):
        old = known.get(line.id)
        if old is None:
            line.id = tx.insert(table, msgspec.structs.replace(line, position=position, **parent))
        elif old.position != position or not is_same(old, line):
            tx.update(table, msgspec.structs.replace(line, position=position))
            if not is_same_content(old, line):  # its row does not show which work it bills
                tx.touch(table, line.id)


def is_same(old: Any, new: Any) -> bool:
    """Whether two lines say the same and come to the same."""
    return old.amount == new.amount and is_same_content(old, new)


def is_same_content(old: Record, new: Record) -> bool:
    """Whether two lines say the same, wherever they stand."""
    return all(getattr(old, name) == getattr(new, name) for name in writable_fields(type(old)) if name != "position")


def check_locked(tx: Tx, document: Any, before: Any, why: str, names: Collection[str]) -> None:
    """Note `locked` for each of these members that a document in its state no longer changes; they stay as they are."""
    for name in names:
        old, new = getattr(before, name), getattr(document, name)
        lines = name == "lines"
        kept = (
            len(old) == len(identified(new)) == len(new) and all(map(is_same_content, old, new))
            if lines
            else old == new
        )
        if not kept:
            setattr(document, name, old)  # so that nothing else is said of it
            tx.error(name, f"Cannot be changed any more: this one is {why}.", "locked")
