"""Batches: several requests in the body of one."""

import time
from collections.abc import Callable
from typing import Annotated, ClassVar, Literal, cast
from urllib.parse import unquote

import msgspec
from msgspec import Meta

from retainer.errors import BodyErrors, Refusal, marked
from retainer.kernel.body import RequestBody
from retainer.kernel.http import Request, Response, new_request_id
from retainer.kernel.idempotency import read_key
from retainer.settings import BASE_PATH
from retainer.values.kinds import kind

MAX_OPERATIONS = 100
RUN_SECONDS = 20
"""Time after which a batch runs no further operation, so that its response arrives in time."""
MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""Size of the responses after which a batch runs no further operation."""
NOT_RUN = "Not performed: the batch {} before. Send this operation again."
MAX_BILLED = 10_000
"""Time entries, expenses and milestones that the operations of an atomic batch bill together."""
ATOMIC_SECONDS = 2
"""Time limit of an atomic batch while it keeps the only writer of a database."""
OWN_HEADERS = ("IDEMPOTENCY_KEY", "IF_MATCH", "IF_NONE_MATCH", "PREFER", "ACCEPT", "X_REQUEST_ID", "TRANSFER_ENCODING")
"""Headers of the batch that do not apply to its operations."""


encode_body = msgspec.json.Encoder(decimal_format="number").encode


def read_object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError  # noqa: TRY004
    return value


def read_path(value: object) -> str:
    is_path = isinstance(value, str) and len(value) <= 2000 and value.isascii() and value.isprintable()
    if not isinstance(value, str) or not is_path or not value.startswith("/") or " " in value or "#" in value:
        raise ValueError
    return value


JsonObject = Annotated[
    dict[str, object],
    kind(read_object, "an object", type="object", additionalProperties=True, examples=[{"name": "Nordwind Logistics"}]),
]
Path = Annotated[
    str, kind(read_path, f"a path under {BASE_PATH} with its query, like /clients/1", examples=["/clients"])
]
Method = Annotated[Literal["GET", "POST", "PUT", "PATCH", "DELETE"], Meta(title="BatchMethod")]
ETag = Annotated[str, Meta(min_length=1, max_length=191, examples=['"5f0a1c"'])]


class BatchOperation(msgspec.Struct):
    """A request of a batch."""

    EXAMPLE: ClassVar = {"method": "POST", "path": "/clients", "body": {"name": "Nordwind Logistics"}}
    method: Annotated[Method, "What to do at the path."]
    path: Annotated[Path, "Its path and query, as in a request of its own, without the base path."]
    body: Annotated[JsonObject | None, "Its body."] = None
    if_match: Annotated[ETag | None, "Its `If-Match`: the ETag that the record must still have."] = None
    if_none_match: Annotated[
        ETag | None, "Its `If-None-Match`: `*` for a PUT by external id that only creates, or the ETag that was read."
    ] = None


class Batch(msgspec.Struct):
    """Several requests in one."""

    operations: Annotated[
        list[BatchOperation], Meta(min_length=1, max_length=MAX_OPERATIONS), "The requests; they run in this order."
    ]
    atomic: Annotated[
        bool,
        "Whether all are written, or none. An atomic batch only writes, in one transaction: the first error refuses "
        "the whole batch, with the error's status and the operation's position in `operation`.",
    ] = False


class BatchResult(msgspec.Struct):
    """The response to an operation."""

    status: Annotated[int, Meta(examples=[201]), "The status of the response."]
    request_id: Annotated[
        str,
        Meta(examples=["req_5f2b8c0d"]),
        "The `X-Request-Id` of the operation. In an atomic batch, that of the batch.",
    ]
    etag: Annotated[str | None, Meta(examples=['"5f0a1c"']), "The state of the record, for a later `if_match`."]
    body: Annotated[
        JsonObject | None, "The body of the response: `data`, or an error. Null if there is none, as after a DELETE."
    ]


class BatchResults(msgspec.Struct):
    """The responses to the operations of a batch."""

    results: Annotated[list[BatchResult], "One for each operation, in the same order."]


Performer = Callable[[Batch], list[BatchResult]]
"""Performs the operations of a batch."""


def read_batch(sent: RequestBody, is_batch: Callable[[str], bool]) -> Batch:
    """Return the batch of a body. Raises `validation_failed` with all errors.

    `is_batch` returns whether a path, however it is written, is that of batches.
    """
    errors = BodyErrors()
    batch: Batch = sent.new(errors)
    for position, operation in enumerate(batch.operations or ()):  # None if it could not be read
        errors.prefix = f"operations.{position}."
        if is_batch(path_of(operation)):
            errors.error("path", "A batch cannot have another batch. Send it by itself.")
        if batch.atomic and operation.method == "GET":
            errors.error("method", "An atomic batch only writes. Send GET in a batch that is not atomic.")
        if operation.body is not None and operation.method in {"GET", "DELETE"}:
            errors.error("body", f"{operation.method} has no body. Leave it out.")
    errors.raise_errors()
    return batch


def perform_apart(
    outer: Request, answer: Callable[[Request], Response], refuse: Callable[[Refusal, Request], Response], batch: Batch
) -> list[BatchResult]:
    """Perform each operation like a request of its own, in order; return the responses.

    With an Idempotency-Key, each write has the key and its position as its own, so that a repeated batch continues
    where the first one ended.
    """
    key, end, room = read_key(outer), time.monotonic() + RUN_SECONDS, MAX_RESPONSE_BYTES
    results = []
    for position, operation in enumerate(batch.operations):
        own_key = None if operation.method == "GET" else key
        request = request_of(outer, operation, request_id=new_request_id(), idempotency_key=own_key)
        request.idempotency_suffix = f" {position}"
        if time.monotonic() > end:
            response = refuse(Refusal("unavailable", NOT_RUN.format(f"ran for {RUN_SECONDS} seconds")), request)
        elif room < 0:
            response = refuse(Refusal("unavailable", NOT_RUN.format("has reached 8 MiB of responses")), request)
        else:
            response = answer(request)
        room -= len(response.body)
        results.append(result_of(request, response))
    return results


def path_of(operation: BatchOperation) -> str:
    """Return the path of an operation, decoded: WSGI has its bytes as Latin-1."""
    return unquote(operation.path.partition("?")[0], "latin-1")


def of_operation(refusal: Refusal, position: int, operation: BatchOperation) -> Refusal:
    message = f"Operation {position} ({operation.method} {operation.path}) was refused, so nothing was written. "
    members = {**refusal.members, "operation": position}
    return Refusal(refusal.code, message + marked(refusal.message), headers=refusal.headers, **members)


def request_of(
    outer: Request, operation: BatchOperation, *, request_id: str, idempotency_key: str | None = None
) -> Request:
    """Return the request of an operation: the key and address are those of the batch, the rest is its own."""
    query = operation.path.partition("?")[2]
    environ = {name: value for name, value in outer.environ.items() if name.removeprefix("HTTP_") not in OWN_HEADERS}
    body = b"" if operation.body is None else encode_body(operation.body)
    environ |= {"REQUEST_METHOD": operation.method, "PATH_INFO": path_of(operation), "QUERY_STRING": query}
    environ |= {"CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(body))}
    own = {"IF_MATCH": operation.if_match, "IF_NONE_MATCH": operation.if_none_match, "IDEMPOTENCY_KEY": idempotency_key}
    environ |= {f"HTTP_{name}": value for name, value in own.items() if value is not None}
    request = Request(environ, outer.settings)
    request.id, request.body, request.has_body = request_id, body, False
    return request


def result_of(request: Request, response: Response) -> BatchResult:
    body = cast("dict[str, object]", msgspec.Raw(response.body)) if response.body else None
    return BatchResult(response.status, request.id, dict(response.headers).get("etag"), body)
