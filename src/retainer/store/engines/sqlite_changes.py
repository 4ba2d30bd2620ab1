"""Changes of SQLite's schema: one transaction, after which ids, statistics and references are in order."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, NullPool, Table, create_engine, event, text

from retainer.store.engines.base import DriverConnection, Unavailable
from retainer.store.engines.sqlite_catalogue import last_ids, raise_last_id, write_statistics

REBUILT = "_alembic_tmp_"
"""The beginning of the name under which alembic makes a table again; then it takes the place of the former one."""
IS_NUMBERED = text("SELECT sql LIKE '%AUTOINCREMENT%' FROM sqlite_schema WHERE name = :name")


def sqlalchemy(connect: Callable[[], DriverConnection], driver: Any, begin: str) -> Connection:
    engine = create_engine("sqlite://", creator=connect, module=driver, poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine.connect()


@contextlib.contextmanager
def change(connect: Callable[[], DriverConnection], driver: Any, location: str) -> Iterator[Connection]:
    """Begin the only transaction that changes tables. Raises Unavailable if it leaves broken references."""
    with sqlalchemy(connect, driver, "BEGIN IMMEDIATE") as connection:
        raw: DriverConnection = connection.connection.driver_connection
        raw.execute("PRAGMA foreign_keys=OFF")  # or rebuilding a table would delete the rows that refer to it
        with connection.begin():
            assigned = last_ids(raw)
            event.listen(Table, "before_create", keep_numbering)
            try:
                yield connection
            finally:
                event.remove(Table, "before_create", keep_numbering)
            for name, last_id in assigned.items():
                raise_last_id(raw, name, last_id)
            write_statistics(raw)
            if broken := raw.execute("PRAGMA foreign_key_check").fetchall():
                rows = f"The change of the schema of {location} left broken references: {broken[:5]}."
                raise Unavailable(f"{rows} Nothing was changed: report it as a defect.")


def keep_numbering(table: Table, connection: Connection, **_: object) -> None:
    """Let a table that is made again still assign no id twice; alembic forgets this."""
    if connection.dialect.name == "sqlite" and table.name.startswith(REBUILT):
        is_numbered = connection.execute(IS_NUMBERED, {"name": table.name.removeprefix(REBUILT)}).scalar_one()
        table.dialect_options["sqlite"]["autoincrement"] = bool(is_numbered)
