"""Engines: the only code that knows a dialect, a driver, and the meaning of its errors."""

from pathlib import Path

from retainer.store.engines.base import (
    Busy,
    DeadlineExceeded,
    DiskFull,
    Engine,
    OutcomeUnknown,
    PartlyUnavailable,
    TransientConflict,
    Unavailable,
)
from retainer.store.engines.sqlite import Sqlite

__all__ = [
    "Busy",
    "DeadlineExceeded",
    "DiskFull",
    "Engine",
    "OutcomeUnknown",
    "PartlyUnavailable",
    "Sqlite",
    "TransientConflict",
    "Unavailable",
    "connect",
]

SQLITE = "sqlite:///"


def connect(url: str) -> Engine:
    """Return the engine of an address, like `sqlite:///data/retainer.db` or `postgresql://user@host/name`."""
    if url.startswith(SQLITE):
        return Sqlite(Path(url.removeprefix(SQLITE)))
    try:
        from retainer.store.engines.postgresql import Postgresql  # noqa: PLC0415  # its driver is an extra
    except ImportError as error:
        advice = 'Install it: pip install "psycopg[binary]>=3.3"'
        raise Unavailable(f"The driver of PostgreSQL is not installed ({error}). {advice}") from None
    return Postgresql(url)
