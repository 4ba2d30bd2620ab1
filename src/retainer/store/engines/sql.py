"""SQL that differs between the databases: column types, and functions that have different names.

SQLite's form of a function is the default, since SQLAlchemy also compiles parts of a statement without a dialect.
"""

from typing import Any, Self, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Insert,
    PrimaryKeyConstraint,
    Select,
    Table,
    bindparam,
    cast,
    func,
    literal_column,
    select,
    text,
    true,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import functions
from sqlalchemy.sql.compiler import DDLCompiler, SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TIMESTAMP, BigInteger, Boolean, Date, DateTime, Integer, NullType, Text, TypeEngine

from retainer.store.engines.base import Columns

T = TypeVar("T")

# The first type is for SQLite's STRICT tables, the second for PostgreSQL.
INTEGER = Integer().with_variant(BigInteger(), "postgresql")
FLAG = Boolean(create_constraint=False).with_variant(Integer(), "sqlite")
DAY = Text().with_variant(Date(), "postgresql")
INSTANT = Text().with_variant(TIMESTAMP(timezone=True), "postgresql")
TEXT = Text().with_variant(Text(collation="C"), "postgresql")  # compared by code points, as in SQLite

NUMBERED: dict[str, Any] = {"sqlite_strict": True, "sqlite_autoincrement": True}  # an id is never assigned twice
KEYED: dict[str, Any] = {"sqlite_strict": True, "sqlite_with_rowid": False}  # rows are found only by their key


@compiles(PrimaryKeyConstraint, "postgresql")
def _account_first(key: PrimaryKeyConstraint, compiler: DDLCompiler, **options: object) -> str:
    """Begin the key of an account's rows with the account, so that tables can be distributed by it."""
    text: str = compiler.visit_primary_key_constraint(key, **options)
    return text.replace("(id)", "(account_id, id)") if "account_id" in key.table.c else text


def month_name(day: ColumnElement[Any]) -> ColumnElement[str]:
    """Return the month of a day, like `2026-11`."""
    return func.substr(cast(day, TEXT), 1, len("2026-11"))


class DialectFunction(FunctionElement[T]):
    """A function with a template of its SQL for each database, in which {0} stands for the first argument."""

    inherit_cache = False

    def __init__(self, kind: TypeEngine[Any], sqlite: str, postgresql: str, *arguments: ColumnElement[Any]) -> None:
        self.type, self.templates = kind, {"sqlite": sqlite, "postgresql": postgresql}
        super().__init__(*arguments)


@compiles(DialectFunction)
def _fill_template(element: DialectFunction[object], compiler: SQLCompiler, **options: object) -> str:
    template = element.templates.get(compiler.dialect.name) or element.templates["sqlite"]
    return template.format(*(compiler.process(part, **options) for part in element.clauses))


class Condition(DialectFunction[bool]):
    """A condition that SQLAlchemy must not compare with 1, as it does with a Boolean: SQLite would use no index."""

    def __init__(self, sqlite: str, postgresql: str, *arguments: ColumnElement[Any]) -> None:
        super().__init__(NullType(), sqlite, postgresql, *arguments)

    def self_group(self, against: object = None) -> Self:  # noqa: ARG002
        return self


LIMIT = text("LIMIT :limit")
"""For `suffix_with`: rows up to the bound `limit`."""


def start_of_day(instant: ColumnElement[Any]) -> ColumnElement[str]:
    """Return the beginning of the day of an instant, in UTC, to be compared with other instants."""
    in_utc = "date_trunc('day', CAST({0} AS TIMESTAMPTZ), 'UTC')"
    return DialectFunction(INSTANT, "substr({0}, 1, 10)", in_utc, instant)


def id_list(value: ColumnElement[int]) -> ColumnElement[str]:
    """An aggregate for a row of JSON: the ids of a column as an array, in any order; an empty one without rows."""
    return DialectFunction(Text(), "json_group_array({0})", "coalesce(json_agg({0}), '[]')", value)


def text_of_lines(value: ColumnElement[str]) -> ColumnElement[str]:
    """An aggregate: the values of a column as lines of one text, in the order of the subquery that sorts them.

    SQLite returns its bytes.
    """
    return DialectFunction(Text(), "CAST(group_concat({0}, '\n') AS BLOB)", "string_agg({0}, '\n')", value)


def seconds_after(moment: ColumnElement[str], seconds: ColumnElement[int]) -> ColumnElement[str]:
    """A timestamp a number of seconds after another, to the millisecond."""
    return DialectFunction(
        INSTANT,
        "strftime('%Y-%m-%dT%H:%M:%f000Z', {0}, '+' || ({1}) || ' seconds')",
        "((({0}) AT TIME ZONE 'UTC' + ({1}) * INTERVAL '1 second') AT TIME ZONE 'UTC')",  # immutable, for Citus
        *(moment, seconds),
    )


def zero_padded(number: ColumnElement[int], digits: ColumnElement[int]) -> ColumnElement[str]:
    postgresql = "lpad(CAST({0} AS TEXT), greatest({1}, length(CAST({0} AS TEXT))), '0')"
    return DialectFunction(Text(), "printf('%0*d', {1}, {0})", postgresql, number, digits)


def is_listed(column: ColumnElement[Any], name: str) -> Condition:
    """Whether a column is in a list that is bound as JSON: `is_listed(table.c.id, "ids")`.

    PostgreSQL's planner looks an array up in an index; for a subquery it would read the whole table.
    """
    values = listed(name, INTEGER if isinstance(column.type, Integer) else TEXT).scalar_subquery()
    return Condition("{0} IN {1}", "{0} = ANY (ARRAY{1})", column, values)


def is_rare(condition: ColumnElement[bool]) -> Condition:
    """A condition that few rows meet. Without this hint, SQLite would read the whole table in the order of the list."""
    return Condition("unlikely({0})", "({0})", condition)


class json_row(FunctionElement[str]):  # noqa: N801
    """Columns as one JSON array, which the driver fetches much faster than single columns.

    SQLite returns its bytes: its driver need not decode them before they are read as JSON.
    """

    type = Text()
    inherit_cache = True


@compiles(json_row)
def _json_array(element: FunctionElement[str], compiler: SQLCompiler, **options: object) -> str:
    return f"CAST(json_array({compiler.process(element.clauses, **options)}) AS BLOB)"


@compiles(json_row, "postgresql")
def _json_build_array(element: FunctionElement[str], compiler: SQLCompiler, **options: object) -> str:
    """Return the same array: instants with microseconds and `Z`, as SQLite stores them."""
    parts = []
    for part in element.clauses:
        text = compiler.process(part, **options)
        if isinstance(part.type.dialect_impl(compiler.dialect), DateTime):
            text = f"""to_char({text} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
        parts.append(text)
    return f"CAST(json_build_array({', '.join(parts)}) AS TEXT)"


def listed(name: str, kind: TypeEngine[int] | TypeEngine[str] = TEXT) -> Select[Any]:
    """Select the values of a list that is bound as JSON, so that one statement serves lists of any length."""
    value = _bound_values(name)
    return select(value if kind is TEXT else cast(value, kind))


def listed_rows(name: str, columns: list[Column[Any]]) -> Select[Any]:
    """Select rows that are bound as a JSON array of arrays with the values of these columns."""
    row = _bound_values(name)

    def item(position: int) -> ColumnElement[str]:
        place: ColumnElement[int] = literal_column(str(position))
        return DialectFunction(Text(), "{0} ->> {1}", "CAST({0} AS JSON) ->> {1}", row, place)

    return select(*(cast(item(position), column.type) for position, column in enumerate(columns)))


def _bound_values(name: str) -> ColumnElement[Any]:
    array = bindparam(name, type_=Text)
    rows = DialectFunction[str](Text(), "json_each({0})", "json_array_elements_text(CAST({0} AS JSON))", array)
    value: ColumnElement[Any] = rows.table_valued("value").c.value
    return value


@compiles(functions.sum, "postgresql")
def _whole_sum(element: FunctionElement[str], compiler: SQLCompiler, **options: object) -> str:
    """Return a whole number: PostgreSQL's sum is a decimal, whose quotients are not whole."""
    return f"CAST(sum({compiler.process(element.clauses, **options)}) AS BIGINT)"


def insert_or_add(table: Table, rows: Select[Any] | Columns, sums: tuple[str, ...]) -> Insert:
    """Return a statement that inserts rows of a key and sums, or adds the sums to an existing row of the key."""
    key = [column.name for column in table.primary_key]
    statement = postgresql.insert(table)
    if isinstance(rows, dict):
        statement = statement.values(rows)
    else:
        statement = statement.from_select([*key, *sums], rows.where(true()))  # or ON is a join
    added = {name: table.c[name] + statement.excluded[name] for name in sums}
    return statement.on_conflict_do_update(index_elements=key, set_=added)  # the same text on SQLite
