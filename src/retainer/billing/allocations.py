"""Allocations: which work is on which line of an invoice.

A row of `allocations` says that a line bills a time entry, an expense or a milestone. While the invoice is live, a
unique index keeps the database from billing the item twice. Rows of voided or credited invoices stay as history.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Insert, Select, Table, Update, bindparam, delete, insert, literal, select, update

from retainer.billing import documents, fees
from retainer.billing.invoices.types import InvoiceLine, LineKind
from retainer.errors import Refusal
from retainer.rollups import changes
from retainer.rollups.sources import BILLED_EXPENSES, BILLED_TIME, Source
from retainer.schema.billing import allocations, expenses, invoice_lines
from retainer.schema.work import milestones, time_entries
from retainer.store.engines.sql import INTEGER, is_listed, listed, listed_rows
from retainer.store.row_mapper import R
from retainer.store.tables import ACCOUNT, NOW, PARTS
from retainer.store.tx import Tx
from retainer.values.reading import writable_fields


class WorkKind(NamedTuple):
    """A kind of work: the field of a line that names it, its column in `allocations`, and its table."""

    noun: str
    field: str
    column: str
    table: Table
    billed: Source | None
    """What reports count once it is billed; None for work whose row does not refer to its line."""


KINDS: dict[LineKind, WorkKind] = {
    "time": WorkKind("time entry", "time_entry_ids", "time_entry_id", time_entries, BILLED_TIME),
    "expense": WorkKind("expense", "expense_ids", "expense_id", expenses, BILLED_EXPENSES),
    "milestone": WorkKind("milestone", "milestone_id", "milestone_id", milestones, None),
}


def _on_lines(column: ColumnElement[int]) -> ColumnElement[bool]:
    """Return whether a column refers to one of the lines in the parameter `lines`."""
    return is_listed(column, listed("lines", INTEGER).scalar_subquery())


def _insert(kind: WorkKind) -> Insert:
    """Insert pairs of a line and an item."""
    names = ("invoice_line_id", kind.column)
    pairs = listed_rows("pairs", list(allocations.c[names])).subquery()
    live = literal(1, INTEGER)
    rows = select(ACCOUNT, NOW, NOW.label("updated"), *pairs.c, live)
    return insert(allocations).from_select(("account_id", "created_at", "updated_at", *names, "is_live"), rows)


def _taken(kind: WorkKind) -> Select[Any]:
    """Select the listed items that are on a line, with its invoice."""
    column = allocations.c[kind.column]
    on_line = allocations.join(invoice_lines, invoice_lines.c.id == allocations.c.invoice_line_id)
    named = is_listed(column, listed("work", INTEGER).scalar_subquery())
    return select(column, invoice_lines.c.invoice_id).select_from(on_line).where(named, allocations.c.is_live == 1)


def _mark(kind: WorkKind) -> Update:
    """Set the references from items to their lines; the second table needs a condition for the account."""
    columns, on_line = kind.table.c, allocations.c
    pairs = (on_line.account_id == ACCOUNT, on_line[kind.column] == columns.id, _on_lines(on_line.invoice_line_id))
    is_new = columns.invoice_line_id.is_distinct_from(on_line.invoice_line_id)
    values: dict[str, Any] = {"invoice_line_id": on_line.invoice_line_id, "invoice_id": bindparam("invoice")}
    return update(kind.table).where(*pairs, is_new).values(updated_at=NOW, **values)


def _unmark(kind: WorkKind) -> Update:
    columns = kind.table.c
    leaves = (_on_lines(columns.invoice_line_id), columns.id.not_in(listed("stays", INTEGER)))
    return update(kind.table).where(*leaves).values(updated_at=NOW, invoice_line_id=None, invoice_id=None)


NO_LINES: Mapping[int, InvoiceLine] = {}
INSERT = {kind: _insert(kind) for kind in KINDS.values()}
TAKEN = {kind: _taken(kind) for kind in KINDS.values()}
MARK = {kind: _mark(kind) for kind in KINDS.values() if kind.billed}
UNMARK = {kind: _unmark(kind) for kind in KINDS.values() if kind.billed}
ON_LINES = _on_lines(allocations.c.invoice_line_id)
MILESTONES = select(allocations.c.milestone_id).where(ON_LINES, allocations.c.milestone_id.is_not(None))
TOUCH_MILESTONES = (
    update(milestones)
    .where(milestones.c.id.in_(MILESTONES))
    .values(updated_at=NOW)
    .execution_options(**{PARTS: ("invoice_id",)})
)
"""A milestone shows its invoice, although its row does not refer to it."""
FORGET = delete(allocations).where(ON_LINES)
END = update(allocations).where(ON_LINES).values(is_live=None, updated_at=NOW)


def item_ids(line: InvoiceLine, kind: WorkKind) -> list[int]:
    """Return the ids of one kind of work that a line bills."""
    ids = getattr(line, kind.field)
    return ids if isinstance(ids, list) else [ids] if ids else []


def work_of(line: InvoiceLine) -> list[tuple[LineKind, int]]:
    """Return the kinds and ids of the work that a line bills."""
    return [(name, item_id) for name, kind in KINDS.items() for item_id in item_ids(line, kind)]


def _bills_the_same(line: InvoiceLine, other: InvoiceLine) -> bool:
    """Return whether two lines bill the same work and the same month of a retainer."""
    return work_of(line) == work_of(other) and fees.fee_of(line) == fees.fee_of(other)


def save_invoice_lines(tx: Tx, invoice_id: int, before: Sequence[InvoiceLine], after: Sequence[InvoiceLine]) -> None:
    """Replace the lines of an invoice, and the work on them."""
    old, new = ({line.id: line for line in lines} for lines in (before, after))
    kept = {line.id for line in after if line.id in old and _bills_the_same(old[line.id], line)}
    detach(tx, [line for line in before if line.id not in kept], new)
    documents.save_lines(tx, invoice_lines, before, after, invoice_id=invoice_id)
    attach(tx, invoice_id, [line for line in after if line.id not in kept])


def attach(tx: Tx, invoice_id: int, lines: Sequence[InvoiceLine]) -> None:
    """Put the work and the months that lines bill onto them. They were validated before.

    Raises `already_billed` if another transaction has billed some of them meanwhile.
    """
    fees.claim(tx, lines)
    for kind, of_kind in _by_kind(lines):
        pairs = [(line.id, item_id) for line in of_kind for item_id in item_ids(line, kind)]
        _insert_pairs(tx, kind, pairs)
        tx.count(allocations, len(pairs))
        ids = [line.id for line in of_kind]
        if kind.billed:
            tx.run(MARK[kind], lines=json.dumps(ids), invoice=invoice_id)
            changes.added_all(tx, kind.billed, ids)
        else:
            tx.run(TOUCH_MILESTONES, lines=json.dumps(ids))


def detach(tx: Tx, lines: Sequence[InvoiceLine], after: Mapping[int, InvoiceLine] = NO_LINES) -> None:
    """Take the work off lines of a draft, and forget that it was there.

    Work that the same line bills `after`, too, is not marked as changed: it is about to be attached again.
    """
    ids = _unmark_work(tx, lines, after)
    if ids:
        tx.count(allocations, -tx.change(FORGET, lines=json.dumps(ids)))


def release(tx: Tx, lines: Sequence[InvoiceLine]) -> None:
    """Let the work of lines be billed again; the lines still show what they billed."""
    ids = _unmark_work(tx, lines, NO_LINES)
    if ids:
        tx.run(END, lines=json.dumps(ids))


def _by_kind(lines: Sequence[InvoiceLine]) -> Iterator[tuple[WorkKind, list[InvoiceLine]]]:
    """Yield the kinds of work that lines bill, each with its lines."""
    for name, kind in KINDS.items():
        of_kind = [line for line in lines if line.kind == name]
        if of_kind:
            yield kind, of_kind


def _insert_pairs(tx: Tx, kind: WorkKind, pairs: list[tuple[int, int]]) -> None:
    """Insert a row for each item and the line that bills it. Raises `already_billed` with all that are taken.

    Requests that bill the same work at the same time wait for each other, so rules usually find it taken; the
    database refuses the rest.
    """
    try:
        with tx.engine.savepoint(tx.connection, may_repeat=tx.may_repeat):
            tx.change(INSERT[kind], pairs=json.dumps(pairs))
    except tx.engine.conflict:
        noun = kind.noun.capitalize()
        for item_id, invoice_id in tx.all(TAKEN[kind], work=json.dumps([item_id for _, item_id in pairs])):
            tx.error("lines", f"{noun} {item_id} is already on invoice {invoice_id}. Leave it out.", "already_billed")
        tx.raise_errors()
        raise


def _unmark_work(tx: Tx, lines: Sequence[InvoiceLine], after: Mapping[int, InvoiceLine]) -> list[int]:
    """Clear the references from work to these lines, and their months; return the ids of the lines that bill work."""
    fees.release(tx, lines)
    unmarked = []
    for kind, of_kind in _by_kind(lines):
        ids = [line.id for line in of_kind]
        stays = [item_id for line_id in ids if line_id in after for item_id in item_ids(after[line_id], kind)]
        unmarked += ids
        if kind.billed:
            changes.removed_all(tx, kind.billed, ids)
            tx.run(UNMARK[kind], lines=json.dumps(ids), stays=json.dumps(stays))
        else:
            tx.run(TOUCH_MILESTONES, lines=json.dumps(ids))
    return unmarked


def validate_locked(tx: Tx, record: R, before: R, invoice_id: int | None, free: Collection[str] = ()) -> None:
    """Note `locked` for each changed field of a record on an invoice, except for `free` ones."""
    if invoice_id is not None:
        names = [name for name in writable_fields(type(before)) if name not in free]
        documents.validate_locked(tx, record, before, f"on invoice {invoice_id}", names)


def check_deletion(invoice_id: int | None, noun: str) -> None:
    """Raise `locked` for a record that is on an invoice; the noun names its type."""
    if invoice_id is not None:
        message = f"This {noun} is on invoice {invoice_id} and stays. Take it off there first, while that is a draft."
        raise Refusal("locked", message, errors={"invoice_id": [message]})
