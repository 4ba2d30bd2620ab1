"""Kinds of column and of table: how values go into the database and come out again, and what every table has."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import msgspec
from sqlalchemy import (
    Column,
    ColumnElement,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    column,
    literal,
)

from retainer.store.engines.sql import DAY, FLAG, INSTANT, INTEGER, KEYED, NUMBERED, TEXT, key_with_account
from retainer.store.tables import metadata
from retainer.values.collation import Fold, sort_key
from retainer.values.exact import decimal_text


def text(name: str, *, optional: bool = False, **options: Any) -> Column[Any]:
    """A text; null rather than empty when there is none."""
    return Column(name, TEXT, nullable=optional, **options)


def integer(name: str, *, optional: bool = False, **options: Any) -> Column[Any]:
    """A whole number."""
    return Column(name, INTEGER, nullable=optional, **options)


def flag(name: str, **options: Any) -> Column[Any]:
    """A boolean, never null."""
    return Column(name, FLAG, nullable=False, info={"out": bool}, **options)


def day(name: str, *, optional: bool = False) -> Column[Any]:
    """A calendar day in the account's zone, `YYYY-MM-DD`."""
    return Column(name, DAY, nullable=optional)


def instant(name: str, *, optional: bool = False) -> Column[Any]:
    """A moment in UTC, RFC 3339 with microseconds and `Z`, so that text order is time order."""
    return Column(name, INSTANT, nullable=optional)


def decimal(name: str, *, optional: bool = False) -> Column[Any]:
    """An exact decimal, stored as its canonical text: `7.5` for 7.50."""
    return Column(name, TEXT, nullable=optional, info={"into": decimal_text, "out": Decimal})


def price(name: str) -> Column[Any]:
    """An exact decimal, stored as the text in which it is answered, with its trailing zeros."""
    return Column(name, TEXT, nullable=False, info={"into": lambda value: format(value, "f"), "out": Decimal})


def embedded(name: str, *, optional: bool = False) -> Column[Any]:
    """A structure or list that belongs to the row alone, stored as JSON; the type of the record's field decodes it."""
    info = {"into": lambda value: msgspec.json.encode(value).decode(), "embedded": True}
    return Column(name, TEXT, nullable=optional, info=info)


def money(name: str, *, optional: bool = False, **options: Any) -> Column[Any]:
    """An amount in minor units of the row's `currency` column."""
    return Column(name, INTEGER, nullable=optional, info={"money": True}, **options)


def folded(*sources: str, into: str | None = None, optional: bool = False, fold: Fold = str.casefold) -> Column[Any]:
    """The case-folded text of other columns, written by `Tx`: for search and uniqueness that ignore case."""
    return Column(into or f"{sources[0]}_folded", TEXT, nullable=optional, info={"folds": sources, "fold": fold})


def sortable(*sources: str) -> Column[Any]:
    """The sort key of the first of these columns; the others sort the rows in which it is null."""
    return folded(*sources, into=f"{sources[0]}_sort", fold=sort_key)


def ref(
    name: str, target: str, *, optional: bool = False, on_delete: str = "block", holder: str | None = None
) -> tuple[Any, ...]:
    """A foreign key within the account: (account_id, name), so that another account's row cannot be referred to.

    `on_delete` is what `Tx.delete` of the target does: fail (`block`), delete this row (`cascade`) or set null
    (`detach`). When this row is part of another record, `holder` names the column that refers to it; `a.b` if that is
    part of a third. A deletion then changes the `updated_at` of that record.
    """
    return (
        Column(name, INTEGER, nullable=optional, info={"target": target, "on_delete": on_delete, "holder": holder}),
        ForeignKeyConstraint(["account_id", name], [f"{target}.account_id", f"{target}.id"]),
    )


def hidden(column: Column[Any]) -> Column[Any]:
    """Mark a column that is no field of the record, which answers its content in another form, if at all."""
    column.info["hidden"] = True
    return column


def mark_maintained(column: Column[Any]) -> Column[Any]:
    """Mark a figure that others keep up to date: no update of its record writes it, and If-Match leaves it alone."""
    column.info["maintained"] = True
    return column


def maintained(name: str, kind: Callable[..., Column[Any]] = integer) -> Column[Any]:
    """A sum of other rows, 0 at first, that `rollups` keeps as these change."""
    column = kind(name, server_default="0")
    column.info["maintained"] = True
    return column


def in_literals(column: ColumnElement[Any], words: Iterable[str]) -> ColumnElement[bool]:
    """Whether a column holds one of these words, as literals: they are part of the prepared statement."""
    return column.in_([literal(word) for word in words])


def partial_index(table: str, *names: str) -> Index:
    """A partial index, without the rows in which the first of these columns is null."""
    present = column(names[0]).is_not(None)
    return Index(f"{table}_by_{names[0]}", "account_id", *names, sqlite_where=present, postgresql_where=present)


def unique_where(table: str, name: str, condition: ColumnElement[bool]) -> Index:
    """Unique within the account among the rows that meet a condition; a violation is not assigned to a field."""
    columns = ("account_id", name)
    return Index(f"{table}_unique_{name}", *columns, unique=True, sqlite_where=condition, postgresql_where=condition)


def unique(*names: str) -> UniqueConstraint:
    """Unique within the account; `Tx` reports a taken value as an error of the first column's field."""
    return UniqueConstraint("account_id", *names)


def account_id() -> Column[Any]:
    """The account that a row belongs to; the first column of every key."""
    return Column("account_id", INTEGER, ForeignKey("accounts.id"), nullable=False)


def tenant_table(name: str, *items: Any) -> Table:
    """A table whose rows belong to an account, with `id`, `account_id`, `created_at` and `updated_at`."""
    return Table(
        name,
        metadata,
        Column("id", INTEGER, primary_key=True),
        account_id(),
        instant("created_at"),
        instant("updated_at"),
        *items,
        key_with_account(),
        info={"tenant": True},
        **NUMBERED,
    )


def keyed_table(name: str, *items: Any, key: tuple[str, ...]) -> Table:
    """A table whose rows belong to an account and have no id: `key` is the primary key within the account."""
    return Table(
        name, metadata, account_id(), *items, PrimaryKeyConstraint("account_id", *key), info={"tenant": True}, **KEYED
    )
