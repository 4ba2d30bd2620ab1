"""Billing: which work stands on which invoice, and where time and expenses stand on their way there.

A row of `billings` says that a line bills a piece of work. Those of live invoices are unique for each piece, so that
the database itself refuses to bill it twice; those of invoices that were voided or credited stay, as their history.
"""

import json
from collections.abc import Callable, Collection
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Delete, Insert, Table, Update, bindparam, case, delete, insert, select, update

from retainer.billing import documents
from retainer.errors import Refusal
from retainer.rollups.changes import added, removed
from retainer.rollups.sources import BILLED_EXPENSES, BILLED_TIME
from retainer.schema.billing import billings, expenses, invoice_lines
from retainer.schema.filters import Where
from retainer.schema.work import milestones, time_entries
from retainer.store.engines import INTEGER, comma_list, listed
from retainer.store.records import Derived
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values.kinds import Id
from retainer.values.reading import writable_fields
from retainer.values.records import Record

BillingStatus = Literal["non_billable", "unbilled", "billed"]


def _standing(table: Table) -> ColumnElement[Any]:
    billed = table.c.invoice_line_id.is_not(None)
    return case((billed, "billed"), (table.c.billable, "unbilled"), else_="non_billable")


BillingStatusField = Annotated[
    BillingStatus, Derived(_standing), "`billed` while it is on an invoice, be that a draft; else as `billable` says."
]
"""Where a record stands."""
BillingStatusFilter = Annotated[
    tuple[BillingStatus, ...] | None,
    Where(lambda table, its: _standing(table).in_(its)),
    "Records whose `billing_status` is one of these.",
]
"""The records that stand at one of these."""
Locked = Annotated[
    bool,
    Derived(lambda table: table.c.invoice_line_id.is_not(None), bool),
    "True while it is on an invoice: only `description` and `external_id` can change then.",
]
"""Whether a record is billed."""
BillingInvoice = Annotated[Id | None, "The invoice that bills it; null again when that is void or credited as a whole."]
"""The invoice that a record is on."""
BillingLine = Annotated[Id | None, "Where on that invoice it stands; null without one."]
"""The line that a record is on."""


def _milestone_invoice(table: Table) -> ColumnElement[Any]:
    on_line = billings.join(invoice_lines, invoice_lines.c.id == billings.c.invoice_line_id)
    found = select(invoice_lines.c.invoice_id).select_from(on_line)
    return found.where(billings.c.milestone_id == table.c.id, billings.c.is_live == 1).scalar_subquery()


MILESTONE_INVOICE = Derived(_milestone_invoice)
"""The invoice on which a milestone is billed."""


class Kind(NamedTuple):
    """A kind of work: the member of a line that names it, its column in `billings`, and its table."""

    member: str
    column: str
    table: Table


KINDS = {
    "time": Kind("time_entry_ids", "time_entry_id", time_entries),
    "expense": Kind("expense_ids", "expense_id", expenses),
    "milestone": Kind("milestone_id", "milestone_id", milestones),
}
BILLED = (BILLED_TIME, BILLED_EXPENSES)
MARKED = (time_entries, expenses)  # the tables whose rows say on which line they stand


def billed(column: str, out: Callable[[str | None], Any]) -> Derived:
    """The work of one kind that a line bills or, before it was voided or credited, has billed."""

    def expression(table: Table) -> ColumnElement[Any]:
        return select(comma_list(billings.c[column])).where(billings.c.invoice_line_id == table.c.id).scalar_subquery()

    return Derived(expression, out)


def ids_in(text: str | None) -> list[int]:
    """Ids in a comma list, in their order; none when there is no list."""
    return sorted(map(int, text.split(","))) if text else []


def of(line: Any) -> tuple[Any, ...]:
    """The work that a line names."""
    return tuple(
        tuple(ids) if isinstance(ids, list) else ids for ids in (getattr(line, it.member) for it in KINDS.values())
    )


def pieces_of(line: Any, kind: Kind) -> list[int]:
    """The ids of one kind of work that a line names."""
    ids = getattr(line, kind.member)
    return ids if isinstance(ids, list) else [ids] if ids else []


def attach(tx: Tx, invoice: int, line: Any) -> None:
    """Put the work that a line names onto it; the line was judged before."""
    pieces = [(kind.column, own) for kind in KINDS.values() for own in pieces_of(line, kind)]
    for its_column, own in pieces:
        tx.run(_insert(its_column), line=line.id, own=own, now=tx.now)
    tx.count(billings, len(pieces))
    for table in MARKED:
        tx.run(_mark(table), line=line.id, of=invoice, now=tx.now)
    tx.run(TOUCH_MILESTONE, line=line.id, now=tx.now)
    for source in BILLED:
        added(tx, source, line.id)


def detach(tx: Tx, line: int, after: Any = None) -> None:
    """Take the work off a line of a draft, as if it never stood there.

    What the line names `after`, too, is about to be attached again: nothing has changed of that.
    """
    _unmark(tx, line, after)
    tx.count(billings, -tx.run(FORGET, line=line))


def release(tx: Tx, lines: list[Any]) -> None:
    """Let the work of an invoice be billed elsewhere; its lines still say what they billed."""
    for line in lines:
        _unmark(tx, line.id)
        tx.run(END, line=line.id, now=tx.now)


def _unmark(tx: Tx, line: int, after: Any = None) -> None:
    for source in BILLED:
        removed(tx, source, line)
    for kind in KINDS.values():
        if kind.table in MARKED:
            stays = json.dumps(pieces_of(after, kind) if after else [])
            tx.run(_clear(kind.table), line=line, stays=stays, now=tx.now)
    tx.run(TOUCH_MILESTONE, line=line, now=tx.now)


def check_locked(tx: Tx, record: Any, before: Any, free: Collection[str] = ()) -> None:
    """Note `locked` for each member of a billed record that was changed, but for those that stay free."""
    if before.invoice_id is not None:
        shape: type[Record] = type(before)
        names = [name for name in writable_fields(shape) if name not in free]
        documents.check_locked(tx, record, before, f"on invoice {before.invoice_id}", names)


def refuse_deletion(record: Any, what: str) -> None:
    """Raise `locked` for a record that is billed."""
    if record.invoice_id is not None:
        sentence = (
            f"This {what} is on invoice {record.invoice_id} and stays. Take it off there first, while that is a draft."
        )
        raise Refusal("locked", sentence, errors={"invoice_id": [sentence]})


TOUCH_MILESTONE: Update = (
    update(milestones)
    .where(
        milestones.c.id.in_(
            select(billings.c.milestone_id).where(
                billings.c.invoice_line_id == bindparam("line"), billings.c.milestone_id.is_not(None)
            )
        )
    )
    .values(updated_at=bindparam("now"))
)
"""A milestone's invoice is one of its fields, too."""
FORGET: Delete = delete(billings).where(billings.c.invoice_line_id == bindparam("line"))
END: Update = (
    update(billings)
    .where(billings.c.invoice_line_id == bindparam("line"))
    .values(is_live=None, updated_at=bindparam("now"))
)


@cache
def _insert(column: str) -> Insert:
    stamps: dict[str, Any] = {"created_at": bindparam("now"), "updated_at": bindparam("now")}
    values: dict[str, Any] = {"invoice_line_id": bindparam("line"), column: bindparam("own"), "is_live": 1}
    return insert(billings).values(account_id=ACCOUNT, **stamps, **values)


@cache
def _mark(table: Table) -> Update:
    (column,) = (kind.column for kind in KINDS.values() if kind.table is table)
    its = select(billings.c[column]).where(billings.c.invoice_line_id == bindparam("line"))
    values: dict[str, Any] = {"invoice_line_id": bindparam("line"), "invoice_id": bindparam("of")}
    new = table.c.invoice_line_id.is_distinct_from(bindparam("line", type_=INTEGER))
    return update(table).where(table.c.id.in_(its), new).values(updated_at=bindparam("now"), **values)


@cache
def _clear(table: Table) -> Update:
    its = (table.c.invoice_line_id == bindparam("line"), table.c.id.not_in(listed("stays")))
    return update(table).where(*its).values(updated_at=bindparam("now"), invoice_line_id=None, invoice_id=None)
