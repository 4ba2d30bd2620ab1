"""Names of the records that others refer to, read in one statement for each table."""

import json
from functools import cache

from sqlalchemy import Select, Table, select

from retainer.console.catalogue import NAMES, shortened
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.tx import Tx
from retainer.values.collation import sort_key

MAX_CHOICES = 500
"""Records that a form offers for choice; with more, it asks for the id."""
LONG = {"body", "description"}
"""Texts that name only records without a name, and are too long to read for each."""


def load_names(tx: Tx, table: Table, ids: set[int]) -> dict[int, str]:
    """Return the names of records by their ids."""
    if not ids:
        return {}
    return {
        record_id: name_of(record_id, *parts)
        for record_id, *parts in tx.all(_by_id(table), ids=json.dumps(sorted(ids)))
    }


def load_choices(tx: Tx, table: Table) -> list[tuple[int, str]] | None:
    """Return all records of a table with their names, by name; None if there are more than a form can offer."""
    rows = tx.all(_first(table))
    if len(rows) > MAX_CHOICES:
        return None
    found = [(record_id, name_of(record_id, *parts)) for record_id, *parts in rows]
    return sorted(found, key=lambda choice: (sort_key(choice[1]), choice[0]))


def name_of(record_id: int, *parts: object) -> str:
    """Return the name of a record from its number and name, or its id without either."""
    return " · ".join(shortened(str(part)) for part in parts if part is not None) or f"{record_id}"


@cache
def _names(table: Table) -> Select[int, str]:
    numbers = [table.c.number] if "number" in table.c and table.name != "clients" else []
    names = [table.c[name] for name in NAMES if name in table.c and name not in LONG]
    return select(table.c.id, *numbers, *names[:1])


@cache
def _by_id(table: Table) -> Select[int, str]:
    return _names(table).where(is_listed(table.c.id, listed("ids", INTEGER).scalar_subquery()))


@cache
def _first(table: Table) -> Select[int, str]:
    return _names(table).order_by(table.c.id).limit(MAX_CHOICES + 1)
