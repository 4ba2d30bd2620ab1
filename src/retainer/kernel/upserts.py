"""Upserts: PUT by external id creates a record, or changes the one that has the id (decision 21)."""

from functools import cache
from types import GenericAlias
from typing import TypeVar

from sqlalchemy import Select, Table, bindparam, select

from retainer.errors import Refusal
from retainer.kernel.body import Upsert
from retainer.kernel.resource import Created, ExternalKey, Operation, Resource
from retainer.store.constraints import singular
from retainer.store.tx import Tx
from retainer.values.records import Record

R = TypeVar("R", bound=Record)
PATH = "/external:{external_id}"
ABOUT = """Create the {noun} with this external id, or change it.

If no {noun} has it, the body creates one, as with POST: 201. Otherwise the body changes it, as with PATCH, and omitted
fields keep their values: 200. Fields that POST requires are required only to create. The path sets `external_id`.
"""


def add_upsert(resource: Resource) -> None:
    """Add the upsert to a resource with external ids, from its operations that create and update."""
    create, update = (next(each for each in resource.operations if each.method == name) for name in ("POST", "PUT"))
    table = resource.table
    if table is None:
        raise TypeError(f"{resource.path} has no table with external ids.")

    def upsert(tx: Tx, external_id: ExternalKey, body: Upsert[R]) -> object:
        body.set_external_id(tx, external_id)
        record_id = tx.value(_found(table), external_id=external_id)
        if record_id is not None:
            return update.handler(tx, record_id, body.patch(tx, table))
        if tx.if_match is not None:
            message = f"No {singular(table)} has this external id, so none is in the state of If-Match. Leave it out."
            raise Refusal("precondition_failed", message)
        return Created(create.handler(tx, body.new(tx)))

    upsert.__doc__ = ABOUT.format(noun=singular(table))
    upsert.__name__ = create.handler.__name__.replace("create", "upsert", 1)
    upsert.__module__ = create.handler.__module__
    upsert.__annotations__ |= {"body": GenericAlias(Upsert, create.body), "return": create.answers}
    resource.operations.append(Operation(resource, "PUT", PATH, upsert))


@cache
def _found(table: Table) -> Select[int]:
    return select(table.c.id).where(table.c.external_id == bindparam("external_id"))
