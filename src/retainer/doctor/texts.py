"""Texts: search texts, sort keys and folded texts are those of the columns that they follow from."""

from collections.abc import Iterator
from functools import cache

from sqlalchemy import Table, Update, bindparam

from retainer.doctor.findings import Finding
from retainer.schema import metadata
from retainer.store.announcements import maintaining
from retainer.store.constraints import singular
from retainer.store.row_mapper import folds
from retainer.store.streams import stream_rows
from retainer.store.tx import Tx
from retainer.values.collation import folded_text

FOLDED = [table for table in metadata.sorted_tables if table.info.get("of_account") and folds(table)]
Wrong = tuple[Table, int, dict[str, str | None]]
"""A row, and the texts that it should have."""


def find(tx: Tx) -> Iterator[Finding]:
    for table, row_id, right in _wrong(tx):
        names = ", ".join(right)
        yield Finding(f"{names} does not follow from its own texts.", f"{singular(table)} {row_id}")


def repair(tx: Tx) -> Iterator[str]:
    """Write all texts that are wrong; yield what was written."""
    for table, row_id, right in [*_wrong(tx)]:
        tx.run(_rewrite(table, tuple(right)), row=row_id, **right)
        yield f"{', '.join(right)} of {singular(table)} {row_id}"


def _wrong(tx: Tx) -> Iterator[Wrong]:
    for table in FOLDED:
        derived = folds(table)
        names = sorted({source for sources, _ in derived.values() for source in sources} | derived.keys())
        for row_id, *values in stream_rows(tx, table, *names):
            row = dict(zip(names, values, strict=True))
            expected = {name: folded_text(row, *how) for name, how in derived.items()}
            if right := {name: text for name, text in expected.items() if text != row[name]}:
                yield table, row_id, right


@cache
def _rewrite(table: Table, names: tuple[str, ...]) -> Update:
    values = {name: bindparam(name, type_=table.c[name].type) for name in names}
    return maintaining(table, table.c.id == bindparam("row"), values=values)
