"""Effects of actions on invoices beside their fields: what a client owes, and the work that can be billed again."""

import json
from typing import NamedTuple

from sqlalchemy import bindparam, func, select

from retainer.billing.invoices.types import Invoice
from retainer.console import words
from retainer.console.reports.tables import hours
from retainer.schema.billing import OPEN_INVOICES, allocations, invoice_lines, invoices
from retainer.schema.columns import in_literals
from retainer.schema.work import time_entries
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx
from retainer.values.exact import amount_of
from retainer.values.records import Record

OUTSTANDING = select(func.coalesce(func.sum(invoices.c.balance_due), 0)).where(
    invoices.c.client_id == bindparam("client"),
    invoices.c.currency == bindparam("currency"),
    in_literals(invoices.c.status, OPEN_INVOICES),
)
LINES = listed("lines", INTEGER).scalar_subquery()
MONTHS = select(func.count()).where(invoice_lines.c.fee_is_live == 1, is_listed(invoice_lines.c.id, LINES))
WORK = (
    select(
        func.count(allocations.c.time_entry_id),
        func.coalesce(func.sum(time_entries.c.duration_minutes), 0),
        func.count(allocations.c.expense_id),
        func.count(allocations.c.milestone_id),
        MONTHS.scalar_subquery(),
    )
    .select_from(allocations.outerjoin(time_entries, time_entries.c.id == allocations.c.time_entry_id))
    .where(allocations.c.is_live == 1, is_listed(allocations.c.invoice_line_id, LINES))
)


class Work(NamedTuple):
    """Work on the lines of an invoice: the number of time entries, their minutes, and the numbers of other kinds."""

    entries: int = 0
    minutes: int = 0
    expenses: int = 0
    milestones: int = 0
    months: int = 0


def load_live_work(tx: Tx, record: Record) -> Work:
    """Return the work that the lines of an invoice bill; other records bill none."""
    if not isinstance(record, Invoice):
        return Work()
    return Work(*(tx.one(WORK, lines=json.dumps([line.id for line in record.lines])) or ()))


def load_outstanding(tx: Tx, record: Record) -> str | None:
    """Return what the client of an invoice owes in its currency; None for other records."""
    if not isinstance(record, Invoice):
        return None
    units = tx.value(OUTSTANDING, client=record.client_id, currency=record.currency)
    return words.money(amount_of(units, record.currency), record.currency)


def work_in_words(work: Work) -> str:
    """Return work as part of a sentence: `12:30 h of time, 2 expenses and 1 milestone`; empty without any."""
    found = [
        f"{hours(work.minutes)} h of time ({words.count(work.entries, 'entry', 'entries')})" if work.entries else "",
        words.count(work.expenses, "expense") if work.expenses else "",
        words.count(work.milestones, "milestone") if work.milestones else "",
        f"{words.count(work.months, 'month')} of a retainer" if work.months else "",
    ]
    found = [text for text in found if text]
    return f"{', '.join(found[:-1])} and {found[-1]}" if len(found) > 1 else "".join(found)
