"""A spare thread: the HTTP server has one that waits for no body and no hash, whatever its pool of threads does.

Granian's pool starts a thread when more requests wait than threads are idle. A thread that has just taken a request
counts as idle for some instructions more; a request that arrives meanwhile starts none, and would wait until a body
has arrived for which a thread waits, or until yet another request starts a thread (decision 15).
"""

import secrets
import socket
import threading
from contextlib import suppress

from retainer.kernel.http import Response
from retainer.server.http.slots import RunningSlots

PATH = f"/{secrets.token_hex(16)}"
"""The secret path of the server's request to itself: made before its workers start, so that only they know it."""
REQUEST = f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
PATIENCE = 0.1  # seconds for an answer: another request may be before it in the queue, and wait for its body
PAUSE = 0.01  # seconds until the next request: the last one was answered by another worker


def page(running: RunningSlots) -> Response:
    """Answer the server itself: this thread is no longer unknown, and waits for no body."""
    running.note_thread()
    return Response(200, [])


class SpareThread:
    """A thread that sends the server a request whenever all threads known wait for bodies.

    An idle thread answers it, or the pool starts one: none counts as idle when all work. Threads never end, so that
    with one worker this happens at most as often as the pool grows; another worker may answer instead, and is asked on.
    """

    def __init__(self, listener: socket.socket, running: RunningSlots) -> None:
        self._family, self._address = listener.family, listener.getsockname()
        self._running = running
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="spare thread", daemon=True).start()

    def stop(self) -> None:
        """Let the thread end, without waiting for it."""
        self._stopped.set()
        self._running.lacks_thread.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._running.lacks_thread.wait()
            self._running.lacks_thread.clear()
            while self._running.is_short and not self._stopped.wait(self._ask()):
                pass

    def _ask(self) -> float:
        """Send a request; return the seconds until the next one, if it is needed."""
        with suppress(OSError), socket.socket(self._family) as link:
            link.settimeout(PATIENCE)
            link.connect(self._address)
            link.sendall(REQUEST)
            link.recv(1)
        return PAUSE
