"""Slots: how many requests run at the same time, and how many bodies of an account are awaited."""

import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from retainer.errors import Refusal
from retainer.identity.sign_in.hashing_queue import MAX_WAITING
from retainer.kernel.http import Request
from retainer.kernel.waiting import WAIT_SLOTS
from retainer.values.decoding import decoder

BODY_SLOTS = 128
"""Threads that may wait for bodies; also the MiB of memory that unfinished bodies may take."""
FORM_SLOTS = 32
"""Threads that may wait for forms of visitors who are not signed in; these take no slots of accounts."""
THREAD_SECONDS = 2**31
"""Idle timeout of threads. They never end, because a thread that is about to end would still count as idle."""

_decode_object = decoder(dict[str, msgspec.Raw])


class RunningSlots:
    """A fair semaphore: a context for at most `count` threads, which enter in order of arrival.

    More threads would only wait for each other, and each needs a database connection. `lacks_thread` is set when all
    known threads wait outside for something else, because the HTTP server may not have started another one.
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
        """The number of threads that wait for a slot."""
        return len(self._waiting)

    def enter(self) -> None:
        """Take a slot; wait if none is free."""
        with self._lock:
            if self.free:
                self.free -= 1
                return
            handed_over = threading.Lock()
            handed_over.acquire()
            self._waiting.append(handed_over)
        handed_over.acquire()

    def leave(self) -> None:
        """Hand the slot to the thread that waited longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self.free += 1

    @contextmanager
    def left(self) -> Iterator[None]:
        """Leave the slot during a block that waits for something else than a processor or the database."""
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
        """Whether all known threads wait outside."""
        return self._outside >= len(self._threads)

    def note_thread(self) -> None:
        """Note the calling thread, which has been started and does not end."""
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
    """Slots for bodies that are awaited. A sender may hold as many as are still free, so that none can take all.

    Senders are accounts; before sign-in they are networks.
    """

    def __init__(self, running: RunningSlots, slots: int = BODY_SLOTS) -> None:
        self.running = running
        self.free = slots
        self._taken: Counter[int | str] = Counter()
        self._lock = threading.Lock()

    def read(self, request: Request, sender: int | str) -> bytes:
        """Return the whole body; other requests run meanwhile.

        Raises `body_too_large`, `bad_request` if the body is incomplete, and `unavailable` if the sender has no slot.
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
            raise Refusal("bad_request", "The body is incomplete. Send the whole request again, within 30 seconds.")
        return body

    def _take(self, sender: int | str) -> None:
        with self._lock:
            if self._taken[sender] >= self.free:
                message = "Too many requests of this account wait for their bodies. Send each body without pauses."
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
    """Return whether a body is complete, because Granian takes a broken connection for its end.

    A chunked body has no length to compare: it is complete if it is a JSON object.
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
    """Return the number of threads with which some are always free."""
    return BODY_SLOTS + FORM_SLOTS + WAIT_SLOTS + MAX_WAITING + 2 * running
