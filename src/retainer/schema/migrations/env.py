"""Alembic environment: runs migrations in the transaction that `migrate` has begun."""

from typing import Any, Literal

from alembic import context

from retainer.store.engines import sql

KINDS = {id(getattr(sql, name)): name for name in ("INTEGER", "FLAG", "DAY", "INSTANT", "TEXT")}


def by_name(what: str, item: Any, _: Any) -> str | Literal[False]:
    """Render our own column types by name in a new migration."""
    return KINDS.get(id(item), False) if what == "type" else False


attributes = context.config.attributes
context.configure(
    connection=attributes["connection"],
    target_metadata=attributes.get("metadata"),
    render_as_batch=True,
    render_item=by_name,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
