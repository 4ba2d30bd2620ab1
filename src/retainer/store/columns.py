"""Kinds of column, and how their values go into the database and come out again."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec
from sqlalchemy import Column, ColumnElement, ForeignKeyConstraint, Index, Text, UniqueConstraint, column, literal

from retainer.store.engines import DAY, FLAG, INSTANT, INTEGER
from retainer.values.collation import Fold, sort_key
from retainer.values.exact import decimal_text


def text(name: str, *, optional: bool = False, **options: Any) -> Column[Any]:
    """Text; null, never empty, when it is unknown."""
    return Column(name, Text, nullable=optional, **options)


def integer(name: str, *, optional: bool = False, **options: Any) -> Column[Any]:
    """A whole number."""
    return Column(name, INTEGER, nullable=optional, **options)


def flag(name: str, **options: Any) -> Column[Any]:
    """True or false, never unknown."""
    return Column(name, FLAG, nullable=False, info={"out": bool}, **options)


def day(name: str, *, optional: bool = False) -> Column[Any]:
    """A calendar day in the account's zone, `YYYY-MM-DD`."""
    return Column(name, DAY, nullable=optional)


def instant(name: str, *, optional: bool = False) -> Column[Any]:
    """A moment in UTC, RFC 3339 with microseconds and `Z`, so that text order is time order."""
    return Column(name, INSTANT, nullable=optional)


def decimal(name: str, *, optional: bool = False) -> Column[Any]:
    """An exact decimal, kept as its canonical text."""
    return Column(name, Text, nullable=optional, info={"into": decimal_text, "out": Decimal})


def price(name: str) -> Column[Any]:
    """An exact decimal, kept as the text in which it is answered."""
    return Column(name, Text, nullable=False, info={"into": lambda value: format(value, "f"), "out": Decimal})


def embedded(name: str, *, optional: bool = False) -> Column[Any]:
    """A structure, or a list of them, that belongs to the row alone, kept as JSON; the record's type says which."""
    into = {"into": lambda value: msgspec.json.encode(value).decode(), "embedded": True}
    return Column(name, Text, nullable=optional, info=into)


def money(name: str, *, optional: bool = False, **options: Any) -> Column[Any]:
    """An amount in minor units of the row's `currency` column."""
    return Column(name, INTEGER, nullable=optional, info={"money": True}, **options)


def folded(*sources: str, into: str | None = None, optional: bool = False, fold: Fold = str.casefold) -> Column[Any]:
    """The case-folded text of other columns, kept by the transaction: for search and uniqueness without case."""
    return Column(into or f"{sources[0]}_folded", Text, nullable=optional, info={"folds": sources, "fold": fold})


def sortable(*sources: str) -> Column[Any]:
    """The text by which lists are sorted by the first of these columns; the others decide where it is null."""
    return folded(*sources, into=f"{sources[0]}_sort", fold=sort_key)


def ref(
    name: str, target: str, *, optional: bool = False, on_delete: str = "block", holder: str | None = None
) -> tuple[Any, ...]:
    """A reference within the account: the key is (account_id, name), so another account's row cannot be linked.

    `on_delete` says what `Tx.delete` of the target does: `block` it, `cascade` to this row, or `detach` (set null).
    The row of a link is part of another record, to which the column `holder` refers; `a.b` if that is part of one, too.
    """
    return (
        Column(name, INTEGER, nullable=optional, info={"target": target, "on_delete": on_delete, "holder": holder}),
        ForeignKeyConstraint(["account_id", name], [f"{target}.account_id", f"{target}.id"]),
    )


def hidden(column: Column[Any]) -> Column[Any]:
    """A column that no record shows or writes: what it holds is told in other words."""
    column.info["hidden"] = True
    return column


def among(column: ColumnElement[Any], words: Iterable[str]) -> ColumnElement[bool]:
    """Whether a column holds one of these words, in a form that a statement can be prepared with."""
    return column.in_([literal(word) for word in words])


def sparse(table: str, *names: str) -> Index:
    """An index in which rows without a value in the first of these columns take no place."""
    present = column(names[0]).is_not(None)
    return Index(f"{table}_by_{names[0]}", "account_id", *names, sqlite_where=present, postgresql_where=present)


def only_one(table: str, name: str, among: ColumnElement[bool]) -> Index:
    """Unique within the account among the rows that meet a condition; no member is named when it is taken."""
    columns = ("account_id", name)
    return Index(f"{table}_unique_{name}", *columns, unique=True, sqlite_where=among, postgresql_where=among)


def unique(*names: str) -> UniqueConstraint:
    """Unique within the account; `Tx` names the first column's member when it is taken."""
    return UniqueConstraint("account_id", *names)
