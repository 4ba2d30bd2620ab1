"""Sources: what a row comes to in reports, as selects; the formulas of contract 4 stand here.

A source feeds the summaries that reports read, and is what the doctor recounts.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Subquery, Table, and_, case, func, literal, select, union

from retainer.domain.settlement import FOREVER, ISSUED
from retainer.store.columns import integer, text
from retainer.store.engines import INTEGER, next_day
from retainer.store.tables import keyed_table, metadata


def summary(name: str, *keys: str, of: tuple[str, ...]) -> Table:
    """A table with sums for each span, currency and `keys`; a key is 0 for rows that refer to none."""
    columns = [integer(key) for key in keys]
    sums = [integer(its, server_default="0", info={"sum": True}) for its in of]
    return keyed_table(name, text("span"), *columns, text("currency"), *sums, key=("span", *keys, "currency"))


project_sums = summary(
    "project_sums",
    "client_id",
    "project_id",
    of=(
        "tracked_minutes",
        "billable_minutes",
        "billable_value",
        "billed_value",
        "labour_cost",  # in minor units x minutes: a sixtieth of it is what an hour's rate makes of the time
        "missing_cost_rate_minutes",
        "invoiced",
        "credited",
        "expenses",
    ),
)
MONEY = (
    *("invoice_count", "invoiced", "invoiced_tax", "credited", "credited_tax", "collected"),
    *("expenses", "billable_expenses", "billed_expenses"),
    *("outstanding", "overdue", "overdue_count"),  # since the beginning, they add up to what is so at the end of a day
)
client_sums = summary("client_sums", "client_id", of=MONEY)
money_sums = summary("money_sums", of=MONEY)
user_sums = summary(
    "user_sums", "user_id", of=("tracked_minutes", "billable_minutes", "billable_value", "billed_value")
)

SUMMARIES = (project_sums, client_sums, money_sums, user_sums)


class Source(NamedTuple):
    """Rows that are summed: each with what it is found by, its day, the keys that it is summed by, and its sums."""

    rows: Callable[[], Select[Any]]
    feeds: tuple[Table, ...]
    of: tuple[str, ...] = ()
    """Of rows with a status, those that count."""


def _or_zero(reference: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.coalesce(reference, 0)


@cache
def _time() -> Select[Any]:
    """Time entries: their minutes and value, and minutes x the user's cost rate on their day."""
    its, cost_rates = metadata.tables["time_entries"].c, metadata.tables["cost_rates"]
    valid = (cost_rates.c.user_id == its.user_id, cost_rates.c.from_date <= its.date)
    newest_first = select(cost_rates.c.amount).where(*valid).order_by(cost_rates.c.from_date.desc())
    rate = newest_first.limit(1).scalar_subquery()
    return select(
        its.id.label("own"),
        its.date.label("day"),
        _or_zero(its.client_id).label("client_id"),
        _or_zero(its.project_id).label("project_id"),
        its.user_id,
        its.currency,
        its.duration_minutes.label("tracked_minutes"),
        case((its.billable, its.duration_minutes), else_=0).label("billable_minutes"),
        its.amount.label("billable_value"),
        (its.duration_minutes * func.coalesce(rate, 0)).label("labour_cost"),
        case((rate.is_(None), its.duration_minutes), else_=0).label("missing_cost_rate_minutes"),
    )


@cache
def _billed_time() -> Select[Any]:
    """Time entries on lines of invoices."""
    its = metadata.tables["time_entries"].c
    return select(
        its.invoice_line_id.label("own"),
        its.date.label("day"),
        _or_zero(its.client_id).label("client_id"),
        _or_zero(its.project_id).label("project_id"),
        its.user_id,
        its.currency,
        its.amount.label("billed_value"),
    ).where(its.invoice_line_id.is_not(None))


@cache
def _expenses() -> Select[Any]:
    """Expenses: net, and what clients will be billed for them."""
    its = metadata.tables["expenses"].c
    return select(
        its.id.label("own"),
        its.date.label("day"),
        _or_zero(its.client_id).label("client_id"),
        _or_zero(its.project_id).label("project_id"),
        its.currency,
        its.net_amount.label("expenses"),
        its.billable_amount.label("billable_expenses"),
    )


@cache
def _billed_expenses() -> Select[Any]:
    """Expenses on lines of invoices."""
    its = metadata.tables["expenses"].c
    return select(
        its.invoice_line_id.label("own"),
        its.date.label("day"),
        _or_zero(its.client_id).label("client_id"),
        its.currency,
        its.billable_amount.label("billed_expenses"),
    ).where(its.invoice_line_id.is_not(None))


@cache
def _invoices() -> Select[Any]:
    """Invoices: net and tax."""
    its = metadata.tables["invoices"].c
    return select(
        its.id.label("own"),
        its.issue_date.label("day"),
        its.client_id,
        its.currency,
        its.status,
        literal(1, INTEGER).label("invoice_count"),
        its.subtotal.label("invoiced"),
        its.tax_total.label("invoiced_tax"),
    )


@cache
def _lines() -> Select[Any]:
    """Lines of invoices: net, for their project or else the invoice's."""
    lines, invoices = metadata.tables["invoice_lines"], metadata.tables["invoices"]
    return select(
        invoices.c.id.label("own"),
        invoices.c.issue_date.label("day"),
        invoices.c.client_id,
        func.coalesce(lines.c.project_id, invoices.c.project_id, 0).label("project_id"),
        invoices.c.currency,
        invoices.c.status,
        lines.c.amount.label("invoiced"),
    ).select_from(invoices.join(lines, lines.c.invoice_id == invoices.c.id))


@cache
def _credit_notes() -> Select[Any]:
    """Credit notes: net and tax."""
    its = metadata.tables["credit_notes"].c
    return select(
        its.id.label("own"),
        its.issue_date.label("day"),
        its.client_id,
        its.currency,
        its.subtotal.label("credited"),
        its.tax_total.label("credited_tax"),
    )


@cache
def _credit_note_shares() -> Select[Any]:
    """Credit notes: what of their net is taken back from each project."""
    notes, shares = metadata.tables["credit_notes"], metadata.tables["credit_note_shares"]
    return select(
        notes.c.id.label("own"),
        notes.c.issue_date.label("day"),
        notes.c.client_id,
        _or_zero(shares.c.project_id).label("project_id"),
        notes.c.currency,
        shares.c.amount.label("credited"),
    ).select_from(notes.join(shares, shares.c.credit_note_id == notes.c.id))


@cache
def _payments() -> Select[Any]:
    """Payments, tax included."""
    payments, invoices = metadata.tables["payments"], metadata.tables["invoices"]
    return select(
        payments.c.id.label("own"),
        payments.c.paid_date.label("day"),
        invoices.c.client_id,
        payments.c.currency,
        payments.c.amount.label("collected"),
    ).select_from(payments.join(invoices, invoices.c.id == payments.c.invoice_id))


@cache
def _balances() -> Select[Any]:
    """Invoices: how much more is outstanding and overdue at the end of a day than at that of the day before.

    The balance of an issued invoice is its total less what was paid and credited by then; it is overdue when it was due
    before that day (contract 4). What is void was never due, and what was written off is not due any more.
    """
    its, days = metadata.tables["invoices"].c, _days_of_balances().c
    now, before = (_balance(until) for until in (days.day.__ge__, days.day.__gt__))
    late, was_late = (its.due_date < days.day).label("late"), (next_day(its.due_date) < days.day).label("was_late")
    balances = (now.label("now"), before.label("before"))
    rows = select(days.own, days.day, its.client_id, its.currency, *balances, late, was_late)
    step = rows.where(its.id == days.own, its.settled_date.is_not(None), days.day.is_not(None)).subquery().c
    overdue = [case((late, due), else_=0) for late, due in ((step.late, step.now), (step.was_late, step.before))]
    count = [case((due > 0, 1), else_=0) for due in overdue]
    return select(
        *step["own", "day", "client_id", "currency"],
        (step.now - step.before).label("outstanding"),
        (overdue[0] - overdue[1]).label("overdue"),
        (count[0] - count[1]).label("overdue_count"),
    )


def _days_of_balances() -> Subquery:
    """The days on which what is outstanding or overdue of an invoice may change."""
    its, payments, notes = (metadata.tables[name].c for name in ("invoices", "payments", "credit_notes"))
    issued, late = select(its.id.label("own"), its.issue_date.label("day")), select(its.id, next_day(its.due_date))
    settled = select(its.id, its.settled_date).where(its.settled_date < FOREVER)
    paid, credited = select(payments.invoice_id, payments.paid_date), select(notes.invoice_id, notes.issue_date)
    return union(issued, late, settled, paid, credited).subquery()


def _balance(until: Callable[[Any], ColumnElement[bool]]) -> ColumnElement[Any]:
    """What is outstanding of an invoice by then: after all that happened on a day of which `until` says that it was."""
    its, payments, notes = (metadata.tables[name].c for name in ("invoices", "payments", "credit_notes"))
    left: ColumnElement[Any] = its.total
    for amount, day, invoice in (
        (payments.amount, payments.paid_date, payments.invoice_id),
        (notes.total, notes.issue_date, notes.invoice_id),
    ):
        left -= select(func.coalesce(func.sum(amount), 0)).where(invoice == its.id, until(day)).scalar_subquery()
    return case((and_(until(its.issue_date), ~until(its.settled_date), left > 0), left), else_=0)


TIME = Source(_time, (project_sums, user_sums))
BILLED_TIME = Source(_billed_time, (project_sums, user_sums))
EXPENSES = Source(_expenses, (project_sums, client_sums, money_sums))
BILLED_EXPENSES = Source(_billed_expenses, (client_sums, money_sums))
INVOICES = Source(_invoices, (client_sums, money_sums), ISSUED)
LINES = Source(_lines, (project_sums,), ISSUED)
CREDIT_NOTES = Source(_credit_notes, (client_sums, money_sums))
CREDIT_NOTE_SHARES = Source(_credit_note_shares, (project_sums,))
PAYMENTS = Source(_payments, (client_sums, money_sums))
BALANCES = Source(_balances, (client_sums, money_sums))

SOURCES = (
    *(TIME, BILLED_TIME, EXPENSES, BILLED_EXPENSES, INVOICES, LINES, CREDIT_NOTES, CREDIT_NOTE_SHARES, PAYMENTS),
    BALANCES,
)
