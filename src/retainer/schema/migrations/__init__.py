"""Migrations: upgrade the schema of an older database once, under a lock."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from retainer.schema import metadata
from retainer.schema.distribution import DISTRIBUTED, ON_EVERY_NODE
from retainer.store.engines import Engine
from retainer.store.engines.base import Unavailable
from retainer.store.engines.citus import placing
from retainer.store.tx import Store

MIGRATIONS = Path(__file__).parent
FIRST = "0018"
"""The first revision. Earlier ones were never released."""


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


def head() -> str:
    return max(path.stem.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def current(store: Store) -> str | None:
    """Return the revision of a database; None when it is empty."""
    if not store.engine.has_table("alembic_version"):
        return None
    row = store.unscoped_one(text("SELECT version_num FROM alembic_version"))
    return None if row is None else str(row[0])


def plan(engine: Engine) -> tuple[str | None, list[Migration]]:
    """Return the revision of a database and the migrations that it needs; a new one only gets its tables.

    Raises what `check_revision` raises.
    """
    before = current(Store(engine)) if engine.exists() else None
    check_revision(before)
    return before, [] if before in {None, head()} else pending(engine, MIGRATIONS, before)


def check_revision(revision: str | None) -> None:
    """Raise Unavailable for a database of a newer version, or one from before the first release."""
    if revision is not None and revision > head():
        raise Unavailable(f"The database has revision {revision}, newer than {head()}: run the newer version.")
    if revision is not None and revision < FIRST:
        advice = "run the version that wrote it, or start with a new database."
        raise Unavailable(f"The database has revision {revision}, from before the first release: {advice}")


def migrate(engine: Engine, announce: Callable[[str], None] = lambda _: None) -> tuple[str | None, str]:
    """Create the tables of an empty database, or upgrade the schema. Return the revisions before and after.

    Table locks are announced before the first migration. Raises what `check_revision` raises, and Unavailable for files
    on network shares.
    """
    engine.create_storage()
    (before, migrations), newest = plan(engine), head()
    if before != newest:
        for sentence in announcements(engine, migrations):
            announce(sentence)
        with engine.schema_change() as connection:
            before = revision_of(connection)  # another process may have migrated it since
            check_revision(before)
            if before is None:
                metadata.create_all(connection)
                stamp(connection, newest)
            elif before != newest:
                upgrade(connection, newest)
    return before, newest


def revision_of(connection: Connection) -> str | None:
    """Return the revision of the database of a change of the schema; None when it is empty."""
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415  # takes 0.2 s, which most starts need not spend

    return MigrationContext.configure(connection).get_current_revision()


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
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    return config


def pending(engine: Engine, folder: Path, before: str | None) -> list[Migration]:
    """Return the migrations in a folder that a database of a revision needs, in order.

    The constant `LOCKS` of each says which tables it locks and why.
    """
    from alembic.script import ScriptDirectory  # noqa: PLC0415  # takes 0.2 s, which most starts need not spend

    scripts = list(ScriptDirectory(str(folder)).iterate_revisions("head", before or "base"))
    found = []
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
