"""Allocation types: the fields and filters that show which work a line bills, and on which invoice work is."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from msgspec import Meta
from sqlalchemy import ColumnElement, Table, and_, case, func, select

from retainer.schema.billing import allocations, invoice_lines
from retainer.schema.columns import in_literals
from retainer.schema.expressions import has_covered_hours, is_billed, is_unbilled, is_unpriced
from retainer.schema.filters import Where
from retainer.store.engines.sql import id_list
from retainer.store.row_mapper import Derived
from retainer.values.kinds import Id

TimeBillingStatus = Annotated[
    Literal["non_billable", "covered", "unpriced", "unbilled", "billed"], Meta(title="TimeBillingStatus")
]
ExpenseBillingStatus = Annotated[Literal["non_billable", "unbilled", "billed"], Meta(title="ExpenseBillingStatus")]


def _status_of_time(table: Table) -> ColumnElement[str]:
    excluded = ((has_covered_hours(table), "covered"), (is_unpriced(table), "unpriced"))
    non_billable = (table.c.billable.is_(False), "non_billable")
    return case((is_billed(table), "billed"), non_billable, *excluded, else_="unbilled")


def _has_time_status(table: Table, statuses: frozenset[str]) -> ColumnElement[bool]:
    found = in_literals(_status_of_time(table), sorted(statuses))
    return and_(is_unbilled(table), found) if statuses.isdisjoint({"billed", "non_billable"}) else found


def _status_of_expense(table: Table) -> ColumnElement[str]:
    return case((is_billed(table), "billed"), (table.c.billable, "unbilled"), else_="non_billable")


def _milestone_invoice(table: Table) -> ColumnElement[Any]:
    on_line = allocations.join(invoice_lines, invoice_lines.c.id == allocations.c.invoice_line_id)
    invoice_id = select(invoice_lines.c.invoice_id).select_from(on_line)
    return invoice_id.where(allocations.c.milestone_id == table.c.id, allocations.c.is_live == 1).scalar_subquery()


TimeBillingStatusField = Annotated[
    TimeBillingStatus,
    Derived(_status_of_time),
    "`billed`: on an invoice, even a draft, or `is_settled`; `covered`: paid by a fixed fee or retainer; `unpriced`: "
    "without a rate; `unbilled`: ready to be billed.",
]
TimeBillingStatusFilter = Annotated[
    tuple[TimeBillingStatus, ...] | None,
    Where(_has_time_status, is_literal=True),
    "Records whose `billing_status` is one of these.",
]
ExpenseBillingStatusField = Annotated[
    ExpenseBillingStatus,
    Derived(_status_of_expense),
    "`billed`: on an invoice, even a draft, or `is_settled`; otherwise it follows from `billable`.",
]
ExpenseBillingStatusFilter = Annotated[
    tuple[ExpenseBillingStatus, ...] | None,
    Where(lambda table, statuses: _status_of_expense(table).in_(statuses)),
    "Records whose `billing_status` is one of these.",
]
Settled = Annotated[
    bool,
    "True if it was billed outside of Retainer, such as by a program that was used before: it counts as billed, and no "
    "invoice here can bill it. Only billable work can be settled.",
]
Locked = Annotated[
    bool,
    Derived(lambda table: table.c.invoice_line_id.is_not(None), bool),
    "True while it is on an invoice: then only `description` and `external_id` can change.",
]
BillingInvoice = Annotated[Id | None, "The invoice that bills it; null again if it is void, or the line credited."]
BillingLine = Annotated[Id | None, "The line of that invoice; null without an invoice."]
MILESTONE_INVOICE = Derived(_milestone_invoice)


def billed_work(
    kind: str, column: ColumnElement[int], combine: Callable[..., ColumnElement[Any]], out: Any = None
) -> Derived:
    """Return the field for the work of one kind that a line bills, or billed before it was voided or credited.

    Work that was deleted since then is named, too: what an issued invoice says does not change.
    """
    work = select(combine(func.coalesce(column, allocations.c.deleted_work_id)))

    def on_line(table: Table) -> ColumnElement[Any]:
        return work.where(allocations.c.invoice_line_id == table.c.id, table.c.kind == kind).scalar_subquery()

    return Derived(on_line, out)


TIME_ON_LINE = billed_work("time", allocations.c.time_entry_id, id_list, sorted)
EXPENSES_ON_LINE = billed_work("expense", allocations.c.expense_id, id_list, sorted)
MILESTONE_ON_LINE = billed_work("milestone", allocations.c.milestone_id, func.max)
