"""The life of a request: every stage in its order (contract 1.1), every status in one place."""

from contextlib import nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from retainer.domain.limits import ADDRESS_CEILING, Allowance
from retainer.errors import Refusal
from retainer.kernel import access, etag, idempotency
from retainer.kernel.body import Sent
from retainer.kernel.http import Request, Response
from retainer.kernel.paging import Paged
from retainer.kernel.resource import Call, Operation, Told
from retainer.store.engines import Unavailable
from retainer.store.records import Record
from retainer.store.tx import Tx

if TYPE_CHECKING:
    from retainer.app import App

encode = msgspec.json.Encoder().encode

STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
CONTENT = ("content-type", "application/json; charset=utf-8")
FIXED = [
    ("cache-control", "private, no-cache"),
    ("vary", "Authorization, X-Api-Key, Accept-Encoding"),
    ("x-content-type-options", "nosniff"),
]


def answer(request: Request, app: "App") -> Response:
    """Take one request through every stage; any stage may refuse it."""
    caller = allowance = operation = None
    try:
        request.check()  # 400, 413
        caller = access.authenticate(request, app.store)  # 401
        access.admit(caller)  # 402, 403 API off
        allowance = app.window.take(f"key:{caller.key_id}", caller.ceiling)
        allowance.admit()  # 429
        app.keys_used.note(caller.key_id)
        methods, ids = app.routes.find(request)  # 404
        if request.method == "OPTIONS":
            response = Response(204, [("allow", methods.allow)])
        else:
            operation = methods.of(request.method)  # 405
            access.require(caller, operation.scope)  # 403 missing scope
            query = operation.read_query(request)  # 422
            call = Call(request, caller, allowance, operation, ids, query)
            response = perform(call, app)  # 404, 412, 400, 413, 415, 422, 409
    except Exception as error:  # noqa: BLE001  # the last resort: whatever it is, it leaves as one of ours
        refusal = explain(error, request, app)
        if allowance is None:
            allowance, refusal = of_stranger(request, refusal, app)
        response = refuse(refusal, request)
    finish(response, request, allowance)
    app.log.request(request, response, caller, operation)
    return response


def perform(call: Call, app: "App") -> Response:
    """Run the operation in its transaction, which commits here and nowhere else."""
    request, operation = call.request, call.operation
    if not operation.writes:
        with app.store.begin(call.caller, write=False) as tx:
            return reply(operation, operation.call(tx, call), request)
    body = app.bodies.read(request, call.caller.account_id)
    if operation.body is not None:
        call.sent = Sent(request, body, operation.body, "Create" if operation.created else "Update")
    readable = call.sent is not None and call.sent.refusal is None
    attempt = idempotency.attempt(request, call.caller.key_id, call.sent.given if call.sent and readable else body)

    def run(tx: Tx) -> Response:
        result = operation.call(tx, call)
        tx.refuse_faults()
        return reply(operation, result, request)

    with attempt or nullcontext(), app.store.begin(call.caller, write=True) as tx:
        tx.if_match = request.header("IF_MATCH")
        return attempt.once(tx, lambda: run(tx)) if attempt else run(tx)


def reply(operation: Operation, result: Any, request: Request) -> Response:
    """An operation's result as a response."""
    if result is None:
        return Response(204, [])
    data = encode(result)
    if isinstance(result, Paged):
        return Response(200, [CONTENT], data)
    headers, record, meta = [CONTENT], result, b""
    if isinstance(result, Told):
        record, meta = result.data, b',"meta":%b' % encode(result.meta)
        data = encode(record)
    if isinstance(record, Record):
        tag = etag.of(data)
        if not operation.writes and etag.matches(request.header("IF_NONE_MATCH"), tag):
            return Response(304, [("etag", tag)])
        headers.append(("etag", tag))
        if operation.created:
            place = operation.resource.made_at or request.path
            headers.append(("location", f"{request.base_url}{place}/{record.id}"))
    return Response(201 if operation.created else 200, headers, b'{"data":%b%b}' % (data, meta))


def refuse(refusal: Refusal, request: Request) -> Response:
    """A refusal as a response: one shape, whatever the reason."""
    members = {"message": refusal.message, "code": refusal.code, "request_id": request.id, **refusal.members}
    return Response(refusal.status, [CONTENT, *refusal.headers.items()], encode(members))


def explain(error: Exception, request: Request, app: "App") -> Refusal:
    """The refusal that an exception means to the caller."""
    if isinstance(error, Refusal):
        return error
    app.log.failure(request, error)
    if isinstance(error, Unavailable):
        sentence = (
            "The database is out of reach. Try again in a few seconds; an Idempotency-Key makes that safe for writes."
        )
        return Refusal("unavailable", sentence, headers={"Retry-After": "2"})
    return Refusal("server_error", f"Something went wrong here. Report the request id {request.id} to the operator.")


def of_stranger(request: Request, refusal: Refusal, app: "App") -> tuple[Allowance, Refusal]:
    """The figures of a caller who did not get in; a refusal is charged to the address, an error of ours is not."""
    allowance = app.window.take(f"address:{request.address}", ADDRESS_CEILING, charge=refusal.status < 500)
    try:
        allowance.admit()
    except Refusal as limited:
        return allowance, limited
    return allowance, refusal


def finish(response: Response, request: Request, allowance: Allowance) -> None:
    """Add the headers that every response carries."""
    headers = response.headers
    headers += [
        ("x-ratelimit-limit", str(allowance.limit)),
        ("x-ratelimit-remaining", str(allowance.remaining)),
        ("x-ratelimit-reset", str(allowance.reset)),
        ("x-request-id", request.id),
        *FIXED,
    ]
    if request.has_body:  # it stays unread, so that the connection cannot be used again
        headers.append(("connection", "close"))
    if response.status not in {204, 304}:
        headers.append(("content-length", str(len(response.body))))
