"""Constructors of columns and tables, with the conversions of values into the database and back."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from retainer.store.engines.sql import DAY, FLAG, INSTANT, INTEGER, KEYED, NUMBERED, TEXT
from retainer.store.tables import metadata
from retainer.values.collation import Fold, base_letters, number_key, printed_form, sort_key
from retainer.values.decoding import json_text
from retainer.values.exact import decimal_text

T = TypeVar("T")


def kind(stored_as: TypeEngine[T], **info: object) -> Callable[..., sa.Column[T]]:
    def column(name: str, *, optional: bool = False, server_default: str | None = None) -> sa.Column[T]:
        return sa.Column(name, stored_as, nullable=optional, info={**info}, server_default=server_default)

    return column


text, integer, content = kind(TEXT), kind(INTEGER), kind(sa.LargeBinary())
"""A text, which is null instead of empty; a whole number; bytes."""
flag = kind(FLAG, out=bool)
day = kind(DAY)
"""A day in the account's time zone, `YYYY-MM-DD`."""
instant = kind(INSTANT)
"""A moment in UTC, RFC 3339 with microseconds and `Z`, so that text order is time order."""
decimal = kind(TEXT, into=decimal_text, out=Decimal)
"""An exact decimal, stored as its canonical text: `7.5` for 7.50."""
price = kind(TEXT, into="{:f}".format, out=Decimal)
"""An exact decimal, stored as the text that responses show, with its trailing zeros."""
embedded = kind(TEXT, into=json_text, embedded=True)
"""A structure or list of the row, stored as JSON and decoded by the type of the record's field."""
money = kind(INTEGER, money=True)
"""An amount in minor units of the row's `currency`."""


def optional(constructor: Callable[..., sa.Column[T]], *names: str) -> list[sa.Column[T]]:
    return [constructor(name, optional=True) for name in names]


def folded(*sources: str, into: str | None = None, optional: bool = False, fold: Fold = str.casefold) -> sa.Column[str]:
    """The case-folded text of other columns, written by `Tx`, for filters and uniqueness that ignore case."""
    return sa.Column(into or f"{sources[0]}_folded", TEXT, nullable=optional, info={"folds": sources, "fold": fold})


def sortable(*sources: str) -> sa.Column[str]:
    """The sort key of the first of these columns that is not null."""
    return folded(*sources, into=f"{sources[0]}_sort", fold=sort_key)


def searchable(*sources: str, optional: bool = False) -> sa.Column[str]:
    """The base letters of these columns, for the filter `q`; `optional` if all of them can be null."""
    return folded(*sources, into="search", optional=optional, fold=base_letters)


def numbered(name: str = "number", *, optional: bool = False) -> tuple[SchemaItem, ...]:
    """The number that people read, unique in the account as printed, and its form for sorting: K2 before K10."""
    return (
        text(name, optional=optional),
        folded(name, optional=optional, fold=printed_form),
        folded(name, into=f"{name}_sort", optional=optional, fold=number_key),
        unique(f"{name}_folded"),
        *indexes(f"{name}_sort id"),
    )


def ref(
    name: str,
    target: str,
    *,
    optional: bool = False,
    on_delete: str = "block",
    holder: str | None = None,
    part: str | None = None,
) -> tuple[sa.Column[int], sa.ForeignKeyConstraint]:
    """A foreign key within the account, (account_id, name), which cannot refer to a row of another account.

    `on_delete` is what `Tx.delete` of the target does: fail (`block`), delete this row (`cascade`), set null
    (`detach`), or nothing (`none`), if rules never delete a target that has such a row. If this row is part of another
    record, `holder` names the column that refers to it: a deletion then sets the `updated_at` of that record, whose
    field `part` has changed. A reference that `keep_reference` has marked is set to null and stays in another column.
    """
    info = {"target": target, "on_delete": on_delete, "holder": holder, "part": part, "kept_in": None}
    return (
        sa.Column(name, INTEGER, nullable=optional, info=info),
        sa.ForeignKeyConstraint(["account_id", name], [f"{target}.account_id", f"{target}.id"]),
    )


def keep_reference(column: sa.Column[T], into: str) -> None:
    """Let a deletion that sets a reference to null write the id that it had into another column."""
    column.info["kept_in"] = into


def hidden(column: sa.Column[T]) -> sa.Column[T]:
    column.info["hidden"] = True
    return column


def mark_maintained(column: sa.Column[T]) -> sa.Column[T]:
    """Mark a column that updates of its record do not write, and that If-Match ignores."""
    column.info["maintained"] = True
    return column


def maintained(name: str, constructor: Callable[..., sa.Column[int]] = integer) -> sa.Column[int]:
    """A sum over other rows, initially 0, that `rollups` maintains."""
    return mark_maintained(constructor(name, server_default="0"))


def in_literals(column: sa.ColumnElement[str], words: Iterable[str]) -> sa.ColumnElement[bool]:
    """Return whether a column has one of these words, which become literals of the statement."""
    return column.in_([sa.literal(word) for word in words])


def indexes(*columns: str) -> list[sa.Index]:
    """Indexes of the account over columns, each like `client_id created_at id`."""
    return [sa.Index(None, "account_id", *names.split()) for names in columns]


def index_where(
    name: str, *columns: str | sa.ColumnElement[int], condition: sa.ColumnElement[bool], unique: bool = False
) -> sa.Index:
    return sa.Index(name, "account_id", *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def partial_index(table: str, *names: str) -> sa.Index:
    """An index without the rows in which the first of these columns is null."""
    return index_where(f"{table}_by_{names[0]}", *names, condition=sa.column(names[0]).is_not(None))


def index_rows(
    name: str, table: sa.Table, *names: str, condition: sa.ColumnElement[bool], unique: bool = False
) -> None:
    columns = (table.c[column] for column in ("account_id", *names))
    sa.Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def own_amounts(table: sa.Table) -> list[sa.Column[int]]:
    """Return the amounts that a table's rows have of themselves; sums over other rows are left out."""
    return [column for column in table.c if column.info.get("money") and not column.info.get("maintained")]


def has_amount(table: sa.Table) -> sa.ColumnElement[bool]:
    return sa.or_(*(column != sa.literal_column("0") for column in own_amounts(table)))


def index_amounts(table: sa.Table) -> None:
    index_rows(f"{table.name}_with_amount", table, condition=has_amount(table))


def unique(*names: str) -> sa.UniqueConstraint:
    """A unique constraint within the account; `Tx` reports a duplicate as an error of the last column's field."""
    return sa.UniqueConstraint("account_id", *names)


def account_id() -> sa.Column[int]:
    return sa.Column("account_id", INTEGER, sa.ForeignKey("accounts.id"), nullable=False)


def account_table(
    name: str, *items: SchemaItem, is_announced: bool = False, parent: str | None = None, named_by: tuple[str, ...] = ()
) -> sa.Table:
    """A table whose rows belong to an account, with `id`, `account_id`, `created_at` and `updated_at`.

    Changes of its rows become events if it `is_announced`. `parent` is the column of the record in their path, and
    `named_by` are the columns that make up the name of a row for people.
    """
    return sa.Table(
        name,
        metadata,
        sa.Column("id", INTEGER, primary_key=True),
        account_id(),
        instant("created_at"),
        instant("updated_at"),
        *items,
        # the target of references, which include the account; PostgreSQL's primary key has both columns already
        sa.UniqueConstraint("account_id", "id").ddl_if(dialect="sqlite"),
        info={"of_account": True, "announced": is_announced, "parent": parent, "named_by": named_by},
        **NUMBERED,
    )


def keyed_table(name: str, *items: SchemaItem, key: tuple[str, ...]) -> sa.Table:
    """A table whose rows belong to an account and have no id: `key` is the primary key within the account."""
    return sa.Table(
        name,
        metadata,
        account_id(),
        *items,
        sa.PrimaryKeyConstraint("account_id", *key),
        info={"of_account": True},
        **KEYED,
    )
