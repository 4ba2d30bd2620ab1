"""Slots: how many requests run at once, and for how many bodies an account may wait."""

import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from retainer.errors import Refusal
from retainer.identity.sign_in.hashing_queue import MAX_WAITING
from retainer.kernel.http import Request

BODY_SLOTS = 128  # so many threads may wait for bodies, and so many MiB may unfinished bodies take
FORM_SLOTS = 32
"""Number of threads that may wait for forms of those who are not signed in: they take no slot of an account."""
THREAD_SECONDS = 2**31
"""Idle timeout of a thread: it stays, because one that is about to end would still count as idle."""

_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class RunningSlots:
    """A fair semaphore: a context for at most `count` threads, which enter in the order in which they came.

    More threads would wait for each other anyway, and would each need a connection to the database. `lacks_thread` is
    set when all threads known here wait outside for something else: others may not have been started.
    """

    def __init__(self, count: int) -> None:
        self.count = self.free = count
        self.lacks_thread = threading.Event()
        self._lock = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._threads: set[int] = set()
        self._outside = 0

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

    @contextmanager
    def left(self) -> Iterator[None]:
        """A block that works without a slot, for it waits for something else than a processor or the database."""
        self.note_thread()
        self._go_outside(1)
        self.leave()
        try:
            yield
        finally:
            self._go_outside(-1)
            self.enter()

    @property
    def is_short(self) -> bool:
        """Whether all threads known wait outside."""
        return self._outside >= len(self._threads)

    def note_thread(self) -> None:
        """Remember the thread that calls: it has been started, and threads do not end."""
        self._threads.add(threading.get_ident())

    def _go_outside(self, change: int) -> None:
        with self._lock:
            self._outside += change
            if self.is_short:
                self.lacks_thread.set()

    __enter__ = enter

    def __exit__(self, *_: object) -> None:
        self.leave()


class BodyReader:
    """Slots for waiting for bodies. A sender may hold as many as are still free, so that none can take all.

    Senders are accounts, or networks where nobody is signed in.
    """

    def __init__(self, running: RunningSlots, slots: int = BODY_SLOTS) -> None:
        self.running = running
        self.free = slots
        self._taken: Counter[int | str] = Counter()
        self._lock = threading.Lock()

    def read(self, request: Request, sender: int | str) -> bytes:
        """Return the whole body; other requests run while this one waits for it.

        Raises `body_too_large`, `bad_request` when the connection or the time for the body ended before it did, and
        `unavailable` when the sender has no slot.
        """
        if not request.has_body:
            return b""
        self._take(sender)
        with self.running.left():
            try:
                body = request.read()
            finally:
                self._give_back(sender)
        if not is_whole(request, body):
            request.has_body = True
            raise Refusal("bad_request", "The body ended before all of it had arrived. Send the request again, faster.")
        return body

    def _take(self, sender: int | str) -> None:
        with self._lock:
            if self._taken[sender] >= self.free:
                message = "Too many requests of this account wait for their bodies. Send each body whole and at once."
                raise Refusal("unavailable", message, headers={"Retry-After": "1"})
            self._taken[sender] += 1
            self.free -= 1

    def _give_back(self, sender: int | str) -> None:
        with self._lock:
            self.free += 1
            self._taken[sender] -= 1
            if not self._taken[sender]:
                del self._taken[sender]


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


def thread_count(running: int) -> int:
    """Return how many threads a server needs so that some are free whatever is sent."""
    return BODY_SLOTS + FORM_SLOTS + MAX_WAITING + 2 * running
