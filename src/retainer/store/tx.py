"""Tx: one account, one transaction. It cannot see another account's rows, and it commits only as a whole."""

import weakref
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, Self
from zoneinfo import ZoneInfo

import msgspec
from sqlalchemy import Table, bindparam, insert, select, update
from sqlalchemy.sql.elements import ClauseElement

from retainer.errors import Faults, invalid, not_found
from retainer.store import rules
from retainer.store.columns import DIGITS, casefolded, minor_units
from retainer.store.engines import Sqlite
from retainer.store.records import R, view
from retainer.store.scope import scoped
from retainer.store.tables import ACCOUNT, totals


class Actor(msgspec.Struct, frozen=True, gc=False):
    """For which account and as which user a transaction acts."""

    account_id: int
    user_id: int
    role: str
    currency: str
    timezone: str
    payment_terms_days: int


def utcnow() -> str:
    """The moment it is, as instants are kept."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Prepared:
    """A statement as the driver runs it: its text, and the values that it brings itself."""

    __slots__ = ("defaults", "text")

    def __init__(self, text: str, defaults: dict[str, Any]) -> None:
        self.text = text
        self.defaults = defaults


class Store:
    """A database: it begins transactions, and compiles each statement once."""

    def __init__(self, engine: Sqlite) -> None:
        self.engine = engine
        self._scoped: weakref.WeakKeyDictionary[ClauseElement, Prepared] = weakref.WeakKeyDictionary()
        self._plain: weakref.WeakKeyDictionary[ClauseElement, Prepared] = weakref.WeakKeyDictionary()

    def begin(self, actor: Actor, *, write: bool) -> "Tx":
        """A transaction of the actor's account; leaving its block commits, an exception rolls back."""
        return Tx(self, actor, write=write)

    def everywhere(self, reason: str, *, write: bool = False) -> "Everywhere":  # noqa: ARG002
        """A transaction over all accounts: for finding out whose request this is, and for operators' commands."""
        return Everywhere(self, write=write)

    def prepare(self, statement: ClauseElement, *, scope: bool) -> Prepared:
        """The statement's text for this engine, limited to the account when `scope` is set."""
        known = self._scoped if scope else self._plain
        prepared = known.get(statement)
        if prepared is None:
            limited = scoped(statement) if scope else statement
            compiled = limited.compile(dialect=self.engine.dialect)
            prepared = known[statement] = Prepared(str(compiled), dict(compiled.params))
        return prepared


class Everywhere:
    """A transaction that is not limited to an account."""

    scope = False

    def __init__(self, store: Store, *, write: bool) -> None:
        self.store = store
        self.writes = write
        self.now = utcnow()
        self._fixed: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self.connection = self.store.engine.begin(write=self.writes)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        end = self.store.engine.commit if kind is None else self.store.engine.rollback
        end(self.connection, write=self.writes)

    def execute(self, statement: ClauseElement, values: dict[str, Any]) -> Any:
        """Run a statement and return the driver's cursor."""
        prepared = self.store.prepare(statement, scope=self.scope)
        try:
            return self.connection.execute(prepared.text, {**prepared.defaults, **values, **self._fixed})
        except self.store.engine.failure as error:
            raise self.store.engine.judge(error) from error

    def all(self, statement: ClauseElement, **values: Any) -> list[tuple[Any, ...]]:
        """Every row of a statement."""
        rows: list[tuple[Any, ...]] = self.execute(statement, values).fetchall()
        return rows

    def one(self, statement: ClauseElement, **values: Any) -> tuple[Any, ...] | None:
        """The first row of a statement, if it has any."""
        row: tuple[Any, ...] | None = self.execute(statement, values).fetchone()
        return row

    def value(self, statement: ClauseElement, **values: Any) -> Any:
        """The first column of the first row, or None."""
        row = self.one(statement, **values)
        return row[0] if row else None

    def run(self, statement: ClauseElement, **values: Any) -> int:
        """Change rows; answers how many."""
        changed: int = self.execute(statement, values).rowcount
        return changed


class Tx(Everywhere):
    """One request, one account, one transaction.

    Rules note faults with `fault`; `insert` and `update` add those of references and unique values, and refuse with
    all of them at once. Nothing is written after a fault was noted.
    """

    scope = True

    def __init__(self, store: Store, actor: Actor, *, write: bool) -> None:
        super().__init__(store, write=write)
        self.actor = actor
        self.faults: Faults = {}
        self.if_match: str | None = None
        self._fixed = {"account_id": actor.account_id}

    def today(self) -> date:
        """The day it is now in the account's zone."""
        return datetime.fromisoformat(self.now).astimezone(ZoneInfo(self.actor.timezone)).date()

    def fault(self, field: str, sentence: str) -> None:
        """Note what is wrong with a member of the body; it is refused with all others before anything is written."""
        self.faults.setdefault(field, []).append(sentence)

    def refuse_faults(self) -> None:
        """Raise `validation_failed` when any fault was noted."""
        if self.faults:
            raise invalid(self.faults)

    def find(self, table: Table, record_id: int | None, shape: type[R]) -> R | None:
        """The record, or None: for references in a body, whose absence `insert` and `update` report."""
        if record_id is None:
            return None
        how = view(table, shape)
        row = self.one(how.locked if self.writes else how.one, id=record_id)
        record: R | None = None if row is None else how.read(row)
        return record

    def get(self, table: Table, record_id: int, shape: type[R]) -> R:
        """The record of the path; locked when this transaction writes. Raises `not_found`."""
        record = self.find(table, record_id, shape)
        if record is None:
            raise not_found(rules.singular(table))
        return record

    def insert(self, table: Table, record: msgspec.Struct) -> int:
        """Write a new row with the record's members; answers its id. Raises `validation_failed` with every fault."""
        values = self._values(table, record, None)
        made: int = self.value(_insert(table, tuple(values)), **values, now=self.now)
        self.count(table, 1)
        return made

    def update(self, table: Table, record: R) -> None:
        """Write the record's members to its row. Raises `validation_failed` with every fault."""
        values = self._values(table, record, record.id)
        self.run(_update(table, tuple(values)), **values, own=record.id, now=self.now)

    def delete(self, table: Table, record_id: int) -> None:
        """Delete a row and what goes with it. Raises `in_use` with every relation that blocks."""
        rules.remove(self, table, record_id)

    def total(self, table: Table) -> int:
        """How many rows the account has in a table, read from its counter."""
        return self.value(TOTAL, name=table.name) or 0

    def count(self, table: Table, change: int) -> None:
        """Keep the counter of a table after rows were added or removed."""
        if change and not self.run(COUNT, name=table.name, change=change):
            self.run(FIRST_COUNT, name=table.name, change=change)

    def _values(self, table: Table, record: msgspec.Struct, own: int | None) -> dict[str, Any]:
        """What the record's members are as columns; every fault of the body is raised here."""
        values: dict[str, Any] = {}
        for column in table.c:
            if column.name not in record.__struct_fields__ or column.name in OWN:
                continue
            value = getattr(record, column.name)
            if value is not None and column.info.get("money"):
                value = self._units(column.name, value, getattr(record, "currency"))  # noqa: B009
            elif value is not None and "in" in column.info:
                value = column.info["in"](value)
            values[column.name] = value
        values = self.with_folded(table, values)
        rules.check(self, table, type(record), msgspec.structs.asdict(record) | values, own)
        self.refuse_faults()
        return values

    def with_folded(self, table: Table, values: dict[str, Any]) -> dict[str, Any]:
        """The values and the case-folded columns that follow from them."""
        folds = {column.name: column.info["folds"] for column in table.c if "folds" in column.info}
        return values | {name: casefolded(values, sources) for name, sources in folds.items()}

    def _units(self, name: str, amount: Decimal, currency: str | None) -> int | None:
        try:
            return minor_units(amount, currency or self.actor.currency)
        except ValueError:
            digits = DIGITS[currency or self.actor.currency]
            places = {0: "no decimal places", 1: "1 decimal place"}.get(digits, f"{digits} decimal places")
            self.fault(name, f"{currency} has {places}: {amount} has more.")
            return None


OWN = frozenset({"id", "created_at", "updated_at"})

TOTAL = select(totals.c.count).where(totals.c.name == bindparam("name"))
COUNT = (
    update(totals)
    .where(totals.c.name == bindparam("name"))
    .values(count=totals.c.count + bindparam("change", type_=totals.c.count.type))
)
FIRST_COUNT = insert(totals).values(account_id=ACCOUNT, name=bindparam("name"), count=bindparam("change"))


@cache
def _insert(table: Table, names: Sequence[str]) -> Any:
    values: dict[str, Any] = {name: bindparam(name) for name in names}
    stamps: dict[str, Any] = {"created_at": bindparam("now"), "updated_at": bindparam("now")}
    return insert(table).values(account_id=ACCOUNT, **stamps, **values).returning(table.c.id)


@cache
def _update(table: Table, names: Sequence[str]) -> Any:
    values: dict[str, Any] = {name: bindparam(name) for name in names}
    return update(table).where(table.c.id == bindparam("own")).values(updated_at=bindparam("now"), **values)
