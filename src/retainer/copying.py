"""Copying: a whole installation from one database into another, ids and all, or nothing of it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateTable, ExecutableDDLElement

from retainer.schema import metadata
from retainer.schema.migrations import current, head, revision_of, stamp
from retainer.store.engines import Engine, Unavailable
from retainer.store.engines.base import Row
from retainer.store.engines.bulk import Bulk, Contents
from retainer.store.tx import Store

TABLES = metadata.sorted_tables

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of that is done, and how much there is."""


class Copied(NamedTuple):
    """How much was copied."""

    tables: int
    rows: int


def copy(source: Engine, target: Engine, progress: Progress) -> Copied:
    """Copy all rows of one state of the source into an empty target, and prove that both hold the same.

    All of it is one transaction of the target. Raises Unavailable when the source is not of this version, the target
    is not empty, or anything fails; then the target is as empty as it was.
    """
    with ExitStack() as stack:
        with naming(source):
            require_newest(source)
            rows = stack.enter_context(source.all_rows())
        target.prepare_place()
        connection = stack.enter_context(transaction(target))
        load = target.bulk(connection)
        require_empty(target, connection, load)
        counts = {table: rows.count(table) for table in TABLES}
        done, total = 0, sum(counts.values())
        metadata.drop_all(connection)
        create_tables(connection)
        for table, count in counts.items():
            load.load(table, watched(rows.read(table), progress, done, total))
            done += count
            load.analyze(table)
        complete_tables(connection, progress)
        for table in TABLES:
            if table.autoincrement_column is not None:
                load.continue_after(table, rows.last_id(table))
        compare(rows, load, progress)
        stamp(connection, head())
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


def require_empty(target: Engine, connection: Connection, load: Bulk) -> None:
    """Raise Unavailable unless a database has no tables of ours, or none with rows; then nobody else can add any."""
    found = set(inspect(connection).get_table_names())
    present = [table for table in TABLES if table.name in found]
    advice = "Name a new one, or one that is empty"
    if present and revision_of(connection) is None:
        names = ", ".join(table.name for table in present)
        raise Unavailable(f"{target.location} has tables of another program: {names}. {advice}.")
    filled = [table.name for table in present if load.claim(table)]
    if filled:
        raise Unavailable(f"{target.location} is not empty, it has {', '.join(filled)}. {advice}.")


def create_tables(connection: Connection) -> None:
    """Make all tables without what is made sooner from rows that are there: indexes and, if possible, references."""
    for table in TABLES:
        inline = [] if connection.dialect.supports_alter else list(table.foreign_key_constraints)
        connection.execute(CreateTable(table, include_foreign_key_constraints=inline))


def complete_tables(connection: Connection, progress: Progress) -> None:
    """Make all indexes, then all references, whose rows are all there: those to the same table and circles too."""
    steps: list[ExecutableDDLElement] = [CreateIndex(index) for table in TABLES for index in table.indexes]
    if connection.dialect.supports_alter:
        references = [reference for table in TABLES for reference in table.foreign_key_constraints]
        steps += [AddConstraint(reference, isolate_from_table=False) for reference in references]
    for number, step in enumerate(steps):
        progress("Indexes", number, len(steps))
        connection.execute(step)


def compare(rows: Bulk, load: Bulk, progress: Progress) -> None:
    """Raise Unavailable unless every table comes to the same in both databases."""
    for number, table in enumerate(TABLES):
        progress("Comparing", number, len(TABLES))
        here, there = rows.contents(table), load.contents(table)
        if here != there:
            message = f"The copy is not what was copied: {table.name} has {difference(here, there)}"
            raise Unavailable(f"{message}. Report it as a defect.")
    progress("Comparing", len(TABLES), len(TABLES))


def difference(here: Contents, there: Contents) -> str:
    """Return in which way the contents of a table differ."""
    if here.rows != there.rows:
        return f"{here.rows} rows here and {there.rows} there"
    sums = [name for name in here.sums if here.sums[name] != there.sums[name]]
    return f"another sum of {', '.join(sums)}" if sums else "other texts"


def watched(blocks: Iterator[list[Row]], progress: Progress, done: int, total: int) -> Iterator[list[Row]]:
    """Yield blocks, and tell how many rows have gone by."""
    for block in blocks:
        yield block
        done += len(block)
        progress("Rows", done, total)


@contextmanager
def transaction(target: Engine) -> Iterator[Connection]:
    """A change of the schema whose failures are all Unavailable, each a whole sentence."""
    is_written = False
    try:
        with naming(target), target.schema_change() as connection:
            yield connection
            is_written = True
    except (DBAPIError, RuntimeError, target.conflict) as error:
        raise Unavailable(f"{target.location} remains empty: {getattr(error, 'orig', error)}") from None
    except Unavailable as error:
        if is_written:
            unknown = "Whether the copy is there is unknown: run the command again, it refuses when it is"
            raise Unavailable(f"{error} {unknown}.") from None
        raise


@contextmanager
def naming(engine: Engine) -> Iterator[None]:
    """A block in which what the driver says gets the name of the database; what is without a cause names it itself."""
    try:
        yield
    except Unavailable as error:
        if error.__cause__ is None:
            raise
        raise Unavailable(f"{engine.location}: {error}") from None
