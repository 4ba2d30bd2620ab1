"""The engines: the only place that knows a dialect, a driver, and what its errors mean."""

from retainer.store.engines.base import Busy, Engine, OutcomeUnknown, TooSlow, TransientConflict, Unavailable
from retainer.store.engines.connect import connect
from retainer.store.engines.sqlite import Sqlite

__all__ = ["Busy", "Engine", "OutcomeUnknown", "Sqlite", "TooSlow", "TransientConflict", "Unavailable", "connect"]
