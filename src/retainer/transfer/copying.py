"""Copying: a whole installation from one database into another, with all ids, or nothing at all.

The source is read in one snapshot, and the target is written in one transaction. Rows are summed up as they are read.
Before the commit, the target is read back and must have the same sums.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple

from sqlalchemy import Connection, Table, inspect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateTable, ExecutableDDLElement

from retainer.schema import metadata
from retainer.schema.migrations import current, head, revision_of, stamp
from retainer.store.engines import Engine, Unavailable
from retainer.store.engines.base import Row
from retainer.store.tx import Store
from retainer.transfer.rows import Summary, count_rows, has_rows, load, stream, summarize

TABLES = metadata.sorted_tables

Progress = Callable[[str, int, int], None]
"""Called with the name of a step, how much of it is done, and how much there is."""


class Copied(NamedTuple):
    """The size of a copy."""

    tables: int
    rows: int


def copy(source: Engine, target: Engine, progress: Progress) -> Copied:
    """Copy all rows of one snapshot of the source into an empty target, and compare both.

    The whole copy is one transaction of the target. Raises Unavailable when the source is not of this version, the
    target is not empty, or anything fails; then the target is as empty as it was.
    """
    with ExitStack() as stack:
        with with_location(source):
            require_newest(source)
            reading = stack.enter_context(source.read_snapshot())
            counts = {table: count_rows(reading, table) for table in TABLES}
            last_ids = {table: source.last_id(reading, table) for table in TABLES if has_ids(table)}
        target.create_storage()
        writing = stack.enter_context(transaction(target))
        require_empty(target, writing)
        metadata.drop_all(writing)
        create_tables(writing)
        expected, done, total = dict[Table, Summary](), 0, sum(counts.values())
        for table, count in counts.items():
            summary = expected[table] = Summary(table)
            with with_location(target, table.name), closing(stream(reading, table)) as batches:
                load(writing, table, watched(source, summary, batches, progress, done, total))
                target.analyze(writing, table)
            done += count
        complete_tables(writing, progress)
        for table, last_id in last_ids.items():
            target.set_sequence(writing, table, last_id)
        compare(counts, expected, writing, progress)
        stamp(writing, head())
    return Copied(len(TABLES), total)


def require_newest(source: Engine) -> None:
    """Raise Unavailable unless a database has the tables of this version of the program."""
    found, newest = current(Store(source)) if source.exists() else None, head()
    if found is None:
        raise Unavailable(f"{source.location} is not a database of Retainer: there is nothing to copy.")
    if found < newest:
        message = f"{source.location} has schema {found}, and this version copies {newest}"
        raise Unavailable(f"{message}: run `retainer migrate` on it first.")
    if found > newest:
        raise Unavailable(f"{source.location} has schema {found}, newer than {newest}: copy with the newer version.")


def require_empty(target: Engine, connection: Connection) -> None:
    """Lock the tables of a database; raise Unavailable if one of them has rows or belongs to another program."""
    found = set(inspect(connection).get_table_names())
    present = [table for table in TABLES if table.name in found]
    advice = "Name a new one, or one that is empty"
    if present and revision_of(connection) is None:
        names = ", ".join(table.name for table in present)
        raise Unavailable(f"{target.location} has tables of another program: {names}. {advice}.")
    for table in present:
        target.lock_table(connection, table)
    filled = [table.name for table in present if has_rows(connection, table)]
    if filled:
        raise Unavailable(f"{target.location} is not empty, it has {', '.join(filled)}. {advice}.")


def has_ids(table: Table) -> bool:
    """Return whether the database assigns the ids of a table."""
    return table.autoincrement_column is not None


def create_tables(connection: Connection) -> None:
    """Create all tables without indexes and, if they can be added later, without references: both slow down inserts."""
    for table in TABLES:
        inline = [] if connection.dialect.supports_alter else list(table.foreign_key_constraints)
        connection.execute(CreateTable(table, include_foreign_key_constraints=inline))


def complete_tables(connection: Connection, progress: Progress) -> None:
    """Create all indexes, then all references, which the database checks as it adds them."""
    steps: list[ExecutableDDLElement] = [CreateIndex(index) for table in TABLES for index in table.indexes]
    if connection.dialect.supports_alter:
        references = [reference for table in TABLES for reference in table.foreign_key_constraints]
        steps += [AddConstraint(reference, isolate_from_table=False) for reference in references]
    for number, step in enumerate(steps):
        progress("Indexes", number, len(steps))
        connection.execute(step)


def watched(
    source: Engine, summary: Summary, batches: Iterable[list[Row]], progress: Progress, done: int, total: int
) -> Iterator[list[Row]]:
    """Yield batches of the source, add them to a summary, and report how many rows were copied."""
    with with_location(source, summary.table.name):
        for batch in batches:
            summary.add(batch)
            yield batch
            progress("Rows", done + summary.rows, total)


def compare(
    counts: dict[Table, int], expected: dict[Table, Summary], connection: Connection, progress: Progress
) -> None:
    """Read the copy back; raise Unavailable unless its rows are those that the source counted and sent."""
    for number, table in enumerate(TABLES):
        progress("Comparing", number, len(TABLES))
        found = summarize(connection, table)
        if found != expected[table] or found.rows != counts[table]:
            message = (
                f"The copy is not what was copied: {table.name} has {difference(counts[table], expected[table], found)}"
            )
            raise Unavailable(f"{message}. Report it as a defect.")
    progress("Comparing", len(TABLES), len(TABLES))


def difference(count: int, expected: Summary, found: Summary) -> str:
    """Return how the rows of a copy differ from those of the source."""
    if found.rows != count:
        return f"{count} rows here and {found.rows} there"
    sums = [name for name, total in expected.sums.items() if total != found.sums[name]]
    return f"another sum of {', '.join(sums)}" if sums else "other texts"


@contextmanager
def transaction(target: Engine) -> Iterator[Connection]:
    """Begin a change of the schema. Raises Unavailable, with a whole sentence, for all its failures."""
    is_written = False
    nothing = "nothing was copied"
    try:
        with with_location(target, nothing), target.schema_change() as connection, with_location(target, nothing):
            yield connection
            is_written = True
    except (RuntimeError, target.conflict) as error:
        raise Unavailable(f"{target.location}: {nothing}: {error}") from None
    except Unavailable as error:
        if is_written:
            unknown = "Whether the copy is there is unknown: run the command again, it refuses when it is"
            raise Unavailable(f"{error} {unknown}.") from None
        raise


@contextmanager
def with_location(engine: Engine, what: str = "") -> Iterator[None]:
    """Put the location of a database, and what was done there, in front of each error of its driver."""
    try:
        yield
    except (DBAPIError, Unavailable) as error:
        if isinstance(error, Unavailable) and error.__cause__ is None:  # it names the location itself
            raise
        reason = getattr(error, "orig", error)
        raise Unavailable(": ".join(filter(None, (engine.location, what, str(reason))))) from None
