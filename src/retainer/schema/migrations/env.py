"""Alembic environment: runs migrations in one transaction on the engine that `migrate` passes."""

from typing import Any, Literal

from alembic import context

from retainer.store.engines import sql

KINDS = {id(getattr(sql, name)): name for name in ("INTEGER", "FLAG", "DAY", "INSTANT", "TEXT")}

KEEP_LAST_ID = (
    "INSERT INTO sqlite_sequence (name, seq) SELECT ?, ? WHERE EXISTS (SELECT 1 FROM sqlite_master WHERE name = ?)"
)


def by_name(what: str, item: Any, _: Any) -> str | Literal[False]:
    """Render our own column types by name in a new migration."""
    return KINDS.get(id(item), False) if what == "type" else False


def last_ids(connection: Any) -> dict[str, int]:
    """Return the last id that each table has assigned."""
    exists = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE name = 'sqlite_sequence'").fetchone()
    return dict(connection.exec_driver_sql("SELECT name, seq FROM sqlite_sequence").all()) if exists else {}


engine = context.config.attributes["engine"]
with engine.connect() as connection:
    driver = connection.connection.driver_connection  # SQLAlchemy would begin first, and the PRAGMA do nothing
    driver.execute("PRAGMA foreign_keys=OFF")  # rebuilding a table must not delete its children
    context.configure(
        connection=connection,
        target_metadata=context.config.attributes.get("metadata"),
        render_as_batch=True,
        render_item=by_name,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        assigned = last_ids(connection)
        context.run_migrations()
        for name, last in assigned.items():  # a table that was rebuilt must not assign an id again
            connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            connection.exec_driver_sql(KEEP_LAST_ID, (name, last, name))
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
        if broken:
            message = f"The migration left references to nothing: {broken[:5]}"
            raise RuntimeError(message)
engine.dispose()
