"""Writing: the lines of a quote or an invoice, as a whole."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from sqlalchemy import Table

from retainer.billing.invoices.types import InvoiceLine
from retainer.billing.quotes.types import QuoteLine
from retainer.store.tables import metadata
from retainer.store.tx import Tx

Line = TypeVar("Line", QuoteLine, InvoiceLine)


def save_lines(tx: Tx, table: Table, before: Sequence[Line] | None, after: Sequence[Line], **parent: int) -> None:
    """Replace the lines of a document, which is new if it has no lines `before`. A line without an id is new.

    If anything changes, the document counts as changed and positions are counted from 1.
    """
    current: dict[int, Line] = {line.id: line for line in before or ()}
    if [*current] == [line.id for line in after] and not any(has_changed(current[line.id], line) for line in after):
        return
    if before is not None:
        ((reference, document_id),) = parent.items()
        tx.touch(metadata.tables[table.c[reference].info["target"]], document_id, "lines")
    for line_id in current.keys() - {line.id for line in after}:
        tx.delete(table, line_id)
    for position, line in enumerate(after, start=1):
        placed = msgspec.structs.replace(line, position=position, **parent)
        if line.id is None:
            line.id = tx.insert(table, placed)
        elif placed != current[line.id]:
            tx.update(table, placed)
            if has_changed(current[line.id], line):
                tx.touch(table, line.id)  # its row does not show which work it bills


def has_changed(old: Line, new: Line) -> bool:
    return msgspec.structs.replace(new, position=old.position) != old
