"""Migrations: upgrade the schema of an older database once, under a lock."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from retainer.schema import fingerprint, metadata
from retainer.schema.distribution import DISTRIBUTED, ON_EVERY_NODE
from retainer.schema.fingerprint import head as head  # of the migrations, too
from retainer.store.engines import Engine
from retainer.store.engines.base import DiskFull, Unavailable
from retainer.store.engines.catalogue import of_connection
from retainer.store.engines.citus import placing
from retainer.store.tx import Store

COPIES = 2
"""Room that a migration needs at most, in sizes of the database: every table may be rewritten, and logged."""


class Lock(NamedTuple):
    table: str
    why: str
    """The work under the lock, which shows its duration: `rewrites every row`."""
    rows: int
    """Number of rows of the table; on PostgreSQL at the time of the last ANALYZE."""

    def __str__(self) -> str:
        return f"{self.table} (about {self.rows:,} rows): it {self.why}"


class Migration(NamedTuple):
    revision: str
    title: str
    locks: list[Lock]


def current(store: Store) -> str | None:
    """Return the revision that a database says it has, None without one; `fingerprint.revision` looks at its tables."""
    if not store.engine.has_table("alembic_version"):
        return None
    row = store.unscoped_one(text("SELECT version_num FROM alembic_version"))
    return None if row is None else str(row[0])


def plan(engine: Engine) -> tuple[str | None, list[Migration]]:
    """Return the revision of a database and the migrations that it needs; a new one only gets its tables.

    Raises UnknownSchema.
    """
    before = fingerprint.revision(engine) if engine.exists() else None
    return before, [] if before in {None, head()} else pending(engine, fingerprint.MIGRATIONS, before)


def migrate(engine: Engine, announce: Callable[[str], None] = lambda _: None) -> tuple[str | None, str]:
    """Create the tables of an empty database, or upgrade the schema. Return the revisions before and after.

    Table locks are announced before the first migration. Raises UnknownSchema, and Unavailable for files on network
    shares and for errors of the database; then nothing was changed.
    """
    engine.create_storage()
    (before, migrations), newest = plan(engine), head()
    if before != newest:
        for sentence in announcements(engine, migrations):
            announce(sentence)
        from retainer.schema.migrations import former  # noqa: PLC0415  # needs alembic, which takes 0.2 s

        try:
            with engine.schema_change() as connection:
                before = revision_within(connection, engine)  # another process may have migrated it since
                if before is None:
                    metadata.create_all(connection)
                    stamp(connection, newest)
                elif before != newest:
                    if before == fingerprint.FORMER:
                        former.upgrade(connection, announce)
                    upgrade(connection, newest)
                revision_within(connection, engine)
        except DiskFull as error:
            error.needed = engine.size() * COPIES
            raise
        if before == fingerprint.FORMER:  # which has written every row
            with suppress(Unavailable):  # all is upgraded, and the server will do it, too
                engine.vacuum(metadata.sorted_tables)
    return before, newest


def revision_within(connection: Connection, engine: Engine) -> str | None:
    """Return the revision of a database in a change of its schema. Raises UnknownSchema."""
    return fingerprint.identified(of_connection(connection), engine.dialect.name, engine.location)


def stamp(connection: Connection, revision: str) -> None:
    """Record the revision of tables that were created without migrations, within a change of the schema."""
    from alembic import command  # noqa: PLC0415  # as above

    command.stamp(configuration(connection), revision)


def upgrade(connection: Connection, revision: str) -> None:
    from alembic import command  # noqa: PLC0415  # as above

    with placing(connection, [*map(str, DISTRIBUTED)], [*map(str, ON_EVERY_NODE)]):
        command.upgrade(configuration(connection), revision)


def configuration(connection: Connection) -> Any:
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(fingerprint.MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def pending(engine: Engine, folder: Path, before: str | None) -> list[Migration]:
    """Return the migrations in a folder that a database of a revision needs, in order.

    The constant `LOCKS` of each says which tables it locks and why.
    """
    from alembic.script import ScriptDirectory  # noqa: PLC0415  # takes 0.2 s, which most starts need not spend

    from retainer.schema.migrations import former  # noqa: PLC0415  # as above

    found, revision = [], before or "base"
    if before == fingerprint.FORMER:
        locks = [Lock(table, why, engine.estimate_rows(table)) for table, why in former.LOCKS.items()]
        found, revision = [Migration(fingerprint.FIRST, "The tables of the first release", locks)], fingerprint.FIRST
    scripts = list(ScriptDirectory(str(folder)).iterate_revisions("head", revision))
    for script in reversed(scripts):
        declared: dict[str, str] = getattr(script.module, "LOCKS", {})
        locks = [Lock(table, why, engine.estimate_rows(table)) for table, why in declared.items()]
        found.append(Migration(script.revision, script.doc.removesuffix("."), locks))
    return found


def announcements(engine: Engine, migrations: list[Migration]) -> list[str]:
    return [
        f"Migration {migration.revision} ({migration.title}) locks {lock}. {engine.waits_for_schema.format(lock.table)}"
        for migration in migrations
        for lock in migration.locks
    ]
