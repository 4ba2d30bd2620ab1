"""Runs migrations in one transaction on the engine that `store.migrate` hands over."""

from typing import Any, Literal

from alembic import context

from retainer.store import engines
from retainer.store.tables import metadata

KINDS = {id(getattr(engines, name)): name for name in ("INTEGER", "FLAG", "DAY", "INSTANT")}


def by_name(what: str, item: Any, _: Any) -> str | Literal[False]:
    """Write our own column types into a new migration by their names."""
    return KINDS.get(id(item), False) if what == "type" else False


engine = context.config.attributes["engine"]
with engine.connect() as connection:
    connection.exec_driver_sql("PRAGMA foreign_keys=OFF")  # a table that is rebuilt must not take its children along
    connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=True,
        render_item=by_name,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
        if broken:
            message = f"The migration left references to nothing: {broken[:5]}"
            raise RuntimeError(message)
engine.dispose()
