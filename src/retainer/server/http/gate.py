"""The gate: when a request is answered, in which thread, and by when. Accounts share the turns (decision 27).

Nothing waits in a thread before its turn. The thread that ends a request takes the one that has the turn next.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from retainer.background import Background, Chore
from retainer.fairness import FairSemaphore
from retainer.identity.sign_in.throttle import MAX_WAITING as MAX_SIGN_INS
from retainer.kernel.http import Request, Response
from retainer.kernel.waiting import LAST_SECONDS, POLL_SECONDS, Ending
from retainer.server.http.bodies import Bodies
from retainer.server.http.exchange import Exchange, Rest, WaitingExchanges
from retainer.server.http.turns import MAX_WAITING, RELIEVERS, RequestTurns, busy
from retainer.server.http.writer import Writer
from retainer.server.renderers import MAX_PAUSED
from retainer.server.renderers import MAX_WAITING as MAX_RENDERS
from retainer.store.engines import Engine, GroupedSqlite
from retainer.store.engines.base import MAX_PAUSING, MAX_WRITERS_WAITING, of_request
from retainer.store.transaction import READ_SECONDS

REQUEST_SECONDS = 25
"""From the arrival of a request to its response, before proxies and clients give up (contract 1.1)."""
SERVER_THREADS = 6
"""Threads of the HTTP server: one at a time may answer requests, while the others let requests in."""
MAX_KNOWN = 4096
"""Maximum number of credentials whose account is remembered."""
LOOK_SECONDS = 0.25
CREDENTIALS = ("HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_COOKIE")
Report = Callable[[Request | str, BaseException], None]


def _credentials(request: Request) -> int:
    """Return a number for the credentials of a request, so that no key is kept in memory."""
    return hash(tuple(map(request.environ.get, CREDENTIALS)))


class Gate:
    """Admits requests, and answers each in its turn.

    A request waits in the queue of its account, which is remembered by credentials, or else of its network; the
    pipeline authenticates each. `look_up` returns the account whose key or session a request has. Quick ones run in a
    thread of the HTTP server while it has others left, all others in threads of the gate, which may wait for a lock,
    a renderer or a hash. Then another request runs. An `engine` that groups writers has a writer for known accounts.
    """

    def __init__(
        self,
        count: int,
        report: Report,
        ending: Ending,
        look_up: Callable[[Request], int | None] = lambda _: None,
        engine: Engine | None = None,
    ) -> None:
        is_sqlite = isinstance(engine, GroupedSqlite)
        outside = MAX_SIGN_INS + MAX_RENDERS + MAX_PAUSED + MAX_WRITERS_WAITING + MAX_PAUSING + RELIEVERS
        self._threads = ThreadPoolExecutor(count + MAX_WAITING + outside, "request")
        self.turns = RequestTurns(count, self._refuse_turn, self._hand_over, self._threads.submit, is_sqlite=is_sqlite)
        self.pending = WaitingExchanges()
        self.bodies = Bodies(self.pending, self._enter)
        self.look_up, self.report, self.ending = look_up, report, ending
        self.clock = Background("gate", report, [Chore("ending waits of requests", LOOK_SECONDS, self.look)])
        self.writer = None
        if isinstance(engine, GroupedSqlite):
            self.writer = Writer(
                engine, self._answer_for_now, self._end, self._queue, self._refuse_turn, self.turns.is_shared
            )
        self._accounts: OrderedDict[int, int] = OrderedDict()
        self._underway: dict[Exchange, str] = {}
        self._carrying = threading.Lock()

    def admit(self, exchange: Exchange) -> None:
        """Take a request that has arrived, in a thread of the HTTP server. It is answered by its deadline."""
        self._underway[exchange] = exchange.connection
        request = exchange.request
        exchange.subject = self.subject_of(request)
        is_known = isinstance(exchange.subject, int)
        has_credentials = is_known or any(map(request.environ.get, CREDENTIALS))
        if has_credentials:  # a probe of a balancer is nobody whom an account keeps waiting
            self.turns.notice(exchange)
        exchange.account_known = is_known or not has_credentials
        if exchange.account_known:
            self._go_on(exchange)
        else:  # else credentials that are unknown would have the turns and the bodies of each network
            self._queue(exchange, may_carry=True)

    def underway(self) -> set[str]:
        """Return the addresses and ports of the clients that wait for the server, not of those it waits for."""
        return set(self._underway.copy().values())

    def counts(self) -> tuple[int, int, int]:
        """Return how many requests can run, how many do, and how many wait for their turn, to run or to write."""
        count, running, waiting = self.turns.counts()
        return count, running, waiting + (self.writer.queue.waiting if self.writer else 0)

    def subject_of(self, request: Request) -> Hashable:
        account_id = self._accounts.get(_credentials(request))
        return request.networks[-1] if account_id is None else account_id

    def learn(self, request: Request) -> None:
        """Remember whose credentials a request has, or that they have ended."""
        if request.account_id is None:
            self._accounts.pop(_credentials(request), None)
        else:
            self._accounts[_credentials(request)] = request.account_id
            if len(self._accounts) > MAX_KNOWN:
                self._accounts.popitem(last=False)

    def look(self) -> None:
        """End the waits whose time is up."""
        self.pending.look(self._forget_if_waiting)
        self.turns.look()

    def _go_on(self, exchange: Exchange) -> None:
        """Receive the body of a request whose account is known, then let it wait for its turn."""
        if exchange.request.has_body:
            self._underway.pop(exchange)
            self.bodies.receive(exchange)
        else:
            self._enter(exchange)

    def _enter(self, exchange: Exchange) -> None:
        """Let a request whose body has arrived wait for its turn, or answer that it was refused."""
        self._underway[exchange] = exchange.connection
        if exchange.request.refusal is not None:
            self._answer(exchange)
        elif self.writer is None or not self.writer.takes(exchange):
            self._queue(exchange, may_carry=True)
        elif self._takes_turn(exchange, self.writer.queue):
            self._threads.submit(self.writer.run, exchange)

    # Turns.

    def _takes_turn(self, exchange: Exchange, queue: FairSemaphore) -> bool:
        """Return whether a request has its turn at once; else it waits."""
        exchange.queue = queue
        until = min(self.turns.wait_end(), exchange.arrived + REQUEST_SECONDS - READ_SECONDS)
        self.pending.add(exchange, until, self._end_wait_for_turn)
        return queue.enter(exchange.subject, exchange)

    def _queue(self, exchange: Exchange, *, may_carry: bool = False) -> None:
        """Let a request run in its turn: in this thread, if it may carry it and the turn is free."""
        if not self._takes_turn(exchange, self.turns.running):
            self.turns.relieve()
            return
        if not may_carry or not (exchange.is_quick or not exchange.account_known):
            self._hand_over(exchange)
            return
        if not self._carrying.acquire(blocking=False):
            self._hand_over(exchange)
            return
        try:
            self._serve(exchange, is_carrier=True)
        finally:
            self._carrying.release()

    def _hand_over(self, exchange: Exchange | None) -> None:
        """Let a request that has its turn run in another thread."""
        if exchange is not None:
            self._threads.submit(self._serve, exchange)

    def _serve(self, exchange: Exchange | None, *, is_carrier: bool = False) -> None:
        """Answer a request that has its turn, and then those that get it after it."""
        while exchange is not None:
            self.pending.take(exchange)
            self.turns.begin(exchange.subject)
            of_request.at = exchange.arrived + REQUEST_SECONDS
            is_identified = exchange.account_known
            if is_identified:
                self._answer(exchange)
            else:
                self._identify(exchange)
            of_request.reset()
            following = self.turns.end()
            if not is_identified:
                self._hand_over(following)
                self._go_on(exchange)
                return
            if exchange.rest is not None and exchange.is_resting:
                self._park(exchange, exchange.rest)
            if is_carrier and following is not None and not following.is_quick:
                self._hand_over(following)
                return
            exchange = following

    def _identify(self, exchange: Exchange) -> None:
        exchange.account_known = True
        request = exchange.request
        try:
            request.account_id = self.look_up(request)
        except Exception:  # noqa: BLE001  # the request will meet the same error, and its answer says so
            return
        self.learn(request)
        exchange.subject = self.subject_of(request)

    def _answer(self, exchange: Exchange) -> None:
        """Answer a request; one that waits for events keeps what it would be answered with."""
        response, place = self._response_to(exchange), exchange.request.place
        if place is not None and place.is_waiting:
            exchange.rest = Rest(place, response)
        else:
            self._end(exchange, response)

    def _answer_for_now(self, exchange: Exchange) -> Response:
        """Return the response to a request that writes, which is not sent before the commit."""
        self.pending.take(exchange)
        of_request.at = exchange.arrived + REQUEST_SECONDS
        exchange.request.is_provisional = True
        try:
            return self._response_to(exchange)
        finally:
            of_request.reset()

    def _response_to(self, exchange: Exchange) -> Response:
        request = exchange.request
        try:
            response = exchange.answer(request)
        except BaseException as error:  # noqa: BLE001  # else the client would wait for ever
            self.report(request, error)
            response = Response(500, [])
        if request.refusal is None and (request.account_id is None) == isinstance(exchange.subject, int):
            self.learn(request)
        return response

    def _end(self, exchange: Exchange, response: Response) -> None:
        try:
            if exchange.request.log is not None:
                exchange.request.log()
                exchange.request.log = None  # it has the request, whose body would stay until a collection
            self._forget(exchange)
            exchange.send(response, self.ending)
        except Exception as error:  # noqa: BLE001  # else the turn would never be handed on
            self.report(exchange.request, error)

    def _forget(self, exchange: Exchange) -> None:
        self._underway.pop(exchange, None)
        exchange.unwatch()
        if exchange.request.place is not None:
            exchange.request.place.leave()

    # Waits that end.

    def _park(self, exchange: Exchange, rest: Rest) -> None:
        """Let a request that has found no event wait for one."""
        last = min(rest.place.deadline, exchange.arrived + REQUEST_SECONDS - LAST_SECONDS)
        self.pending.add(exchange, min(last, time.monotonic() + POLL_SECONDS), partial(self._look_again, last, rest))
        exchange.watch_client(self._forget_if_waiting)
        if rest.place.rest(partial(self._wake, exchange, rest)):
            self._wake(exchange, rest)

    def _wake(self, exchange: Exchange, rest: Rest) -> None:
        if self.pending.take(exchange):
            exchange.request.began += rest.place.end_rest()
            self._queue(exchange)

    def _look_again(self, last: float, rest: Rest, exchange: Exchange) -> None:
        """Let a request look for events of other processes, or answer it with what it has found, if its time is up."""
        exchange.request.began += rest.place.end_rest()
        if self.ending.has_begun() or time.monotonic() >= last:
            self._end(exchange, rest.found)
        else:
            self._queue(exchange)

    def _end_wait_for_turn(self, exchange: Exchange) -> None:
        if self._leave_queue(exchange):
            self._refuse_turn(exchange)

    def _leave_queue(self, exchange: Exchange) -> bool:
        return exchange.queue is not None and exchange.queue.leave(exchange.subject, exchange)

    def _refuse_turn(self, exchange: Exchange) -> None:
        """Refuse a request that gets no turn; one that could not look again is answered with what it has found."""
        self.pending.take(exchange)
        if exchange.rest is not None:
            self._end(exchange, exchange.rest.found)
        else:
            exchange.request.refusal = busy()
            self._answer(exchange)

    def _forget_if_waiting(self, exchange: Exchange) -> None:
        """Give the places of a request back whose client has hung up while it waited."""
        if self.pending.take(exchange) and (exchange.is_resting or self._leave_queue(exchange)):
            self._forget(exchange)
