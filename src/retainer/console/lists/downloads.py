"""The CSV file of a list: the fields of the API's records, exact, with the names of what they refer to."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

import msgspec
from sqlalchemy import Table

from retainer.console.names import load_names
from retainer.console.shapes import shapes_of
from retainer.store.tx import Tx
from retainer.values.records import WRITE_ONLY, Record
from retainer.web.csv_files import Cell

MAX_ROWS = 10_000
"""Records in a file; the page says so, and the name of the file does."""


def build_table(
    tx: Tx, model: type[Record], records: Sequence[Record], targets: dict[str, Table]
) -> tuple[list[str], Iterator[list[Cell]]]:
    """Return the header and the rows of a file: a column for each field with a single value.

    After an id of another record comes a column with its name: `client_id`, `client`.
    """
    fields = plain_fields(model)
    names: dict[str, dict[int, str]] = {}
    for field in fields:
        if field in targets:
            ids = {value for record in records if (value := getattr(record, field)) is not None}
            names[field] = load_names(tx, targets[field], ids)
    header = [
        title for field in fields for title in ([field, field.removesuffix("_id")] if field in names else [field])
    ]
    return header, (list(row_of(record, fields, names)) for record in records)


def plain_fields(model: type[Record]) -> list[str]:
    shapes = shapes_of(model)
    answered = [field.name for field in msgspec.structs.fields(model) if field.default is not WRITE_ONLY]
    return [name for name in answered if shapes[name] not in {"", "list"}]


def row_of(record: Record, fields: list[str], names: dict[str, dict[int, str]]) -> Iterator[Cell]:
    for field in fields:
        value = getattr(record, field)
        yield cell_of(value)
        if field in names:
            yield names[field].get(value)


def cell_of(value: bool | float | Cell) -> Cell:  # noqa: FBT001
    """Return a value as it is in JSON: `true`, `12.50`, `2026-11-24`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return Decimal(str(value)) if isinstance(value, float) else value
