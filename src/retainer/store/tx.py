"""Tx: a transaction of one account, which cannot see rows of another; and the store, which begins transactions."""

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import cache, cached_property, lru_cache, partial
from types import MappingProxyType

import msgspec
from msgspec.json import encode
from sqlalchemy import Insert, Table, Update, bindparam, or_

from retainer.errors import BodyErrors, Refusal, not_found, part
from retainer.store import constraints
from retainer.store.announcements import inserting, is_announced, updating
from retainer.store.constraints import MISSING, MOVE, DeletionStep, singular
from retainer.store.engines import Engine
from retainer.store.engines.base import Columns, DriverCursor, Row, Rows, TransientConflict
from retainer.store.engines.sql import insert_or_add
from retainer.store.outbox import INSERT_EVENT, INSERT_EVENTS, NEWEST_AT, NO_COUNTER, PER_RECORD, Outbox
from retainer.store.row_mapper import R, folds, row_mapper
from retainer.store.statements import Statement, statements_of
from retainer.store.tables import ACCOUNT, totals
from retainer.store.transaction import Transaction
from retainer.values.collation import folded_text
from retainer.values.exact import CLOCK_DIFFERENCE, instant_after, local_day, utcnow
from retainer.values.records import Record

A_MICROSECOND = timedelta(microseconds=1)


class ActorChanged(TransientConflict):
    """The actor of a write lost its rights while the write waited for its turn. Nothing was written."""


class Actor(msgspec.Struct, frozen=True, gc=False):
    account_id: int
    user_id: int
    role: str
    currency: str
    timezone: str
    payment_terms_days: int
    client_number_pattern: str

    @property
    def acting_key(self) -> int | None:
        return None

    @property
    def acting_link(self) -> int | None:
        """Return the client link with which the actor came."""
        return None

    def start_check(self, tx: "Tx") -> Callable[[], bool] | None:  # noqa: ARG002
        """Query whether the actor may still act; return the function that reads the result, or None without a check."""
        return None


class RolledBack(Exception):  # nothing failed
    """Ends a transaction without writing, but with an answer, for which the actor is checked as for a commit."""


class Tx(BodyErrors, Transaction):
    """One request, one account, one transaction.

    Rules note errors with `error`; `insert` and `update` add those of references and unique values, and raise all of
    them together. Nothing is written after an error.

    A writing transaction asks, once it has its turn, whether its actor may still act, and reads the answer just before
    the commit. If the actor may not, it is rolled back, and that is the only error.

    With `may_repeat`, the caller runs it again after a TransientConflict, the last time without. After `seconds` it is
    rolled back and raises DeadlineExceeded; commands without a limit pass `math.inf`.
    """

    request_id: str | None = None
    billable_left: int | None = None
    """How many more time entries, expenses and milestones the operations of a batch may bill; None: any number."""
    _may_act: Callable[[], bool] | None = None
    _newest_at: Rows | None = None
    """Returns the time of the account's newest event, behind the lock of its writes."""

    def __init__(
        self, store: "Store", actor: Actor, *, write: bool, may_repeat: bool = False, seconds: float | None = None
    ) -> None:
        seconds = store.seconds if seconds is None else seconds
        Transaction.__init__(self, store.engine, store.statements, actor.account_id, write=write, seconds=seconds)
        self.store, self.actor, self.may_repeat = store, actor, may_repeat
        if write:
            self.outbox = Outbox()

    @cached_property
    def now(self) -> str:
        """The moment of the transaction; a write has its turn then, and is not before the newest event of its account.

        The clocks of servers differ, and are set right: by up to CLOCK_DIFFERENCE, a write takes the time of that event
        and a microsecond. If the event is further ahead, the clock that it was written by was wrong.
        """
        now = utcnow()
        ((newest,),) = (self._newest_at and self._newest_at()) or [("",)]
        return instant_after(newest, A_MICROSECOND) if now < newest < instant_after(now, CLOCK_DIFFERENCE) else now

    def _start_check(self) -> None:
        self._newest_at = self.request_rows(NEWEST_AT)
        self._may_act = self.actor.start_check(self)

    def _end_write(self, kind: type[BaseException] | None) -> None:
        """Write the events and commit, or roll back. Raises ActorChanged if the actor may no longer act."""
        written: tuple[DriverCursor, int] | None = None
        try:
            if kind is None or issubclass(kind, Refusal | RolledBack):
                self._check_actor()
            if kind is None:
                written = self._write_events()
        except BaseException as error:
            kind = type(error)
            self._raise_ours(error)
            raise
        finally:
            super()._end_write(kind)
        if written is not None:
            cursor, expected = written
            if cursor.rowcount != expected:
                raise RuntimeError(NO_COUNTER.format(self.actor.account_id))
            self.store.announced(self.actor.account_id)

    def _check_actor(self) -> None:
        if self._may_act is not None and not self._may_act():
            raise ActorChanged("The actor has changed.")

    def _write_events(self) -> tuple[DriverCursor, int] | None:
        found = [] if self.outbox is None else self.outbox.rows()
        if not found:
            return None
        actor = self.actor
        values: Columns = {"user_id": actor.user_id or None, "key_id": actor.acting_key, "link_id": actor.acting_link}
        values["request_id"] = self.request_id
        if len(found) == 1:
            return self.execute(INSERT_EVENT, {**values, **dict(zip(PER_RECORD, found[0], strict=True))}), 1
        rows = encode([(place, *row) for place, row in enumerate(found)]).decode()
        return self.execute(INSERT_EVENTS, {**values, "rows": rows}), len(found)

    def announce(self, table: Table, record_id: int, new_status: str, fields: Collection[str]) -> None:
        """Note what a record has become, if no field that is written says so: a site that is down."""
        if self.outbox is None:
            raise RuntimeError("Nothing is announced in a transaction that reads.")
        self.outbox.announce(table, self.now, record_id, new_status, fields)

    @cached_property
    def today(self) -> str:
        return local_day(self.now, self.actor.timezone)

    def request_rows(self, statement: Statement, **values: object) -> Rows:
        return self.engine.rows_returned(self.execute(statement, values))

    def find(self, table: Table, record_id: int | None, model: type[R]) -> R | None:
        """Return a record, or None: `insert` and `update` report references in a body that do not exist."""
        if record_id is None:
            return None
        records = row_mapper(table, model)
        row = self.one(records.one, id=record_id)
        if row is None:
            return None
        if self.outbox is not None:
            self.outbox.note_read(table, record_id, partial(records.stored, row))
        found: list[R] = records.read_all((row,))
        return found[0]

    def get(self, table: Table, record_id: int, model: type[R], **within: int) -> R:
        """Return the record of the path, if it belongs to the parent in `within`. Raises `not_found`."""
        record = self.find(table, record_id, model)
        if record is None or (within and any(getattr(record, name) != parent for name, parent in within.items())):
            raise not_found(singular(table))
        return record

    def require(self, table: Table, record_id: int) -> None:
        if self.field(table.c.id, record_id) is None:
            raise not_found(singular(table))

    def insert(self, table: Table, record: Record, **hidden: object) -> int:
        """Insert a record, with `hidden` columns; return its id. Raises `validation_failed` with every error."""
        values = self._values(table, record) | hidden
        return self.write_checked(table, record, None, partial(self.insert_counted, table, values))

    def insert_counted(self, table: Table, values: Columns) -> int:
        row_id = self.insert_raw(table, values)
        self.count(table, 1)
        return row_id

    def insert_raw(self, table: Table, values: Columns) -> int:
        """Insert a row with valid values into a table without a counter; return its id."""
        statement = _insert(table, tuple(values), returns_id=self.engine.returns_ids)
        row_id = self.engine.new_id(self.execute(statement, values))
        if self.outbox is not None and is_announced(table):
            parent = table.info["parent"]
            self.outbox.note_created(table, self.now, row_id, *([values[parent]] if parent else []))
        return row_id

    def update_columns(self, table: Table, row_id: int, values: Columns, *parts: str) -> None:
        self._read_former_status(table, row_id, values)
        self.run(_update(table, tuple(values), parts), **values, row_id=row_id)

    def update(self, table: Table, record: Record, *parts: str) -> None:
        """Write a record if a field has changed, `parts` with it. Raises `validation_failed` with every error."""
        values = self._values(table, record)
        self._read_former_status(table, record.id, values)
        change = partial(self.change, _update(table, tuple(values), parts), **values, row_id=record.id)
        self.write_checked(table, record, record.id, change)

    def touch(self, table: Table, record_id: int, *parts: str) -> None:
        """Set `updated_at` of a record after a change of these fields outside of its row, such as its tags or lines."""
        self.run(_touch(table, parts), row_id=record_id)

    def _read_former_status(self, table: Table, record_id: int, values: Columns) -> None:
        """Read the status of a record before it is written, if the record was not read: events say what it becomes."""
        if self.outbox is None or "status" not in values or not is_announced(table):
            return
        if (table, record_id) not in self.outbox.former_rows:
            former = {"status": self.field(table.c.status, record_id)}
            self.outbox.note_read(table, record_id, lambda: former)

    def delete(self, table: Table, record_id: int, before: Callable[[DeletionStep], None] | None = None) -> None:
        """Delete a row; as references to it declare, they block the deletion, are deleted too, or are set to null.

        `before` is called before each step. Raises `in_use` with the count of each relation that blocks.
        """
        if blocking := self.blocking(table, record_id):
            errors = {name: [MOVE.format(rows)] for name, rows in blocking.items()}
            message = f"This {singular(table)} is in use and was not deleted. See errors for what blocks."
            raise Refusal("in_use", message, errors=errors)
        for step in constraints.deletion(table)[1]:
            if before is not None:
                before(step)
            if step.table is None or "id" not in step.table.c:
                self.run(step.statement, id=record_id)
            else:
                self.count(step.table, -self.change(step.statement, id=record_id))

    def blocking(self, table: Table, record_id: int) -> dict[str, str]:
        """Return the rows that block a deletion, by the names of their tables: `3 projects`."""
        found = {}
        for child, statement in constraints.deletion(table)[0]:
            if count := self.value(statement, id=record_id):
                found[child.name] = f"{count:,} {singular(child) if count == 1 else child.name.replace('_', ' ')}"
        return found

    def count(self, table: Table, change: int) -> None:
        if change:
            self.run(COUNT, counted=table.name, change=change)

    def _raise_all(self, table: Table, record: Record, exclude_id: int | None) -> None:
        """Raise all errors, with those of references and unique values; a record of another account does not exist."""
        values = msgspec.structs.asdict(record)
        values |= _folded(table, values)
        for name, to in constraints.reference_columns(table):
            if values.get(name) is not None and self.field(to.c.id, values[name]) is None:
                self.error(name, MISSING.format(singular(to)))
        for name, to in constraints.reference_lists(type(record)):
            for position, record_id in enumerate(values.get(name) or ()):
                if self.field(to.c.id, record_id) is None:
                    self.error(f"{name}.{position}", MISSING.format(singular(to)))
        for names, field, statement in constraints.uniques(table):
            if any(values.get(name) is None for name in names):
                continue
            taken = self.one(statement, exclude_id=exclude_id or 0, **{name: values[name] for name in names})
            if taken is not None:
                self.error(field, f"Is already taken by {part(f'{singular(table)} {taken[0]}')}. Choose another.")
        self.raise_errors()

    def write_checked(self, table: Table, record: Record, exclude_id: int | None, write: Callable[[], int]) -> int:
        """Write a record and its parts. Raises every error of the body.

        The database refuses broken references and duplicate values; only then are they looked up. A transaction that
        may be repeated can raise TransientConflict.
        """
        if self.errors:
            self._raise_all(table, record, exclude_id)
        try:
            with self.engine.savepoint(self.connection, may_repeat=self.may_repeat):
                return write()
        except self.engine.conflict:
            self._raise_all(table, record, exclude_id)
            raise  # a constraint that no check explains

    def _values(self, table: Table, record: Record) -> Columns:
        note_error = self.error if self.readable("currency") else lambda *_: None  # its digits are not known
        values = row_mapper(table, type(record)).write(record, note_error)
        return values | _folded(table, values)


def _folded(table: Table, values: Columns) -> dict[str, str | None]:
    return {name: folded_text(values, *how) for name, how in folds(table).items()}


class Store:
    def __init__(
        self,
        engine: Engine,
        announced: Callable[[int], None] = lambda _: None,
        limits: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
        mail_from: str = "",
        tell_user: Callable[["Tx", int, str, str | None], object] = lambda *_: None,
    ) -> None:
        self.begin = partial(Tx, self)
        """Returns a transaction of an actor's account; leaving its block commits, an exception rolls back."""
        self.engine = engine
        self.statements = statements_of(engine.dialect, engine.marker)
        self.seconds: float = engine.seconds
        self.announced = announced  # called with the account after each commit with events
        self.limits = limits
        """The limit of each quota for each plan; without them, as in commands, there is none."""
        self.mail_from = mail_from  # the address that mail comes from; empty if none is sent
        self.tell_user = tell_user  # that their way to sign in has changed: at their email, or another address

    def unscoped(self, *, write: bool = False, seconds: float | None = None) -> Transaction:
        """Return a transaction over all accounts, for commands and housekeeping. `seconds` is that of `Tx`."""
        seconds = self.seconds if seconds is None else seconds
        return Transaction(self.engine, self.statements, None, write=write, seconds=seconds)

    def within(self, tx: Transaction, actor: Actor) -> Tx:
        """Return a part of a transaction that is limited to an account, such as one that it has created."""
        part = Tx(self, actor, write=tx.writes, seconds=tx.seconds)
        part.connection, part.now, part.deadline = tx.connection, tx.now, tx.deadline
        part.outbox = None  # its events would not wait for other writes of the account
        return part

    def unscoped_one(self, statement: Statement, **values: object) -> Row | None:
        compiled = self.statements.of_all(statement)
        return self.engine.one(compiled.text, list(map(values.__getitem__, compiled.names)))


COUNTED = {"account_id": ACCOUNT, "name": bindparam("counted"), "count": bindparam("change")}
COUNT = insert_or_add(totals, COUNTED, ("count",))


@cache
def _insert(table: Table, names: tuple[str, ...], *, returns_id: bool) -> Insert:
    statement = inserting(table, {name: bindparam(name) for name in names})
    return statement.returning(table.c.id) if returns_id else statement


@lru_cache(maxsize=1024)  # forms may change any fields of a user
def _update(table: Table, names: tuple[str, ...], parts: tuple[str, ...] = ()) -> Update:
    values: Columns = {name: bindparam(name, type_=table.c[name].type) for name in names}
    changed = or_(*(table.c[name].is_distinct_from(value) for name, value in values.items()))
    return updating(table, changed, values=values, parts=parts, is_single=True)


@cache
def _touch(table: Table, parts: tuple[str, ...]) -> Update:
    return updating(table, parts=parts, is_single=True)
