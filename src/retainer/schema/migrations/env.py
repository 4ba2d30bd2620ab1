"""Alembic environment: runs migrations in the transaction that `migrate` has begun."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection, Table, event, text

from retainer.store.engines import sql

KINDS = {id(getattr(sql, name)): name for name in ("INTEGER", "FLAG", "DAY", "INSTANT", "TEXT")}
REBUILT = "_alembic_tmp_"
IS_NUMBERED = text("SELECT sql LIKE '%AUTOINCREMENT%' FROM sqlite_schema WHERE name = :name")


def by_name(what: str, item: Any, _: Any) -> str | Literal[False]:
    """Render our own column types by name in a new migration."""
    return KINDS.get(id(item), False) if what == "type" else False


def keep_numbering(table: Table, connection: Connection, **_: object) -> None:
    """Let a table that alembic rebuilds on SQLite still assign no id twice."""
    if table.name.startswith(REBUILT):
        is_numbered = connection.execute(IS_NUMBERED, {"name": table.name.removeprefix(REBUILT)}).scalar_one()
        table.dialect_options["sqlite"]["autoincrement"] = bool(is_numbered)


attributes = context.config.attributes
context.configure(
    connection=attributes["connection"],
    target_metadata=attributes.get("metadata"),
    render_as_batch=True,
    render_item=by_name,
    transactional_ddl=True,
)
event.listen(Table, "before_create", keep_numbering)
try:
    with context.begin_transaction():
        context.run_migrations()
finally:
    event.remove(Table, "before_create", keep_numbering)
