"""The balance of an invoice: what is due after payments and credit notes, and the status that follows.

Payments less refunds and early-payment discounts reduce it first, then credit notes in their order. What exceeds the
balance, of payments or of a credit note, is to be refunded.
"""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from itertools import accumulate
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, Text, and_, bindparam, case, cast, func, literal, not_, or_, select

from retainer.schema import expressions
from retainer.schema.billing import OPEN_INVOICES, credit_notes, has_refund_due, invoices, is_discount, payments
from retainer.schema.columns import in_literals
from retainer.schema.filters import Where
from retainer.store.row_mapper import Derived
from retainer.store.tables import TODAY
from retainer.store.tx import Tx

overdue = expressions.overdue(*OPEN_INVOICES)


def has_status(table: Table, statuses: Any) -> ColumnElement[bool]:
    late = and_(literal("overdue").in_(statuses), overdue(table))
    is_open = and_(literal("open").in_(statuses), in_literals(table.c.status, OPEN_INVOICES))
    return or_(table.c.status.in_(statuses), late, is_open)


STATUS_FILTER = Where(
    has_status,
    description="Records whose `status` is one of these; `overdue` means `is_overdue`, `open` is `sent` or "
    "`partially_paid`.",
)


def _days_between(days: str) -> int:
    later, earlier = map(date.fromisoformat, days.split())
    return (later - earlier).days


DAYS_OVERDUE = Derived(
    lambda table: case((overdue(table), cast(TODAY, Text) + " " + cast(table.c.due_date, Text))), _days_between
)
"""The days since the due date; 0 if it is not overdue. Both days are one text: databases subtract in different ways."""
REFUND_FILTER = Where(
    lambda table, value: has_refund_due(table) if value else not_(has_refund_due(table)),
    description="With true, invoices with a `refund_due`; with false, the others.",
    is_small=True,
)


def refund_due(table: Table) -> ColumnElement[Any]:
    """Return what is to be refunded: payments, less refunds, and credits beyond the total of an invoice."""
    beyond = table.c.amount_paid + table.c.amount_credited + table.c.balance_due - table.c.total
    return case((table.c.status == "void", 0), else_=beyond)


RECORDED = select(func.coalesce(func.sum(payments.c.amount), 0)).where(payments.c.invoice_id == bindparam("id"))
INVOICE = select(
    *invoices.c["status", "total", "paid_at", "written_off_at", "amount_paid"],
    RECORDED.where(~is_discount(payments)).scalar_subquery(),
    RECORDED.where(is_discount(payments)).scalar_subquery(),
).where(invoices.c.id == bindparam("id"))
"""An invoice, with its payments less refunds, and with its discounts."""
NOTES = (
    select(*credit_notes.c["id", "total"])
    .where(credit_notes.c.invoice_id == bindparam("invoice"))
    .order_by(credit_notes.c.id)
)


class Settlement(NamedTuple):
    """What is due on an invoice, its credits, and the part of each credit note that reduced the balance."""

    due: int
    credited: int
    applied: list[int]


def settle(total: int, paid: int, discounted: int, notes: Iterable[int]) -> Settlement:
    """Return the balance of an issued invoice, from its payments less refunds, its discounts and its credit notes."""
    due, credited, applied = max(total - discounted - paid, 0), discounted, []
    for note in notes:
        applied.append(min(note, due))
        due, credited = due - applied[-1], credited + note
    return Settlement(due, credited, applied)


def status_of(due: int, paid: int, credited: int) -> str:
    """Return the status of an invoice that is issued, and neither void nor written off."""
    return "paid" if due == 0 else "partially_paid" if paid + credited else "sent"


def is_overdrawn(recorded: Iterable[tuple[str, Decimal]]) -> bool:
    """Return whether more was refunded than had been paid, at the end of any day; `recorded` are days and amounts."""
    by_day: dict[str, Decimal] = {}
    for day, amount in recorded:
        by_day[day] = by_day.get(day, Decimal(0)) + amount
    return any(sums < 0 for sums in accumulate(amount for _, amount in sorted(by_day.items())))


def recompute_balance(tx: Tx, invoice_id: int, *, by_payment: bool) -> None:
    """Write the balance of an invoice whose payments or credit notes have changed, and its status.

    An invoice that was written off stays so until a payment.
    """
    ((status, total, paid_at, written_off_at, former_paid, paid, discounted),) = tx.all(INVOICE, id=invoice_id)
    changed = ["payments"] if paid != former_paid else []
    notes = tx.all(NOTES, invoice=invoice_id)
    due, credited, applied = settle(total, paid, discounted, [note_total for _, note_total in notes])
    for (note_id, note_total), part in zip(notes, applied, strict=True):
        tx.update_columns(credit_notes, note_id, {"applied_amount": part, "refundable_amount": note_total - part})
        changed.append("credit_notes")
    if by_payment or status != "written_off":
        status = status_of(due, paid, credited)
        written_off_at = None
    values = {
        "status": status,
        "amount_paid": paid,
        "amount_credited": credited,
        "balance_due": due,
        "paid_at": (paid_at or tx.now) if status == "paid" else None,
        "written_off_at": written_off_at,
    }
    tx.update_columns(invoices, invoice_id, values, *dict.fromkeys(changed))
