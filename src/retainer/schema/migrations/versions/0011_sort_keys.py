"""Names are sorted by their base letters: their keys, in columns of their own or where folded names were."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

from retainer.store.engines.sql import NUMBERED
from retainer.values.collation import sort_key

revision = "0011"
down_revision = "0010"

AT_ONCE = 1000
BESIDE = ("clients", "tags")
"""Where the folded name stays, for search or uniqueness."""
IN_PLACE = {
    "projects": (("name",), (("is_template", "name"),)),
    "sites": (("name",), (("name",), ("client_id", "name"))),
    "external_contacts": (("last_name", "first_name", "email"), (("last_name",),)),
    "expenses": (("category",), ()),
}
"""Where folded text was for order alone: what it is made of, and the indexes that it ends, but for the id."""


def upgrade() -> None:
    for table in BESIDE:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.add_column(sa.Column("name_sort", sa.Text(), server_default="", nullable=False))
        fill(table, ("name",))
        with op.batch_alter_table(table, table_kwargs=NUMBERED) as batch_op:
            batch_op.alter_column("name_sort", server_default=None)
            if table == "clients":
                batch_op.drop_index(batch_op.f("clients_by_account_id_name_folded_id"))
            batch_op.create_index(
                batch_op.f(f"{table}_by_account_id_name_sort_id"), ["account_id", "name_sort", "id"], unique=False
            )
    for table, (sources, indexes) in IN_PLACE.items():
        for names in indexes:
            op.drop_index(f"{table}_by_account_id_{'_'.join(names)}_folded_id", table_name=table)
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {sources[0]}_folded TO {sources[0]}_sort")
        fill(table, sources)
        for *before, name in indexes:
            columns = ["account_id", *before, f"{name}_sort", "id"]
            op.create_index(f"{table}_by_{'_'.join(columns)}", table, columns, unique=False)


def fill(table: str, sources: Sequence[str]) -> None:
    """Write the sort keys of a table, some rows at once."""
    connection, last = op.get_bind(), 0
    read = sa.text(f"SELECT id, {', '.join(sources)} FROM {table} WHERE id > :last ORDER BY id LIMIT {AT_ONCE}")
    write = sa.text(f"UPDATE {table} SET {sources[0]}_sort = :key WHERE id = :id")
    while rows := connection.execute(read, {"last": last}).all():
        connection.execute(write, [{"id": row[0], "key": key_of(row[1:])} for row in rows])
        last = rows[-1][0]


def key_of(texts: Sequence[Any]) -> str:
    """The sort key of a row, of the texts that it has."""
    return sort_key("\n".join(text for text in texts if text))
