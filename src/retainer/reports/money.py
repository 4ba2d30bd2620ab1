"""Money: sums of invoices, payments, credit notes and expenses by month, client or project, read from their rows."""

from functools import cache

from sqlalchemy import Select, and_, bindparam, case, func, literal, or_, select, union_all

from retainer.reports.common import Period, read_sums
from retainer.rollups.summaries import Figures, Sums, keyed
from retainer.schema.billing import (
    credit_note_shares,
    credit_notes,
    discount_shares,
    expenses,
    invoice_lines,
    invoices,
    is_discount,
    is_issued,
    is_unsettled,
    payments,
)
from retainer.store.engines.sql import DAY, INSTANT, INTEGER
from retainer.store.tx import Tx

INVOICED = select(
    invoices.c.issue_date.label("day"),
    *invoices.c["client_id", "currency"],
    literal(1, INTEGER).label("invoice_count"),
    invoices.c.subtotal.label("invoiced"),
    invoices.c.tax_total.label("invoiced_tax"),
).where(is_issued(invoices))
INVOICED_ON_PROJECTS = (
    select(
        invoices.c.issue_date.label("day"),
        invoices.c.client_id,
        func.coalesce(invoice_lines.c.project_id, invoices.c.project_id).label("project_id"),
        invoices.c.currency,
        invoice_lines.c.amount.label("invoiced"),
    )
    .select_from(invoices.join(invoice_lines, invoice_lines.c.invoice_id == invoices.c.id))
    .where(is_issued(invoices))
)
CREDITED = select(
    credit_notes.c.issue_date.label("day"),
    *credit_notes.c["client_id", "currency"],
    credit_notes.c.subtotal.label("credited"),
    credit_notes.c.tax_total.label("credited_tax"),
)
CREDITED_ON_PROJECTS = select(
    credit_notes.c.issue_date.label("day"),
    *credit_notes.c["client_id", "currency"],
    credit_note_shares.c.project_id,
    credit_note_shares.c.amount.label("credited"),
).select_from(credit_notes.join(credit_note_shares, credit_note_shares.c.credit_note_id == credit_notes.c.id))
COLLECTED = select(
    payments.c.paid_date.label("day"),
    *payments.c["client_id", "currency"],
    case((is_discount(payments), 0), else_=payments.c.amount).label("collected"),
    func.coalesce(payments.c.net_amount, 0).label("discounts"),
    case((is_discount(payments), payments.c.amount - payments.c.net_amount), else_=0).label("discounts_tax"),
)
DISCOUNTED_ON_PROJECTS = select(
    payments.c.paid_date.label("day"),
    *payments.c["client_id", "currency"],
    discount_shares.c.project_id,
    discount_shares.c.amount.label("discounts"),
).select_from(payments.join(discount_shares, discount_shares.c.payment_id == payments.c.id))
SPENT = select(
    expenses.c.date.label("day"),
    *expenses.c["client_id", "project_id", "currency"],
    expenses.c.net_amount.label("expenses"),
)
REVENUE = ("invoiced", "credited", "discounts", "invoiced_tax", "credited_tax", "discounts_tax")
"""The sums from which revenue and tax follow."""
BALANCES = ("outstanding", "overdue", "overdue_count", "refund_due", "written_off")
LAST = bindparam("last", type_=DAY)
SINCE, UNTIL = (bindparam(name, type_=INSTANT) for name in ("since", "until"))
ISSUED_SINCE = select(invoices.c.id).where(invoices.c.issue_date > LAST)


def read(tx: Tx, period: Period, by: tuple[str, ...], figures: tuple[str, ...], **only: int | str) -> Sums:
    """Return figures of a period by `month`, client or project and currency, with `revenue` and `tax` that follow.

    Discounts are a part of what was credited. Groups of zeros are omitted. `only` limits the rows to a client, a
    project or a currency. Payments have no project.
    """
    keys, asked = {*by, *only}, only.pop("currency", None)
    sources = [INVOICED, CREDITED, COLLECTED, SPENT]
    if "project_id" in keys:
        sources = [INVOICED_ON_PROJECTS, CREDITED_ON_PROJECTS, DISCOUNTED_ON_PROJECTS, SPENT]
    sums: Sums = {}
    for source in sources:
        names = tuple(name for name in figures if name in source.selected_columns)
        if names:
            for key, found in read_sums(tx, source, period, by, names, only).items():
                if asked in {None, key[-1]}:  # or SQLite would follow an index by client to all invoices
                    sums.setdefault(key, Figures()).update(found)
    for found in sums.values():
        found["credited"] += found["discounts"]
        found["revenue"] = found["invoiced"] - found["credited"]
        found["tax"] = found["invoiced_tax"] - found["credited_tax"] - found["discounts_tax"]
    return sums


def balances(tx: Tx, period: Period, by: tuple[str, ...], **only: int | str) -> Sums:
    """Return what clients owe at the end of a period, the overdue part, its number of invoices, and what they are owed.

    The balance of an issued invoice is its total less payments and credits up to the day; a negative one is to be
    refunded. It is overdue from the day after its due date. What is written off is not due from that day on: of the
    invoices that were written off in the period, it is `written_off`.
    """
    rows = tx.all(_balances(by, tuple(only)), last=period.to, **period.moments(), **only)
    return keyed(rows, len(by), BALANCES)


@cache
def _balances(by: tuple[str, ...], limits: tuple[str, ...]) -> Select[int]:
    """Select the balances: those of now, from which what was paid and credited since is taken back."""
    now = invoices.c.total - invoices.c.amount_paid - invoices.c.amount_credited
    sources = {
        invoices: select(invoices.c.id.label("invoice_id"), now.label("amount")).where(is_unsettled(invoices)),
        payments: select(payments.c.invoice_id, payments.c.amount).where(payments.c.paid_date > LAST),
        credit_notes: select(credit_notes.c.invoice_id, credit_notes.c.total).where(credit_notes.c.issue_date > LAST),
    }
    if "client_id" in limits:  # each table has an index by client
        sources = {table: each.where(table.c.client_id == bindparam("client_id")) for table, each in sources.items()}
    else:
        sources[payments] = sources[payments].where(payments.c.invoice_id.not_in(ISSUED_SINCE))
    changes = union_all(*sources.values()).subquery()
    balance = func.sum(changes.c.amount)
    by_invoice = select(changes.c.invoice_id, balance.label("due")).group_by(changes.c.invoice_id).having(balance != 0)
    balances_of_invoices = by_invoice.subquery()
    due, invoice = balances_of_invoices.c.due, invoices.c
    is_counted = and_(
        is_issued(invoices), invoice.issue_date <= LAST, *(invoice[name] == bindparam(name) for name in limits)
    )
    is_open = and_(due > 0, or_(invoice.written_off_at.is_(None), invoice.written_off_at >= UNTIL))
    is_late = and_(is_open, invoice.due_date < LAST)
    is_lost = and_(due > 0, invoice.written_off_at >= SINCE, invoice.written_off_at < UNTIL)
    figures = ((is_open, due), (is_late, due), (is_late, literal(1, INTEGER)), (due < 0, -due), (is_lost, due))
    sums = (func.sum(case((and_(is_counted, condition), figure), else_=0)) for condition, figure in figures)
    keys = [invoice[name] for name in by]
    # An outer join, or SQLite would look up the balance of every invoice instead of the invoice of every balance
    joined = balances_of_invoices.outerjoin(invoices, invoice.id == balances_of_invoices.c.invoice_id)
    return select(*keys, *sums).select_from(joined).group_by(*keys)
