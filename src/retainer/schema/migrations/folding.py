"""Folded columns: write them again in a migration, when their text or the way to fold it has changed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from sqlalchemy import Connection, bindparam, column, select, table, update

from retainer.values.collation import SEPARATOR, Fold, folded_text


class Folded(NamedTuple):
    """A column with the folded text of others, and the columns within whose values it is unique, if it is."""

    sources: Sequence[str]
    fold: Fold
    within: tuple[str, ...] = ()


def refold(connection: Connection, name: str, folded: Mapping[str, Folded], announce: Callable[[str], None]) -> None:
    """Write the folded columns of all rows of a table that differ.

    Rows that have become alike are announced. All but the first get a folded text that equals no other: what has been
    accepted stays, and nothing else can take that text.
    """
    sources = {source for each in folded.values() for source in each.sources}
    within = {each for declared in folded.values() for each in declared.within}
    names = ["id", *sorted({"account_id", *sources, *within, *folded} - {"id"})]
    rows_of = table(name, *map(column, names))
    is_row = (rows_of.c.id == bindparam("row_id"), rows_of.c.account_id == bindparam("row_account"))
    taken: dict[tuple[object, ...], int] = {}
    changed = []
    for row in connection.execute(select(rows_of).order_by(rows_of.c.account_id, rows_of.c.id)).mappings():
        texts = cast("Mapping[str, str | None]", row)
        values = {into: folded_text(texts, declared.sources, declared.fold) for into, declared in folded.items()}
        for into, declared in folded.items():
            if not declared.within or values[into] is None:
                continue
            key = (into, *(row[each] for each in declared.within), values[into])
            first = taken.setdefault(key, row["id"])
            if first != row["id"]:
                values[into] = f"{values[into]}{SEPARATOR}{row['id']}"
                alike = f"{row[declared.sources[0]]!r} of {name} {row['id']} prints like that of {first}"
                announce(f"Account {row['account_id']}: {alike}. Both are kept; give one of them another.")
        if any(row[into] != value for into, value in values.items()):
            changed.append({**values, "row_id": row["id"], "row_account": row["account_id"]})
    if changed:
        values_of: dict[str, Any] = {into: bindparam(into) for into in folded}
        connection.execute(update(rows_of).where(*is_row).values(values_of), changed)
