"""Engines: the only code that knows a dialect, a driver, and the meaning of its errors."""

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
from retainer.store.engines.connect import connect
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
