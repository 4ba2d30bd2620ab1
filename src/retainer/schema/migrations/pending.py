"""Pending migrations: what they change, which tables they lock, and what their locks block."""

from pathlib import Path
from typing import NamedTuple

from retainer.store.engines import Engine


class Lock(NamedTuple):
    """A table that a migration locks."""

    table: str
    why: str
    """The work under the lock, which shows its duration: `rewrites every row`."""
    rows: int
    """Number of rows of the table; on PostgreSQL at the time of the last ANALYZE."""

    def __str__(self) -> str:
        return f"{self.table} (about {self.rows:,} rows): it {self.why}"


class Migration(NamedTuple):
    """A migration that has not run yet."""

    revision: str
    title: str
    locks: list[Lock]


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
    """Return a sentence for each table that migrations lock."""
    return [
        f"Migration {migration.revision} ({migration.title}) locks {lock}. {engine.waits_for_schema.format(lock.table)}"
        for migration in migrations
        for lock in migration.locks
    ]
