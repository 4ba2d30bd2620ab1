"""Changes of a client's currency, which its projects and their milestones follow."""

from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, bindparam, select

from retainer.rollups import record_totals
from retainer.schema.billing import allocations, invoices
from retainer.schema.work import milestones, projects
from retainer.store.constraints import singular
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, minor_units

ISSUED_NUMBER = (
    select(invoices.c.number)
    .where(invoices.c.client_id == bindparam("client"), invoices.c.number.is_not(None))
    .order_by(invoices.c.id)
    .limit(1)
)
BILLED_MILESTONE = (
    select(allocations.c.milestone_id)
    .select_from(
        allocations.join(milestones, milestones.c.id == allocations.c.milestone_id).join(
            projects, projects.c.id == milestones.c.project_id
        )
    )
    .where(allocations.c.is_live == 1, projects.c.client_id == bindparam("client"))
    .limit(1)
)
OF_CLIENT = projects.c.client_id == bindparam("owner_id")
MILESTONES_OF_CLIENT = milestones.c.project_id.in_(select(projects.c.id).where(OF_CLIENT))
MILESTONES_OF_PROJECT = milestones.c.project_id == bindparam("owner_id")


def change_currency(tx: Tx, client_id: int, currency: str) -> None:
    """Change the currency of a client's projects and milestones, which the totals of the client follow.

    Notes an error if it is fixed: by an issued invoice, or by a milestone on an invoice.
    """
    number = tx.value(ISSUED_NUMBER, client=client_id)
    if number is not None:
        tx.error("currency", f"Is fixed since invoice {number} was issued.")
    milestone_id = tx.value(BILLED_MILESTONE, client=client_id)
    if milestone_id is not None:
        tx.error("currency", f"Is fixed while milestone {milestone_id} is on an invoice. Remove it from there first.")
    redenominate(tx, milestones, MILESTONES_OF_CLIENT, client_id, currency, "currency")
    redenominate(tx, projects, OF_CLIENT, client_id, currency, "currency")
    tx.run(record_totals.correcting(projects, "client_id"), client_id=client_id)


def redenominate(
    tx: Tx, table: Table, condition: ColumnElement[bool], owner_id: int, currency: str, field: str
) -> None:
    """Change the currency of rows and keep the figures: 10.00 EUR become 10 JPY, though their minor units differ.

    `condition` finds the rows by the parameter `owner_id`. Notes an error of `field`, which changes the currency, if an
    amount has more decimal places than the currency.
    """
    amounts = [column.name for column in table.c if column.info.get("money") and column.nullable]  # no totals
    for row_id, former_currency, *former in tx.all(_amounts(table, condition, *amounts), owner_id=owner_id):
        if former_currency == currency:
            continue
        values = dict(zip(amounts, former, strict=True))
        try:
            for name, units in values.items():
                values[name] = None if units is None else minor_units(amount_of(units, former_currency), currency)
        except ValueError as error:
            tx.error(field, f"{error} It is an amount of {singular(table)} {row_id}.")
        else:
            tx.update_columns(table, row_id, {"currency": currency, **values})


@cache
def _amounts(table: Table, condition: ColumnElement[bool], *amounts: str) -> Select[Any]:
    return select(*table.c["id", "currency", *amounts]).where(condition)
