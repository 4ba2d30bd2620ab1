"""Effects of actions in figures: what a client owes, and the work that can be billed again."""

import json
from collections.abc import Sequence
from decimal import Decimal

from sqlalchemy import bindparam, func, select

from retainer.billing import balance
from retainer.billing.invoices.types import Invoice, InvoiceLine
from retainer.console import words
from retainer.console.actions.basis import Change
from retainer.console.reports.tables import hours
from retainer.console.words import money
from retainer.schema.billing import OPEN_INVOICES, allocations, invoice_lines, invoices
from retainer.schema.columns import in_literals
from retainer.schema.crm import clients
from retainer.schema.work import time_entries
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, minor_units

OWED = select(func.coalesce(func.sum(invoices.c.balance_due), 0)).where(
    invoices.c.client_id == bindparam("client"),
    invoices.c.currency == bindparam("currency"),
    in_literals(invoices.c.status, OPEN_INVOICES),
)
NAME = select(clients.c.name).where(clients.c.id == bindparam("client"))
MONTHS = select(func.count()).where(
    invoice_lines.c.fee_is_live == 1, is_listed(invoice_lines.c.id, listed("lines", INTEGER).scalar_subquery())
)
WORK = (
    select(
        func.count(allocations.c.time_entry_id),
        func.coalesce(func.sum(time_entries.c.duration_minutes), 0),
        func.count(allocations.c.expense_id),
        func.count(allocations.c.milestone_id),
        MONTHS.scalar_subquery(),
    )
    .select_from(allocations.outerjoin(time_entries, time_entries.c.id == allocations.c.time_entry_id))
    .where(
        allocations.c.is_live == 1, is_listed(allocations.c.invoice_line_id, listed("lines", INTEGER).scalar_subquery())
    )
)
"""The work on lines: number of time entries, their minutes, number of expenses, of milestones and of months."""


def status_name(status: str) -> str:
    """Return a status as a word: `partially paid`."""
    return status.replace("_", " ")


def client_name(tx: Tx, client_id: int) -> str:
    return str(tx.value(NAME, client=client_id))


def owed_change(tx: Tx, invoice: Invoice, by: Decimal) -> Change:
    """Return how the sum of the client's open invoices changes."""
    now = amount_of(tx.value(OWED, client=invoice.client_id, currency=invoice.currency), invoice.currency)
    name = f"Open invoices of {client_name(tx, invoice.client_id)}"
    return Change(name, money(now, invoice.currency), money(now + by, invoice.currency))


def balance_changes(
    tx: Tx, invoice: Invoice, paid: Decimal, credited: Decimal, *, is_payment: bool = False
) -> list[Change]:
    """Return what changes once other amounts are paid and credited: the balance, the status, and what the client owes.

    The status follows as in `balance.recompute_balance`: an invoice that was written off stays so until a payment.
    """
    due = max(invoice.total - paid - credited, amount_of(0, invoice.currency))
    status: str = invoice.status
    if is_payment or status != "written_off":
        units = [minor_units(amount, invoice.currency) for amount in (due, paid + credited)]
        status = balance.derive_status(*units)
    then_open = due if status in OPEN_INVOICES else Decimal(0)
    now_open = invoice.balance_due if invoice.status in OPEN_INVOICES else Decimal(0)
    return [
        status_change(invoice.status, status),
        Change("Balance due", money(invoice.balance_due, invoice.currency), money(due, invoice.currency)),
        owed_change(tx, invoice, then_open - now_open),
    ]


def status_change(now: str, then: str) -> Change:
    return Change("Status", status_name(now), status_name(then))


def freed_work(tx: Tx, lines: Sequence[InvoiceLine]) -> str:
    """Return the work on lines in words: `12:30 h of time, 2 expenses and 1 milestone`; empty without any."""
    ids = json.dumps([line.id for line in lines])
    entries, minutes, expenses, milestones, months = tx.one(WORK, lines=ids) or (0, 0, 0, 0, 0)
    found = []
    if entries:
        found.append(f"{hours(minutes)} h of time ({words.count(entries, 'entry', 'entries')})")
    if expenses:
        found.append(words.count(expenses, "expense"))
    if milestones:
        found.append(words.count(milestones, "milestone"))
    if months:
        found.append(f"{words.count(months, 'month')} of a retainer")
    return f"{', '.join(found[:-1])} and {found[-1]}" if len(found) > 1 else "".join(found)
