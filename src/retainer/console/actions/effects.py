"""Effects of actions on invoices beside their fields: what a client owes, and the work that can be billed again."""

import json
from collections.abc import Iterable

from sqlalchemy import func, select

from retainer.billing.invoices.types import Invoice
from retainer.console import words
from retainer.console.kinds.clients import OUTSTANDING
from retainer.schema.billing import allocations, invoice_lines
from retainer.schema.work import time_entries
from retainer.store.engines.sql import is_listed
from retainer.store.tx import Tx
from retainer.values.exact import amount_of

MONTHS = select(func.count()).where(invoice_lines.c.fee_is_live == 1, is_listed(invoice_lines.c.id, "lines"))
WORK = (
    select(
        func.count(allocations.c.time_entry_id),
        func.coalesce(func.sum(time_entries.c.duration_minutes), 0),
        func.count(allocations.c.expense_id),
        func.count(allocations.c.milestone_id),
        MONTHS.scalar_subquery(),
    )
    .select_from(allocations.outerjoin(time_entries, time_entries.c.id == allocations.c.time_entry_id))
    .where(allocations.c.is_live == 1, is_listed(allocations.c.invoice_line_id, "lines"))
)


def work_in_words(work: Iterable[int]) -> str:
    """Return work as part of a sentence: `12:30 h of time, 2 expenses and 1 milestone`; empty without any."""
    entries, minutes, expenses, milestones, months = work
    found = [
        f"{words.hours(minutes)} h of time ({words.count(entries, 'entry', 'entries')})" if entries else "",
        words.count(expenses, "expense") if expenses else "",
        words.count(milestones, "milestone") if milestones else "",
        f"{words.count(months, 'month')} of a retainer" if months else "",
    ]
    return words.listed([text for text in found if text])


def load_effects(tx: Tx, record: object) -> tuple[str, tuple[int, ...]]:
    """Return what the client of an invoice owes, and its entries, minutes, expenses, milestones and months."""
    if not isinstance(record, Invoice):
        return "", (0, 0, 0, 0, 0)
    owed_by_client = tx.all(OUTSTANDING, ids=json.dumps([record.client_id]))
    units = next((units for _, currency, units in owed_by_client if currency == record.currency), 0)
    owed = words.money(amount_of(units, record.currency), record.currency)
    return owed, tx.one(WORK, lines=json.dumps([line.id for line in record.lines])) or (0, 0, 0, 0, 0)
