"""Migrations: upgrade the schema of a database once, under a lock, and only when it is behind."""

from pathlib import Path

from sqlalchemy import text

from retainer.schema import metadata
from retainer.store.engines import Engine, Unavailable
from retainer.store.tx import Store

MIGRATIONS = Path(__file__).parent


def head() -> str:
    """Return the newest revision of this version of the program."""
    return max(path.stem.split("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def current(store: Store) -> str | None:
    """Return the revision of a database; None when it is empty."""
    if not store.engine.has_table("alembic_version"):
        return None
    row = store.unscoped_one("the schema is nobody's", text("SELECT version_num FROM alembic_version"))
    return None if row is None else str(row[0])


def migrate(engine: Engine) -> tuple[str | None, str]:
    """Upgrade the schema to the newest revision. Return the revisions before and after.

    Raises Unavailable for a database that a newer version has written, and for files on network shares.
    """
    engine.prepare_place()
    store = Store(engine)
    before, newest = current(store), head()
    if before == newest:
        return before, newest
    with engine.schema_lock():
        before = current(store)
        if before is not None and before > newest:
            raise Unavailable(f"The database has revision {before}, newer than {newest}: run the newer version.")
        if before != newest:
            engine.close()
            _upgrade(engine, before)
    return before, newest


def _upgrade(engine: Engine, before: str | None) -> None:
    from alembic import command  # noqa: PLC0415  # takes 0.2 s, which a start without migration saves
    from alembic.config import Config  # noqa: PLC0415

    configuration = Config()
    configuration.set_main_option("script_location", str(MIGRATIONS))
    schema_engine = engine.schema_engine()
    configuration.attributes["engine"] = schema_engine
    if before is None and not engine.has_history:
        with schema_engine.begin() as connection:
            metadata.create_all(connection)
            configuration.attributes["connection"] = connection
            command.stamp(configuration, "head")
    else:
        command.upgrade(configuration, "head")
