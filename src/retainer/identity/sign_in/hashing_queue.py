"""The queue for password hashes of sign-ins: a few at a time, shared fairly by the networks that they come from."""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from retainer.errors import Refusal

CONCURRENCY = 2
"""Each hash takes 64 MiB, and a core for a twentieth of a second."""
SHARE = 4
"""How many attempts of one network may wait or be hashed at once."""
MAX_WAITING = 64
RETRY_SECONDS = 2


class Waiting:
    """An attempt that waits for its turn, or for being pushed out."""

    def __init__(self, network: str) -> None:
        self.network = network
        self.is_pushed_out = False
        self._decided = threading.Lock()
        self._decided.acquire()

    def decide(self, *, is_pushed_out: bool = False) -> None:
        """Let the attempt go on."""
        self.is_pushed_out = is_pushed_out
        self._decided.release()

    def wait(self) -> None:
        """Wait for the decision."""
        self._decided.acquire()


class HashingQueue:
    """Turns to hash: those who are known come first, then one network after another.

    A network has a share. When the queue is full, a newcomer takes the place of a network's second attempt, or of one
    that comes from a network which waits already. While an attempt waits or hashes, it is `outside`: it takes no slot.
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
        self._held: Counter[str] = Counter()  # by network: attempts that wait or are hashed
        self._known: deque[Waiting] = deque()
        self._others: OrderedDict[str, deque[Waiting]] = OrderedDict()  # the network whose turn it is comes first
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """How many attempts wait for their turn."""
        return len(self._known) + sum(map(len, self._others.values()))

    @contextmanager
    def turn(self, network: str, *, is_known: bool) -> Iterator[None]:
        """A block that hashes. Raises `rate_limited` beyond the share of a network, `unavailable` in a full queue."""
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
        """Take a turn, or a place in the queue; return what to wait for."""
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
        """Give the turn to the next."""
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
        """Make room: the network with most attempts loses its newest. Raises `unavailable` if that would be unfair."""
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
    """Return the refusal of an attempt that gets no turn."""
    message = f"Too many sign-in attempts at once. Try again in {RETRY_SECONDS} seconds."
    return Refusal(code, message, headers={"Retry-After": str(RETRY_SECONDS)})
