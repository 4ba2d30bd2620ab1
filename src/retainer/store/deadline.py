"""The deadline of the request that a thread answers. Everything that waits or runs for it ends by then."""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class _Current(threading.local):
    at = math.inf


_current = _Current()


def current() -> float:
    """Return the deadline of this thread's request on the monotonic clock; infinite outside of requests."""
    return _current.at


def remaining() -> float:
    """Return the seconds until the deadline of this thread's request."""
    return _current.at - time.monotonic()


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Answer a request in the block, by a deadline on the monotonic clock."""
    _current.at = deadline
    try:
        yield
    finally:
        _current.at = math.inf
