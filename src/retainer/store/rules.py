"""The rules that the tables themselves declare: references exist, unique values are free, deletion is allowed."""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, Table, UniqueConstraint, bindparam, delete, func, select, update

from retainer.errors import FieldErrors, Refusal
from retainer.store.records import RefersTo
from retainer.store.tables import metadata

if TYPE_CHECKING:
    from retainer.store.tx import Tx

MISSING = "There is no such {} in this account."


@cache
def exists(table: Table) -> Select[Any]:
    """One row when the table has this id."""
    return select(table.c.id).where(table.c.id == bindparam("id"))


@cache
def _found(sent: tuple[tuple[str, Table], ...]) -> Select[Any]:
    """For each reference, whether its record exists; in one row."""
    whether: list[Any] = [select(target.c.id).where(target.c.id == bindparam(name)).exists() for name, target in sent]
    return select(*whether)


@cache
def reference_columns(table: Table) -> tuple[tuple[str, Table], ...]:
    """The reference columns of a table and what they refer to."""
    return tuple((column.name, metadata.tables[column.info["target"]]) for column in table.c if "target" in column.info)


@cache
def uniques(table: Table) -> tuple[tuple[tuple[str, ...], Select[Any]], ...]:
    """The unique values of a table: their columns, and the statement that finds another row that has them."""
    statements = []
    for constraint in sorted(table.constraints, key=lambda it: str(it.name)):
        if not isinstance(constraint, UniqueConstraint):
            continue
        names = tuple(column.name for column in constraint.columns if column.name != "account_id")
        if names != ("id",):
            same = [table.c[name] == bindparam(name) for name in names]
            statements.append((names, select(table.c.id).where(*same, table.c.id != bindparam("own"))))
    return tuple(statements)


@cache
def lists(model: type[Struct]) -> tuple[tuple[str, Table], ...]:
    """The members of a type that are lists of references."""
    hints = get_type_hints(model, include_extras=True)
    marked = [(name, mark) for name, hint in hints.items() for mark in getattr(hint, "__metadata__", ())]
    return tuple((name, metadata.tables[mark.target]) for name, mark in marked if isinstance(mark, RefersTo))


def check(tx: "Tx", table: Table, model: type[Struct], values: dict[str, Any], exclude_id: int | None) -> None:
    """Note a fault for each reference to nothing and each unique value that another row has; null is not judged.

    Another account's record is `no such` record, in the same words.
    """
    sent = tuple((name, target) for name, target in reference_columns(table) if values.get(name) is not None)
    statements = tx.one(_found(sent), **{name: values[name] for name, _ in sent}) if sent else None
    for (name, target), here in zip(sent, statements or (), strict=True):
        if not here:
            tx.error(name, MISSING.format(singular(target)))
    for name, target in lists(model):
        for position, record_id in enumerate(values.get(name) or ()):
            if tx.one(exists(target), id=record_id) is None:
                tx.error(f"{name}.{position}", MISSING.format(singular(target)))
    for names, statement in uniques(table):
        if any(values.get(name) is None for name in names):
            continue
        taken = tx.one(statement, exclude_id=exclude_id or 0, **{name: values[name] for name in names})
        if taken is not None:
            field = table.c[names[-1]].info.get("folds", (names[-1],))[0]
            tx.error(field, f"Is already taken by {singular(table)} {taken[0]}. Choose another.")


def remove(tx: "Tx", table: Table, record_id: int) -> None:
    """Delete a row as its references declare: blocked by some, taking others with it, detaching the rest.

    Raises `in_use` with one entry for each relation that blocks, and its count.
    """
    errors = blocking(tx, table, record_id)
    if errors:
        message = f"This {singular(table)} is in use and was not deleted. See errors for what blocks."
        raise Refusal("in_use", message, errors=errors)
    for source, step in _deletion(table)[1]:
        changed = tx.run(step, id=record_id, now=tx.now)
        if source is not None:
            tx.count(source, -changed)


def blocking(tx: "Tx", table: Table, record_id: int) -> FieldErrors:
    """The relations that block the deletion of a row, each with its count."""
    errors: FieldErrors = {}
    for name, statement in _deletion(table)[0]:
        count = tx.value(statement, id=record_id)
        if count:
            what = singular(metadata.tables[name]) if count == 1 else name.replace("_", " ")
            errors[name] = [f"Move or delete {count} {what} first."]
    return errors


Blockers = list[tuple[str, Select[Any]]]
Steps = list[tuple[Table | None, Any]]


@cache
def _deletion(table: Table) -> tuple[Blockers, Steps]:
    blockers, steps = Blockers(), Steps()
    _plan((table,), table.c.id == bindparam("id"), blockers, steps)
    return blockers, steps


def _plan(path: tuple[Table, ...], doomed: ColumnElement[bool], blockers: Blockers, steps: Steps) -> None:
    """Collect what stands in the way of deleting the doomed rows, and the statements that delete them.

    `path` leads from the deleted table to theirs. A table that refers to itself is one level deep.
    """
    table = path[-1]
    ids = select(table.c.id).where(doomed) if "id" in table.c else None
    for child in metadata.sorted_tables:
        for column in child.c:
            if ids is None or column.info.get("target") != table.name or path[-2:] == (child, child):
                continue
            affected = column.in_(ids)
            if column.info["holder"] is not None:
                steps += _touched(child, column.info["holder"], affected)
            if column.info["on_delete"] == "cascade":
                _plan((*path, child), affected, blockers, steps)
            elif column.info["on_delete"] == "detach":
                nothing: dict[str, Any] = {column.name: None, "updated_at": bindparam("now")}
                steps.append((None, update(child).values(nothing).where(affected)))
            else:
                blockers.append((child.name, select(func.count()).select_from(child).where(affected)))
    steps.append((table if "id" in table.c else None, delete(table).where(doomed)))


def _touched(table: Table, path: str, affected: ColumnElement[bool]) -> Iterator[tuple[None, Any]]:
    """Note a change of the records of which the affected rows are part, and of those of which they are part."""
    for name in path.split("."):
        holder = table.c[name]
        table = metadata.tables[holder.info["target"]]
        affected = table.c.id.in_(select(holder).where(affected))
        yield None, update(table).values(updated_at=bindparam("now")).where(affected)


def singular(table: Table) -> str:
    """What a person calls one row of a table: `time entry`."""
    words = table.name.replace("_", " ")
    return words[:-3] + "y" if words.endswith("ies") else words.removesuffix("s")
