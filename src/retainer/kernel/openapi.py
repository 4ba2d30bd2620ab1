"""The OpenAPI 3.1 document, from the declarations alone: a new slice is described without a word here."""

import inspect
import re
import sys
from decimal import Decimal
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta

from retainer import __version__
from retainer.domain.accounts import PLANS
from retainer.domain.members import form_of, writable
from retainer.domain.values import LARGEST_INTEGER, Id, Instant
from retainer.errors import STATUS
from retainer.kernel import query
from retainer.kernel.resource import Operation
from retainer.store.records import Record, auto

T = TypeVar("T")
Json = dict[str, Any]
Types = dict[str, tuple[Any, Json]]
"""The named schemas of the document, each with the type that it describes."""

CONVENTIONS = """\
**Authentication.** Send a key as `Authorization: Bearer <key>`, or in `X-Api-Key`. A key acts as one user of one account \
and holds scopes; each operation names the one it needs, and `write` does not include `read`.

**Limits.** Each key has a ceiling in any 60 seconds, by plan: {ceilings}. Every answer tells where the key stands; a 429 \
says in `Retry-After` when to go on. Requests without a valid key are counted by address.

**Lists.** `page` and `per_page` choose a part, `sort` its order. A comma list in a filter means "one of these"; different \
filters are combined with "and". A parameter that is unknown is refused.

**Values.** Every documented member is always there; what is unknown is `null`. Money and other exact decimals are \
answered as strings, with the currency beside them, and read from strings or JSON numbers without rounding. Days are \
`YYYY-MM-DD` in the account's time zone, instants RFC 3339: answered in UTC, accepted with any offset. Durations are whole \
minutes. Text is trimmed, and blank text means null where null is allowed.

**Changes.** PUT and PATCH are one operation: members sent replace, members left out keep their value. Read-only members \
are accepted and ignored, so a record can be sent back as it was read; members that are unknown are refused.

**Retries.** A write with an `Idempotency-Key` that is sent again within 24 hours is answered as the first time, with \
`Idempotency-Replayed: true`, and changes nothing more. Refusals are not kept.

**Concurrency.** A record's `ETag` stands for its state. `If-None-Match` answers 304 when nothing changed; `If-Match` \
refuses a write with 412 when something did.

**Errors.** Every error has one shape: a `message` that says what to do, a `code` for programs, and the `request_id` of \
the logs; a 422 names all faulty members at once in `errors`. A method that a path does not take is a 405 with `Allow`."""

STATUSES = {
    400: "BadRequest",
    401: "Unauthorized",
    402: "PaymentRequired",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    412: "PreconditionFailed",
    413: "BodyTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "ServerError",
    503: "Unavailable",
}
SENTENCES = {
    "malformed_json": "Send a body of valid JSON: it cannot be read at line 1, column 9.",
    "bad_request": "The query string cannot be read: send at most 200 parameters in UTF-8.",
    "missing_key": "Send an API key: in the header Authorization: Bearer <key>, or in X-Api-Key.",
    "invalid_key": "No such key exists. Check that it was copied whole and from the right place.",
    "revoked_key": "This key was revoked. Ask an admin of the account for a new one.",
    "expired_key": "This key has expired. Ask an admin of the account for a new one.",
    "user_deactivated": "The user of this key is deactivated. Ask an admin for another user's key.",
    "plan_required": "The account's plan does not include the API. Change it to one that does.",
    "trial_ended": "The trial ended and the plan does not include the API. Change the plan to one that does.",
    "api_disabled": "The API is switched off for this account. Ask an admin to switch it on.",
    "missing_scope": "This key lacks the scope that the operation needs. Ask an admin for a key that holds it.",
    "not_found": "There is no such record in this account. Check the id in the path.",
    "idempotency_in_progress": "The first request with this Idempotency-Key is still running. Wait and send it again.",
    "precondition_failed": "The record has changed since you read it. Read it again, then change it.",
    "body_too_large": "The body is larger than 1 MiB (1048576 bytes). Send less at once.",
    "unsupported_media_type": "Send the header Content-Type: application/json.",
    "in_use": "This record is in use and was not deleted. See errors for what blocks.",
    "idempotency_key_reused": "This Idempotency-Key was used for another request. Send a new key with a new request.",
    "rate_limited": "Too many requests. Wait as long as Retry-After says and try again.",
    "server_error": "Something went wrong here. Report the request id to the operator.",
    "unavailable": "The database is out of reach for the moment. Nothing was changed; try again in a few seconds.",
}
"""What a code means; a code without its own sentence is a fault that `errors` explains."""
EXPLAINED = "Correct the request as errors says and send it again."
FAULTS = Annotated[dict[str, list[str]], Meta(description="What is wrong, by member.", examples=[{"name": ["Is required."]}])]
BESIDE = {402: {"plan": str}, 403: {"required_scope": str, "granted_scopes": list[str]}, 422: {"errors": FAULTS}}
"""What stands beside message, code and request_id, and the codes that come without it."""
BARE = {"api_disabled", "idempotency_key_reused"}

ALWAYS = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id")
BESIDES = {401: ["WWW-Authenticate"], 409: ["Retry-After"], 429: ["Retry-After"], 503: ["Retry-After"]}
HEADERS = {
    "X-RateLimit-Limit": ("How many requests are allowed in any 60 seconds.", "integer", 600),
    "X-RateLimit-Remaining": ("How many are left now.", "integer", 599),
    "X-RateLimit-Reset": ("The Unix second at which all are free again if nothing more is sent.", "integer", 1774967460),
    "X-Request-Id": ("The request in the logs: as sent in X-Request-Id, or made here.", "string", "req_5f2b8c"),
    "ETag": ("The state of the record, for If-None-Match and If-Match.", "string", '"5f2b8c0d"'),
    "Location": ("The address of the new record.", "string", "https://agency.example/1"),
    "Idempotency-Replayed": ("`true` when this is the stored answer to an earlier request.", "string", "true"),
    "Retry-After": ("How many seconds to wait before trying again.", "integer", 2),
    "WWW-Authenticate": ("How to authenticate.", "string", 'Bearer realm="Retainer"'),
}
SENT = {
    "Idempotency-Key": ("A name for this write, such as a UUID, so that it can be sent again safely.", 255, "c0ffee-1"),
    "If-Match": ("Refuse the write with 412 unless the record is in the state of this ETag.", 1000, '"5f2b8c0d"'),
    "If-None-Match": ("Answer 304 without a body if the record is still in the state of this ETag.", 1000, '"5f2b8c0d"'),
}
FILTERS = {
    "ids": "Only the records with these ids.",
    "q": "Only records in which this text occurs, whatever the case of its letters.",
    "created_since": "Only records created at this instant or later.",
    "created_before": "Only records created before this instant.",
    "updated_since": "Only records changed at this instant or later.",
    "updated_before": "Only records changed before this instant.",
}
BOUNDS = {"from": "on or after", "to": "on or before", "min": "at least", "max": "at most", "before": "before"}
PLAIN = {str: "text", int: "a whole number", float: "a number", Decimal: "an exact decimal"}

ADDRESS = {"description": "The absolute address of a page.", "extra_json_schema": {"format": "uri"}}
Address = Annotated[str, Meta(**ADDRESS, examples=["https://agency.example/page"])]
CLOSER: dict[type, Json] = {
    Record: {"id": Id, "created_at": Instant, "updated_at": Instant},
    query.Links: {"first": Address, "last": Address, "prev": Address | None, "next": Address | None},
    query.Meta: {"path": Address},
}
"""What the members of the base types are more closely than their plain types say."""


class Answer(msgspec.Struct, Generic[T]):
    """What was asked for, under `data`."""

    data: T


def render(operations: list[Operation], base_url: str) -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(document(operations, base_url))


def document(operations: list[Operation], base_url: str) -> Json:
    """The document of these operations, served at a base URL."""
    types: Types = {}
    tags: dict[str, str] = {}
    paths: Json = {}
    for operation in operations:
        about = inspect.getdoc(sys.modules[operation.handler.__module__]) or operation.resource.tag
        tags.setdefault(operation.resource.tag, about)
        paths.setdefault(operation.path, {})[operation.method.lower()] = describe(operation, base_url, types)
    ceilings = ", ".join(f"{plan.name} {plan.requests_per_minute}" for plan in PLANS.values() if plan.has_api)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Retainer API",
            "version": __version__,
            "description": CONVENTIONS.format(ceilings=ceilings),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base_url, "description": "This server."}],
        "tags": [{"name": name, "description": about} for name, about in tags.items()],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A key as a Bearer token."},
                "apiKey": {"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "A key by itself."},
            },
            "parameters": {name: sent_header(name) for name in SENT},
            "headers": {name: answered_header(name) for name in HEADERS},
            "responses": {name: refusal(status, types) for status, name in STATUSES.items()},
            "schemas": {name: schema for name, (_, schema) in types.items()},
        },
    }


def describe(operation: Operation, base_url: str, types: Types) -> Json:
    """One operation."""
    about, scope = inspect.getdoc(operation.handler) or "", operation.scope
    described = {
        "operationId": operation.id,
        "tags": [operation.resource.tag],
        "summary": about.splitlines()[0].removesuffix("."),
        "description": f"{about}\n\n" + (f"Needs the scope `{scope}`." if scope else "Any valid key may: no scope is needed."),
        "x-required-scope": scope,
        "security": [{scheme: [scope] if scope else []} for scheme in ("bearer", "apiKey")],
        "parameters": parameters(operation, types),
        "responses": responses(operation, base_url, types),
    }
    if operation.body is not None:
        body = refer(operation.body, types, "Create" if operation.created else "Update")
        described["requestBody"] = {"required": True, "content": content(body, example(body, types))}
    return described
