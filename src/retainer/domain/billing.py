"""Billing: which work stands on which invoice, and where time and expenses stand on their way there.

A row of `billings` says that a line bills a piece of work. Those of live invoices are unique for each piece, so that
the database itself refuses to bill it twice; those of invoices that were voided or credited stay, as their history.
"""

import json
from collections.abc import Callable, Collection
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Delete,
    Index,
    Insert,
    Select,
    Table,
    Update,
    bindparam,
    case,
    delete,
    insert,
    select,
    update,
)

from retainer.domain import documents, sources, summaries, work
from retainer.domain.filters import Where
from retainer.domain.members import writable
from retainer.domain.values import Id
from retainer.errors import Refusal
from retainer.store.columns import integer, ref
from retainer.store.engines import INTEGER, comma_list, listed
from retainer.store.records import Derived, Record
from retainer.store.tables import ACCOUNT, metadata, tenant_table
from retainer.store.tx import Tx

BillingStatus = Literal["non_billable", "unbilled", "billed"]


def _standing(table: Table) -> ColumnElement[Any]:
    billed = table.c.invoice_line_id.is_not(None)
    return case((billed, "billed"), (table.c.billable, "unbilled"), else_="non_billable")


Standing = Annotated[
    BillingStatus, Derived(_standing), "`billed` while it is on an invoice, be that a draft; else as `billable` says."
]
"""Where a record stands."""
StandingFilter = Annotated[
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

billings = tenant_table(
    "billings",
    *ref("invoice_line_id", "invoice_lines", on_delete="cascade"),
    *ref("time_entry_id", "time_entries", optional=True, on_delete="cascade", holder="invoice_line_id.invoice_id"),
    *ref("expense_id", "expenses", optional=True, on_delete="cascade", holder="invoice_line_id.invoice_id"),
    *ref("milestone_id", "milestones", optional=True, on_delete="cascade", holder="invoice_line_id.invoice_id"),
    integer("is_live", optional=True),  # 1, or null: then it is no duplicate of any other
    Index(None, "account_id", "invoice_line_id"),
    *(
        Index(f"billings_unique_{piece}", "account_id", f"{piece}_id", "is_live", unique=True)
        for piece in ("time_entry", "expense", "milestone")
    ),
)


def _milestone_invoice(table: Table) -> ColumnElement[Any]:
    lines = metadata.tables["invoice_lines"]
    found = select(lines.c.invoice_id).select_from(billings.join(lines, lines.c.id == billings.c.invoice_line_id))
    return found.where(billings.c.milestone_id == table.c.id, billings.c.is_live == 1).scalar_subquery()


MILESTONE_INVOICE = Derived(_milestone_invoice)
"""The invoice on which a milestone is billed."""


class Kind(NamedTuple):
    """A kind of work: the member of a line that names it, its column in `billings`, and its table."""

    member: str
    column: str
    table: str


KINDS = {
    "time": Kind("time_entry_ids", "time_entry_id", "time_entries"),
    "expense": Kind("expense_ids", "expense_id", "expenses"),
    "milestone": Kind("milestone_id", "milestone_id", "milestones"),
}
BILLED = (sources.BILLED_TIME, sources.BILLED_EXPENSES)
MARKED = ("time_entries", "expenses")  # the tables whose rows say on which line they stand


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
    for name in MARKED:
        tx.run(_mark(name), line=line.id, of=invoice, now=tx.now)
    tx.run(_touch_milestone(), line=line.id, now=tx.now)
    work.bill(tx, line.id, -1)
    for source in BILLED:
        summaries.add(tx, source, line.id)


def detach(tx: Tx, line: int, after: Any = None) -> None:
    """Take the work off a line of a draft, as if it never stood there.

    What the line names `after`, too, is about to be attached again: nothing has changed of that.
    """
    _unmark(tx, line, after)
    tx.count(billings, -tx.run(FORGET, line=line))


def free(tx: Tx, lines: list[Any]) -> None:
    """Let the work of an invoice be billed elsewhere; its lines still say what they billed."""
    for line in lines:
        _unmark(tx, line.id)
        tx.run(END, line=line.id, now=tx.now)


def _unmark(tx: Tx, line: int, after: Any = None) -> None:
    work.bill(tx, line, +1)
    for source in BILLED:
        summaries.add(tx, source, line, -1)
    for kind in KINDS.values():
        if kind.table in MARKED:
            stays = json.dumps(pieces_of(after, kind) if after else [])
            tx.run(_clear(kind.table), line=line, stays=stays, now=tx.now)
    tx.run(_touch_milestone(), line=line, now=tx.now)


def lock(tx: Tx, it: Any, before: Any, free: Collection[str] = ()) -> None:
    """Note `locked` for each member of a billed record that was changed, but for those that stay free."""
    if before.invoice_id is not None:
        shape: type[Record] = type(before)
        names = [name for name in writable(shape) if name not in free]
        documents.locked(tx, it, before, f"on invoice {before.invoice_id}", names)


def refuse_deletion(it: Any, what: str) -> None:
    """Raise `locked` for a record that is billed."""
    if it.invoice_id is not None:
        sentence = (
            f"This {what} is on invoice {it.invoice_id} and stays. Take it off there first, while that is a draft."
        )
        raise Refusal("locked", sentence, errors={"invoice_id": [sentence]})


def fixed_by_milestone(tx: Tx, client: int, member: str) -> None:
    """Note a fault of a client's member that is fixed while a milestone of its projects is on an invoice."""
    milestone = tx.value(_billed_of(), client=client)
    if milestone is not None:
        tx.fault(member, f"Is fixed while milestone {milestone} is on an invoice. Take it off there first.")


@cache
def _billed_of() -> Select[Any]:
    milestones, projects = metadata.tables["milestones"], metadata.tables["projects"]
    joined = billings.join(milestones, milestones.c.id == billings.c.milestone_id)
    joined = joined.join(projects, projects.c.id == milestones.c.project_id)
    its = (billings.c.is_live == 1, projects.c.client_id == bindparam("client"))
    return select(billings.c.milestone_id).select_from(joined).where(*its).limit(1)


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
def _mark(name: str) -> Update:
    table = metadata.tables[name]
    (column,) = (kind.column for kind in KINDS.values() if kind.table == name)
    its = select(billings.c[column]).where(billings.c.invoice_line_id == bindparam("line"))
    values: dict[str, Any] = {"invoice_line_id": bindparam("line"), "invoice_id": bindparam("of")}
    new = table.c.invoice_line_id.is_distinct_from(bindparam("line", type_=INTEGER))
    return update(table).where(table.c.id.in_(its), new).values(updated_at=bindparam("now"), **values)


@cache
def _touch_milestone() -> Update:
    """Its invoice is a member of a milestone, too."""
    milestones = metadata.tables["milestones"]
    on_line = (billings.c.invoice_line_id == bindparam("line"), billings.c.milestone_id.is_not(None))
    billed = select(billings.c.milestone_id).where(*on_line)
    return update(milestones).where(milestones.c.id.in_(billed)).values(updated_at=bindparam("now"))


@cache
def _clear(name: str) -> Update:
    table = metadata.tables[name]
    its = (table.c.invoice_line_id == bindparam("line"), table.c.id.not_in(listed("stays")))
    return update(table).where(*its).values(updated_at=bindparam("now"), invoice_line_id=None, invoice_id=None)
