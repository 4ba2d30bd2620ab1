"""Bodies of requests: awaited without a thread, in places that accounts share (decision 27)."""

import time
from asyncio import CancelledError
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

import msgspec

from retainer.errors import Refusal
from retainer.fairness import FairSemaphore
from retainer.kernel.downloads import needing_room
from retainer.kernel.http import MAX_BODY_BYTES, Request
from retainer.kernel.uploads import MAX_UPLOAD_BYTES, UnknownSender, may_be_large, temporary_file
from retainer.server.http.exchange import Exchange, WaitingExchanges
from retainer.values.decoding import decoder

BODY_SECONDS = 10
"""From the arrival of a request to the end of its body."""
BODIES, ANONYMOUS_BODIES = 256, 32
"""Maximum number of awaited bodies, of accounts and of senders without one; also the MiB that they may take."""
UPLOADS, UPLOAD_SECONDS = 64, 60
"""Maximum number of files that come at the same time, each to disk, and how long each may take."""
TOO_LARGE = "The body is larger than 1 MiB (1048576 bytes). Split it into several requests."
FILE_TOO_LARGE = "The file is larger than 25 MiB."
WITHOUT_LENGTH = "A form of more than 1 MiB needs a Content-Length. Send the file with one."
MAX_DISCARDED_BYTES = 16 * MAX_BODY_BYTES
RETRY = {"Retry-After": "5"}

_decode_object = decoder(dict[str, msgspec.Raw])


class Bodies:
    """Receives the bodies of requests, and hands each request on; one that is refused then has its refusal."""

    def __init__(self, pending: WaitingExchanges, hand_on: Callable[[Exchange], object]) -> None:
        self.pending, self.hand_on = pending, hand_on
        self.of_accounts = FairSemaphore(BODIES, BODIES // 4, BODIES, self._refuse_place)
        self.uploads = FairSemaphore(UPLOADS, UPLOADS // 4, BODIES, self._refuse_place)
        self.anonymous = FairSemaphore(ANONYMOUS_BODIES, ANONYMOUS_BODIES // 4, BODIES, self._refuse_place)

    def receive(self, exchange: Exchange) -> None:
        is_known = isinstance(exchange.subject, int)
        exchange.places = self.of_accounts if is_known else self.anonymous
        if is_known and length_of(exchange.request) > MAX_BODY_BYTES and may_be_large(exchange.request):
            exchange.places = self.uploads
        self.pending.add(exchange, exchange.arrived + self._seconds(exchange), self._end_wait_for_place)
        if exchange.places.enter(exchange.subject, exchange):
            self._read(exchange)

    def _seconds(self, exchange: Exchange) -> int:
        return UPLOAD_SECONDS if exchange.places is self.uploads else BODY_SECONDS

    def _limit(self, exchange: Exchange) -> int:
        return MAX_UPLOAD_BYTES if exchange.places is self.uploads else MAX_BODY_BYTES

    def _end_wait_for_place(self, exchange: Exchange) -> None:
        if exchange.places.leave(exchange.subject, exchange):
            self._refuse_place(exchange)

    def _refuse_place(self, exchange: Exchange) -> None:
        self.pending.take(exchange)
        message = "Too many requests wait for their bodies. Send each body without pauses, and try again."
        self._hand_on(exchange, Refusal("unavailable", message, headers=RETRY))

    def _read(self, exchange: Exchange) -> None:
        """Begin to read a body that has its place.

        The rest of a body that is too large is received too, and discarded: closing a connection with unread data
        resets it, and a client or a proxy that is still sending would lose the response.
        """
        self.pending.add(exchange, exchange.arrived + self._seconds(exchange), self._end_late)
        length = length_of(exchange.request)
        if length > self._limit(exchange) and exchange.request.header(
            "EXPECT"
        ):  # it asks before it sends (RFC 9110, 10.1.1)
            self._end(exchange)
        elif 0 < length <= MAX_BODY_BYTES:
            self._await(exchange, exchange.client(), self._take_all)
        else:
            if MAX_BODY_BYTES < length <= self._limit(exchange):
                self._open(exchange.request, length)
            exchange.client.__aiter__()
            self._read_chunk(exchange)

    def _read_chunk(self, exchange: Exchange) -> None:
        self._await(exchange, exchange.client.__anext__(), self._take_chunk)

    @staticmethod
    def _await(exchange: Exchange, coming: Any, take: Callable[[Exchange, Any], object]) -> None:
        exchange.coming = coming
        coming.add_done_callback(partial(take, exchange))

    def _take_all(self, exchange: Exchange, received: Any) -> None:
        exchange.body.append(_bytes_of(received))
        self._end(exchange)

    def _take_chunk(self, exchange: Exchange, received: Any) -> None:
        chunk = _bytes_of(received)
        if exchange not in self.pending:  # it came too late
            return
        exchange.size += len(chunk)
        is_too_large = exchange.size > self._limit(exchange)
        if is_too_large or exchange.request.refusal is not None:
            exchange.body.clear()
        elif exchange.request.upload is not None:
            self._store(exchange.request, exchange.request.upload[0], chunk)
        else:
            exchange.body.append(chunk)
        is_unwanted = is_too_large and exchange.request.header("EXPECT")
        most = max(MAX_DISCARDED_BYTES, self._limit(exchange))
        if chunk and exchange.size <= most and not is_unwanted:
            self._read_chunk(exchange)
        else:
            self._end(exchange)

    @staticmethod
    def _open(request: Request, length: int) -> None:
        try:
            request.upload = temporary_file(request), length
        except Refusal as refusal:  # the body is received and discarded
            request.refusal = refusal

    @staticmethod
    def _store(request: Request, file: BinaryIO, chunk: bytes) -> None:
        """Write a part of a file to disk; nothing at its end. Without room, the rest is received and discarded."""
        try:
            with needing_room():
                file.write(chunk) if chunk else file.flush()
        except Refusal as refusal:
            request.refusal = refusal

    def _end(self, exchange: Exchange) -> None:
        if self.pending.take(exchange):
            self._judge(exchange)

    def _end_late(self, exchange: Exchange) -> None:
        exchange.coming.cancel()  # or the server would go on receiving it
        exchange.is_quick = False  # this thread ends the waits of all requests, and answers none
        self._judge(exchange)

    def _judge(self, exchange: Exchange) -> None:
        """Hand a request on, of whose body nothing more is read; with a refusal unless it is whole."""
        exchange.coming = None
        request = exchange.request
        request.body = b"".join(exchange.body)
        exchange.body.clear()
        if max(exchange.size, length_of(request)) > self._limit(exchange):
            self._leave_place(exchange, self._excess(exchange))
            return
        request.has_body = False
        if request.upload is not None:  # its time begins when the file has come
            exchange.arrived = time.monotonic()
            is_complete = exchange.size == length_of(request)
        else:
            is_complete = is_whole(request)
        refusal = request.refusal or (None if is_complete else incomplete(request, self._seconds(exchange)))
        self._leave_place(exchange, refusal)

    def _excess(self, exchange: Exchange) -> Refusal:
        if exchange.places is self.uploads:
            return Refusal("body_too_large", FILE_TOO_LARGE)
        if not may_be_large(exchange.request):
            return Refusal("body_too_large", TOO_LARGE)
        return UnknownSender() if length_of(exchange.request) else Refusal("body_too_large", WITHOUT_LENGTH)

    def _leave_place(self, exchange: Exchange, refusal: Exception | None) -> None:
        following = exchange.places.release(exchange.subject)
        if following is not None:
            self._read(following)
        self._hand_on(exchange, refusal)

    def _hand_on(self, exchange: Exchange, refusal: Exception | None) -> None:
        exchange.request.refusal = refusal
        self.hand_on(exchange)


def _bytes_of(received: Any) -> bytes:
    try:
        return bytes(received.result())
    except (Exception, CancelledError):  # noqa: BLE001  # the connection broke: a body with a length is not whole then
        return b""


def length_of(request: Request) -> int:
    return int(request.environ.get("CONTENT_LENGTH") or 0)


def incomplete(request: Request, seconds: int = BODY_SECONDS) -> Refusal:
    message = f"The body is incomplete. Send the whole request again, within {seconds} seconds."
    if "CONTENT_LENGTH" not in request.environ:
        message = (
            "The body has no Content-Length and is not a JSON object, so its end may be missing. "
            "Send it with a Content-Length."
        )
    return Refusal("bad_request", message, headers={"connection": "close"})  # where the rest may still arrive


def is_whole(request: Request) -> bool:
    """Return whether a body is complete, because Granian takes a broken connection for its end.

    A chunked body has no length to compare: it is complete if it is a JSON object.
    """
    if request.environ.get("CONTENT_LENGTH"):
        return len(request.body) == length_of(request)
    try:
        _decode_object(request.body)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True
