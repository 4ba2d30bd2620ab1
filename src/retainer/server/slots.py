"""Slots: how many requests run at once, and for how many bodies an account may wait."""

import threading
from collections import Counter, deque

import msgspec

from retainer.errors import Refusal
from retainer.kernel.http import Request

BODY_SLOTS = 128  # so many threads may wait for bodies, and so many MiB may unfinished bodies take
THREAD_SECONDS = 2**31  # threads stay: one that is about to end would still count as idle

_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class RunningSlots:
    """A fair semaphore: a context for at most `count` threads, which enter in the order in which they came.

    More threads would wait for each other anyway, and would each need a connection to the database.
    """

    def __init__(self, count: int) -> None:
        self.count = self.free = count
        self._lock = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()

    @property
    def waiting(self) -> int:
        """How many threads wait for a slot."""
        return len(self._waiting)

    def enter(self) -> None:
        """Take a slot; wait until one is handed over if none is free."""
        with self._lock:
            if self.free:
                self.free -= 1
                return
            handed_over = threading.Lock()
            handed_over.acquire()
            self._waiting.append(handed_over)
        handed_over.acquire()

    def leave(self) -> None:
        """Hand the slot to the thread that has waited longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self.free += 1

    __enter__ = enter

    def __exit__(self, *_: object) -> None:
        self.leave()


class BodyReader:
    """Slots for waiting for bodies. An account may hold as many as are still free, so that none can take all.

    `lacks_thread` is set when all threads known here begin to wait for bodies: others may not have been started.
    """

    def __init__(self, running: RunningSlots, slots: int = BODY_SLOTS) -> None:
        self.running = running
        self.slots = self.free = slots
        self.lacks_thread = threading.Event()
        self._threads: set[int] = set()
        self._taken: Counter[int] = Counter()
        self._lock = threading.Lock()

    def read(self, request: Request, account_id: int) -> bytes:
        """Return the whole body; other requests run while this one waits for it.

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

    @property
    def is_short(self) -> bool:
        """Whether all threads known wait for bodies."""
        return self.slots - self.free >= len(self._threads)

    def note_thread(self) -> None:
        """Remember the thread that calls: it has been started, and threads do not end."""
        self._threads.add(threading.get_ident())

    def _take(self, account_id: int) -> None:
        with self._lock:
            if self._taken[account_id] >= self.free:
                message = "Too many requests of this account wait for their bodies. Send each body whole and at once."
                raise Refusal("unavailable", message, headers={"Retry-After": "1"})
            self._taken[account_id] += 1
            self.free -= 1
            self.note_thread()
            if self.is_short:
                self.lacks_thread.set()

    def _give_back(self, account_id: int) -> None:
        with self._lock:
            self.free += 1
            self._taken[account_id] -= 1
            if not self._taken[account_id]:
                del self._taken[account_id]


def is_whole(request: Request, body: bytes) -> bool:
    """Whether all of a body has arrived, for Granian takes a broken connection for the body's end.

    A chunked body has no length to compare: it is whole if it is a JSON object.
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
    """Return how many threads a server needs so that some are free whatever is sent."""
    return BODY_SLOTS + 2 * running
