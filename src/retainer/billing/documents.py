"""Documents: the rules of quotes and invoices: their client, lines and totals, and the fields that are locked."""

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Table, bindparam, case, func, literal, or_, select

from retainer.billing.credit_notes.types import CreditNote
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.billing.quotes.types import Quote, QuoteLine
from retainer.documents.facts import Language, TaxShare
from retainer.schema import expressions
from retainer.schema.crm import clients, external_contacts
from retainer.schema.filters import FOUND, Where, searched
from retainer.schema.identity import accounts
from retainer.schema.work import projects
from retainer.shared import relations
from retainer.store import constraints
from retainer.store.engines.sql import is_listed
from retainer.store.row_mapper import R
from retainer.store.tables import ACCOUNT, metadata
from retainer.store.tx import Tx
from retainer.values import money
from retainer.values.exact import amount_of, minor_units
from retainer.values.reading import ChildChange, fixed_errors, placeholder_of, writable_fields
from retainer.values.records import Record

T = TypeVar("T")
Document = Quote | Invoice
Line = TypeVar("Line", QuoteLine, InvoiceLine)


def _mentions(table: Table, q: Any) -> ColumnElement[bool]:
    client_ids = select(clients.c.id).where(clients.c.name_sort.contains(q, escape="/"))
    return or_(table.c.search.contains(q, escape="/"), table.c.client_id.in_(client_ids))


SEARCH_WITH_CLIENT = Where(_mentions, searched, f"{FOUND}, or in the client's name.")
"""Documents whose text contains the words, or whose client's name does."""


class ClientDefaults(NamedTuple):
    status: str
    currency: str
    tax_rate: str
    tax_exemption_reason: str | None = None
    notes: str | None = None
    terms: str | None = None


class DocumentProject(NamedTuple):
    """A project of a document or its lines; its monthly fee in minor units, the language that of its client."""

    id: int
    name: str
    client_id: int | None
    is_template: bool
    status: str
    billing_type: str
    currency: str
    retainer_amount: int | None
    start_date: str | None
    due_date: str | None
    created_at: str
    completed_at: str | None
    archived_at: str | None
    language: Language


TEXTS = ("tax_exemption_reason", "notes", "terms")
Projects = dict[int, DocumentProject]
ACCOUNT_TAX_RATE = case((accounts.c.is_small_business.is_(True), "0"), else_=accounts.c.tax_rate)
CLIENT = {
    kind: select(
        *clients.c["status", "currency"],
        func.coalesce(clients.c.tax_rate, ACCOUNT_TAX_RATE, literal("0")),
        *map(expressions.in_document_language, ("tax_exemption_reason", f"{name}_introduction", f"{name}_terms")),
    )
    .select_from(clients.join(accounts, accounts.c.id == ACCOUNT))
    .where(clients.c.id == bindparam("id"))
    for kind, name in ((Quote, "quote"), (Invoice, "invoice"))
}
"""In the order of the fields of ClientDefaults."""
PROJECTS = select(*projects.c[DocumentProject._fields[:-1]], expressions.DOCUMENT_LANGUAGE).select_from(
    projects.join(accounts, accounts.c.id == ACCOUNT).outerjoin(clients, clients.c.id == projects.c.client_id)
)
"""In the order of the fields of DocumentProject."""
FOLLOW_FROM_WORK = {"description", "unit_price", "quantity", "unit", "project_id", "tax_rate"}
NOT_CONTENTS = {*Record.__struct_fields__, "quote_id", "invoice_id", "position"}
LISTED = PROJECTS.where(is_listed(projects.c.id, "ids"))


def load_client(tx: Tx, document: Document) -> ClientDefaults:
    """Return the defaults of a document's client; its status is `missing` if there is no such client."""
    row = tx.one(CLIENT[type(document)], id=document.client_id)
    return ClientDefaults(*row) if row else ClientDefaults("missing", tx.actor.currency, "0")


def apply_client(tx: Tx, document: Document, before: Document | None) -> Decimal:
    """Fill in what a document inherits from its client; return the default tax rate of its lines.

    Notes an error for an archived client, a contact or project of another client, and a currency that cannot change.
    """
    client = load_client(tx, document)
    if client.status == "missing" and document.client_id is not None:
        tx.error("client_id", constraints.MISSING.format("client"))
        document.client_id = None  # type: ignore[assignment]  # contact and project are not validated against it
    document.currency = document.currency or client.currency
    keeps_lines = any(line.id is not None for line in document.lines)
    if before and document.currency != before.currency and keeps_lines and tx.readable("lines"):
        tx.error("currency", f"Stays {before.currency} while the document keeps lines. Replace or delete them first.")
    is_new_client = before is None or document.client_id != before.client_id
    if document.contact_id and (is_new_client or before is None or document.contact_id != before.contact_id):
        contact = relations.load_row(tx, relations.Parent, external_contacts, document.contact_id)
        validate_same_client(tx, "contact_id", contact, document.client_id)
    if document.project_id and (is_new_client or before is None or document.project_id != before.project_id):
        project = load_projects(tx, [document.project_id]).get(document.project_id)
        validate_same_client(tx, "project_id", project, document.client_id)
    if before is None:
        fill_texts(tx, document, client)
    if is_new_client:
        relations.validate_open(tx, "client_id", f"Client {document.client_id}", client.status)
    return Decimal(client.tax_rate)


def fill_texts(tx: Tx, document: Document, source: ClientDefaults | Quote) -> None:
    """Fill in the texts that a new document does not have, unless its body asks for none with null."""
    for name in TEXTS:
        if getattr(document, name) is None and name not in tx.sent:
            setattr(document, name, getattr(source, name))


def load_projects(tx: Tx, project_ids: Iterable[int | None]) -> Projects:
    ids = sorted({project_id for project_id in project_ids if project_id is not None})
    rows = tx.all(LISTED, ids=json.dumps(ids)) if ids else []
    return {project.id: project for project in map(DocumentProject._make, rows)}


def validate_same_client(
    tx: Tx, field: str, owner: relations.Parent | DocumentProject | None, client_id: int | None
) -> None:
    """Note an error for a contact or project that does not exist, is a template, or belongs to another client."""
    if owner is None:
        tx.error(field, constraints.MISSING.format("external contact" if field == "contact_id" else "project"))
        return
    if isinstance(owner, DocumentProject) and owner.is_template:
        relations.validate_open(tx, field, f"Project {owner.id}", None, template=True)
    if client_id is not None and owner.client_id != client_id:
        name = f"client {owner.client_id}" if owner.client_id else "no client"
        tx.error(field, f"Belongs to {name}, not to client {client_id}. Choose one of the document's client.")


def complete_line(
    tx: Tx, line: Line, document: Document, tax_rate: Decimal, projects: Projects, *, amount: int | None = None
) -> None:
    """Fill in what a line inherits from its document, and its amount; `amount` gives it in minor units.

    Notes an error for its project, and for an amount that is too large.
    """
    line.currency = document.currency
    line.tax_rate = tax_rate if line.tax_rate is None else line.tax_rate
    if line.project_id is not None:
        validate_same_client(tx, "project_id", projects.get(line.project_id), document.client_id)
    line.unit_price = money.pad_price(line.unit_price, line.currency)
    if amount is None:
        amount = money.line_amount(line.quantity, line.unit_price, line.discount_percent, line.currency)
    line.amount = amount_of(amount, line.currency)
    if abs(line.amount) > money.MAX_AMOUNT:
        tx.error("unit_price", f"The amount of the line would be {line.amount}. The maximum is {money.MAX_AMOUNT}.")
        line.amount = amount_of(0, line.currency)


def each_line(tx: Tx, lines: Sequence[T]) -> Iterator[T]:
    """Yield the lines of a body; errors that are noted meanwhile get the path `lines.0`, `lines.1`, ..."""
    for position, line in enumerate(lines):
        tx.prefix = f"lines.{position}."
        yield line
    tx.prefix = ""


def units_of(tx: Tx, path: str, amount: Decimal, currency: str) -> int | None:
    """Return an amount in minor units; None, with an error noted, if its currency has fewer digits."""
    try:
        return minor_units(amount, currency)
    except ValueError as error:
        tx.error(path, str(error))
        return None


def set_totals(document: Document | CreditNote, shares: Sequence[money.Share]) -> None:
    currency = document.currency
    taxable, tax = sum(share.taxable for share in shares), sum(share.tax for share in shares)
    document.subtotal, document.tax_total = amount_of(taxable, currency), amount_of(tax, currency)
    document.total = amount_of(taxable + tax, currency)
    document.tax_breakdown = [
        TaxShare(share.tax_rate, amount_of(share.taxable, currency), amount_of(share.tax, currency)) for share in shares
    ]


def compute_totals(document: Document) -> None:
    """Set the totals of a draft to those of its lines; all of an invoice is due."""
    amounts = ((minor_units(line.amount, document.currency), line.tax_rate) for line in document.lines)
    set_totals(document, money.shares(amounts))
    if isinstance(document, Invoice):
        document.balance_due = document.total


def merge_lines(
    tx: Tx, model: type[R], sent: Sequence[R | ChildChange] | None, before: Sequence[R], *, is_locked: bool
) -> list[R]:
    """Return the lines that a body describes: new ones, and lines of the document that it names by their ids.

    Notes an error for an unknown id and for a repeated one, unless the lines are locked: `validate_locked` reports it.
    Of locked lines, one without an id is the one at its place if it says the same.
    """
    current = {line.id: line for line in before}
    merged: list[R] = []
    for place, line in enumerate(each_line(tx, sent or ())):
        if not isinstance(line, ChildChange):
            former = before[place] if is_locked and place < len(before) else None
            merged.append(former if former is not None and says_same(line, former) else line)
        elif line.id in current:
            former = current.pop(line.id)
            values = dict(line.values)
            for name, message in fixed_errors(former, values).items():
                tx.error(name, message)
            merged.append(msgspec.structs.replace(former, **values))
        else:
            merged.append(placeholder_of(model))
            if not is_locked:
                is_repeated = any(other.id == line.id for other in before)
                advice = "named twice. Name each line once." if is_repeated else "not here. Omit the id for a new line."
                tx.error("id", f"Line {line.id} is {advice}")
                tx.unreadable |= {tx.prefix.removesuffix(".")}
    return merged


def says_same(line: Record, former: Record) -> bool:
    """Return whether a line of a body, before rules fill it in, says nothing else than a line of a document.

    A tax rate that it leaves out is that of the document, and so is all that follows from the work of a line.
    """
    bills_work = getattr(former, "kind", "item") != "item"
    follows = FOLLOW_FROM_WORK if bills_work else {"tax_rate"}
    defaults = {} if bills_work else {"quantity": Decimal(1)}
    for name in writable_fields(type(line)).keys() - {"position"}:
        value = getattr(line, name)
        value = defaults.get(name) if value is None else value
        if _plain(value) != _plain(getattr(former, name)) and not (value is None and name in follows):
            return False
    return True


def _plain(value: object) -> object:
    """Return the value of a field of a line so that sets of ids are equal in any order."""
    return tuple(sorted(value)) if isinstance(value, list) else value


def keep_equal_lines(lines: list[Line], before: Sequence[Line]) -> None:
    """Put former lines in the place of new ones with the same contents: what is sent again changes nothing."""
    named = {line.id for line in lines}
    free: dict[tuple[object, ...], list[Line]] = {}
    for line in reversed(before):
        if line.id not in named:
            free.setdefault(contents_of(line), []).append(line)
    for place, line in enumerate(lines):
        if line.id is None and (equal := free.get(contents_of(line))):
            lines[place] = equal.pop()


def contents_of(line: QuoteLine | InvoiceLine) -> tuple[object, ...]:
    """Return what a line says and bills, without its id, its place and its times."""
    values = msgspec.structs.asdict(line).items()
    return tuple(_plain(value) for name, value in values if name not in NOT_CONTENTS)


def save_lines(tx: Tx, table: Table, before: Sequence[Line] | None, after: Sequence[Line], **parent: int) -> None:
    """Replace the lines of a document, which is new if it has no lines `before`. A line without an id is new.

    If anything changes, the document counts as changed and positions are counted from 1.
    """
    current: dict[int, Line] = {line.id: line for line in before or ()}
    if [*current] == [line.id for line in after] and not any(has_changed(current[line.id], line) for line in after):
        return
    if before is not None:
        ((reference, document_id),) = parent.items()
        tx.touch(metadata.tables[table.c[reference].info["target"]], document_id, "lines")
    for line_id in current.keys() - {line.id for line in after}:
        tx.delete(table, line_id)
    for position, line in enumerate(after, start=1):
        placed = msgspec.structs.replace(line, position=position, **parent)
        if line.id is None:
            line.id = tx.insert(table, placed)
        elif placed != current[line.id]:
            tx.update(table, placed)
            if has_changed(current[line.id], line):
                tx.touch(table, line.id)  # its row does not show which work it bills


def has_changed(old: Line, new: Line) -> bool:
    return msgspec.structs.replace(new, position=old.position) != old
