"""Slots: how many requests are worked on at once, and who may wait for how many bodies."""

import threading
from collections import Counter, deque

import msgspec

from retainer.errors import Refusal
from retainer.kernel.http import Request

BODY_SLOTS = 128  # so many threads may wait for bodies, and so many MiB may unfinished bodies take

_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class RunningSlots:
    """A context in which only so many threads are at once, in the order in which they came.

    More would wait for each other anyway, and would each need a connection to the database.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._lock = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()

    def enter(self) -> None:
        """Take a slot; wait until one is handed over if none is free."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            handed_over = threading.Lock()
            handed_over.acquire()
            self._waiting.append(handed_over)
        handed_over.acquire()

    def leave(self) -> None:
        """Hand the slot to who has waited longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    __enter__ = enter

    def __exit__(self, *_: object) -> None:
        self.leave()


class BodyReader:
    """Slots for waiting for bodies. An account may take as many as are still free, so that none can take all."""

    def __init__(self, running: RunningSlots, slots: int = BODY_SLOTS) -> None:
        self.running = running
        self.free = slots
        self._taken: Counter[int] = Counter()
        self._lock = threading.Lock()

    def read(self, request: Request, account_id: int) -> bytes:
        """The whole body; other requests run while it is waited for.

        Raises `body_too_large`, `bad_request` when the connection or the time for the body ended before it did, and
        `unavailable` when the account has no slot.
        """
        if not request.has_body:
            return b""
        self._take(account_id)
        self.running.leave()
        try:
            body = request.read()
        finally:
            self._give_back(account_id)
            self.running.enter()
        if not is_whole(request, body):
            request.has_body = True
            raise Refusal("bad_request", "The body ended before all of it had arrived. Send the request again, faster.")
        return body

    def _take(self, account_id: int) -> None:
        with self._lock:
            if self._taken[account_id] >= self.free:
                message = "Too many requests of this account wait for their bodies. Send each body whole and at once."
                raise Refusal("unavailable", message, headers={"Retry-After": "1"})
            self._taken[account_id] += 1
            self.free -= 1

    def _give_back(self, account_id: int) -> None:
        with self._lock:
            self.free += 1
            self._taken[account_id] -= 1
            if not self._taken[account_id]:
                del self._taken[account_id]


def is_whole(request: Request, body: bytes) -> bool:
    """Whether all of a body is there, for the server reads a connection that broke as the body's end.

    Chunks have no length that could be compared: there it is a whole JSON object that says that it has ended.
    """
    length = request.environ.get("CONTENT_LENGTH")
    if length is not None:
        return len(body) == int(length)
    try:
        _decode_object(body)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def threads(running: int) -> int:
    """How many threads a server needs so that some are free whatever is sent; they are made when needed."""
    return BODY_SLOTS + 2 * running
