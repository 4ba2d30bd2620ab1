"""Allocation types: the fields that say which work a line bills, and on which invoice time and expenses are."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from sqlalchemy import ColumnElement, Table, case, select

from retainer.schema.billing import allocations, invoice_lines
from retainer.schema.filters import Where
from retainer.store.engines.sql import comma_list
from retainer.store.records import Derived
from retainer.values.kinds import Id

BillingStatus = Literal["non_billable", "unbilled", "billed"]


def _billing_status(table: Table) -> ColumnElement[Any]:
    billed = table.c.invoice_line_id.is_not(None)
    return case((billed, "billed"), (table.c.billable, "unbilled"), else_="non_billable")


BillingStatusField = Annotated[
    BillingStatus,
    Derived(_billing_status),
    "`billed` while it is on an invoice, be that a draft; else as `billable` says.",
]
"""Whether a record is billed, to be billed, or neither."""
BillingStatusFilter = Annotated[
    tuple[BillingStatus, ...] | None,
    Where(lambda table, statuses: _billing_status(table).in_(statuses)),
    "Records whose `billing_status` is one of these.",
]
"""The records that have one of these."""
Locked = Annotated[
    bool,
    Derived(lambda table: table.c.invoice_line_id.is_not(None), bool),
    "True while it is on an invoice: only `description` and `external_id` can change then.",
]
"""Whether a record is billed and therefore fixed."""
BillingInvoice = Annotated[
    Id | None, "The invoice that bills it; null again when that is void, or its line or all of it is credited."
]
"""The invoice that a record is on."""
BillingLine = Annotated[Id | None, "Where on that invoice it stands; null without one."]
"""The line that a record is on."""


def _milestone_invoice(table: Table) -> ColumnElement[Any]:
    on_line = allocations.join(invoice_lines, invoice_lines.c.id == allocations.c.invoice_line_id)
    invoice_id = select(invoice_lines.c.invoice_id).select_from(on_line)
    return invoice_id.where(allocations.c.milestone_id == table.c.id, allocations.c.is_live == 1).scalar_subquery()


MILESTONE_INVOICE = Derived(_milestone_invoice)
"""The invoice on which a milestone is billed."""


def billed_work(column: str, out: Callable[[str | None], Any]) -> Derived:
    """Return the field for the work of one kind that a line bills or, before it was voided or credited, has billed."""

    def expression(table: Table) -> ColumnElement[Any]:
        return (
            select(comma_list(allocations.c[column]))
            .where(allocations.c.invoice_line_id == table.c.id)
            .scalar_subquery()
        )

    return Derived(expression, out)


def first_id(text: str | None) -> int | None:
    """Return the id of a list of one; None when there is no list."""
    return int(text) if text else None
