"""Statements for the constraints of tables: existing references, unique values, and deletions."""

from functools import cache
from typing import NamedTuple, get_origin

from msgspec import Struct, structs
from sqlalchemy import ColumnElement, Select, Table, UniqueConstraint, bindparam, false, func, select
from sqlalchemy.sql.dml import UpdateBase

from retainer.store.announcements import deleting, updating
from retainer.store.row_mapper import RefersTo
from retainer.store.tables import metadata
from retainer.values.records import WRITE_ONLY, marked

MISSING = "There is no such {} in this account."
MOVE = "Move or delete {} first."


@cache
def reference_columns(table: Table) -> tuple[tuple[str, Table], ...]:
    return tuple((column.name, metadata.tables[column.info["target"]]) for column in table.c if "target" in column.info)


@cache
def reference_lists(model: type[Struct]) -> tuple[tuple[str, Table], ...]:
    found = marked(model, RefersTo)
    return tuple((name, metadata.tables[mark.target]) for name, hint, mark in found if get_origin(hint) is list)


@cache
def references(table: Table, model: type[Struct]) -> dict[str, Table]:
    found = {name: metadata.tables[mark.target] for name, _, mark in marked(model, RefersTo)}
    targets = dict(reference_columns(table)) | found
    answered = [field.name for field in structs.fields(model) if field.default is not WRITE_ONLY]
    return {name: targets[name] for name in answered if name in targets}


@cache
def uniques(table: Table) -> tuple[tuple[tuple[str, ...], str, Select[int]], ...]:
    """Return the unique values of a table: columns, the field to report, and the statement that finds a duplicate."""
    found = []
    for constraint in sorted(table.constraints, key=lambda constraint: str(constraint.name)):
        if not isinstance(constraint, UniqueConstraint):
            continue
        names = tuple(column.name for column in constraint.columns if column.name != "account_id")
        if names != ("id",):
            field = table.c[names[-1]].info.get("folds", (names[-1],))[0]
            equal = [table.c[name] == bindparam(name) for name in names]
            found.append((names, field, select(table.c.id).where(*equal, table.c.id != bindparam("exclude_id"))))
    return tuple(found)


Blockers = list[tuple[Table, Select[int]]]
"""The tables whose rows can block a deletion, each with the statement that counts the blocking rows."""


class DeletionStep(NamedTuple):
    statement: UpdateBase
    table: Table | None = None  # the table that it deletes from; None for an update
    doomed: ColumnElement[bool] = false()  # the condition of the rows that it deletes
    found_by: str | None = None
    """The column that refers to the rows deleted after them; None for the record itself."""


@cache
def deletion(table: Table) -> tuple[Blockers, list[DeletionStep]]:
    """Return what can block the deletion of a row, and the statements that delete it with its dependents."""
    blockers, steps = Blockers(), list[DeletionStep]()
    _plan((table,), table.c.id == bindparam("id"), None, blockers, steps)
    return blockers, steps


def _plan(
    path: tuple[Table, ...],
    doomed: ColumnElement[bool],
    found_by: str | None,
    blockers: Blockers,
    steps: list[DeletionStep],
) -> None:
    """Collect what blocks the deletion of the doomed rows, and the statements that delete them, in order.

    `path` leads from the deleted table to theirs. A table that refers to itself is one level deep.
    """
    table = path[-1]
    ids = select(table.c.id).where(doomed) if "id" in table.c else None
    for child in metadata.sorted_tables:
        for column in child.c:
            if ids is None or column.info.get("target") != table.name or path[-2:] == (child, child):
                continue
            if column.info["on_delete"] == "none":
                continue
            affected = column.in_(ids)
            if column.info["holder"] is not None:
                holder = child.c[column.info["holder"]]
                held = metadata.tables[holder.info["target"]]
                touched = held.c.id.in_(select(holder).where(affected))
                steps.append(DeletionStep(updating(held, touched, parts=(column.info["part"],))))
            if column.info["on_delete"] == "cascade":
                _plan((*path, child), affected, column.name, blockers, steps)
            elif column.info["on_delete"] == "detach":
                kept = {column.info["kept_in"]: column} if column.info["kept_in"] else {}
                steps.append(DeletionStep(updating(child, affected, values={column.name: None, **kept})))
            else:
                blockers.append((child, select(func.count()).select_from(child).where(affected)))
    steps.append(DeletionStep(deleting(table, doomed), table, doomed, found_by))


@cache
def singular(table: Table) -> str:
    """Return the noun for one row of a table: `time entry`."""
    return singular_noun(table.name.replace("_", " "))


def singular_noun(plural: str) -> str:
    return f"{plural[:-3]}y" if plural.endswith("ies") else plural.removesuffix("s")
