"""Engines: the only code that knows a dialect, a driver, and the meaning of its errors.

Both engines have the same methods: they lend connections, and run statements and transactions on them. The type checker
holds every use of an `Engine` against both.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Union

from retainer.store.engines.base import Unavailable
from retainer.store.engines.sqlite import Sqlite
from retainer.store.engines.sqlite_groups import GroupedSqlite

__all__ = ["Engine", "GroupedSqlite", "Sqlite", "connect", "driver_errors"]

if TYPE_CHECKING:
    from retainer.store.engines.postgresql import Postgresql

Engine = Union[Sqlite, "Postgresql"]  # a database, and connections that are lent to one user at a time
SQLITE = "sqlite:///"


def connect(url: str, *, is_limited: bool = True) -> Engine:
    """Return the engine of an address, like `sqlite:///data/retainer.db` or `postgresql://user@host/name`.

    Unless it `is_limited`, statements and transactions have no time limit: nobody waits for those of a command.
    """
    if url.startswith(SQLITE):
        return (GroupedSqlite if is_limited else Sqlite)(Path(url.removeprefix(SQLITE)), is_limited=is_limited)
    try:
        from retainer.store.engines.postgresql import Postgresql  # noqa: PLC0415  # its driver is an extra
    except ImportError as error:
        advice = 'Install it: pip install "psycopg[binary]>=3.3"'
        raise Unavailable(f"The driver of PostgreSQL is not installed ({error}). {advice}") from None
    return Postgresql(url, is_limited=is_limited)


def driver_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the drivers that this process has loaded."""
    loaded = sys.modules.get("psycopg")
    errors: list[type[Exception]] = [Sqlite.driver.Error, *([loaded.Error] if loaded else [])]
    return tuple(errors)
