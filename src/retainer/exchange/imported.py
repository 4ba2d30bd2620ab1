"""Sums of the records that an import has created, read from the database, to compare with those of its file."""

from typing import NamedTuple

from sqlalchemy import FromClause, Table, func, literal_column, select

from retainer.exchange.plans import Sum
from retainer.jobs.jobs import OF_JOB
from retainer.schema.billing import invoices
from retainer.schema.crm import clients
from retainer.schema.identity import users
from retainer.schema.jobs import job_records
from retainer.schema.work import time_entries
from retainer.store.engines.sql import month_name
from retainer.store.tx import Tx
from retainer.values.exact import amount_of


def _made(table: Table) -> FromClause:
    """Return the records of a job with the rows of one of their tables."""
    return job_records.join(
        table,
        (table.c.account_id == job_records.c.account_id)
        & (table.c.id == job_records.c.record_id)
        & (job_records.c.record == literal_column(f"'{table.name}'")),
    )


_entry_month, _invoice_month = month_name(time_entries.c.date), month_name(invoices.c.issue_date)
TIME = (
    select(users.c.name, _entry_month, func.count(), func.sum(time_entries.c.duration_minutes))
    .select_from(_made(time_entries).join(users, users.c.id == time_entries.c.user_id))
    .where(OF_JOB)
    .group_by(users.c.id, users.c.name, _entry_month)
    .order_by(users.c.name, _entry_month)
)
INVOICES = (
    select(
        *(_invoice_month, clients.c.name, invoices.c.currency, func.count()),
        *map(func.sum, invoices.c["total", "amount_paid", "amount_credited"]),
    )
    .select_from(
        _made(invoices).join(
            clients, (clients.c.account_id == invoices.c.account_id) & (clients.c.id == invoices.c.client_id)
        )
    )
    .where(OF_JOB)
    .group_by(_invoice_month, clients.c.id, clients.c.name, invoices.c.currency)
    .order_by(_invoice_month, clients.c.name, invoices.c.currency)
)


class InvoiceSum(NamedTuple):
    """Amounts are in the smallest unit of the currency."""

    month: str
    client: str
    currency: str
    invoices: int
    total: int
    paid: int
    credited: int


def sums_now(tx: Tx, job_id: int) -> list[Sum]:
    """Return the time by person and month, or the invoices by month, client and currency, that an import has made.

    What was deleted since, as by undoing it, is not among them. Credit notes count with their invoice.
    """
    found: list[Sum] = [
        {"person": person, "month": month, "time_entries": count, "minutes": minutes}
        for person, month, count, minutes in tx.all(TIME, job=job_id)
    ]
    for row in map(InvoiceSum._make, tx.all(INVOICES, job=job_id)):
        named: dict[str, str | int] = {"month": row.month, "client": row.client, "currency": row.currency}
        amounts = {name: str(amount_of(getattr(row, name), row.currency)) for name in ("total", "paid", "credited")}
        found.append(named | {"invoices": row.invoices} | amounts)
    return found
