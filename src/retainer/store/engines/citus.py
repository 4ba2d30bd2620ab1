"""Citus: place the tables of a PostgreSQL database on several servers, also those that migrations add later."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, ForeignKeyConstraint, Table, event
from sqlalchemy.schema import AddConstraint

SEQUENTIAL = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
"""References to tables on every node are added in the transaction that creates them; PostgreSQL ignores the setting."""
HAS_CITUS = "SELECT to_regclass('pg_dist_partition') IS NOT NULL"
LOST_WORKERS = """
SELECT string_agg(nodename || ':' || nodeport, ', ' ORDER BY nodename, nodeport)
FROM run_command_on_workers('SELECT 1') WHERE NOT success
"""
PLACED = "SELECT logicalrelid::TEXT FROM pg_dist_partition WHERE partmethod = 'h' OR repmodel = 't'"
"""The tables that are distributed or on every node; Citus also lists tables of the coordinator with references."""
REFERENCES = """
SELECT conrelid::regclass::TEXT, confrelid::regclass::TEXT, quote_ident(conname), pg_get_constraintdef(oid)
FROM pg_constraint WHERE contype = 'f' AND connamespace = current_schema()::regnamespace ORDER BY oid
"""


def placed_tables(connection: Connection) -> set[str] | None:
    """Return the tables that are distributed or on every node; None if the database has no Citus."""
    if connection.dialect.name != "postgresql" or not connection.exec_driver_sql(HAS_CITUS).scalar_one():
        return None
    return {str(name) for (name,) in connection.exec_driver_sql(PLACED)}


def place_tables(connection: Connection, distributed: Collection[str], on_every_node: Collection[str]) -> int:
    """Place the tables that are not placed yet; return how many. The rows that they have move with them.

    Citus refuses to place a table that refers to one in another place, so references are dropped first and added
    again at the end. Those to tables of the coordinator alone cannot be added: a shard cannot refer to its rows.
    """
    placed = placed_tables(connection) or set()
    everywhere = [name for name in on_every_node if name not in placed]
    by_account = [name for name in distributed if name not in placed]
    moved = {*everywhere, *by_account}
    if not moved:
        return 0
    connection.exec_driver_sql(SEQUENTIAL)
    references = [
        (str(table), str(target), str(name), str(definition))
        for table, target, name, definition in connection.exec_driver_sql(REFERENCES)
        if moved.intersection((table, target))
    ]
    for table, _, name, _ in references:
        connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
    for name in everywhere:
        connection.exec_driver_sql(f"SELECT create_reference_table('{name}')")
    others = next((name for name in distributed if name in placed), "none")
    for name in by_account:
        place = f"'{name}', 'account_id', colocate_with => '{others}'"
        connection.exec_driver_sql(f"SELECT create_distributed_table({place})")
        others = name if others == "none" else others
    for table, target, name, definition in references:
        if table not in distributed or target in {*distributed, *on_every_node}:
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
    return len(moved)


@contextmanager
def placing(connection: Connection, distributed: Collection[str], on_every_node: Collection[str]) -> Iterator[None]:
    """Place tables as soon as a block creates them, if the database is distributed already.

    A new table is one of the coordinator, which cannot refer to rows of another node; so its references follow.
    """
    if not placed_tables(connection):
        yield
        return
    connection.exec_driver_sql(SEQUENTIAL)
    references: dict[Table, list[ForeignKeyConstraint]] = {}

    def set_aside(table: Table, *_: object, **__: object) -> None:
        references[table] = list(table.foreign_key_constraints)
        table.constraints.difference_update(references[table])

    def complete(table: Table, *_: object, **__: object) -> None:
        present = {*(placed_tables(connection) or ()), table.name}  # later migrations may add others
        by_account, everywhere = ([*filter(present.__contains__, names)] for names in (distributed, on_every_node))
        place_tables(connection, by_account, everywhere)
        for reference in references.pop(table):
            table.constraints.add(reference)
            connection.execute(AddConstraint(reference))

    event.listen(Table, "before_create", set_aside)
    event.listen(Table, "after_create", complete)
    try:
        yield
    finally:
        event.remove(Table, "before_create", set_aside)
        event.remove(Table, "after_create", complete)
