"""Copy a whole installation, or one account, from one database into another, with all ids, or nothing.

The source is read in one snapshot, and the target is written in one transaction. Rows are summarised as they are read.
Before the commit, the target is read back and must have the same summaries. In the copy of an account alone, nobody is
signed in, and nothing is sent until the operator resumes it. The copy cancels what the source still sends.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Integer,
    LargeBinary,
    Table,
    cast,
    false,
    func,
    insert,
    select,
    true,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import AddConstraint, CreateIndex, CreateTable, ExecutableDDLElement

from retainer.outbound.pause import EVERY
from retainer.schema import fingerprint, metadata
from retainer.schema.fingerprint import head
from retainer.schema.identity import accounts, password_links, pauses, pending_sign_ins, sessions
from retainer.schema.jobs import jobs
from retainer.schema.mail import messages
from retainer.schema.migrations import revision_within, stamp
from retainer.schema.requests import idempotency_keys
from retainer.store.engines import Engine
from retainer.store.engines.base import Row, Unavailable
from retainer.values.exact import utcnow

BATCH_SIZE, LARGE_ROWS = 2000, 50
"""Number of rows that are read and inserted at once, and of rows with bytes: pieces of files have 64 KiB each."""

TABLES = metadata.sorted_tables
NOT_OF_ACCOUNT = (sessions, password_links, pending_sign_ins, idempotency_keys)
"""Tables whose rows a copy of one account has not: they are for the server that wrote them."""

IS_LIVE = select(accounts.c.id).where(accounts.c.suspended_at.is_(None)).exists()
QUEUED = messages.update().where(messages.c.status == "queued", IS_LIVE)
"""Changes the messages of an account that the source sends: all that are queued, unless it is suspended there."""
RUNNING = jobs.update().where(jobs.c.next_step_at.is_not(None), jobs.c.kind != "daily", IS_LIVE)
"""Changes the jobs of an account that the source does."""
DONE_ELSEWHERE = (
    "The account was copied to this server while this job was running, so the other server does it. Compare before you "
    "continue it."
)
SENT_ELSEWHERE = (
    "The account was copied to this server while this message was about to be sent, so the other server sends it. Send "
    "it again if it has not arrived."
)

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


def count_rows(connection: Connection, table: Table, account_id: int | None = None) -> int:
    counted = select(func.count()).select_from(table).where(is_copied(table, account_id))
    return connection.execute(counted).scalar_one()


def is_copied(table: Table, account_id: int | None) -> ColumnElement[bool]:
    """Return which rows of a table are copied: all, or those of an account."""
    if account_id is None:
        return true()
    if table is pauses or table in NOT_OF_ACCOUNT:
        return false()
    return (table.c.id if table is accounts else table.c.account_id) == account_id


def stream(
    connection: Connection, table: Table, summary: Summary, account_id: int | None = None
) -> Generator[list[Row], None, None]:
    columns = [cast(column, Integer) if isinstance(column.type, Boolean) else column for column in table.c]
    rows = select(*columns).where(is_copied(table, account_id)).order_by(*table.primary_key)
    has_bytes = any(isinstance(column.type, LargeBinary) for column in table.c)
    rows = rows.execution_options(yield_per=min(BATCH_SIZE, LARGE_ROWS) if has_bytes else BATCH_SIZE)
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


def copy(source: Engine, target: Engine, progress: Progress, account_id: int | None = None) -> int:
    """Copy all rows of one snapshot of the source into an empty target, or those of an account; return how many.

    Both are compared. In the copy of an account alone, the work that sends something is paused. Raises Unavailable if
    the source has another schema or no such account, the target is not empty, or anything fails; then the target is
    still empty. The copy of an account needs a new target: an emptied one may hold rows of others in its free pages.
    """
    with ExitStack() as stack:
        with with_location(source):
            require_newest(source)
            reading = stack.enter_context(source.read_snapshot())
            total = sum(count_rows(reading, table, account_id) for table in TABLES)
            if account_id is not None and not total:
                raise Unavailable(f"{source.location} has no account {account_id}: see retainer account list.")
            numbered = [table for table in TABLES if table.autoincrement_column is not None]
            last_ids = {table: source.last_id(reading, table) for table in numbered}
        if account_id is not None and target.exists():
            advice = "Name a new database, so that no free pages of it hold what was there before"
            raise Unavailable(f"{target.location} exists already. {advice}.")
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
                closing(read_rows(source, reading, table, copied[table], account_id)) as batches,
            ):
                for batch in batches:
                    writing.execute(insert(table), [dict(zip(names, row, strict=True)) for row in batch])
                    progress("Rows", sum(summary.rows for summary in copied.values()), total)
        if account_id is not None:
            copied[pauses].add(pause_all(writing, f"copied from account {account_id} of another installation"))
        complete_tables(writing, progress)
        for table, last_id in last_ids.items():
            target.set_sequence(writing, table, last_id)
        compare(copied, writing, progress)
        if account_id is not None:
            cancelled = {"status": "cancelled", "error": SENT_ELSEWHERE, "updated_at": utcnow()}
            writing.execute(QUEUED.values(cancelled))
            ended = {"next_step_at": None, "ended_at": utcnow(), "updated_at": utcnow()}
            writing.execute(RUNNING.values(status="stopped", message=DONE_ELSEWHERE, **ended))
        stamp(writing, head())
    with suppress(Unavailable):  # the copy is complete, and the server will do it, too
        target.vacuum(TABLES)
    return total


def pause_all(connection: Connection, reason: str) -> list[Row]:
    """Pause all work that sends something; return the rows that say so."""
    since = utcnow()
    found = [dict(zip(pauses.c.keys(), (work.name, since, reason), strict=True)) for work in EVERY]
    connection.execute(insert(pauses), found)
    return [tuple(row.values()) for row in found]


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
    source: Engine, connection: Connection, table: Table, summary: Summary, account_id: int | None
) -> Generator[list[Row], None, None]:
    with with_location(source, table.name), closing(stream(connection, table, summary, account_id)) as batches:
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
