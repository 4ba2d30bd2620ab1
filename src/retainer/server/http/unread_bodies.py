"""Unread bodies: read after the response, so that a refusal reaches the client."""

import threading
from collections.abc import Iterator

from retainer.kernel.http import Request

MAX_BYTES = 16 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
MAX_READERS = 64
_readers = threading.Semaphore(MAX_READERS)


def discard_after(response: bytes, request: Request) -> Iterator[bytes]:
    """Yield the body of the response, then read and discard the request's body.

    Closing a connection with unread data resets it, and a client or proxy that is still sending loses the response.
    Granian calls this in threads of its own; the connection guard ends bodies that take too long.
    """
    yield response
    if _readers.acquire(blocking=False):
        try:
            body, left = request.environ["wsgi.input"], MAX_BYTES
            while left > 0 and (chunk := body.read(CHUNK_BYTES)):
                left -= len(chunk)
        finally:
            _readers.release()
