"""The balance of an invoice: what is still due after payments and credit notes, and the status that follows.

Payments count first, credit notes then, in their order, as far as something is due; what a credit note does not take
from the balance can be refunded.
"""

from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, Text, and_, bindparam, case, cast, func, literal, or_, select, update

from retainer.schema import expressions
from retainer.schema.billing import OPEN_INVOICES, credit_notes, invoices, payments
from retainer.schema.columns import in_literals
from retainer.schema.filters import Where
from retainer.store.records import Derived
from retainer.store.tables import TODAY
from retainer.store.tx import Tx
from retainer.values.exact import LAST_DAY

overdue = expressions.overdue(*OPEN_INVOICES)
"""Whether an invoice should be paid by now: something is due while it is open."""


def has_status(table: Table, statuses: Any) -> ColumnElement[bool]:
    """Whether an invoice has one of these statuses, or is `overdue` or `open` when they say so."""
    late = and_(literal("overdue").in_(statuses), overdue(table))
    is_open = and_(literal("open").in_(statuses), in_literals(table.c.status, OPEN_INVOICES))
    return or_(table.c.status.in_(statuses), late, is_open)


STATUS_FILTER = Where(
    has_status,
    description="Records whose `status` is one of these; `overdue` means `is_overdue`, `open` is `sent` or "
    "`partially_paid`.",
)
"""The invoices with one of these statuses."""


def _today_and_due(table: Table) -> ColumnElement[Any]:
    """Return the day it is and the day on which it was due, in one text: databases subtract days in different ways."""
    return case((overdue(table), cast(TODAY, Text) + " " + cast(table.c.due_date, Text)))


def _days_between(days: str | None) -> int:
    later, earlier = map(date.fromisoformat, days.split()) if days else (date.min, date.min)
    return (later - earlier).days


DAYS_OVERDUE = Derived(_today_and_due, _days_between)
"""For how many days an invoice has been overdue; 0 when it is not."""


def refund_due(table: Table) -> ColumnElement[Any]:
    """Return what was paid on an invoice and then credited: what payments and credits come to beyond its total."""
    beyond = table.c.amount_paid + table.c.amount_credited + table.c.balance_due - table.c.total
    return case((table.c.status == "void", 0), else_=beyond)


class InvoiceState(NamedTuple):
    """An invoice, as far as its balance goes; the total in minor units."""

    status: str
    total: int
    paid_at: str | None
    written_off_at: str | None
    issue_date: str


class AppliedNote(NamedTuple):
    """A credit note that takes from the balance; its total in minor units."""

    id: int
    total: int
    issue_date: str


INVOICE = select(*invoices.c[InvoiceState._fields]).where(invoices.c.id == bindparam("id"))
PAID = select(func.coalesce(func.sum(payments.c.amount), 0), func.max(payments.c.paid_date)).where(
    payments.c.invoice_id == bindparam("invoice")
)
NOTES = (
    select(*credit_notes.c[AppliedNote._fields])
    .where(credit_notes.c.invoice_id == bindparam("invoice"))
    .order_by(credit_notes.c.id)
)
APPLY_NOTE = (
    update(credit_notes)
    .where(credit_notes.c.id == bindparam("note"), credit_notes.c.applied_amount != bindparam("applied"))
    .values(updated_at=bindparam("now"), applied_amount=bindparam("applied"), refundable_amount=bindparam("refundable"))
)
WRITTEN = ("status", "amount_paid", "amount_credited", "balance_due", "paid_at", "written_off_at")
WRITE_BALANCE = (
    update(invoices)
    .where(invoices.c.id == bindparam("invoice"))
    .values({"updated_at": bindparam("now"), **{name: bindparam(name) for name in WRITTEN}})
)
WRITE_SETTLED_DATE = update(invoices).where(invoices.c.id == bindparam("invoice")).values(settled_date=bindparam("day"))


def recompute_balance(tx: Tx, invoice_id: int, *, by_payment: bool) -> None:
    """Write what is due of an invoice whose payments or credit notes have changed, and the status that follows.

    One that was written off stays so until something is paid.
    """
    invoice = InvoiceState(*(tx.one(INVOICE, id=invoice_id) or ("", 0, None, None, "")))
    status, written_off_at = invoice.status, invoice.written_off_at
    paid, paid_date = tx.one(PAID, invoice=invoice_id) or (0, None)
    due, credited, last_day = invoice.total - paid, 0, max(invoice.issue_date, paid_date or "")
    for note in (AppliedNote(*row) for row in tx.all(NOTES, invoice=invoice_id)):
        last_day = max(last_day, note.issue_date)
        applied = min(note.total, due)
        tx.run(APPLY_NOTE, note=note.id, applied=applied, refundable=note.total - applied, now=tx.now)
        due, credited = due - applied, credited + note.total
    if by_payment or status != "written_off":
        status, written_off_at = derive_status(due, paid + credited), None
        set_settled_date(tx, invoice_id, last_day if status == "paid" else LAST_DAY)
    paid_at = (invoice.paid_at or tx.now) if status == "paid" else None
    amounts = {"amount_paid": paid, "amount_credited": credited, "balance_due": due}
    moments = {"paid_at": paid_at, "written_off_at": written_off_at}
    tx.run(WRITE_BALANCE, invoice=invoice_id, now=tx.now, status=status, **amounts, **moments)


def derive_status(due: int, settled: int) -> str:
    """Return the status of an issued invoice, from what is due and what was paid or credited, both in minor units."""
    return "paid" if due == 0 else "partially_paid" if settled else "sent"


def set_settled_date(tx: Tx, invoice_id: int, day: str) -> None:
    """Write the day from whose end on nothing is outstanding of an invoice: LAST_DAY while something is."""
    tx.run(WRITE_SETTLED_DATE, invoice=invoice_id, day=day)
