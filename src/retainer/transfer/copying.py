"""Copy a whole installation from one database into another, with all ids, or nothing.

The source is read in one snapshot, and the target is written in one transaction. Rows are summarised as they are read.
Before the commit, the target is read back and must have the same summaries.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import Boolean, Connection, Integer, Table, cast, func, insert, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateTable, ExecutableDDLElement

from retainer.schema import fingerprint, metadata
from retainer.schema.fingerprint import head
from retainer.schema.migrations import revision_within, stamp
from retainer.store.engines import Engine
from retainer.store.engines.base import Row, Unavailable

BATCH_SIZE = 2000
"""Number of rows that are read and inserted at once."""

TABLES = metadata.sorted_tables

Progress = Callable[[str, int, int], None]
"""Called with a step, how much of it is done, and its total."""


@dataclass
class Summary:
    """A summary of rows of a table, equal for equal rows in any order."""

    rows: int = 0
    digest: int = 0
    """The sum of a hash of each row."""

    def add(self, batch: list[Row]) -> None:
        self.rows += len(batch)
        self.digest += sum(int.from_bytes(sha256(repr(row).encode()).digest()[:8]) for row in batch)


def count_rows(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def stream(connection: Connection, table: Table, summary: Summary) -> Generator[list[Row], None, None]:
    columns = [cast(column, Integer) if isinstance(column.type, Boolean) else column for column in table.c]
    rows = select(*columns).order_by(*table.primary_key).execution_options(yield_per=BATCH_SIZE)
    with connection.execute(rows) as result:
        for partition in result.partitions():
            batch = [*map(tuple, partition)]
            summary.add(batch)
            yield batch


def summarize(connection: Connection, table: Table) -> Summary:
    summary = Summary()
    for _ in stream(connection, table, summary):
        pass
    return summary


def copy(source: Engine, target: Engine, progress: Progress) -> int:
    """Copy all rows of one snapshot of the source into an empty target, and compare both; return how many.

    Raises Unavailable if the source has another schema, the target is not empty, or anything fails; then the target is
    still empty.
    """
    with ExitStack() as stack:
        with with_location(source):
            require_newest(source)
            reading = stack.enter_context(source.read_snapshot())
            total = sum(count_rows(reading, table) for table in TABLES)
            numbered = [table for table in TABLES if table.autoincrement_column is not None]
            last_ids = {table: source.last_id(reading, table) for table in numbered}
        target.create_storage()
        writing = stack.enter_context(transaction(target))
        require_empty(target, writing)
        metadata.drop_all(writing)
        for table in TABLES:
            inline = [] if writing.dialect.supports_alter else list(table.foreign_key_constraints)
            writing.execute(CreateTable(table, include_foreign_key_constraints=inline))
        copied = {table: Summary() for table in TABLES}
        for table in TABLES:
            names = [column.name for column in table.c]
            with (
                with_location(target, table.name),
                closing(read_rows(source, reading, table, copied[table])) as batches,
            ):
                for batch in batches:
                    writing.execute(insert(table), [dict(zip(names, row, strict=True)) for row in batch])
                    progress("Rows", sum(summary.rows for summary in copied.values()), total)
        complete_tables(writing, progress)
        for table, last_id in last_ids.items():
            target.set_sequence(writing, table, last_id)
        compare(copied, writing, progress)
        stamp(writing, head())
    with suppress(Unavailable):  # the copy is complete, and the server will do it, too
        target.vacuum(TABLES)
    return total


def require_newest(source: Engine) -> None:
    found, newest = fingerprint.revision(source) if source.exists() else None, head()
    if found is None:
        raise Unavailable(f"{source.location} is not a database of Retainer: there is nothing to copy.")
    if found != newest:
        message = f"{source.location} has schema {found}, and this version copies {newest}"
        raise Unavailable(f"{message}: run `retainer migrate` on it first.")


def require_empty(target: Engine, connection: Connection) -> None:
    """Lock the tables of a database; raise Unavailable if one has rows, or they are not those of this version."""
    found, advice = revision_within(connection, target), "Name a new one, or one that is empty"
    if found not in {None, head()}:
        raise Unavailable(f"{target.location} has schema {found}, and this version copies {head()}. {advice}.")
    present = TABLES if found else []
    for table in present:
        target.lock_table(connection, table)
    filled = [table.name for table in present if count_rows(connection, table)]
    if filled:
        raise Unavailable(f"{target.location} is not empty, it has {', '.join(filled)}. {advice}.")


def complete_tables(connection: Connection, progress: Progress) -> None:
    """Create all indexes, then all references, which the database checks when it adds them."""
    steps: list[ExecutableDDLElement] = [CreateIndex(index) for table in TABLES for index in table.indexes]
    if connection.dialect.supports_alter:
        references = [reference for table in TABLES for reference in table.foreign_key_constraints]
        steps += [AddConstraint(reference, isolate_from_table=False) for reference in references]
    for number, step in enumerate(steps):
        progress("Indexes", number, len(steps))
        connection.execute(step)


def read_rows(
    source: Engine, connection: Connection, table: Table, summary: Summary
) -> Generator[list[Row], None, None]:
    with with_location(source, table.name), closing(stream(connection, table, summary)) as batches:
        yield from batches


def compare(copied: dict[Table, Summary], connection: Connection, progress: Progress) -> None:
    """Read the copy back; raise Unavailable unless its rows are those that the source sent."""
    for number, table in enumerate(TABLES):
        progress("Comparing", number, len(TABLES))
        found = summarize(connection, table)
        if found != copied[table]:
            numbers = f"{copied[table].rows} rows in the source and {found.rows} in the copy"
            difference = numbers if found.rows != copied[table].rows else "other values in the copy"
            raise Unavailable(f"The copy is wrong: {table.name} has {difference}. Report it as a defect.")
    progress("Comparing", len(TABLES), len(TABLES))


@contextmanager
def transaction(target: Engine) -> Iterator[Connection]:
    """Begin a change of the schema. Raises Unavailable for all its failures, with a sentence about the target."""
    is_written = False
    nothing = "nothing was copied"
    try:
        with with_location(target, nothing), target.schema_change() as connection, with_location(target, nothing):
            yield connection
            is_written = True
    except target.conflict as error:
        raise Unavailable(f"{target.location}: {nothing}: {error}") from None
    except Unavailable as error:
        if is_written:
            unknown = "The copy may or may not be complete: run the command again, it refuses if it is"
            raise Unavailable(f"{error} {unknown}.") from None
        raise


@contextmanager
def with_location(engine: Engine, what: str = "") -> Iterator[None]:
    try:
        yield
    except (DBAPIError, Unavailable) as error:
        if isinstance(error, Unavailable) and error.__cause__ is None:  # it names the location itself
            raise
        reason = getattr(error, "orig", error)
        raise Unavailable(": ".join(filter(None, (engine.location, what, str(reason))))) from None
