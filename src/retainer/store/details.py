"""Details: the parts of records that lists leave out, such as lines, read for many records in one statement each."""

import json
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, NamedTuple, get_args

import msgspec
from sqlalchemy import Table, text

from retainer.errors import invalid
from retainer.store.engines.sql import INTEGER, is_listed, listed
from retainer.store.row_mapper import R, RowMapper, row_mapper
from retainer.store.statements import Statement
from retainer.store.tables import metadata
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_INTEGER
from retainer.values.records import DetailOnly, Record, marked

MAX_DETAILS = 10_000
"""Parts of one kind that are read for several records: a page of 100 invoices may have 20,000 lines."""
Parts = dict[int, list[Any]]


class Detail(NamedTuple):
    """A field of a record with its parts, rows of another table."""

    field: str
    statement: Statement
    """Selects the parts of records, each with the id of its record in the second column."""
    records: RowMapper


@cache
def details(table: Table, model: type[Record]) -> dict[str, Detail]:
    return {
        name: _detail(table, name, metadata.tables[mark.table], *get_args(hint))
        for name, hint, mark in marked(model, DetailOnly)
    }


def load_details(tx: Tx, table: Table, records: Sequence[R], names: Collection[str] | None = None) -> None:
    """Read the parts of records into these fields, or into all, with one statement for each field.

    Raises `validation_failed` if several records have too many parts.
    """
    for field, detail in details(table, type(records[0])).items() if records else ():
        if names is None or field in names:
            parts = load_parts(tx, detail, [record.id for record in records])
            for record in records:
                setattr(record, field, parts[record.id])


def load_parts(tx: Tx, detail: Detail, ids: list[int]) -> Parts:
    most = MAX_DETAILS if len(ids) > 1 else MAX_INTEGER
    rows = tx.all(detail.statement, ids=json.dumps(ids), limit=most + 1)
    if len(rows) > most:
        message = f"These records have more than {most:,} {detail.field}. Read fewer at a time, with `per_page`."
        raise invalid({"include": [message]})
    parts: Parts = {record_id: [] for record_id in ids}
    for row, part in zip(rows, detail.records.read_all(rows), strict=True):
        parts[row[1]].append(part)
    return parts


def _detail(owner: Table, field: str, table: Table, model: type[msgspec.Struct]) -> Detail:
    """Return a field with parts: in their order if they have a position, else by their key, oldest first."""
    (parent,) = (column for column in table.c if column.info.get("target") == owner.name)
    records = row_mapper(table, model)
    order = [column for column in table.c if column.name == "position"]
    order += [column for column in table.primary_key if column.name != "account_id"]
    condition = is_listed(parent, listed("ids", INTEGER).scalar_subquery())
    statement = records.rows.add_columns(parent).where(condition).order_by(*order).suffix_with(text("LIMIT :limit"))
    return Detail(field, statement, records)


def load_records(tx: Tx, table: Table, model: type[R], ids: Collection[int]) -> list[R]:
    """Return the records with these ids, by id, with their parts. Raises the errors of `load_details`."""
    found = tx.all(_records(table, model), ids=json.dumps(sorted(ids))) if ids else []
    records = row_mapper(table, model).read_all(found)
    load_details(tx, table, records)
    return records


@cache
def _records(table: Table, model: type[Record]) -> Statement:
    condition = is_listed(table.c.id, listed("ids", INTEGER).scalar_subquery())
    return row_mapper(table, model).rows.where(condition).order_by(table.c.id)
