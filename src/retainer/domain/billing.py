"""Billing: where time and expenses stand on their way onto an invoice."""

from typing import Annotated, Any, Literal

from sqlalchemy import ColumnElement, Table, case

from retainer.domain.filters import Where
from retainer.store.records import Derived

BillingStatus = Literal["non_billable", "unbilled"]


def _standing(table: Table) -> ColumnElement[Any]:
    return case((table.c.billable, "unbilled"), else_="non_billable")


Standing = Annotated[BillingStatus, Derived(_standing)]
"""Where a record stands."""
StandingFilter = Annotated[tuple[BillingStatus, ...] | None, Where(lambda table, its: _standing(table).in_(its))]
"""The records that stand at one of these."""
