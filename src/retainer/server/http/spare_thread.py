"""The spare thread: one thread of the HTTP server that waits for no body and no password hash (decision 15).

Granian's pool starts a thread when more requests wait than threads are idle. A thread that has just taken a request
still counts as idle for a few instructions. A request that arrives then starts no thread, and could wait for the body
of another request.
"""

import secrets
import socket
import threading
from contextlib import suppress

from retainer.kernel.http import Response
from retainer.server.http.slots import RunningSlots

PATH = f"/{secrets.token_hex(16)}"
"""The secret path of the server's requests to itself, created before its workers start."""
REQUEST = f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
TIMEOUT_SECONDS = 0.1  # another request may be first in the queue and wait for its body
PAUSE_SECONDS = 0.01  # before the next request, if another worker answered


def page(running: RunningSlots) -> Response:
    """Answer the server itself: now this thread is known, and it waits for no body."""
    running.note_thread()
    return Response(200, [])


class SpareThread:
    """A thread that sends the server a request whenever all known threads wait for bodies.

    An idle thread answers it, or the pool starts one, because none counts as idle. With one worker this happens at
    most once for each thread of the pool, since threads never end. If another worker answers, it asks again.
    """

    def __init__(self, listener: socket.socket, running: RunningSlots) -> None:
        self._family, self._address = listener.family, listener.getsockname()
        self._running = running
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="spare thread", daemon=True).start()

    def stop(self) -> None:
        """Stop the thread, without waiting for it."""
        self._stopped.set()
        self._running.lacks_thread.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._running.lacks_thread.wait()
            self._running.lacks_thread.clear()
            while self._running.is_short and not self._stopped.wait(self._ask()):
                pass

    def _ask(self) -> float:
        """Send a request; return the seconds before the next one, if it is needed."""
        with suppress(OSError), socket.socket(self._family) as link:
            link.settimeout(TIMEOUT_SECONDS)
            link.connect(self._address)
            link.sendall(REQUEST)
            link.recv(1)
        return PAUSE_SECONDS
