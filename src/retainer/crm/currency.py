"""Changes of a client's currency, which its projects and their milestones follow."""

from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Table, Update, bindparam, select, update

from retainer.rollups import record_totals
from retainer.schema.billing import allocations, invoices
from retainer.schema.work import milestones, projects
from retainer.store.constraints import singular
from retainer.store.tables import NOW
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


class AmountStatements(NamedTuple):
    """The amounts of a table, and the statements that read and write them."""

    names: tuple[str, ...]
    """The selected columns: id, currency and the amounts in minor units."""
    load: Select[Any]
    change: Update


def validate_currency_change(tx: Tx, client_id: int) -> None:
    """Note an error if the client's currency is fixed: by an issued invoice, or by a milestone on an invoice."""
    number = tx.value(ISSUED_NUMBER, client=client_id)
    if number is not None:
        tx.error("currency", f"Is fixed since invoice {number} was issued.")
    milestone_id = tx.value(BILLED_MILESTONE, client=client_id)
    if milestone_id is not None:
        tx.error("currency", f"Is fixed while milestone {milestone_id} is on an invoice. Remove it from there first.")


def propagate_currency(tx: Tx, client_id: int, currency: str) -> None:
    """Write the client's currency to its projects and their milestones."""
    redenominate(tx, milestones, MILESTONES_OF_CLIENT, client_id, currency, "currency")
    redenominate(tx, projects, OF_CLIENT, client_id, currency, "currency")
    record_totals.write_amounts(tx, client_id)


def redenominate(
    tx: Tx, table: Table, condition: ColumnElement[bool], owner_id: int, currency: str, field: str
) -> None:
    """Change the currency of rows and keep the figures: 10.00 EUR become 10 JPY, though their minor units differ.

    `condition` finds the rows by the parameter `owner_id`. Notes an error of `field`, which changes the currency, if an
    amount has more decimal places than the currency.
    """
    statements = _amount_statements(table, condition)
    for row in tx.all(statements.load, owner_id=owner_id):
        values = dict(zip(statements.names, row, strict=True))
        row_id, former_currency = values.pop("id"), values.pop("currency")
        if former_currency == currency:
            continue
        try:
            for name, units in values.items():
                values[name] = None if units is None else minor_units(amount_of(units, former_currency), currency)
        except ValueError as error:
            tx.error(field, f"{error} It is an amount of {singular(table)} {row_id}.")
        else:
            tx.run(statements.change, row_id=row_id, currency=currency, **values)


@cache
def _amount_statements(table: Table, condition: ColumnElement[bool]) -> AmountStatements:
    amounts = [
        column.name for column in table.c if column.info.get("money") and column.nullable
    ]  # totals are recounted
    values: dict[str, ColumnElement[object]] = {name: bindparam(name) for name in ("currency", *amounts)}
    change = update(table).where(table.c.id == bindparam("row_id")).values(updated_at=NOW, **values)
    names = ("id", "currency", *amounts)
    return AmountStatements(names, select(*table.c[names]).where(condition), change)
