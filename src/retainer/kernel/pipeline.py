"""The stages of a request in their order; each status is decided here."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from retainer.errors import Refusal
from retainer.kernel import etag, idempotency
from retainer.kernel.caller import Caller
from retainer.kernel.http import Request, Response
from retainer.kernel.limits import Allowance, Limiter, hit_address
from retainer.kernel.paging import Paged
from retainer.kernel.resource import Call, Operation, Routes, WithMeta
from retainer.store.engines import TransientConflict, Unavailable
from retainer.store.tx import ActorChanged, Store, Tx
from retainer.values.records import Record

encode = msgspec.json.Encoder().encode

CONTENT = ("content-type", "application/json; charset=utf-8")
COMMON_HEADERS = [
    ("cache-control", "private, no-cache"),
    ("vary", "Authorization, X-Api-Key, Accept-Encoding"),
    ("x-content-type-options", "nosniff"),
]
DOCS_OF_ERRORS = "/docs/errors"
RETRIES = 3
"""So many times a write is tried again when the database undid it because of another one; it was not yet answered."""
RETRY_SECONDS = 5
"""After that it is tried no more: with the last try, which may wait and work, it is answered within half a minute."""


class Access(Protocol):
    """Who may call."""

    def authenticate(self, request: Request, store: Store) -> Caller:
        """Return the caller whose key the request carries. Raises the 401s."""

    def admit(self, caller: Caller) -> None:
        """Refuse when the account's plan does not include the API, or when it is switched off."""


class RequestLog(Protocol):
    """Where each request and each error of ours is noted."""

    def request(self, request: Request, response: Response, caller: Caller | None, operation: Operation | None) -> None:
        """Note how a request was answered."""

    def report(self, what: Request | str, error: Exception) -> None:
        """Note an error of ours, or that the database cannot be used."""


@dataclass(slots=True)
class Pipeline:
    """What the stages of a request work with."""

    store: Store
    routes: Routes
    limiter: Limiter
    log: RequestLog
    access: Access
    note_key_use: Callable[[Caller, Request], None]
    read_body: Callable[[Request, int], bytes]

    def answer(self, request: Request) -> Response:
        """Take one request through every stage; any stage may refuse it."""
        caller = allowance = operation = None
        try:
            request.check()  # 400, 413
            caller = self.access.authenticate(request, self.store)  # 401
            self.access.admit(caller)  # 402, 403 API off
            allowance = self.limiter.hit(f"key:{caller.key_id}", caller.requests_per_minute)
            allowance.admit()  # 429
            self.note_key_use(caller, request)
            methods, ids = self.routes.find(request)  # 404
            if request.method == "OPTIONS":
                response = Response(204, [("allow", methods.allow)])
            else:
                operation = methods.get(request.method)  # 405
                caller.require_scope(operation.scope)  # 403 missing scope
                query = operation.read_query(request)  # 422
                response = self.perform(Call(request, caller, allowance, operation, ids, query))
        except Exception as error:  # noqa: BLE001  # the last resort: whatever it is, it leaves as one of ours
            refusal = to_refusal(error, request, self.log)
            if allowance is None:
                allowance, refusal = limit_anonymous(request, refusal, self.limiter)
            response = refuse(refusal, request)
        add_headers(response, request, allowance)
        self.log.request(request, response, caller, operation)
        return response

    def perform(self, call: Call) -> Response:
        """Run the operation in its transaction, which commits here and nowhere else: 404, 412, 400, 415, 422, 409."""
        request, operation = call.request, call.operation
        if not operation.writes:
            with self.store.begin(call.caller, write=False) as tx:
                return reply(operation, operation.call(tx, call), request)
        body = self.read_body(request, call.caller.account_id)
        call.read(body)
        readable = call.sent is not None and call.sent.refusal is None
        attempt = idempotency.read_attempt(
            request, call.caller.key_id, call.sent.fields if call.sent and readable else body
        )
        with attempt or nullcontext():
            began = time.monotonic()
            for turn in range(RETRIES):
                try:
                    return self.write(call, attempt, may_repeat=turn == 0)
                except ActorChanged:
                    call.caller = self.caller_now(call)
                except TransientConflict:
                    if time.monotonic() - began > RETRY_SECONDS:
                        raise
                call.read(body)  # rules may have changed what was read
            return self.write(call, attempt, may_repeat=False)

    def caller_now(self, call: Call) -> Caller:
        """Return who the caller of a write is after it has waited. Raises the refusals of one that may not write."""
        caller = self.access.authenticate(call.request, self.store)
        self.access.admit(caller)
        caller.require_scope(call.operation.scope)
        return caller

    def write(self, call: Call, attempt: idempotency.Attempt | None, *, may_repeat: bool) -> Response:
        """Run a writing operation in a transaction, once. Raises TransientConflict when the same again may succeed."""

        def run(tx: Tx) -> Response:
            result = call.operation.call(tx, call)
            tx.raise_errors()
            return reply(call.operation, result, call.request)

        with self.store.begin(call.caller, write=True, may_repeat=may_repeat) as tx:
            tx.if_match = call.request.header("IF_MATCH")
            return attempt.run_or_replay(tx, lambda: run(tx)) if attempt else run(tx)


def reply(operation: Operation, result: Any, request: Request) -> Response:
    """An operation's result as a response."""
    if result is None:
        return Response(204, [])
    data = encode(result)
    if isinstance(result, Paged):
        return Response(200, [CONTENT], data)
    headers, record, meta = [CONTENT], result, b""
    if isinstance(result, WithMeta):
        record, meta = result.data, b',"meta":%b' % encode(result.meta)
        data = encode(record)
    table = operation.resource.table
    if isinstance(record, Record) and table is not None:
        tag = etag.compute_for_record(table, record, data)
        if not operation.writes and etag.matches(request.header("IF_NONE_MATCH"), tag):
            return Response(304, [("etag", tag)])
        headers.append(("etag", tag))
        if operation.created:
            place = operation.resource.location or request.path
            headers.append(("location", f"{request.base_url}{place}/{record.id}"))
    return Response(201 if operation.created else 200, headers, b'{"data":%b%b}' % (data, meta))


def refuse(refusal: Refusal, request: Request) -> Response:
    """A refusal as a response: one shape, whatever the reason."""
    members = {"message": refusal.message, "code": refusal.code, "request_id": request.id}
    members |= {"docs_url": f"{request.origin}{DOCS_OF_ERRORS}#{refusal.code}", **refusal.members}
    return Response(refusal.status, [CONTENT, *refusal.headers.items()], encode(members))


def to_refusal(error: Exception, request: Request, log: RequestLog) -> Refusal:
    """The refusal that an exception means to the caller."""
    if isinstance(error, Refusal):
        return error
    log.report(request, error)
    if isinstance(error, Unavailable):
        advice = "Try again in a few seconds; an Idempotency-Key makes that safe for writes."
        return Refusal("unavailable", f"{error.reason} {advice}", headers={"Retry-After": "2"})
    return Refusal("server_error", f"Something went wrong here. Report the request id {request.id} to the operator.")


def limit_anonymous(request: Request, refusal: Refusal, limiter: Limiter) -> tuple[Allowance, Refusal]:
    """The figures of a caller who did not get in; a refusal is charged to the address, an error of ours is not."""
    allowance = hit_address(limiter, request.address, charge=refusal.status < 500)
    try:
        allowance.admit()
    except Refusal as limited:
        return allowance, limited
    return allowance, refusal


def add_headers(
    response: Response, request: Request, allowance: Allowance, fixed: list[tuple[str, str]] = COMMON_HEADERS
) -> None:
    """Add the headers that every response carries."""
    headers = response.headers
    headers += [
        ("x-ratelimit-limit", str(allowance.limit)),
        ("x-ratelimit-remaining", str(allowance.remaining)),
        ("x-ratelimit-reset", str(allowance.reset)),
        ("x-request-id", request.id),
        *fixed,
    ]
    if request.has_body:  # it stays unread, so that the connection cannot be used again
        headers.append(("connection", "close"))
    if response.status not in {204, 304}:
        headers.append(("content-length", str(len(response.body))))
