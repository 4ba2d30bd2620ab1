"""Allocations: which work is on which line of an invoice.

A row of `allocations` says that a line bills a time entry, an expense or a milestone. Those of live invoices are unique
for each of these, so that the database itself refuses to bill it twice; those of invoices that were voided or credited
stay, as their history.
"""

import json
from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import Delete, Insert, Table, Update, bindparam, delete, insert, select, update

from retainer.billing import documents
from retainer.billing.invoice_types import InvoiceLine, LineKind
from retainer.errors import Refusal
from retainer.rollups import changes
from retainer.rollups.sources import BILLED_EXPENSES, BILLED_TIME
from retainer.schema.billing import allocations, expenses
from retainer.schema.work import milestones, time_entries
from retainer.store.engines.sql import INTEGER, listed
from retainer.store.records import R
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.reading import writable_fields


class WorkKind(NamedTuple):
    """A kind of work: the field of a line that names it, its column in `allocations`, and its table."""

    field: str
    column: str
    table: Table


KINDS: dict[LineKind, WorkKind] = {
    "time": WorkKind("time_entry_ids", "time_entry_id", time_entries),
    "expense": WorkKind("expense_ids", "expense_id", expenses),
    "milestone": WorkKind("milestone_id", "milestone_id", milestones),
}
MARKED_KINDS = (KINDS["time"], KINDS["expense"])  # those whose rows say on which line they stand
BILLED_SOURCES = (BILLED_TIME, BILLED_EXPENSES)


def _insert(column: str) -> Insert:
    stamps: dict[str, Any] = {"created_at": bindparam("now"), "updated_at": bindparam("now")}
    values: dict[str, Any] = {"invoice_line_id": bindparam("line"), column: bindparam("work"), "is_live": 1}
    return insert(allocations).values(account_id=ACCOUNT, **stamps, **values)


def _mark(kind: WorkKind) -> Update:
    columns = kind.table.c
    on_line = select(allocations.c[kind.column]).where(allocations.c.invoice_line_id == bindparam("line"))
    values: dict[str, Any] = {"invoice_line_id": bindparam("line"), "invoice_id": bindparam("invoice")}
    is_new = columns.invoice_line_id.is_distinct_from(bindparam("line", type_=INTEGER))
    return update(kind.table).where(columns.id.in_(on_line), is_new).values(updated_at=bindparam("now"), **values)


def _unmark(kind: WorkKind) -> Update:
    columns = kind.table.c
    leaves = (columns.invoice_line_id == bindparam("line"), columns.id.not_in(listed("stays", INTEGER)))
    return update(kind.table).where(*leaves).values(updated_at=bindparam("now"), invoice_line_id=None, invoice_id=None)


INSERT = {kind: _insert(kind.column) for kind in KINDS.values()}
MARK = {kind: _mark(kind) for kind in MARKED_KINDS}
UNMARK = {kind: _unmark(kind) for kind in MARKED_KINDS}
TOUCH_MILESTONE: Update = (
    update(milestones)
    .where(
        milestones.c.id.in_(
            select(allocations.c.milestone_id).where(
                allocations.c.invoice_line_id == bindparam("line"), allocations.c.milestone_id.is_not(None)
            )
        )
    )
    .values(updated_at=bindparam("now"))
)
"""A milestone's invoice is one of its fields, too."""
FORGET: Delete = delete(allocations).where(allocations.c.invoice_line_id == bindparam("line"))
END: Update = (
    update(allocations)
    .where(allocations.c.invoice_line_id == bindparam("line"))
    .values(is_live=None, updated_at=bindparam("now"))
)


def work_of(line: InvoiceLine) -> tuple[list[int], ...]:
    """Return the ids of the work that a line names, for each kind in the order of KINDS."""
    return tuple(item_ids(line, kind) for kind in KINDS.values())


def item_ids(line: InvoiceLine, kind: WorkKind) -> list[int]:
    """Return the ids of one kind of work that a line names."""
    ids = getattr(line, kind.field)
    return ids if isinstance(ids, list) else [ids] if ids else []


def attach(tx: Tx, invoice_id: int, line: InvoiceLine) -> None:
    """Put the work that a line names onto it; the line was validated before."""
    items = [(kind, item_id) for kind in KINDS.values() for item_id in item_ids(line, kind)]
    for kind, item_id in items:
        tx.run(INSERT[kind], line=line.id, work=item_id, now=tx.now)
    tx.count(allocations, len(items))
    for mark in MARK.values():
        tx.run(mark, line=line.id, invoice=invoice_id, now=tx.now)
    tx.run(TOUCH_MILESTONE, line=line.id, now=tx.now)
    for source in BILLED_SOURCES:
        changes.added(tx, source, line.id)


def detach(tx: Tx, line_id: int, after: InvoiceLine | None = None) -> None:
    """Take the work off a line of a draft, as if it never stood there.

    What the line names `after`, too, is about to be attached again: nothing has changed of that.
    """
    _unmark_work(tx, line_id, after)
    tx.count(allocations, -tx.change(FORGET, line=line_id))


def release(tx: Tx, lines: list[InvoiceLine]) -> None:
    """Let the work of an invoice be billed elsewhere; its lines still say what they billed."""
    for line in lines:
        _unmark_work(tx, line.id)
        tx.run(END, line=line.id, now=tx.now)


def _unmark_work(tx: Tx, line_id: int, after: InvoiceLine | None = None) -> None:
    for source in BILLED_SOURCES:
        changes.removed(tx, source, line_id)
    for kind, unmark in UNMARK.items():
        stays = json.dumps(item_ids(after, kind) if after else [])
        tx.run(unmark, line=line_id, stays=stays, now=tx.now)
    tx.run(TOUCH_MILESTONE, line=line_id, now=tx.now)


def check_locked(tx: Tx, record: R, before: R, invoice_id: int | None, free: Collection[str] = ()) -> None:
    """Note `locked` for each field of a record on an invoice that was changed, but for those that stay free."""
    if invoice_id is not None:
        names = [name for name in writable_fields(type(before)) if name not in free]
        documents.check_locked(tx, record, before, f"on invoice {invoice_id}", names)


def refuse_deletion(invoice_id: int | None, noun: str) -> None:
    """Raise `locked` for a record that is on an invoice; the noun says what it is."""
    if invoice_id is not None:
        message = f"This {noun} is on invoice {invoice_id} and stays. Take it off there first, while that is a draft."
        raise Refusal("locked", message, errors={"invoice_id": [message]})
