"""Settlement: what is still due of an invoice after payments and credit notes, and the status that follows.

Payments count first, credit notes then, in their order, as far as something is due; what a credit note does not settle
can be refunded.
"""

from datetime import date
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Table,
    Text,
    Update,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    update,
)

from retainer.domain import work
from retainer.domain.filters import Where
from retainer.store.columns import among
from retainer.store.records import Derived
from retainer.store.tables import TODAY, metadata
from retainer.store.tx import Tx

OPEN = ("sent", "partially_paid")
"""The statuses of an invoice of which something is due."""
FOREVER = date.max.isoformat()
"""The last day of the calendar."""
ISSUED = (*OPEN, "paid", "written_off")
"""The statuses of an invoice that counts."""

overdue = work.overdue(*OPEN)
"""Whether an invoice should be paid by now: something is due while it is open."""


def any_of(table: Table, statuses: Any) -> ColumnElement[bool]:
    """Whether an invoice has one of these statuses, or is `overdue` or `open` when they say so."""
    late = and_(literal("overdue").in_(statuses), overdue(table))
    is_open = and_(literal("open").in_(statuses), among(table.c.status, OPEN))
    return or_(table.c.status.in_(statuses), late, is_open)


STANDING = Where(
    any_of,
    said="Records whose `status` is one of these; `overdue` means `is_overdue`, `open` is `sent` or `partially_paid`.",
)
"""The invoices with one of these statuses."""


def has_overdue(table: Table) -> ColumnElement[bool]:
    """Whether a client has an overdue invoice."""
    its = metadata.tables["invoices"].alias()
    return select(its.c.id).where(its.c.client_id == table.c.id, overdue(its)).exists()


def fixed_by_invoice(tx: Tx, client: int, member: str) -> None:
    """Note a fault of a client's member that is fixed once an invoice was issued."""
    number = tx.value(_numbered(), client=client)
    if number is not None:
        tx.fault(member, f"Is fixed since invoice {number} was issued.")


@cache
def _numbered() -> Select[Any]:
    its = metadata.tables["invoices"]
    return select(its.c.number).where(its.c.client_id == bindparam("client"), its.c.number.is_not(None)).limit(1)


def _lateness(table: Table) -> ColumnElement[Any]:
    """The day it is and the day on which it was due, in one text: each database has its own way to subtract days."""
    return case((overdue(table), cast(TODAY, Text) + " " + cast(table.c.due_date, Text)))


def _days_between(days: str | None) -> int:
    later, earlier = map(date.fromisoformat, days.split()) if days else (date.min, date.min)
    return (later - earlier).days


days_overdue = Derived(_lateness, _days_between)
"""For how many days an invoice has been overdue; 0 when it is not."""


def refund_due(table: Table) -> ColumnElement[Any]:
    """What was paid on an invoice and then credited: what payments and credits come to beyond its total."""
    beyond = table.c.amount_paid + table.c.amount_credited + table.c.balance_due - table.c.total
    return case((table.c.status == "void", 0), else_=beyond)


def settle(tx: Tx, invoice: int, *, by_payment: bool) -> None:
    """Write what is due of an invoice whose payments or credit notes have changed.

    One that was written off stays so until something is paid.
    """
    status, total, paid_at, written_off_at, last_day = tx.one(_invoice(), id=invoice) or ("", 0, None, None, "")
    paid, paid_date = tx.one(_paid(), invoice=invoice) or (0, None)
    due, credited, last_day = total - paid, 0, max(last_day, paid_date or "")
    for note, its_total, issue_date in tx.all(_notes(), invoice=invoice):
        last_day = max(last_day, issue_date)
        applied = min(its_total, due)
        tx.run(_applied(), own=note, applied=applied, refundable=its_total - applied, now=tx.now)
        due, credited = due - applied, credited + its_total
    if by_payment or status != "written_off":
        status, written_off_at = standing(due, paid + credited), None
        end(tx, invoice, last_day if status == "paid" else FOREVER)
    paid_at = (paid_at or tx.now) if status == "paid" else None
    amounts = {"amount_paid": paid, "amount_credited": credited, "balance_due": due}
    moments = {"paid_at": paid_at, "written_off_at": written_off_at}
    tx.run(_settled(), own=invoice, now=tx.now, status=status, **amounts, **moments)


def standing(due: int, settled: int) -> str:
    """The status of an issued invoice of which so much is due and so much was paid or credited."""
    return "paid" if due == 0 else "partially_paid" if settled else "sent"


def end(tx: Tx, invoice: int, day: str) -> None:
    """Write down the day from whose end on nothing is outstanding of an invoice: FOREVER while something is."""
    tx.run(_ended(), own=invoice, day=day)


@cache
def _ended() -> Update:
    its = metadata.tables["invoices"]
    return update(its).where(its.c.id == bindparam("own")).values(settled_date=bindparam("day"))


@cache
def _invoice() -> Select[Any]:
    its = metadata.tables["invoices"]
    wanted = its.c["status", "total", "paid_at", "written_off_at", "issue_date"]
    return select(*wanted).where(its.c.id == bindparam("id")).with_for_update()


@cache
def _paid() -> Select[Any]:
    its = metadata.tables["payments"].c
    added = select(func.coalesce(func.sum(its.amount), 0), func.max(its.paid_date))
    return added.where(its.invoice_id == bindparam("invoice"))


@cache
def _notes() -> Select[Any]:
    notes = metadata.tables["credit_notes"]
    its = notes.c.invoice_id == bindparam("invoice")
    return select(*notes.c["id", "total", "issue_date"]).where(its).order_by(notes.c.id)


@cache
def _applied() -> Update:
    notes = metadata.tables["credit_notes"]
    values: dict[str, Any] = {"applied_amount": bindparam("applied"), "refundable_amount": bindparam("refundable")}
    changed = (notes.c.id == bindparam("own"), notes.c.applied_amount != bindparam("applied"))
    return update(notes).where(*changed).values(updated_at=bindparam("now"), **values)


@cache
def _settled() -> Update:
    its = metadata.tables["invoices"]
    names = ("status", "amount_paid", "amount_credited", "balance_due", "paid_at", "written_off_at")
    values: dict[str, Any] = {name: bindparam(name) for name in names}
    return update(its).where(its.c.id == bindparam("own")).values(updated_at=bindparam("now"), **values)
