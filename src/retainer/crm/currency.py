"""What follows from a client's currency: it is that of its projects and their milestones, until something is billed."""

from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, Update, bindparam, select, update

from retainer.rollups.changes import changing_project
from retainer.schema.billing import billings, invoices
from retainer.schema.work import milestones, projects
from retainer.store.constraints import singular
from retainer.store.tx import Tx
from retainer.values.exact import amount_of, minor_units

ISSUED = (
    select(invoices.c.number)
    .where(invoices.c.client_id == bindparam("client"), invoices.c.number.is_not(None))
    .limit(1)
)
BILLED_MILESTONE = (
    select(billings.c.milestone_id)
    .select_from(
        billings.join(milestones, milestones.c.id == billings.c.milestone_id).join(
            projects, projects.c.id == milestones.c.project_id
        )
    )
    .where(billings.c.is_live == 1, projects.c.client_id == bindparam("client"))
    .limit(1)
)
OF_CLIENT = projects.c.client_id == bindparam("of")
PROJECTS = select(projects.c.id).where(OF_CLIENT)
MILESTONES_OF_CLIENT = milestones.c.project_id.in_(select(projects.c.id).where(OF_CLIENT))
MILESTONES_OF_PROJECT = milestones.c.project_id == bindparam("of")


def check_currency(tx: Tx, client_id: int) -> None:
    """Note an error when the client's currency is fixed: an invoice was issued, or a milestone is on one."""
    number = tx.value(ISSUED, client=client_id)
    if number is not None:
        tx.error("currency", f"Is fixed since invoice {number} was issued.")
    milestone = tx.value(BILLED_MILESTONE, client=client_id)
    if milestone is not None:
        tx.error("currency", f"Is fixed while milestone {milestone} is on an invoice. Take it off there first.")


def propagate_currency(tx: Tx, client_id: int, currency: str) -> None:
    """Write the client's currency to its projects and their milestones; the figures stay as they are."""
    redenominate(tx, milestones, MILESTONES_OF_CLIENT, client_id, currency, "currency")
    with changing_project(tx, [project_id for (project_id,) in tx.all(PROJECTS, of=client_id)]):
        redenominate(tx, projects, OF_CLIENT, client_id, currency, "currency")


def redenominate(tx: Tx, table: Table, which: ColumnElement[bool], owner_id: int, currency: str, field: str) -> None:
    """Write amounts anew in another currency; one that it cannot hold is an error of the field that changes it."""
    names, rows, change = _priced(table, which)
    for row_id, former, *amounts in tx.all(rows, of=owner_id):
        if former == currency:
            continue
        values = dict(zip(names, amounts, strict=True))
        try:
            for priced, units in values.items():
                values[priced] = None if units is None else minor_units(amount_of(units, former), currency)
        except ValueError as error:
            tx.error(field, f"{error} It stands in {singular(table)} {row_id}.")
        else:
            tx.run(change, row_id=row_id, now=tx.now, currency=currency, **values)


@cache
def _priced(table: Table, which: ColumnElement[bool]) -> tuple[list[str], Select[Any], Update]:
    """The amounts of a table, the rows that are meant, and the change of one of them."""
    names = [column.name for column in table.c if column.info.get("money") and column.nullable]  # totals are recounted
    values: dict[str, Any] = {name: bindparam(name) for name in (*names, "currency")}
    change = update(table).where(table.c.id == bindparam("row_id")).values(updated_at=bindparam("now"), **values)
    return names, select(*table.c["id", "currency", *names]).where(which), change
