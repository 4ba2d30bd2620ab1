"""Tx: one account, one transaction. It cannot see another account's rows, and it commits only as a whole."""

from functools import cache
from typing import Any, Self

import msgspec
from sqlalchemy import Table, bindparam, insert, or_, select, update
from sqlalchemy.sql.elements import ClauseElement

from retainer.collation import folded_text
from retainer.errors import BodyFaults, not_found
from retainer.exact import local_day, utcnow
from retainer.store import rules
from retainer.store.engines import Sqlite, insert_or_add
from retainer.store.records import R, Record, folds, view
from retainer.store.scope import scoped
from retainer.store.tables import ACCOUNT, totals

MOST_TEXTS = 4096


class Actor(msgspec.Struct, frozen=True, gc=False):
    """For which account and as which user a transaction acts."""

    account_id: int
    user_id: int
    role: str
    currency: str
    timezone: str
    payment_terms_days: int
    client_number_pattern: str


class Store:
    """A database: it begins transactions, and compiles each statement once."""

    def __init__(self, engine: Sqlite) -> None:
        self.engine = engine
        self._scoped: dict[ClauseElement, tuple[str, dict[str, Any]]] = {}
        self._unscoped: dict[ClauseElement, tuple[str, dict[str, Any]]] = {}

    def begin(self, actor: Actor, *, write: bool) -> "Tx":
        """A transaction of the actor's account; leaving its block commits, an exception rolls back."""
        return Tx(self, actor, write=write)

    def everywhere(self, reason: str, *, write: bool = False) -> "Everywhere":  # noqa: ARG002
        """A transaction over all accounts: for operators' commands and housekeeping."""
        return Everywhere(self, write=write)

    def look_up(self, reason: str, statement: ClauseElement, **values: Any) -> tuple[Any, ...] | None:  # noqa: ARG002
        """One row of one statement over all accounts: for finding out whose request this is."""
        return self.engine.one(self.prepare(statement, scope=False)[0], values)

    def prepare(self, statement: ClauseElement, *, scope: bool) -> tuple[str, dict[str, Any]]:
        """A statement's text for this engine, limited to the account when `scope` is set, and the values it brings."""
        known = self._scoped if scope else self._unscoped
        prepared = known.get(statement)
        if prepared is None:
            if len(known) >= MOST_TEXTS:  # filters and orders can be combined without end
                known.clear()
            compiled = (scoped(statement) if scope else statement).compile(dialect=self.engine.dialect)
            prepared = known[statement] = (str(compiled), dict(compiled.params))
        return prepared


class Everywhere:
    """A transaction that is not limited to an account."""

    def __init__(self, store: Store, *, write: bool) -> None:
        self.store = store
        self.writes = write
        self.connection: Any = None
        self._now: str | None = None

    @property
    def now(self) -> str:
        """The moment of the transaction; the same for all that it writes."""
        if self._now is None:
            self._now = utcnow()
        return self._now

    @now.setter
    def now(self, moment: str) -> None:  # the demo tells of the past
        self._now = moment

    def __enter__(self) -> Self:
        self.connection = self.store.engine.begin(write=self.writes)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.store.engine.end(self.connection, write=self.writes, commit=kind is None)

    def execute(self, statement: ClauseElement, values: dict[str, Any]) -> Any:
        """Run a statement and return the driver's cursor."""
        text, brought = self.store.prepare(statement, scope=False)
        try:
            return self.connection.execute(text, brought | values)
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


class Tx(BodyFaults, Everywhere):
    """One request, one account, one transaction.

    Rules note faults with `fault`; `insert` and `update` add those of references and unique values, and refuse with
    all of them at once. Nothing is written after a fault was noted.

    A reading transaction is one statement, which needs no BEGIN; whoever needs more asks for a `snapshot` first.
    """

    def __init__(self, store: Store, actor: Actor, *, write: bool) -> None:
        BodyFaults.__init__(self)
        Everywhere.__init__(self, store, write=write)
        self.actor = actor
        self.if_match: str | None = None
        self._begun = write
        self._used = False

    def __enter__(self) -> Self:
        if self.writes:
            return super().__enter__()
        self.connection = self.store.engine.connection()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._begun:
            super().__exit__(kind, *rest)
        else:
            self.store.engine.give_back(self.connection)

    @property
    def today(self) -> str:
        """The day it is in the account's zone."""
        return local_day(self.now, self.actor.timezone)

    def snapshot(self) -> None:
        """Let all statements that follow see one state of the database."""
        if not self._begun:
            self.connection.execute("BEGIN")
            self._begun = True

    def execute(self, statement: ClauseElement, values: dict[str, Any]) -> Any:
        """Run a statement within the account and return the driver's cursor."""
        if not self._begun:
            if self._used:
                raise RuntimeError("A second statement would see another state of the database: tx.snapshot() first.")
            self._used = True
        values["account_id"] = self.actor.account_id
        text, brought = self.store.prepare(statement, scope=True)
        if "today" in brought:
            values["today"] = self.today
        if "moment" in brought:
            values["moment"] = self.now
        try:
            return self.connection.execute(text, brought | values)
        except self.store.engine.failure as error:
            raise self.store.engine.judge(error) from error

    def find(self, table: Table, record_id: int | None, shape: type[R]) -> R | None:
        """The record, or None: for references in a body, whose absence `insert` and `update` report."""
        if record_id is None:
            return None
        how = view(table, shape)
        row = self.execute(how.locked if self.writes else how.one, {"id": record_id}).fetchone()
        record: R | None = None if row is None else how.read(row)
        return record

    def get(self, table: Table, record_id: int, shape: type[R], **within: int) -> R:
        """The record of the path, if it is `within` its parent; locked when this transaction writes.

        Raises `not_found`.
        """
        record = self.find(table, record_id, shape)
        if record is None or (within and any(getattr(record, name) != parent for name, parent in within.items())):
            raise not_found(rules.singular(table))
        return record

    def require(self, table: Table, record_id: int) -> None:
        """Raise `not_found` when the table has no such row."""
        if self.one(rules.exists(table), id=record_id) is None:
            raise not_found(rules.singular(table))

    def insert(self, table: Table, record: Record) -> int:
        """Write a new row with the record's members; answers its id. Raises `validation_failed` with every fault."""
        return self.put(table, self._values(table, record, None))

    def put(self, table: Table, values: dict[str, Any]) -> int:
        """Write a new row with values that were judged before; answers its id."""
        made: int = self.value(_insert(table, tuple(values)), **values, now=self.now)
        self.count(table, 1)
        return made

    def update(self, table: Table, record: Record) -> None:
        """Write the record's members to its row, if any has changed. Raises `validation_failed` with every fault."""
        values = self._values(table, record, record.id)
        self.run(_update(table, tuple(values)), **values, own=record.id, now=self.now)

    def touch(self, table: Table, record_id: int) -> None:
        """Note that a record has changed, where its own row does not show it: its tags, its lines, what it became."""
        self.run(_touch(table), own=record_id, now=self.now)

    def delete(self, table: Table, record_id: int) -> None:
        """Delete a row and what goes with it. Raises `in_use` with every relation that blocks."""
        rules.remove(self, table, record_id)

    def count(self, table: Table, change: int) -> None:
        """Keep the counter of a table after rows were added or removed."""
        if change:
            self.run(COUNT, name=table.name, count=change)

    def check(self, table: Table, shape: type[msgspec.Struct], values: dict[str, Any], own: int | None) -> None:
        """Note the faults of references and unique values among these, which may be some of a body's members."""
        folded = {name: folded_text(values, *how) for name, how in folds(table).items()}
        rules.check(self, table, shape, values | folded, own)

    def _values(self, table: Table, record: Record, own: int | None) -> dict[str, Any]:
        """What the record's members are as columns; every fault of the body is raised here."""
        values = view(table, type(record)).write(record, self.fault)
        values |= {name: folded_text(values, *how) for name, how in folds(table).items()}
        lists = {name: getattr(record, name) for name, _ in rules.lists(type(record))}
        rules.check(self, table, type(record), values | lists, own)
        self.refuse_faults()
        return values


COUNTED: list[Any] = [ACCOUNT, bindparam("name"), bindparam("count")]
COUNT = insert_or_add(totals, select(*COUNTED), ("count",))


@cache
def _insert(table: Table, names: tuple[str, ...]) -> Any:
    values: dict[str, Any] = {name: bindparam(name) for name in names}
    stamps: dict[str, Any] = {"created_at": bindparam("now"), "updated_at": bindparam("now")}
    return insert(table).values(account_id=ACCOUNT, **stamps, **values).returning(table.c.id)


@cache
def _update(table: Table, names: tuple[str, ...]) -> Any:
    values: dict[str, Any] = {name: bindparam(name, type_=table.c[name].type) for name in names}
    changed = or_(*(table.c[name].is_distinct_from(value) for name, value in values.items()))
    return update(table).where(table.c.id == bindparam("own"), changed).values(updated_at=bindparam("now"), **values)


@cache
def _touch(table: Table) -> Any:
    return update(table).where(table.c.id == bindparam("own")).values(updated_at=bindparam("now"))
