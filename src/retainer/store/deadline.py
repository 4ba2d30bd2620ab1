"""The deadline of the request that a thread answers. Everything that waits or runs for it ends by then."""

import math
import threading
import time


class Deadline(threading.local):
    """The deadline of this thread's request on the monotonic clock; infinite outside of requests."""

    at = math.inf

    def remaining(self) -> float:
        return self.at - time.monotonic()


of_request = Deadline()
