"""Details: the parts of records that lists leave out, such as lines, read for many records in one statement each."""

import json
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, get_args

import msgspec
from sqlalchemy import Table

from retainer.errors import invalid
from retainer.store.engines.sql import LIMIT, is_listed
from retainer.store.row_mapper import R, RowMapper, row_mapper
from retainer.store.statements import Statement
from retainer.store.tables import metadata
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_INTEGER
from retainer.values.records import DetailOnly, Record, marked

MAX_DETAILS = 10_000
"""Parts of one kind that are read for several records: a page of 100 invoices may have 20,000 lines."""


Detail = tuple[Statement, RowMapper]
"""What selects the parts of records, with the id of the record in the second column, and what reads them."""


@cache
def details(table: Table, model: type[Record]) -> dict[str, Detail]:
    """Return the fields of a record that have parts, rows of another table."""
    return {
        name: _detail(table, metadata.tables[mark.table], *get_args(hint))
        for name, hint, mark in marked(model, DetailOnly)
    }


def load_details(tx: Tx, table: Table, records: Sequence[R], names: Collection[str] | None = None) -> None:
    """Read parts into these fields, or all, one statement for each. Raises `validation_failed` for too many."""
    for field, (statement, mapper) in details(table, type(records[0])).items() if records else ():
        if names is None or field in names:
            most = MAX_DETAILS if len(records) > 1 else MAX_INTEGER
            parts: dict[int, list[Any]] = {record.id: [] for record in records}
            rows = tx.all(statement, ids=json.dumps([*parts]), limit=most + 1)
            if len(rows) > most:
                message = f"These records have more than {most:,} {field}. Read fewer at a time, with `per_page`."
                raise invalid({"include": [message]})
            for row, part in zip(rows, mapper.read_all(rows), strict=True):
                parts[row[1]].append(part)
            for record in records:
                setattr(record, field, parts[record.id])


def _detail(owner: Table, table: Table, model: type[msgspec.Struct]) -> Detail:
    """Return a field with parts: in their order if they have a position, else by their key, oldest first."""
    (parent,) = (column for column in table.c if column.info.get("target") == owner.name and not column.nullable)
    records = row_mapper(table, model)
    order = [column for column in table.c if column.name == "position"]
    order += [column for column in table.primary_key if column.name != "account_id"]
    condition = is_listed(parent, "ids")
    statement = records.rows.add_columns(parent).where(condition).order_by(*order).suffix_with(LIMIT)
    return statement, records


def load_records(tx: Tx, table: Table, model: type[R], ids: Collection[int]) -> list[R]:
    """Return the records with these ids, by id, with their parts. Raises the errors of `load_details`."""
    found = tx.all(_records(table, model), ids=json.dumps(sorted(ids))) if ids else []
    records = row_mapper(table, model).read_all(found)
    load_details(tx, table, records)
    return records


@cache
def _records(table: Table, model: type[Record]) -> Statement:
    condition = is_listed(table.c.id, "ids")
    return row_mapper(table, model).rows.where(condition).order_by(table.c.id)
