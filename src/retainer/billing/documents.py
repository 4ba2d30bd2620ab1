"""Documents: what invoices and quotes share: their client, their lines, what those come to, when they are locked."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Select, Table, bindparam, func, literal, or_, select

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.document_types import DocumentTotals, TaxShare
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.quotes.types import Quote, QuoteLine
from retainer.schema.crm import clients, external_contacts
from retainer.schema.filters import FOUND, Where, searched
from retainer.schema.identity import accounts
from retainer.schema.work import projects
from retainer.shared import relations
from retainer.store import constraints
from retainer.store.records import R, row_mapper
from retainer.store.tables import ACCOUNT, metadata
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import DIGITS, amount_of, minor_units
from retainer.values.reading import NO_ID, ChildChange, fixed_errors, writable_fields
from retainer.values.records import Record

T = TypeVar("T")
Line = TypeVar("Line", QuoteLine, InvoiceLine)
NO_LINE: Any = ChildChange(NO_ID, {})
"""Stands in the place of a line that could not be identified."""


def _mentions(table: Table, q: Any) -> ColumnElement[bool]:
    client_ids = select(clients.c.id).where(clients.c.name_folded.contains(q, escape="/"))
    return or_(table.c.search.contains(q, escape="/"), table.c.client_id.in_(client_ids))


SEARCH_WITH_CLIENT = Where(_mentions, searched, f"{FOUND}, or in the client's name.")
"""The documents in whose text, or in whose client's name, a word or a part of it occurs."""


class ClientDefaults(NamedTuple):
    """Whether a client takes documents, and what those have from it."""

    status: str
    currency: str
    tax_rate: str


CLIENT = (
    select(*clients.c["status", "currency"], func.coalesce(clients.c.tax_rate, accounts.c.tax_rate))
    .select_from(clients.join(accounts, accounts.c.id == ACCOUNT))
    .where(clients.c.id == bindparam("id"))
)
"""In the order of ClientDefaults's fields."""
OWNERS = {
    field: select(table.c.client_id, is_template).where(table.c.id == bindparam("id"))
    for field, table, is_template in (
        ("contact_id", external_contacts, literal(0)),
        ("project_id", projects, projects.c.is_template),
    )
}
"""Whose the contact or project in a field is, and whether it is a template."""


def prepare_for_client(tx: Tx, document: Quote | Invoice, before: Quote | Invoice | None) -> Decimal:
    """Fill in what a document has from its client; return the tax rate of lines that say none.

    Notes an error when the client is archived, or the contact or project is another's.
    """
    row = tx.one(CLIENT, id=document.client_id)
    client = ClientDefaults(*row) if row else ClientDefaults("active", tx.actor.currency, "0")
    if row is None and document.client_id is not None:
        tx.error("client_id", constraints.MISSING.format("client"))
        document.client_id = None  # type: ignore[assignment]  # contact and project are not checked against it
    if before is None or document.client_id != before.client_id:
        relations.check_open(tx, "client_id", f"Client {document.client_id}", client.status)
    document.currency = document.currency or client.currency
    if before and document.currency != before.currency and any(kept_lines(document.lines)) and tx.readable("lines"):
        tx.error("currency", f"Is fixed as {before.currency} while lines in it stay. Replace or delete them all first.")
    for field in OWNERS:
        if before is None or any(getattr(document, name) != getattr(before, name) for name in (field, "client_id")):
            check_owner(tx, field, getattr(document, field), document.client_id)
    return Decimal(client.tax_rate)


def default_tax_rate(tx: Tx, client_id: int) -> Decimal:
    """Return the tax rate of lines that say none: the client's, else the account's."""
    row = tx.one(CLIENT, id=client_id)
    return Decimal(ClientDefaults(*row).tax_rate if row else "0")


def check_owner(tx: Tx, field: str, record_id: int | None, client_id: int | None) -> None:
    """Note an error when the contact or project in a field is another client's, or a template."""
    row = tx.one(OWNERS[field], id=record_id) if record_id else None
    if row and row[1]:
        tx.error(field, "Is a template, and takes no time or money. Create a project from it first.")
    if row and client_id is not None and row[0] != client_id:
        owner = f"client {row[0]}" if row[0] else "no client"
        tx.error(field, f"Belongs to {owner}, not to client {client_id}. Choose one of the document's client.")


def price_line(
    tx: Tx, table: Table, line: Line, document: Quote | Invoice, tax_rate: Decimal, *, amount: int | None = None
) -> None:
    """Fill in what a line has from its document, and its amount: this one, in minor units, if it is known."""
    line.currency = document.currency
    line.tax_rate = tax_rate if line.tax_rate is None else line.tax_rate
    check_owner(tx, "project_id", line.project_id, document.client_id)
    model: type[Record] = type(line)
    tx.check(table, model, {name: getattr(line, name) for name in writable_fields(model)}, line.id)
    line.unit_price = money.pad_price(line.unit_price, line.currency)
    units = amount
    if units is None:
        units = money.line_amount(line.quantity, line.unit_price, line.discount_percent, line.currency)
    if abs(units) > money.MAX_AMOUNT * 10 ** DIGITS[line.currency]:
        tx.error("unit_price", f"Makes the line {amount_of(units, line.currency)} {line.currency}: too much to bill.")
        units = 0
    line.amount = amount_of(units, line.currency)


def each_line(tx: Tx, lines: Sequence[T]) -> Iterator[T]:
    """Yield the lines of a body; errors that are noted meanwhile stand under `lines.0`, `lines.1`, ...

    Those that could not be identified are passed over.
    """
    for place, line in enumerate(lines):
        tx.prefix = f"lines.{place}."
        if line is not NO_LINE:
            yield line
    tx.prefix = ""


def identified_lines(lines: Sequence[T]) -> list[T]:
    """Return the lines of a body without those that could not be identified."""
    return [line for line in lines if line is not NO_LINE]


def kept_lines(lines: Sequence[R]) -> list[R]:
    """Return those lines of a body that the document has already: they have an id."""
    return [line for line in identified_lines(lines) if line.id is not None]


def set_totals(document: Quote | Invoice | CreditNote, shares: Sequence[money.Share]) -> None:
    """Set the totals of a document to those of what is taxed at each rate, in minor units."""
    currency = document.currency
    taxable, tax = sum(share.taxable for share in shares), sum(share.tax for share in shares)
    document.subtotal, document.tax_total = amount_of(taxable, currency), amount_of(tax, currency)
    document.total = amount_of(taxable + tax, currency)
    document.tax_breakdown = [
        TaxShare(share.tax_rate, amount_of(share.taxable, currency), amount_of(share.tax, currency)) for share in shares
    ]


def compute_totals(document: Quote | Invoice, lines: Iterable[QuoteLine | InvoiceLine]) -> None:
    """Set the totals of a document to those of its lines."""
    set_totals(document, money.shares((minor_units(line.amount, document.currency), line.tax_rate) for line in lines))


def totals_of(document: Quote | Invoice) -> DocumentTotals:
    """Return a document's totals, to be told beside a line that changed them."""
    return DocumentTotals(*(getattr(document, name) for name in DocumentTotals.__struct_fields__))


def load_children(tx: Tx, table: Table, model: type[R], parent: str, parent_id: int) -> list[R]:
    """Return the lines of a document, in their order, or what else belongs to it, the oldest first."""
    read = row_mapper(table, model).read
    return [read(row) for row in tx.all(_children(table, model, parent), parent=parent_id)]


@cache
def _children(table: Table, model: type[Record], parent: str) -> Select[Any]:
    order = [table.c[name] for name in ("position", "id") if name in table.c]
    return row_mapper(table, model).rows.where(table.c[parent] == bindparam("parent")).order_by(*order)


def merge_lines(tx: Tx, sent: Sequence[R | ChildChange] | None, before: Sequence[R], *, fixed: bool) -> list[R]:
    """Return the lines that a body describes: new ones, and lines of the document that it names by their ids.

    Notes an error for an unknown id and for a repeated one, unless the lines are fixed: `locked` reports that.
    """
    current = {line.id: line for line in before}
    merged: list[R] = []
    for line in each_line(tx, sent or ()):
        if not isinstance(line, ChildChange):
            merged.append(line)
        elif line.id in current:
            former, values = current.pop(line.id), dict(line.values)
            for name, message in fixed_errors(former, values).items():
                tx.error(name, message)
            merged.append(msgspec.structs.replace(former, **values))
        else:
            merged.append(NO_LINE)
            twice = any(other.id == line.id for other in before)
            reason = (
                "is named twice. Name each line once." if twice else "is not here. Leave the id out for a new line."
            )
            if not fixed:
                tx.error("id", f"Line {line.id} {reason}")
    return merged


def save_lines(tx: Tx, table: Table, before: Sequence[Line], after: Sequence[Line], **parent: int) -> None:
    """Write a set of lines in place of another; a line is known by its id, and one without an id is new.

    Their positions are counted from 1, unless nothing has changed; if anything has, so has the document.
    """
    if [line.id for line in before] == [line.id for line in after] and all(map(is_same_line, before, after)):
        return
    ((reference, document_id),) = parent.items()
    tx.touch(metadata.tables[table.c[reference].info["target"]], document_id)
    current = {line.id: line for line in before}
    for line_id in current.keys() - {line.id for line in after}:
        tx.delete(table, line_id)
    for position, line in enumerate(after, start=1):
        old = current.get(line.id)
        if old is None:
            line.id = tx.insert(table, msgspec.structs.replace(line, position=position, **parent))
        elif old.position != position or not is_same_line(old, line):
            tx.update(table, msgspec.structs.replace(line, position=position))
            if not has_same_content(old, line):  # its row does not show which work it bills
                tx.touch(table, line.id)


def is_same_line(old: Line, new: Line) -> bool:
    """Whether two lines say the same and come to the same."""
    return old.amount == new.amount and has_same_content(old, new)


def has_same_content(old: Record, new: Record) -> bool:
    """Whether two lines say the same, wherever they stand."""
    return all(getattr(old, name) == getattr(new, name) for name in writable_fields(type(old)) if name != "position")


def check_locked(tx: Tx, record: R, before: R, reason: str, names: Collection[str]) -> None:
    """Note `locked` for each of these fields that a record in its state no longer changes; they stay as they are."""
    for name in names:
        old, new = getattr(before, name), getattr(record, name)
        if name == "lines":
            same = len(old) == len(identified_lines(new)) == len(new) and all(map(has_same_content, old, new))
        else:
            same = old == new
        if not same:
            setattr(record, name, old)  # so that nothing else is said of it
            tx.error(name, f"Cannot be changed any more: this one is {reason}.", "locked")
