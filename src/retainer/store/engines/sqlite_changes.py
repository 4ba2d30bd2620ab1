"""Changes of SQLite's schema: one transaction, after which ids, statistics and references are in order."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, NullPool, create_engine, event

from retainer.store.engines.base import DriverConnection, Unavailable
from retainer.store.engines.sqlite_catalogue import last_ids, raise_last_id, write_statistics


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
            yield connection
            for name, last_id in assigned.items():
                raise_last_id(raw, name, last_id)
            write_statistics(raw)
            if broken := raw.execute("PRAGMA foreign_key_check").fetchall():
                rows = f"The change of the schema of {location} left broken references: {broken[:5]}."
                raise Unavailable(f"{rows} Nothing was changed: report it as a defect.")
