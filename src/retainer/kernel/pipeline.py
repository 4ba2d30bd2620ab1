"""The stages of a request in order; each status is decided here."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from retainer.errors import OF_THE_SERVER, Refusal, invalid
from retainer.kernel import batch as batches
from retainer.kernel import etag, idempotency, representations
from retainer.kernel.answers import CONTENT, Feed, encode
from retainer.kernel.batch import Batch, BatchResult
from retainer.kernel.caller import Caller
from retainer.kernel.http import Request, Response
from retainer.kernel.limits import Allowance, SlidingWindow, hit_address
from retainer.kernel.paging import FeedPage
from retainer.kernel.representations import RunApart
from retainer.kernel.resource import Bound, Call, Operation
from retainer.kernel.routes import Routes
from retainer.kernel.waiting import WaitingRequests, preferred_seconds
from retainer.store import retries
from retainer.store.engines.base import TransientConflict, Unavailable
from retainer.store.tx import ActorChanged, Store, Tx

COMMON_HEADERS = [
    ("cache-control", "private, no-cache"),
    ("vary", "Authorization, X-Api-Key, Accept, Accept-Encoding"),
    ("x-content-type-options", "nosniff"),
]
NO_ATTEMPT = nullcontext()
DOCS_OF_ERRORS = "/docs/errors"
LogRequest = Callable[[Request, Response, Caller | None, Operation | None, Refusal | None], None]
Report = Callable[[Request, Exception], None]
"""Logs an internal error of a request."""


@dataclass(slots=True)
class Pipeline:
    """The stages of a request, with what they need."""

    store: Store
    routes: Routes
    limiter: SlidingWindow
    log_request: LogRequest
    report: Report
    authenticate: Callable[[Request, Store], Caller]
    admit: Callable[[Caller], None]
    note_key_use: Callable[[int, int, str | None], None]
    waiting: WaitingRequests
    run_apart: RunApart
    running: idempotency.KeysInUse = field(default_factory=idempotency.KeysInUse)

    def answer(self, request: Request) -> Response:
        """Take a request through all stages; each may refuse it."""
        caller = allowance = operation = refusal = None
        try:
            request.check()  # 400, 413, 501, 503
            caller = self.authenticate(request, self.store)  # 401
            request.account_id = caller.account_id
            self.admit(caller)  # 402, 403 API off
            allowance = self.hit(caller, 0 if request.is_counted else 1)
            request.is_counted = True
            if allowance.retry_after is not None:
                allowance.admit()  # 429
            self.note_key_use(caller.account_id, caller.key_id, request.shown_address)
            methods, ids = self.routes.find(request)  # 404
            if request.method == "OPTIONS":
                response = Response(204, [("allow", methods.allow)])
            else:
                bound = methods.get(request.method)  # 405
                operation = bound.operation
                call = prepare(request, caller, allowance, bound, ids)  # 403 missing scope, 422 query
                response = self.perform(call)
                allowance = call.allowance
        except Exception as error:  # noqa: BLE001  # every error becomes a response of the catalogue
            refusal = to_refusal(error, request, self.report)
            response, allowance, refusal = answer_refusal(refusal, request, self.limiter, allowance)
        add_headers(response, request, allowance)
        if request.is_provisional:
            request.log = partial(self.log_request, request, response, caller, operation, refusal)
        else:
            self.log_request(request, response, caller, operation, refusal)
        return response

    def hit(self, caller: Caller, requests: int) -> Allowance:
        return self.limiter.hit(f"key:{caller.key_id}", caller.requests_per_minute, amount=requests)

    def perform(self, call: Call) -> Response:
        """Run the operation in its transaction, which only commits here: 404, 412, 400, 415, 422, 409."""
        request, operation = call.request, call.bound.operation
        if not operation.writes:
            return self.follow(call) if isinstance(operation.answer, Feed) else self.read(call)
        call.read(request.body)
        batch = batches.read_batch(call.sent, self.routes.is_batch) if operation.batched and call.sent else None
        content = call.sent.fields if call.sent and not call.sent.refusal else request.body
        attempt = idempotency.read_attempt(request, call.caller.key_id, content, self.running)
        with attempt or NO_ATTEMPT:
            if batch is not None and not batch.atomic:
                return self.perform_apart(call, attempt, batch)
            if batch is not None:
                stored = self.replay(call, attempt, batch) if attempt else None
                if stored is not None:
                    return stored
                call.perform = self.perform_together
                call.seconds = batches.ATOMIC_SECONDS if self.store.engine.has_one_writer else None
                call.allowance = self.hit(call.caller, len(batch.operations))  # each counts as a request, or none
                call.allowance.admit()
            if attempt is None:
                return self.write(call, lambda tx: run(tx, call))
            return self.write(call, lambda tx: attempt.run_or_replay(tx, lambda: run(tx, call)))

    def perform_apart(self, call: Call, attempt: idempotency.Attempt | None, batch: Batch) -> Response:
        """Perform each operation of a batch like a request of its own. Raises `idempotency_key_reused`.

        The batch takes its key first, so that no other request can have it; the same batch continues.
        """
        if attempt:
            self.write(call, attempt.take)
        performer = partial(batches.perform_apart, call.request, self.answer, refuse)
        response = call.bound.operation.answer.respond(call.bound.operation.handler(batch, performer), call.request)
        call.allowance = self.hit(call.caller, 0)
        return response

    def replay(self, call: Call, attempt: idempotency.Attempt, batch: Batch) -> Response | None:
        """Return the stored response to an atomic batch, which is not charged and does not wait for its turn.

        Raises `missing_scope` if the key has lost the scope of an operation since.
        """
        with self.store.begin(call.caller, write=False) as tx:
            stored = attempt.replay(tx)
        for position, each in enumerate(batch.operations if stored else ()):
            request = batches.request_of(call.request, each, request_id=call.request.id)
            try:
                call.caller.require_scope(self.routes.find(request)[0].get(request.method).operation.scope)
            except Refusal as refusal:
                raise batches.of_operation(refusal, position, each) from refusal
        return stored

    def perform_together(self, call: Call, tx: Tx, batch: Batch) -> list[BatchResult]:
        """Perform the operations of an atomic batch in its transaction. Raises the refusal of the first that fails."""
        results, tx.billable_left = [], batches.MAX_BILLED
        for position, each in enumerate(batch.operations):
            request = batches.request_of(call.request, each, request_id=call.request.id)
            try:
                methods, ids = self.routes.find(request)
                part = prepare(request, call.caller, call.allowance, methods.get(request.method), ids)
                part.read(request.body)
                results.append(batches.result_of(request, run(tx, part)))
            except Refusal as refusal:
                raise batches.of_operation(refusal, position, each) from refusal
        return results

    def read(self, call: Call) -> Response:
        """Run a reading operation; a form other than JSON is finished after the transaction."""
        operation, request = call.bound.operation, call.request
        chosen = call.form
        with self.store.begin(call.caller, write=False) as tx:
            if chosen is None:
                if request.query:
                    refuse_parameters_of_files(call)
                result = select(tx, call) if call.selection else operation.call(tx, call)
                return operation.answer.respond(result, request)
            tx.snapshot()  # more than the record is read
            record: Any = operation.call(tx, call)
            prepared = chosen.prepare(tx, record, call.query[0])
        if etag.matches(request.header("IF_NONE_MATCH"), prepared.tag):
            return Response(304, [("etag", prepared.tag)])
        file = prepared.finish(call.caller.account_id, self.run_apart)
        return Response(200, [*file.headers(chosen.media_type), ("etag", prepared.tag)], file.content, file.download)

    def follow(self, call: Call) -> Response:
        """Run an operation that lists what is new. If there is nothing, the request waits if its client prefers that.

        Then it goes through all stages again: its key may have been revoked.
        """
        request = call.request
        if request.place is None and (seconds := preferred_seconds(request.header("PREFER"))):
            request.place = self.waiting.place(
                call.caller.account_id, seconds
            )  # before it looks, so that it misses nothing
        with self.store.begin(call.caller, write=False) as tx:
            result = cast("FeedPage[object]", call.bound.operation.call(tx, call))
        response = call.bound.operation.answer.respond(result, request)
        if request.place is not None:
            request.place.is_waiting = request.is_provisional = not result.data
            response.headers.append(("preference-applied", f"wait={request.place.seconds}"))
        return response

    def write(self, call: Call, work: Callable[[Tx], Response]) -> Response:
        """Do the work of a writing operation in one transaction; again if a conflict has undone it."""

        def prepare(conflict: TransientConflict) -> Caller:
            if isinstance(conflict, ActorChanged):
                call.caller = self.caller_now(call)
            call.read(call.request.body)  # rules may have changed the fields
            return call.caller

        def named(tx: Tx) -> Response:
            tx.request_id = call.request.id
            return work(tx)

        return retries.write(self.store, call.caller, named, seconds=call.seconds, prepare=prepare)

    def caller_now(self, call: Call) -> Caller:
        """Return the current caller of a write that had to wait. Raises if the caller may not write any more."""
        caller = self.authenticate(call.request, self.store)
        self.admit(caller)
        caller.require_scope(call.bound.operation.scope)
        return caller


def prepare(request: Request, caller: Caller, allowance: Allowance, bound: Bound, ids: dict[str, str]) -> Call:
    """Return the call of an operation. Raises `missing_scope`, and the refusals of the query."""
    operation, selectable = bound.operation, bound.selectable
    caller.require_scope(operation.scope)
    query, page, selection = bound.read_query(request)
    environ = request.environ
    if not environ.keys().isdisjoint(etag.HEADERS):
        etag.check_honoured(environ, operation.preconditions, writes=operation.writes)
    accept = environ.get("HTTP_ACCEPT")
    form = representations.negotiate(operation.representations, bound.media_types_of_others, accept) if accept else None
    if selection and selectable:
        for name in selection.include:
            if name in selectable.relations:
                caller.require_scope(selectable.relations[name][1].scope, f"include={name}")
    return Call(request, caller, allowance, bound, ids, (query, page), form, selection)


def select(tx: Tx, call: Call) -> object:
    tx.snapshot()
    operation, selectable, selection = call.bound.operation, call.bound.selectable, call.selection
    result = operation.call(tx, call)
    if selectable is None or selection is None:
        return result
    return operation.answer.select(tx, result, selectable, selection)


def run(tx: Tx, call: Call) -> Response:
    result = call.bound.operation.call(tx, call)
    tx.raise_errors()
    return call.bound.operation.answer.respond(result, call.request)


def refuse_parameters_of_files(call: Call) -> None:
    """Raise `validation_failed` for parameters that only other forms than JSON have."""
    query, offered = call.query[0], " or ".join(form.media_type for form in call.bound.operation.representations)
    sent = [name for name in query.for_files if getattr(query, name) is not None]
    if sent:
        raise invalid({name: [f"Is only for other forms than JSON. Send Accept: {offered}."] for name in sent})


def refuse(refusal: Refusal, request: Request) -> Response:
    members: dict[str, object] = {"message": refusal.message, "code": refusal.code, "request_id": request.id}
    members |= {"docs_url": f"{request.origin}{DOCS_OF_ERRORS}#{refusal.code}", **refusal.members}
    return Response(refusal.status, [CONTENT, *refusal.headers.items()], encode(members))


def to_refusal(error: Exception, request: Request, report: Report) -> Refusal:
    """Return the refusal for an exception, and log it unless it is one."""
    if isinstance(error, Refusal):
        # The frames that have raised it hold it, in cycles, and with it the request and its body.
        error.__traceback__ = error.__context__ = error.__cause__ = None
        return error
    report(request, error)
    if isinstance(error, Unavailable):
        advice = "Try again in a few seconds; an Idempotency-Key makes that safe for writes."
        return Refusal("unavailable", f"{error.reason} {advice}", headers={"Retry-After": str(error.retry_seconds)})
    return Refusal("server_error", f"Internal error. Report the request id {request.id} to the operator.")


def answer_refusal(
    refusal: Refusal, request: Request, limiter: SlidingWindow, allowance: Allowance | None
) -> tuple[Response, Allowance, Refusal]:
    """Return the response, the window of the key or else of the address, and the refusal.

    An address is charged each refusal but internal errors, until the refusal is that of its limit.
    """
    if allowance is None:
        allowance = hit_address(limiter, request.address, charge=refusal.status not in OF_THE_SERVER)
        try:
            allowance.admit()
        except Refusal as limited:
            refusal = limited
    return refuse(refusal, request), allowance, refusal


def add_headers(
    response: Response, request: Request, allowance: Allowance, fixed: list[tuple[str, str]] = COMMON_HEADERS
) -> None:
    headers = response.headers
    headers += [
        ("x-ratelimit-limit", str(allowance.limit)),
        ("x-ratelimit-remaining", str(allowance.remaining)),
        ("x-ratelimit-reset", str(allowance.reset)),
        ("x-request-id", request.id),
        *fixed,
    ]
    if request.has_body:  # the unread body makes the connection unusable
        headers.append(("connection", "close"))
    if response.status not in {204, 304}:
        headers.append(("content-length", str(response.size)))
