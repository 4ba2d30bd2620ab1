"""Taking in bodies: who sends slowly holds up neither the callers who read nor the other keys."""

import threading
from collections import Counter

from retainer.errors import Refusal
from retainer.kernel.http import Request

PATIENCE_SECONDS = 0.5  # how long a request waits for its turn to take in a body
RESERVED = 4  # threads that do not wait for a body, so that other requests go on whatever is sent


class Intake:
    """Turns for reading bodies: all keys together leave threads free, and one key takes two thirds of the turns."""

    def __init__(self, threads: int) -> None:
        self.turns = max(1, threads - RESERVED)
        self._taken: Counter[int] = Counter()
        self._change = threading.Condition()

    def read(self, request: Request, key_id: int) -> bytes:
        """The whole body. Raises `body_too_large`, or `unavailable` when too many bodies are waited for."""
        if not request.has_body:
            return b""
        with self._change:
            if not self._change.wait_for(lambda: self._is_free(key_id), PATIENCE_SECONDS):
                message = "Too many bodies arrive slowly. Send this request again in a second."
                raise Refusal("unavailable", message, headers={"Retry-After": "1"})
            self._taken[key_id] += 1
        try:
            return request.read()
        finally:
            with self._change:
                self._taken -= Counter({key_id: 1})
                self._change.notify_all()

    def _is_free(self, key_id: int) -> bool:
        return self._taken.total() < self.turns and self._taken[key_id] < max(1, self.turns * 2 // 3)
