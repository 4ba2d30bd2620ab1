"""The queue for password hashes: a few at a time, shared fairly between networks."""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from retainer.errors import Refusal

CONCURRENCY = 2
"""Each hash takes 64 MiB, and 50 ms of a core."""
SHARE = 4
"""Maximum number of attempts of one network that wait or are hashed."""
MAX_WAITING = 64
RETRY_SECONDS = 2


class Waiting:
    """An attempt that waits for its turn."""

    def __init__(self, network: str) -> None:
        self.network = network
        self.is_pushed_out = False
        self._decided = threading.Lock()
        self._decided.acquire()

    def decide(self, *, is_pushed_out: bool = False) -> None:
        """Give the attempt its turn, or push it out of the queue."""
        self.is_pushed_out = is_pushed_out
        self._decided.release()

    def wait(self) -> None:
        """Wait for the decision."""
        self._decided.acquire()


class HashingQueue:
    """Turns to hash passwords: known browsers first, then one network after another.

    Each network has a share. If the queue is full, a new attempt takes the place of the newest attempt of the network
    with most. Attempts wait and hash in an `outside` block, where they occupy no slot of a request.
    """

    def __init__(
        self,
        outside: Callable[[], AbstractContextManager[None]] = nullcontext,
        *,
        concurrency: int = CONCURRENCY,
        share: int = SHARE,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self.outside, self.share, self.max_waiting = outside, share, max_waiting
        self._free = concurrency
        self._held: Counter[str] = Counter()  # attempts that wait or are hashed, by network
        self._known: deque[Waiting] = deque()
        self._others: OrderedDict[str, deque[Waiting]] = OrderedDict()  # the next network first
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """Return the number of waiting attempts."""
        return len(self._known) + sum(map(len, self._others.values()))

    @contextmanager
    def turn(self, network: str, *, is_known: bool) -> Iterator[None]:
        """Wait for a turn, and hash in the block. Raises `rate_limited` beyond the share, `unavailable` if full."""
        waiting = self._enter(network, is_known=is_known)
        with self.outside():
            if waiting is not None:
                waiting.wait()
                if waiting.is_pushed_out:
                    raise too_many("rate_limited")
            try:
                yield
            finally:
                self._leave(network)

    def _enter(self, network: str, *, is_known: bool) -> Waiting | None:
        """Take a turn, or a place in the queue; return the place."""
        with self._lock:
            if self._held[network] >= self.share:
                raise too_many("rate_limited")
            if self._free:
                self._free -= 1
                self._held[network] += 1
                return None
            if self.waiting >= self.max_waiting:
                self._push_out(network, is_known=is_known)
            self._held[network] += 1
            waiting = Waiting(network)
            (self._known if is_known else self._others.setdefault(network, deque())).append(waiting)
            return waiting

    def _leave(self, network: str) -> None:
        """Give the turn to the next attempt."""
        with self._lock:
            self._release(network)
            if self._known:
                self._known.popleft().decide()
            elif self._others:
                first, attempts = self._others.popitem(last=False)
                attempts.popleft().decide()
                if attempts:
                    self._others[first] = attempts
            else:
                self._free += 1

    def _push_out(self, network: str, *, is_known: bool) -> None:
        """Drop the newest attempt of the network with most. Raises `unavailable` if none has more than this one."""
        most = max(self._others, key=lambda other: len(self._others[other]), default=None)
        if most is None or not (is_known or len(self._others[most]) > self._held[network] + 1):
            raise too_many("unavailable")
        self._others[most].pop().decide(is_pushed_out=True)
        if not self._others[most]:
            del self._others[most]
        self._release(most)

    def _release(self, network: str) -> None:
        self._held[network] -= 1
        if not self._held[network]:
            del self._held[network]


def too_many(code: str) -> Refusal:
    """Return the refusal of an attempt without a turn."""
    message = f"Too many sign-in attempts at once. Try again in {RETRY_SECONDS} seconds."
    return Refusal(code, message, headers={"Retry-After": str(RETRY_SECONDS)})
