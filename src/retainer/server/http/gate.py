"""The gate: a request's body, its turn to run, and its deadline. Each account has its share of both (decision 27)."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from retainer.errors import Refusal
from retainer.fairness import FairSemaphore
from retainer.identity.sign_in.throttle import MAX_WAITING as MAX_SIGN_INS
from retainer.kernel.http import Request
from retainer.kernel.waiting import WAIT_SLOTS
from retainer.server.renderers import MAX_PAUSED
from retainer.server.renderers import MAX_WAITING as MAX_RENDERS
from retainer.store.engines.base import MAX_PAUSING, MAX_WRITERS_WAITING, of_request
from retainer.store.transaction import READ_SECONDS
from retainer.values.decoding import decoder

REQUEST_SECONDS = 25
"""From the arrival of a request to its response, before proxies and clients give up (contract 1.1)."""
TURN_SECONDS = 10
"""How long a request waits for its turn. After that it is never executed."""
BODY_SECONDS = 10
"""From the arrival of a request to the end of its body."""
SHARE = 2
"""How many requests of an account run at the same time: with more of them, others would wait for the processor."""
MAX_WAITING = 384
"""Maximum number of requests that wait for their turn, each in a thread."""
BODIES, ANONYMOUS_BODIES = 256, 32
"""Maximum number of awaited bodies, of accounts and of senders without one; also the MiB that they may take."""
MAX_KNOWN = 4096
"""Maximum number of credentials whose account is remembered."""
CREDENTIALS = ("HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_COOKIE")
RETRY = {"Retry-After": "5"}

_decode_object = decoder(dict[str, msgspec.Raw])


def _credentials(request: Request) -> int:
    """Return a number for the credentials of a request, so that no key is kept in memory."""
    return hash(tuple(map(request.environ.get, CREDENTIALS)))


class Underway(NamedTuple):
    """A request that is being received or answered."""

    peer: str
    awaits_body: bool
    at: float
    """When the last of it arrived, on the monotonic clock; until when it may arrive, if it `awaits_body`."""


class Turn(threading.local):
    """The turn of the request that a thread answers."""

    subject: Hashable = None
    is_held = False


class Gate:
    """Admits requests: at most `count` run at the same time, at most `SHARE` of one account.

    More threads would only wait for each other, and each needs a connection to the database.
    A request waits in the queue of its account, which is remembered by credentials, or else of its network; the
    pipeline authenticates each. `look_up` returns the account whose key or session a request has.
    """

    def __init__(self, count: int, look_up: Callable[[Request], int | None] = lambda _: None) -> None:
        self.running = FairSemaphore(count, min(SHARE, count), MAX_WAITING)
        self.bodies = FairSemaphore(BODIES, BODIES // 4, BODIES)
        self.anonymous_bodies = FairSemaphore(ANONYMOUS_BODIES, ANONYMOUS_BODIES // 4, BODIES)
        self.look_up = look_up
        self._accounts: OrderedDict[int, int] = OrderedDict()
        self._turn = Turn()
        self._underway: dict[int, Underway] = {}

    def admit(self, request: Request) -> None:
        """Receive the body of a request and wait for its turn. The caller answers it by its deadline, and calls `end`.

        A request that is not admitted has the refusal with which it is answered.
        """
        arrived, turn = time.monotonic(), self._turn
        turn.subject = self.subject_of(request)
        self._note(request, arrived)
        of_request.at, of_request.left = arrived + REQUEST_SECONDS, self.left
        try:
            self._identify(request)
            if request.has_body:
                self._receive(request, turn.subject, arrived + BODY_SECONDS)
            self._enter()
        except Refusal as refusal:
            request.refusal = refusal

    def end(self, request: Request) -> None:
        """Pass the turn of a request on, and remember whose credentials it has, or that they have ended."""
        turn = self._turn
        if turn.is_held:
            turn.is_held = False
            self.running.release(turn.subject)
        self._underway.pop(id(request), None)
        of_request.reset()
        if request.refusal is None and (request.account_id is None) == isinstance(turn.subject, int):
            self.learn(request)

    def subject_of(self, request: Request) -> Hashable:
        account_id = self._accounts.get(_credentials(request))
        return request.networks[-1] if account_id is None else account_id

    def learn(self, request: Request) -> None:
        if request.account_id is None:
            self._accounts.pop(_credentials(request), None)
        else:
            self._accounts[_credentials(request)] = request.account_id
            if len(self._accounts) > MAX_KNOWN:
                self._accounts.popitem(last=False)

    @contextmanager
    def left(self, *, returns_at_once: bool = False) -> Iterator[None]:
        """Let others run during a block that waits for something else than a processor.

        Raises `unavailable` if there is no turn for the rest of the request. A request that `returns_at_once` needs
        none: it holds what all others wait for.
        """
        if not self._turn.is_held:  # a command, or a test without a server
            yield
            return
        self._leave()
        try:
            yield
        finally:
            if returns_at_once:
                self.running.take(self._turn.subject)
                self._turn.is_held = True
            else:
                self._enter()

    def underway(self) -> list[Underway]:
        return list(self._underway.values())

    def _note(self, request: Request, at: float, *, awaits_body: bool = False) -> None:
        self._underway[id(request)] = Underway(request.environ.get("REMOTE_ADDR", ""), awaits_body, at)

    def _identify(self, request: Request) -> None:
        """Find out the account of unknown credentials, which would have the turns and the bodies of each network."""
        if not isinstance(self._turn.subject, int) and any(map(request.environ.get, CREDENTIALS)):
            self._enter()
            try:
                request.account_id = self.look_up(request)
            except Exception:  # noqa: BLE001  # the request will meet the same error, and its answer says so
                return
            finally:
                self._leave()
            self.learn(request)
            self._turn.subject = self.subject_of(request)

    def _enter(self) -> None:
        turn = self._turn
        if not self.running.acquire(turn.subject, min(TURN_SECONDS, of_request.remaining() - READ_SECONDS)):
            message = (
                "The server is busy, and this request was not executed. "
                "Send fewer requests at the same time, and try again in 5 seconds."
            )
            raise Refusal("unavailable", message, headers=RETRY)
        turn.is_held = True

    def _leave(self) -> None:
        self._turn.is_held = False
        self.running.release(self._turn.subject)

    def _receive(self, request: Request, subject: Hashable, until: float) -> None:
        """Read the whole body. Raises `bad_request` if it is incomplete, `unavailable` if too many are awaited."""
        bodies = self.bodies if isinstance(subject, int) else self.anonymous_bodies
        if not bodies.acquire(subject, BODY_SECONDS):
            message = "Too many requests wait for their bodies. Send each body without pauses, and try again."
            raise Refusal("unavailable", message, headers=RETRY)
        self._note(request, until, awaits_body=True)
        try:
            request.receive()
        finally:
            self._note(request, time.monotonic())
            bodies.release(subject)
        if not is_whole(request):
            message = f"The body is incomplete. Send the whole request again, within {BODY_SECONDS} seconds."
            if "CONTENT_LENGTH" not in request.environ:
                message = (
                    "The body has no Content-Length and is not a JSON object, so its end may be missing. "
                    "Send it with a Content-Length."
                )
            raise Refusal("bad_request", message, headers={"connection": "close"})  # where the rest may still arrive


def is_whole(request: Request) -> bool:
    """Return whether a body is complete, because Granian takes a broken connection for its end.

    A chunked body has no length to compare: it is complete if it is a JSON object.
    """
    length = request.environ.get("CONTENT_LENGTH")
    if length:
        return len(request.body) == int(length)
    try:
        _decode_object(request.body)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def thread_count(running: int) -> int:
    """Return the number of threads with which one is always free, to refuse a request at least."""
    outside = WAIT_SLOTS + MAX_SIGN_INS + MAX_RENDERS + MAX_PAUSED + MAX_WRITERS_WAITING + MAX_PAUSING
    return 2 * running + MAX_WAITING + 3 * BODIES + ANONYMOUS_BODIES + outside
